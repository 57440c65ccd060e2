"""Stochastic gradient passes over chains, eight at a time, in one call.

The objective per sequence is ``log Z(x_i) - w' phi(x_i, y_i) + lambda/2 |w|^2``, the rate
``eta / (1 + lambda eta t)`` (Bottou). Each step takes the gradients of up to eight sequences at the same
weights and counts as that many. Weights are kept as ``w = scale * v``, so that shrinking all of them is one
multiplication. Only weights that exist move: rows of dense features are masked.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference._kernels.dense import exp_matrix
from seqlab.inference._kernels.lanes import fold_products, group_marginals, group_space
from seqlab.inference._kernels.vectors import LANES
from seqlab.structures._likelihood_kernel import load_group


@njit(nogil=True, cache=True)
def gold_scores(group, offsets, codes, bounds, unary, pairwise, scale):
    """Summed scores of the gold labelings of a group, before costs of misses."""
    total = 0.0
    for c in range(group.size):
        begin = offsets[group[c]]
        for t in range(bounds[c + 1] - bounds[c]):
            total += unary[bounds[c] + t, codes[begin + t]]
            if t > 0:
                total += scale * pairwise[codes[begin + t - 1], codes[begin + t]]
    return total


@njit(nogil=True, cache=True)
def sgd_pass(
    order, offsets,
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value,
    rows, row_mask, weights, n_labels,
    pairwise, pairwise_mask, boundary, start, end,
    codes, miss_cost, sequence_weights, decay, rate, step, scale,
):  # fmt: skip
    """Visit sequences in the given order; the weights (divided by ``scale``) move in place.

    Returns the step counter, the new scale and the sum of the log-losses met on the way.
    """
    width = rows.shape[1]
    longest, n_rows = 0, 0
    for g in range(0, order.size, LANES):
        n_steps = 0
        for i in order[g : g + LANES]:
            n_steps += offsets[i + 1] - offsets[i]
            longest = max(longest, offsets[i + 1] - offsets[i])
        n_rows = max(n_rows, n_steps)
    unary, node = np.empty((n_rows, width)), np.empty((n_rows, width))
    space, products = group_space(longest, width), np.zeros((width * width, LANES))
    exp_pairwise, exp_transposed = np.zeros((width, width)), np.zeros((width, width))
    scaled, transitions = np.zeros((1, width, width)), np.zeros((width, width))
    bounds, log_z, lane_weights = (
        np.zeros(LANES + 1, dtype=np.int64),
        np.empty(LANES),
        np.ones(LANES),
    )
    unit = dense_value.size == 0 and pair_value.size == 0
    total = 0.0
    for g in range(0, order.size, LANES):
        group = order[g : g + LANES]
        load_group(
            group, offsets,
            dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value,
            rows, weights, n_labels, scale, start, end, codes, miss_cost, bounds, unary,
        )  # fmt: skip
        scaled[0, :n_labels, :n_labels] = pairwise * scale
        pair_shift, pair_spread = exp_matrix(
            scaled[0, :n_labels, :n_labels].copy(), exp_pairwise, exp_transposed
        )
        if sequence_weights.size > 0:
            for c in range(group.size):
                lane_weights[c] = sequence_weights[group[c]]
        total -= gold_scores(group, offsets, codes, bounds, unary, pairwise, scale)
        transitions[:] = 0.0
        group_marginals(
            unary, bounds, group.size, scaled, exp_pairwise, exp_transposed, pair_shift, pair_spread,
            lane_weights, space, products, node, transitions, log_z,
        )  # fmt: skip
        fold_products(products, exp_pairwise, transitions)
        for c in range(group.size):
            total += log_z[c]
        if not np.isfinite(total):
            return step, scale, total
        speed = rate / (1.0 + decay * rate * step)
        scale *= (1.0 - speed * decay) ** group.size
        move = speed / scale
        for c in range(group.size):
            begin, place, weight = offsets[group[c]], bounds[c], lane_weights[c]
            n_steps = bounds[c + 1] - place
            for t in range(n_steps):
                row = node[place + t]
                row[codes[begin + t]] -= 1.0
                if t > 0:
                    transitions[codes[begin + t - 1], codes[begin + t]] -= weight
                for k in range(dense_ptr[begin + t], dense_ptr[begin + t + 1]):
                    target, mask = rows[dense_row[k]], row_mask[dense_row[k]]
                    pace = move * weight if unit else move * weight * dense_value[k]
                    for j in range(width):
                        target[j] -= pace * (row[j] * mask[j])
                for k in range(pair_ptr[begin + t], pair_ptr[begin + t + 1]):
                    pace = move * weight if unit else move * weight * pair_value[k]
                    weights[pair_weight[k]] -= pace * row[pair_column[k]]
            if boundary:
                for j in range(n_labels):
                    start[j] -= move * weight * node[place, j]
                    end[j] -= move * weight * node[place + n_steps - 1, j]
        for a in range(n_labels):
            for b in range(n_labels):
                pairwise[a, b] -= move * (transitions[a, b] * pairwise_mask[a, b])
        if scale < 1e-6:
            rows *= scale
            weights *= scale
            start *= scale
            end *= scale
            pairwise *= scale
            scale = 1.0
        step += group.size
    return step, scale, total
