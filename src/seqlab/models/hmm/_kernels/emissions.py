"""Kernels of emission distributions: log-probabilities of steps, and the counts for estimation.

Tables are ``(n_columns, n_labels)``, labels last, so that the inner loop runs along a row for all labels.
``weights[i, s]`` is how much step i counts for label s: the weight of its sequence times 0 or 1 if
the label is known, otherwise times a posterior probability. NaN is a missing value: its factor is left out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.models.hmm._kernels import MISSING, Columns, CSRRows, Floats


@njit(nogil=True, cache=True)
def encode_column(X: Floats, column: int, categories: Floats, codes: Columns) -> bool:
    """Set ``codes[:, column]`` to the indices of a column of X in the sorted ``categories``.

    `MISSING` stands for NaN, ``len(categories)`` for a number that is not in the categories. Returns False
    if a number is infinite or not whole; the codes are then undefined.
    """
    n = categories.shape[0]
    # Most categories are consecutive: the index of a number is then its difference from the first.
    consecutive = n > 0 and categories[n - 1] - categories[0] == n - 1
    for i in range(X.shape[0]):
        x = X[i, column]
        if math.isnan(x):
            codes[i, column] = MISSING
            continue
        if math.isinf(x) or x != math.floor(x):
            return False
        if n == 0 or x < categories[0] or x > categories[n - 1]:
            index = n
        elif consecutive:
            index = int(x - categories[0])
        else:
            index = np.searchsorted(categories, x)
            index = index if categories[index] == x else n
        codes[i, column] = index
    return True


@njit(nogil=True, cache=True)
def sum_table_rows(codes: Columns, first: NDArray[np.int64], table: Floats, out: Floats) -> None:
    """``out[i] = sum_k table[first[k] + codes[i, k]]`` over the columns k of categorical data."""
    for i in range(codes.shape[0]):
        empty = True
        for k in range(codes.shape[1]):
            if codes[i, k] == MISSING:
                continue
            row = first[k] + codes[i, k]
            if empty:
                for s in range(out.shape[1]):
                    out[i, s] = table[row, s]
                empty = False
            else:
                for s in range(out.shape[1]):
                    out[i, s] += table[row, s]
        if empty:
            out[i, :] = 0.0


@njit(nogil=True, cache=True)
def count_table_rows(
    codes: Columns, first: NDArray[np.int64], weights: Floats, counts: Floats
) -> None:
    """``counts[first[k] + codes[i, k]] += weights[i]``."""
    for i in range(codes.shape[0]):
        for k in range(codes.shape[1]):
            if codes[i, k] != MISSING:
                row = first[k] + codes[i, k]
                for s in range(weights.shape[1]):
                    counts[row, s] += weights[i, s]


@njit(nogil=True, cache=True)
def add_present(
    rows: CSRRows, present: Floats, absent: Floats, certain: NDArray[np.bool_], out: Floats
) -> None:
    """Add Bernoulli log-probabilities to ``out``, which holds those of a step with all features off.

    ``present`` is ``log p - log(1 - p)`` and ``absent`` is ``log(1 - p)``. If p = 1 (``certain``) both are 0,
    and a step without that feature is impossible.
    """
    indptr, indices, data = rows
    n_labels = out.shape[1]
    required = certain.sum(axis=0)
    found = np.zeros(n_labels, dtype=np.int64)
    for i in range(out.shape[0]):
        found[:] = 0
        for k in range(indptr[i], indptr[i + 1]):
            feature = indices[k]
            if data[k] == 0.0:
                continue
            for s in range(n_labels):
                out[i, s] += -absent[feature, s] if math.isnan(data[k]) else present[feature, s]
                found[s] += certain[feature, s]
        for s in range(n_labels):
            if found[s] < required[s]:
                out[i, s] = -np.inf


@njit(nogil=True, cache=True)
def count_present(rows: CSRRows, weights: Floats, present: Floats, missing: Floats) -> None:
    """Count how often each feature is on and how often it is missing."""
    indptr, indices, data = rows
    for i in range(weights.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            target = missing if math.isnan(data[k]) else present
            if data[k] != 0.0:
                for s in range(weights.shape[1]):
                    target[indices[k], s] += weights[i, s]


@njit(nogil=True, cache=True)
def add_multinomial(rows: CSRRows, table: Floats, out: Floats) -> None:
    """Add ``log n! - sum_f log x_f! + sum_f x_f log p_f`` for the n events of a step."""
    indptr, indices, data = rows
    for i in range(out.shape[0]):
        total, arrangements = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value = data[k]
            if value == 0.0:
                continue
            total += value
            if value != 1.0:
                arrangements -= math.lgamma(value + 1.0)
            for s in range(out.shape[1]):
                out[i, s] += value * table[indices[k], s]
        arrangements += math.lgamma(total + 1.0)
        for s in range(out.shape[1]):
            out[i, s] += arrangements


@njit(nogil=True, cache=True)
def count_values(rows: CSRRows, weights: Floats, counts: Floats) -> None:
    """``counts[f] += weights[i] x[i, f]``."""
    indptr, indices, data = rows
    for i in range(weights.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            for s in range(weights.shape[1]):
                counts[indices[k], s] += weights[i, s] * data[k]


@njit(nogil=True, cache=True)
def add_normal(X: Floats, means: Floats, halves: Floats, logs: Floats, out: Floats) -> None:
    """``out[i] += logs[f] - halves[f] (x[i, f] - means[f])^2``: halves = 1 / 2v, logs = -log(2 pi v) / 2."""
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            x = X[i, f]
            if math.isnan(x):
                continue
            for s in range(out.shape[1]):
                deviation = x - means[f, s]
                out[i, s] += logs[f, s] - halves[f, s] * deviation * deviation


@njit(nogil=True, cache=True)
def add_normal_rows(
    rows: CSRRows, means: Floats, halves: Floats, at_zero: Floats, out: Floats
) -> None:
    """The same for rows of a CSR matrix; ``out`` holds the log-probabilities of a step of zeros.

    ``at_zero[f]`` is the contribution of feature f at the value 0.
    """
    indptr, indices, data = rows
    for i in range(out.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            f, x = indices[k], data[k]
            for s in range(out.shape[1]):
                if math.isnan(x):
                    out[i, s] -= at_zero[f, s]
                else:
                    out[i, s] += halves[f, s] * x * (2.0 * means[f, s] - x)


@njit(nogil=True, cache=True)
def count_moments(
    X: Floats, center: Floats, weights: Floats, counts: Floats, first: Floats, second: Floats
) -> None:
    """Add counts, sums and sums of squares of ``x - center``."""
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            x = X[i, f] - center[f]
            if math.isnan(x):
                continue
            for s in range(weights.shape[1]):
                weight = weights[i, s]
                counts[f, s] += weight
                first[f, s] += weight * x
                second[f, s] += weight * x * x


@njit(nogil=True, cache=True)
def count_moments_rows(
    rows: CSRRows, center: Floats, weights: Floats, counts: Floats, first: Floats, second: Floats
) -> None:
    """Correct the moments of a matrix of zeros for the stored entries of a CSR matrix."""
    indptr, indices, data = rows
    for i in range(weights.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            f, x = indices[k], data[k]
            middle = center[f]
            for s in range(weights.shape[1]):
                weight = weights[i, s]
                if math.isnan(x):
                    counts[f, s] -= weight
                    first[f, s] += weight * middle
                    second[f, s] -= weight * middle * middle
                else:
                    first[f, s] += weight * x
                    second[f, s] += weight * x * (x - 2.0 * middle)


@njit(nogil=True, cache=True)
def add_joint_normal(
    X: Floats, means: Floats, whitening: Floats, logs: Floats, out: Floats
) -> None:
    """``out[i, s] += logs[s] - |W_s (x_i - m_s)|^2 / 2``.

    ``W_s`` is lower triangular, and ``W_s' W_s`` is the inverse of the covariance.
    """
    n_features = X.shape[1]
    deviation = np.empty(n_features)
    for i in range(X.shape[0]):
        for s in range(out.shape[1]):
            for f in range(n_features):
                deviation[f] = X[i, f] - means[f, s]
            total = 0.0
            for f in range(n_features):
                value = 0.0
                for g in range(f + 1):
                    value += whitening[s, f, g] * deviation[g]
                total += value * value
            out[i, s] += logs[s] - 0.5 * total


@njit(nogil=True, cache=True)
def count_products(
    X: Floats, center: Floats, weights: Floats, first: Floats, second: Floats
) -> None:
    """Add sums ``first[f, s]`` and sums of products ``second[s, f, g]`` of ``x - center``."""
    n_features = X.shape[1]
    deviation = np.empty(n_features)
    for i in range(X.shape[0]):
        for f in range(n_features):
            deviation[f] = X[i, f] - center[f]
        for s in range(weights.shape[1]):
            weight = weights[i, s]
            if weight == 0.0:
                continue
            for f in range(n_features):
                first[f, s] += weight * deviation[f]
                for g in range(n_features):
                    second[s, f, g] += weight * deviation[f] * deviation[g]
