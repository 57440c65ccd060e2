"""Kernels between feature rows and label scores: emission, its transpose, and pattern building.

A weight belongs to a (feature, column) pair; a column is a label, or a pair of labels for
observation-conditioned transitions. Weights are sorted by feature: those of feature ``f`` are
``starts[f]:starts[f + 1]``, and ``columns`` is the column of each. X is a CSR matrix.

The time of emission and scatter is limited by the latency of reading the few weights of rare features (from
L2 or L3); the arithmetic is one multiplication and addition per (active feature, column).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def emit(indptr, indices, data, starts, columns, weights, first, last, out):
    """Set ``out[t - first, c] = sum_f x[t, f] w[f, c]`` for the steps ``first:last``."""
    for t in range(first, last):
        row = out[t - first]
        row[:] = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            feature, value = indices[k], data[k]
            for p in range(starts[feature], starts[feature + 1]):
                row[columns[p]] += value * weights[p]


@njit(nogil=True, cache=True)
def emit_rows(indptr, indices, data, weights, first, last, out):
    """Do the same as `emit` for a dense (n_features, n_columns) matrix of weights."""
    n_columns = weights.shape[1]
    for t in range(first, last):
        row = out[t - first]
        row[:] = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            value = data[k]
            weight_row = weights[indices[k]]
            for c in range(n_columns):
                row[c] += value * weight_row[c]


@njit(nogil=True, cache=True)
def scatter(indptr, indices, data, starts, columns, residual, first, last, out):
    """Add ``sum_t x[t, f] residual[t - first, c]`` to ``out[f, c]``: the transpose of `emit`."""
    for t in range(first, last):
        row = residual[t - first]
        for k in range(indptr[t], indptr[t + 1]):
            feature, value = indices[k], data[k]
            for p in range(starts[feature], starts[feature + 1]):
                out[p] += value * row[columns[p]]


@njit(nogil=True, cache=True)
def scatter_rows(indptr, indices, data, residual, first, last, out):
    """Do the same as `scatter` for a dense (n_features, n_columns) matrix of weights."""
    n_columns = residual.shape[1]
    for t in range(first, last):
        row = residual[t - first]
        for k in range(indptr[t], indptr[t + 1]):
            value = data[k]
            out_row = out[indices[k]]
            for c in range(n_columns):
                out_row[c] += value * row[c]


@njit(nogil=True, cache=True)
def find(starts, columns, feature, column):
    """Return the index of the weight of (feature, column), or -1. Columns are sorted within a feature."""
    low, high = starts[feature], starts[feature + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    if low < end and columns[low] == column:
        return low
    return -1


@njit(nogil=True, cache=True)
def add_observed(indptr, indices, data, starts, columns, codes, step_weights, out):
    """Add ``step_weights[t] * x[t, f]`` to ``out[f, codes[t]]``: the sum of the observed features."""
    for t in range(indptr.size - 1):
        if codes[t] >= 0:
            for k in range(indptr[t], indptr[t + 1]):
                p = find(starts, columns, indices[k], codes[t])
                if p >= 0:
                    out[p] += step_weights[t] * data[k]


@njit(nogil=True, cache=True)
def weight_indices(indptr, indices, starts, columns, codes, out):
    """Set ``out[k]`` to the index of the weight of entry ``k`` of X for its step's column, or to -1."""
    for t in range(indptr.size - 1):
        for k in range(indptr[t], indptr[t + 1]):
            if codes[t] < 0:
                out[k] = -1
            else:
                out[k] = find(starts, columns, indices[k], codes[t])


@njit(nogil=True, cache=True)
def seen_pairs(indptr, indices, data, rows, codes, seen, starts):
    """Do the same as `observed_pairs` for ``min_count`` 1 and few columns: one bit per pair, one pass.

    ``seen`` (n_features * n_words,) are zeros, a bit for each column of a feature. ``starts`` receives the
    first pair of each feature, and the end of the last; the columns of the pairs are returned.
    """
    n_features = starts.size - 1
    n_words = seen.size // max(n_features, 1)
    for r in range(rows.size):
        if codes[r] >= 0:
            word, bit = codes[r] >> 6, np.uint64(1) << np.uint64(codes[r] & 63)
            for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
                if data[k] != 0.0:
                    seen[np.int64(indices[k]) * n_words + word] |= bit
    starts[0] = n_found = 0
    for f in range(n_features):
        for word in range(n_words):
            bits = seen[f * n_words + word]
            while bits != 0:
                bits &= bits - np.uint64(1)
                n_found += 1
        starts[f + 1] = n_found
    columns = np.empty(n_found, dtype=np.int32)
    k = 0
    for f in range(n_features):
        for word in range(n_words):
            bits = seen[f * n_words + word]
            column = 64 * word
            while bits != 0:
                if bits & np.uint64(1):
                    columns[k] = column
                    k += 1
                bits >>= np.uint64(1)
                column += 1
    return columns


@njit(nogil=True, cache=True)
def observed_pairs(indptr, indices, data, rows, codes, n_features, n_columns, min_count):
    """Return the (feature, column) pairs seen at least ``min_count`` times, sorted by feature.

    ``rows[r]`` is a step and ``codes[r]`` its column (negative: skipped). Entries of X that are zero
    do not count. Returns ``starts`` (n_features + 1,) and ``columns``, sorted within a feature.
    """
    # Sort entries by feature (counting sort), then count the columns of one feature at a time.
    begin = np.zeros(n_features + 1, dtype=np.int64)
    for r in range(rows.size):
        if codes[r] >= 0:
            for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
                if data[k] != 0.0:
                    begin[indices[k] + 1] += 1
    for f in range(n_features):
        begin[f + 1] += begin[f]
    by_feature = np.empty(begin[n_features], dtype=np.int32)
    place = begin[:n_features].copy()
    for r in range(rows.size):
        if codes[r] >= 0:
            for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
                if data[k] != 0.0:
                    by_feature[place[indices[k]]] = codes[r]
                    place[indices[k]] += 1
    counts = np.zeros(n_columns, dtype=np.int64)
    starts = np.zeros(n_features + 1, dtype=np.int32)
    columns = np.empty(by_feature.size, dtype=np.int32)
    n_found = 0
    for f in range(n_features):
        n_before = n_found
        for k in range(begin[f], begin[f + 1]):
            column = by_feature[k]
            if counts[column] == 0:
                columns[n_found] = column
                n_found += 1
            counts[column] += 1
        kept = n_before
        found = columns[n_before:n_found]
        found.sort()
        for i in range(n_before, n_found):
            column = columns[i]
            if counts[column] >= min_count:
                columns[kept] = column
                kept += 1
            counts[column] = 0
        n_found = kept
        starts[f + 1] = n_found
    return starts, columns[:n_found].copy()


@njit(nogil=True, cache=True)
def centre_groups(w, firsts, size):
    """Subtract from each group of ``size`` consecutive entries, which begin at ``firsts``, its mean."""
    for first in firsts:
        total = 0.0
        for k in range(first, first + size):
            total += w[k]
        mean = total / size
        for k in range(first, first + size):
            w[k] -= mean
