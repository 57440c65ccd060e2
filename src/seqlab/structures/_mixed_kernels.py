"""Kernels of `MixedRows`: emission and its transpose over dense rows and single weights.

Features that go with many labels have dense rows, which add up in vector registers; the others are listed
weight by weight, one (weight, column) pair for each label a feature goes with: a flat list has no inner loop
whose end the processor must guess. ``unit`` data (every value 1, as in text) need no multiplication. Indices
are unsigned, so that no code is spent on negative ones.

Measured on text (CoNLL-2000, 22 labels; per step 10 dense features and 18 pairs), one thread: emission 0.11
us and scatter 0.08 us per step. The weights of rare features lie scattered over a few megabytes, so the
latency of L2 and L3 is the bound to expect; its share was not measured.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def split_rows(indptr, indices, data, unit, dense_of, starts, columns):
    """Split CSR rows into dense features and (weight, column) pairs.

    Returns ``dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value``.
    """
    n_rows = indptr.size - 1
    dense_ptr = np.zeros(n_rows + 1, dtype=np.uint32)
    pair_ptr = np.zeros(n_rows + 1, dtype=np.uint32)
    for t in range(n_rows):
        n_dense, n_pairs = 0, 0
        for k in range(indptr[t], indptr[t + 1]):
            feature = indices[k]
            if dense_of[feature] >= 0:
                n_dense += 1
            else:
                n_pairs += starts[feature + 1] - starts[feature]
        dense_ptr[t + 1] = dense_ptr[t] + n_dense
        pair_ptr[t + 1] = pair_ptr[t] + n_pairs
    dense_row = np.empty(dense_ptr[n_rows], dtype=np.uint32)
    pair_weight = np.empty(pair_ptr[n_rows], dtype=np.uint32)
    pair_column = np.empty(pair_ptr[n_rows], dtype=np.uint16)
    dense_value = np.empty(0 if unit else dense_row.size)
    pair_value = np.empty(0 if unit else pair_weight.size)
    d, q = 0, 0
    for t in range(n_rows):
        for k in range(indptr[t], indptr[t + 1]):
            feature = indices[k]
            if dense_of[feature] >= 0:
                dense_row[d] = dense_of[feature]
                if not unit:
                    dense_value[d] = data[k]
                d += 1
            else:
                for p in range(starts[feature], starts[feature + 1]):
                    pair_weight[q] = p
                    pair_column[q] = columns[p]
                    if not unit:
                        pair_value[q] = data[k]
                    q += 1
    return dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value


@njit(nogil=True, cache=True)
def emit_mixed(
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value,
    rows, weights, n_labels, first, last, out,
):  # fmt: skip
    """Scores of steps first..last into ``out[0:last - first]``; padding columns are ``-inf``.

    ``rows`` (n_dense, width) holds the weights of dense features, ``weights`` those of all pairs.
    """
    width = rows.shape[1]
    unit = dense_value.size == 0 and pair_value.size == 0
    for t in range(first, last):
        row = out[t - first]
        for j in range(n_labels):
            row[j] = 0.0
        for j in range(n_labels, width):
            row[j] = -np.inf
        if unit:
            for k in range(dense_ptr[t], dense_ptr[t + 1]):
                source = rows[dense_row[k]]
                for j in range(width):
                    row[j] += source[j]
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                row[pair_column[k]] += weights[pair_weight[k]]
        else:
            for k in range(dense_ptr[t], dense_ptr[t + 1]):
                source, value = rows[dense_row[k]], dense_value[k]
                for j in range(width):
                    row[j] += value * source[j]
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                row[pair_column[k]] += pair_value[k] * weights[pair_weight[k]]


@njit(nogil=True, cache=True)
def scatter_mixed(
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value,
    residual, power, first, last, rows, weights,
):  # fmt: skip
    """``weights[f, c] += sum_t x[t, f] ** power * residual[t - first, c]``; dense features into ``rows``."""
    width = rows.shape[1]
    unit = dense_value.size == 0 and pair_value.size == 0
    for t in range(first, last):
        row = residual[t - first]
        if unit:
            for k in range(dense_ptr[t], dense_ptr[t + 1]):
                target = rows[dense_row[k]]
                for j in range(width):
                    target[j] += row[j]
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                weights[pair_weight[k]] += row[pair_column[k]]
        else:
            for k in range(dense_ptr[t], dense_ptr[t + 1]):
                target, value = rows[dense_row[k]], dense_value[k]
                if power == 2:
                    value *= value
                for j in range(width):
                    target[j] += value * row[j]
            for k in range(pair_ptr[t], pair_ptr[t + 1]):
                value = pair_value[k]
                if power == 2:
                    value *= value
                weights[pair_weight[k]] += value * row[pair_column[k]]


@njit(nogil=True, cache=True)
def add_gold(
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value,
    codes, step_weights, rows, weights,
):  # fmt: skip
    """The observed features, summed: `scatter_mixed` of one 1 per step, at its label."""
    for t in range(codes.size):
        code, weight = codes[t], step_weights[t]
        for k in range(dense_ptr[t], dense_ptr[t + 1]):
            value = dense_value[k] if dense_value.size > 0 else 1.0
            rows[dense_row[k], code] += weight * value
        for k in range(pair_ptr[t], pair_ptr[t + 1]):
            if pair_column[k] == code:
                value = pair_value[k] if pair_value.size > 0 else 1.0
                weights[pair_weight[k]] += weight * value
