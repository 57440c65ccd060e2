"""Kernels of `EmissionTable`: scores of rows that are read once.

A feature has one line of four numbers, half a cache line: the packed columns and up to three weights. The
line of a feature with weights for many labels refers to a dense row instead, with a medium number of weights
to a run of weights. Lines that the next steps need are prefetched; only runs, which are rare, need a branch
that cannot be predicted.

Measured on text (CoNLL-2000, 22 labels, 68,000 of 336,000 features in the data; per step 12 dense rows and
5 lines), one thread: 0.16 us per step, and 0.07 us to fill the table. One table of (place, weight) lines
for all features without prefetching took 0.29 us. The time is limited by reads of lines and rows, two
megabytes each, from L2 and L3.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.simd.row_sums import sum_rows
from seqlab.simd.scalars import prefetch

IN_LINE = 3  # weights in a line
RUN = 1 << 62  # first number of a line that refers to a run of weights
# Steps, and features, between a prefetch and its use. With fewer the data have not arrived yet, with more
# they may have been evicted from the cache again.
AHEAD = 2
LINES_AHEAD = 16


@njit(nogil=True, cache=True)
def number_features(indices, numbers, features, numbered):
    """Number the features of CSR entries in order of first occurrence; return how many there are.

    Parameters
    ----------
    indices : int32 array of shape (n_entries,)
    numbers : zeros of shape (n_features,), int32
        Workspace: 1 + number of each feature.
    features : int32 array, large enough for every feature
        Set to the features in this order.
    numbered : int32 array of shape (n_entries,)
        Set to the number of each entry's feature.
    """
    n, last = np.int32(0), indices.size - 1
    for k in range(indices.size):
        prefetch(numbers, np.int64(indices[min(k + LINES_AHEAD, last)]))
        feature = indices[k]
        if numbers[feature] == 0:
            features[n] = feature
            n += np.int32(1)
            numbers[feature] = n
        numbered[k] = numbers[feature] - np.int32(1)
    return n


@njit(nogil=True, cache=True)
def find_weights(features, starts, min_dense, first, count):
    """Find start and number of the weights of features; return how many have at least ``min_dense``."""
    n_dense = 0
    for i in range(features.size):
        prefetch(starts, np.int64(features[min(i + LINES_AHEAD, features.size - 1)]))
        feature = features[i]
        first[i], count[i] = starts[feature], starts[feature + 1] - starts[feature]
        n_dense += count[i] >= min_dense
    return n_dense


@njit(nogil=True, cache=True)
def fill_lines(first, count, columns, weights, min_dense, rows, lines, values):
    """Fill the lines and dense rows of features for `emit_lines`.

    Parameters
    ----------
    first, count : int64 and int32 arrays of shape (n_lines,)
        Start and number of the weights of each feature.
    columns, weights : arrays of shape (n_weights,), not empty
    rows : zeros of shape (n_dense, width)
        Set to the weights of the features that have dense rows.
    lines : int64 array of shape (n_lines, 1 + IN_LINE)
        Set to ``-1 - row`` for a dense feature; for up to `IN_LINE` weights to their columns, 16 bits each,
        and the weights; otherwise to ``RUN``, start and number of the weights.
    values : the memory of ``lines``, as floats
    """
    row, n_lines = 0, count.size
    for i in range(n_lines):
        later = first[min(i + LINES_AHEAD, n_lines - 1)]
        prefetch(columns, later)
        prefetch(weights, later)
        begin, n = first[i], count[i]
        if n >= min_dense:
            for p in range(begin, begin + n):
                rows[row, columns[p]] = weights[p]
            lines[i, 0] = -1 - row
            row += 1
        elif n <= IN_LINE:
            packed = np.int64(0)
            for k in range(IN_LINE):  # zeros for missing weights, without a branch
                p = min(begin + k, columns.size - 1)
                packed |= (np.int64(columns[p]) if k < n else np.int64(0)) << 16 * k
                values[i, 1 + k] = weights[p] if k < n else 0.0
            lines[i, 0] = packed
        else:
            lines[i, 0], lines[i, 1], lines[i, 2] = RUN, begin, n


@njit(nogil=True, cache=True)
def emit_lines(indptr, numbered, data, lines, values, columns, weights, rows, first, last, out):
    """Write the scores of the rows ``first:last``, whose features are numbered as lines, to ``out``."""
    longest, width, end = 0, rows.shape[1], indptr[last]
    for t in range(first, last):
        longest = max(longest, indptr[t + 1] - indptr[t])
    dense_row, dense_value = np.empty(longest, dtype=np.uint32), np.empty(longest)
    other, other_value = np.empty(longest, dtype=np.int64), np.empty(longest)
    dense, rest = np.empty((1, width)), np.empty(width)
    for t in range(first, last):
        begin, n = indptr[t], indptr[t + 1] - indptr[t]
        for k in range(min(begin + AHEAD * n, end), min(begin + (AHEAD + 1) * n, end)):
            prefetch(lines, lines.shape[1] * np.int64(numbered[k]))
        n_dense = n_other = 0
        for k in range(n):  # write to both lists, but extend only one: no branch
            line, value = numbered[begin + k], data[begin + k]
            what = lines[line, 0]
            dense_row[n_dense], dense_value[n_dense] = -1 - what, value
            other[n_other], other_value[n_other] = line, value
            n_dense += what < 0
            n_other += what >= 0
        sum_rows(rows, dense_row, dense_value, dense, np.int64(0), np.int64(n_dense), np.int64(0))
        for j in range(width):
            rest[j] = 0.0
        for k in range(n_other):
            line, value = other[k], other_value[k]
            what = lines[line, 0]
            if what < RUN:
                rest[what & 0xFFFF] += value * values[line, 1]
                rest[what >> 16 & 0xFFFF] += value * values[line, 2]
                rest[what >> 32 & 0xFFFF] += value * values[line, 3]
            else:
                place = lines[line, 1]
                for p in range(place, place + lines[line, 2]):
                    rest[columns[p]] += value * weights[p]
        for j in range(out.shape[1]):
            out[t - first, j] = dense[0, j] + rest[j]
