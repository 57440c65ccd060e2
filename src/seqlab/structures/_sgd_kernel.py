"""Stochastic gradient passes over chains, in one call.

The objective per sequence is ``log Z(x_i) - w' phi(x_i, y_i) + lambda/2 |w|^2``, the rate
``eta / (1 + lambda eta t)`` (Bottou). Weights are kept as ``w = scale * v``, so that shrinking all of
them is one multiplication. Only weights that exist move: rows of dense features are masked.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference._kernels.forward_backward import TRANSITIONS, forward_backward_block
from seqlab.structures._likelihood_kernel import charge_misses
from seqlab.structures._mixed_kernels import emit_mixed


@njit(nogil=True, cache=True)
def sgd_pass(
    order, offsets,
    dense_ptr, dense_row, dense_value, run_ptr, run_begin, run_end, run_value,
    columns, rows, row_mask, weights, n_labels,
    pairwise, pairwise_mask, boundary, start, end,
    codes, miss_cost, sequence_weights, decay, rate, step, scale,
):  # fmt: skip
    """Visit sequences in the given order; the weights (divided by ``scale``) move in place.

    Returns the step counter, the new scale and the sum of the log-losses met on the way.
    """
    width = rows.shape[1]
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    unary, node = np.empty((longest, width)), np.empty((longest, width))
    scaled_pairwise, transitions = np.zeros((1, width, width)), np.zeros((width, width))
    scaled_start, scaled_end = np.zeros(width), np.zeros(width)
    log_z, local = np.empty(1), np.zeros(2, dtype=np.int64)
    nothing, no_pairs = np.empty(0), np.empty((0, 0, 0))
    unit = dense_value.size == 0 and run_value.size == 0
    total = 0.0
    for i in order:
        begin, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        emit_mixed(
            dense_ptr, dense_row, dense_value, run_ptr, run_begin, run_end, run_value,
            columns, rows, weights, n_labels, begin, begin + n_steps, unary,
        )  # fmt: skip
        for t in range(n_steps):
            for j in range(n_labels):
                unary[t, j] *= scale
        for a in range(n_labels):
            scaled_start[a], scaled_end[a] = scale * start[a], scale * end[a]
            for b in range(n_labels):
                scaled_pairwise[0, a, b] = scale * pairwise[a, b]
        gold_score = scaled_start[codes[begin]] + scaled_end[codes[begin + n_steps - 1]]
        for t in range(n_steps):
            gold_score += unary[t, codes[begin + t]]
            if t > 0:
                gold_score += scaled_pairwise[0, codes[begin + t - 1], codes[begin + t]]
        if miss_cost.size > 0:
            charge_misses(unary, codes, miss_cost, n_labels, begin, n_steps)
        local[1] = n_steps
        transitions[:] = 0.0
        forward_backward_block(
            unary, scaled_pairwise, 0, scaled_start, scaled_end, local, 0, 1, nothing,
            TRANSITIONS, log_z, node, no_pairs, transitions,
        )  # fmt: skip
        total += log_z[0] - gold_score
        if not np.isfinite(total):
            return step, scale, total
        speed = rate / (1.0 + decay * rate * step)
        scale *= 1.0 - speed * decay
        move = speed / scale
        if sequence_weights.size > 0:
            move *= sequence_weights[i]
        for t in range(n_steps):
            node[t, codes[begin + t]] -= 1.0
            if t > 0:
                transitions[codes[begin + t - 1], codes[begin + t]] -= 1.0
            row = node[t]
            for k in range(dense_ptr[begin + t], dense_ptr[begin + t + 1]):
                target, mask = rows[dense_row[k]], row_mask[dense_row[k]]
                pace = move if unit else move * dense_value[k]
                for j in range(width):
                    target[j] -= pace * (row[j] * mask[j])
            for k in range(run_ptr[begin + t], run_ptr[begin + t + 1]):
                pace = move if unit else move * run_value[k]
                for p in range(run_begin[k], run_end[k]):
                    weights[p] -= pace * row[columns[p]]
        for a in range(n_labels):
            for b in range(n_labels):
                pairwise[a, b] -= move * (transitions[a, b] * pairwise_mask[a, b])
        if boundary:
            for j in range(n_labels):
                start[j] -= move * node[0, j]
                end[j] -= move * node[n_steps - 1, j]
        if scale < 1e-6:
            for r in range(rows.shape[0]):
                for j in range(width):
                    rows[r, j] *= scale
            for p in range(weights.size):
                weights[p] *= scale
            for a in range(n_labels):
                start[a] *= scale
                end[a] *= scale
                for b in range(n_labels):
                    pairwise[a, b] *= scale
            scale = 1.0
        step += 1
    return step, scale, total
