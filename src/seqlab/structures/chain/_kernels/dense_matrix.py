"""Kernels that read a matrix of features: its columns, its nonzero entries, and sums over its steps."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def count_columns(matrix, first, last, n_nonzero, n_ones):
    """Add the numbers of nonzero entries, and of ones, of each column in the rows ``first:last``."""
    for t in range(first, last):
        for f in range(matrix.shape[1]):
            n_nonzero[f] += matrix[t, f] != 0.0
            n_ones[f] += matrix[t, f] == 1.0


@njit(nogil=True, cache=True)
def count_indices(indices, n, out):
    """Add the number of times that each column is among the first ``n`` indices of a CSR matrix."""
    for k in range(n):
        out[indices[k]] += 1


@njit(nogil=True, cache=True)
def weighted_squares(matrix, weights, out):
    """Add the sum of the squares of each column, weighted by step, to ``out``."""
    for t in range(matrix.shape[0]):
        for f in range(matrix.shape[1]):
            out[f] += weights[t] * (matrix[t, f] * matrix[t, f])


@njit(nogil=True, cache=True)
def list_entries(matrix, first, last, indptr, indices, data):
    """Write the nonzero entries of the rows ``first:last`` as a CSR matrix.

    Without branches on the values: every entry is written, and overwritten by the next one if it is zero.
    The position is unsigned, so that no code is generated for negative ones: this takes half of the time.
    """
    n, zero, one = np.uint64(0), np.uint64(0), np.uint64(1)
    for t in range(first, last):
        values = matrix[t]
        for f in range(values.size):
            indices[n], data[n] = f, values[f]
            n += one if values[f] != 0.0 else zero
        indptr[t - first + 1] = n


@njit(nogil=True, cache=True)
def count_in_rows(matrix, amounts, first, last, out):
    """Set ``out[t]`` to the sum of the ``amounts`` of the nonzero entries of row t, for ``first:last``."""
    for t in range(first, last):
        values, total = matrix[t], 0
        for f in range(values.size):
            total += amounts[f] if values[f] != 0.0 else 0
        out[t] = total


@njit(nogil=True, cache=True)
def add_row_products(indptr, indices, data, rows, counts, out):
    """Add the outer products of rows of a CSR matrix, times their counts.

    A product of two entries of a row is added once, in the lower half of ``out`` if indices are sorted.
    """
    for r in range(rows.size):
        first, last = indptr[rows[r]], indptr[rows[r] + 1]
        for i in range(first, last):
            row, factor = out[indices[i]], counts[r] * data[i]
            for j in range(first, i + 1):
                row[indices[j]] += factor * data[j]


@njit(nogil=True, cache=True)
def count_pairs(matrix, rows, codes, counts):
    """Add how often each column is nonzero with each code to ``counts`` (n_codes, n_features).

    ``rows[r]`` is a step and ``codes[r]`` its code (negative: skipped).
    """
    for r in range(rows.size):
        if codes[r] >= 0:
            # Vectorised only if the loop has no indices of rows.
            row, values = counts[codes[r]], matrix[rows[r]]
            for f in range(values.size):
                row[f] += values[f] != 0.0


@njit(nogil=True, cache=True)
def add_labelled(matrix, codes, step_weights, first, last, out):
    """Add ``step_weights[t] * matrix[t]`` to ``out[codes[t]]`` (n_codes, n_features); skip negative codes."""
    for t in range(first, last):
        if codes[t] >= 0:
            row = out[codes[t]]
            for f in range(matrix.shape[1]):
                row[f] += step_weights[t] * matrix[t, f]


@njit(nogil=True, cache=True)
def add_squares(matrix, index, n_rows, node, table):
    """Add ``sum_r matrix[index[r], f]^2 node[r]`` to ``table[f]``."""
    for r in range(n_rows):
        for f in range(matrix.shape[1]):
            square = matrix[index[r], f] * matrix[index[r], f]
            for j in range(table.shape[1]):
                table[f, j] += square * node[r, j]
