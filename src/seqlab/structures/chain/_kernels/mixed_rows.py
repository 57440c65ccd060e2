"""Kernels of `MixedRows`: emission and its transpose over dense rows and single weights.

``steps`` is the `RowArrays` of the data.

Features with weights for many labels have dense rows, which are summed in vector registers. The others are a
flat list of (weight, column) pairs, which avoids a short inner loop with an unpredictable end. If every value
is 1, as in text, ``dense_value`` and ``pair_value`` have size 0 and nothing is multiplied. Indices are
unsigned, so that no code is generated for negative ones.

Measured on text (CoNLL-2000, 22 labels; per step 10 dense features and 18 pairs), one thread: emission 0.09
us and scatter 0.10 us per step. Dense rows (a megabyte) are limited by reads from L2: 31 cache lines per
step, 0.95 per nanosecond, 79 % of what the core reads in a plain loop; scatter also writes them back.
Weights of pairs are stored in order of first occurrence, so that those of a sentence are close together; they
take 0.04 us per step.

Columns of the data that are mostly nonzero, such as embeddings, are in the matrix of `MatrixColumns`, whose
column ``k`` has row ``k`` of the table of dense rows. Their scores and sums are matrix products, see
`seqlab.simd.dense_products`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.simd.row_sums import add_to_rows, add_to_scaled_rows, sum_rows
from seqlab.utils.linalg import axpy


@njit(nogil=True, cache=True)
def count_split(indptr, indices, plan, first, last, n_dense, n_pairs):
    """Count the dense features and the pairs of each of the rows ``first:last``."""
    for t in range(first, last):
        dense, pairs = 0, 0
        for k in range(indptr[t], indptr[t + 1]):
            entry = plan[indices[k]]
            if entry < 0:
                dense += 1
            else:
                pairs += entry & 0xFFFF
        n_dense[t], n_pairs[t] = dense, pairs


@njit(nogil=True, cache=True)
def fill_split(indptr, indices, data, plan, columns, first, last, steps):
    """Write the dense features and the pairs of the rows ``first:last``."""
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value = steps
    unit = dense_value.size == 0 and pair_value.size == 0
    d, q = np.int64(dense_ptr[first]), np.int64(pair_ptr[first])
    for t in range(first, last):
        for k in range(indptr[t], indptr[t + 1]):
            entry = plan[indices[k]]
            if entry < 0:
                dense_row[d] = -1 - entry
                if not unit:
                    dense_value[d] = data[k]
                d += 1
            else:
                weight = entry >> 16
                for p in range(weight, weight + (entry & 0xFFFF)):
                    pair_weight[q] = p
                    pair_column[q] = columns[p]
                    if not unit:
                        pair_value[q] = data[k]
                    q += 1


@njit(nogil=True, cache=True, inline="always")
def emit_mixed(steps, rows, weights, scale, n_labels, first, last, out):
    """Write the scores of the steps ``first:last`` to ``out[:last - first]``, ``-inf`` to the padding.

    ``rows`` (n_dense, width) holds the weights of dense features, ``weights`` those of all pairs, which are
    multiplied by ``scale``.
    """
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value = steps
    unit = pair_value.size == 0
    for t in range(first, last):
        sum_rows(
            rows, dense_row, dense_value, out, np.int64(dense_ptr[t]), np.int64(dense_ptr[t + 1]),
            np.int64(t - first),
        )  # fmt: skip
        row = out[t - first]
        for j in range(n_labels, rows.shape[1]):
            row[j] = -np.inf
        if unit:
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                row[pair_column[k]] += scale * weights[pair_weight[k]]
        else:
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                row[pair_column[k]] += scale * pair_value[k] * weights[pair_weight[k]]


@njit(nogil=True, cache=True)
def scatter_mixed(steps, residual, place, first, last, rows, weights):
    """Add ``sum_t x[t, f] * residual[place + t - first, c]`` to ``weights[f, c]``.

    The sums of dense features are added to ``rows``.
    """
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value = steps
    unit = pair_value.size == 0
    for t in range(first, last):
        at = place + t - first
        add_to_rows(
            rows, dense_row, dense_value, residual,
            np.int64(dense_ptr[t]), np.int64(dense_ptr[t + 1]), np.int64(at),
        )  # fmt: skip
        row = residual[at]
        if unit:
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                weights[pair_weight[k]] += row[pair_column[k]]
        else:
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                weights[pair_weight[k]] += pair_value[k] * row[pair_column[k]]


@njit(nogil=True, cache=True)
def scatter_scaled(steps, residual, place, first, last, rows, weights, scale, row_factors):
    """Do the same as `scatter_mixed` with factors: ``row_factors`` of dense rows, ``scale`` of the others."""
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value = steps
    unit = dense_value.size == 0 and pair_value.size == 0
    for t in range(first, last):
        at = place + t - first
        row, begin, end = residual[at], np.int64(dense_ptr[t]), np.int64(dense_ptr[t + 1])
        if unit:
            add_to_scaled_rows(rows, dense_row, row_factors, residual, begin, end, np.int64(at))
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                weights[pair_weight[k]] += scale * row[pair_column[k]]
        else:
            for k in range(begin, end):
                axpy(row_factors[dense_row[k]] * dense_value[k], row, rows[dense_row[k]])
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                weights[pair_weight[k]] += scale * pair_value[k] * row[pair_column[k]]


@njit(nogil=True, cache=True)
def add_gold(steps, codes, step_weights, first, last, rows, weights):
    """Add the observed features of the steps ``first:last``: `scatter_mixed` with 1 at each gold label.

    Steps with negative codes are left out.
    """
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value = steps
    for t in range(first, last):
        code, weight = codes[t], step_weights[t]
        if code < 0:
            continue
        for k in range(dense_ptr[t], dense_ptr[t + 1]):
            value = dense_value[k] if dense_value.size > 0 else 1.0
            rows[dense_row[k], code] += weight * value
        for k in range(pair_ptr[t], pair_ptr[t + 1]):
            if pair_column[k] == code:
                value = pair_value[k] if pair_value.size > 0 else 1.0
                weights[pair_weight[k]] += weight * value


@njit(nogil=True, cache=True)
def add_row_squares(dense_row, dense_value, out):
    """Add the squares of the values of dense features (all 1 if there are none) to ``out`` (n_dense,)."""
    for k in range(dense_row.size):
        value = dense_value[k] if dense_value.size > 0 else 1.0
        out[dense_row[k]] += value * value
