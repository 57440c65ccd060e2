"""Stochastic gradient passes over chains, eight at a time, in one call.

The objective per sequence is ``log Z(x_i) - w' phi(x_i, y_i) + lambda/2 |w|^2``, the rate
``eta / (1 + lambda eta t)`` (Bottou). Each update uses the gradients of up to eight sequences at the same
weights and counts as that many steps. Weights of rare features are stored as ``w = scale * v``, so that
shrinking all of them is one multiplication. The others (dense rows, transitions, boundaries) have their own
learning rates; the caller shrinks them at intervals, and clears entries of dense rows that are not weights.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import exp_matrix
from seqlab.inference.kernels.groups import fill_lanes, fold_products, group_marginals, group_space
from seqlab.simd.aligned import aligned_vector
from seqlab.simd.dense_products import add_transposed_product
from seqlab.simd.lanes import LANES
from seqlab.structures.chain._kernels.hidden_runs import (
    has_exact_runs,
    longest_run,
    run_space,
    subtract_runs,
)
from seqlab.structures.chain._kernels.likelihood import gold_score, load_group
from seqlab.structures.chain._kernels.mixed_rows import scatter_scaled


@njit(nogil=True, cache=True)
def sgd_pass(
    order, offsets, steps, row_factors, columns, tables, n_labels,
    pairwise_rate, boundary, boundary_rate,
    codes, sequence_weights, runs, decay, rate, step, scale,
):  # fmt: skip
    """Visit sequences in the given order; update all weights in place (state weights divided by ``scale``).

    ``steps`` is the `RowArrays` of the data, ``tables`` the `WeightTables`. ``row_factors`` are the factors
    of the learning rate of dense rows, ``columns`` the `MatrixColumns` with these factors, or None;
    ``pairwise_rate``
    (n_labels, n_labels) and ``boundary_rate`` (2, n_labels) are the factors of the others: 0 for no weight.
    ``runs`` is the `RunArrays` of hidden labels, whose codes are negative, or None.

    Returns the step counter, the new scale and the weighted sum of the log-losses during the pass, infinite
    if the weights diverge or a chain is too long.
    """
    rows, weights, pairwise = tables.dense, tables.state, tables.pairwise[0]
    width = rows.shape[1]
    longest, n_rows = 0, 0
    for g in range(0, order.size, LANES):
        n_steps = 0
        for k in range(g, min(g + LANES, order.size)):
            length = offsets[order[k] + 1] - offsets[order[k]]
            n_steps += length
            longest = max(longest, length)
        n_rows = max(n_rows, n_steps)
    unary = aligned_vector((n_rows + 1) * width).reshape((n_rows + 1, width))
    for j in range(width):
        unary[n_rows, j] = 0.0
    node = aligned_vector((n_rows + 1) * width).reshape((n_rows + 1, width))
    space = group_space(longest, unary)
    products = aligned_vector(width * width * LANES).reshape((width * width, LANES))
    fill_lanes(products, 0.0)
    exp_pairwise = np.zeros((width, width))
    exp_transposed = np.zeros((width, width))
    transitions, labels_only = np.zeros((width, width)), np.empty((n_labels, n_labels))
    bounds, lane_weights = np.empty(LANES + 1, dtype=np.int64), np.empty(LANES)
    for c in range(LANES):
        lane_weights[c] = 1.0
    index = np.empty(n_rows, dtype=np.int64)
    log_z, gold = np.empty(LANES), np.empty(LANES)
    total, is_exact = 0.0, True
    if runs is not None:
        workspace = run_space(longest_run(runs, order), n_labels, exp_pairwise, exp_transposed)
    for g in range(0, order.size, LANES):
        group = order[g : g + LANES]
        load_group(
            group, offsets, steps, columns, tables, n_labels, scale, bounds, index, unary
        )  # fmt: skip
        for a in range(n_labels):
            for b in range(n_labels):
                labels_only[a, b] = pairwise[a, b]
        pair_shift, pair_spread = exp_matrix(labels_only, exp_pairwise, exp_transposed)
        if sequence_weights.size > 0:
            for c in range(group.size):
                lane_weights[c] = sequence_weights[group[c]]
        for c in range(group.size):
            begin, n_steps = offsets[group[c]], bounds[c + 1] - bounds[c]
            gold[c] = gold_score(unary, bounds[c], pairwise, codes, begin, n_steps)
        for a in range(width):
            for b in range(width):
                transitions[a, b] = 0.0
        if runs is not None:
            is_exact = has_exact_runs(runs, group, offsets, bounds, unary, n_labels, pair_spread)
        done = is_exact and group_marginals(
            unary, bounds, group.size, exp_pairwise, exp_transposed, pair_shift, pair_spread,
            lane_weights, space, products, node, log_z,
        )  # fmt: skip
        if not done:
            return step, scale, np.inf
        fold_products(products, exp_pairwise, transitions)
        if runs is not None:
            for c in range(group.size):
                gold[c] += subtract_runs(
                    runs, group[c], offsets[group[c]], bounds[c], unary, tables.pairwise, pair_shift,
                    workspace, lane_weights[c], node, transitions,
                )  # fmt: skip
        for c in range(group.size):
            total += lane_weights[c] * (log_z[c] - gold[c])
        if not math.isfinite(total):
            return step, scale, total
        rate_now = rate / (1.0 + decay * rate * step)
        scale *= (1.0 - rate_now * decay) ** group.size
        for c in range(group.size):
            begin, place, weight = offsets[group[c]], bounds[c], lane_weights[c]
            n_steps, factor = bounds[c + 1] - place, -rate_now * weight
            for t in range(n_steps):
                row, code = node[place + t], codes[begin + t]
                if code >= 0:
                    row[code] -= 1.0
                    if t > 0 and codes[begin + t - 1] >= 0:
                        transitions[codes[begin + t - 1], code] -= weight
                for j in range(width):
                    row[j] *= factor
            scatter_scaled(
                steps, node, place, begin, begin + n_steps, rows, weights, 1.0 / scale, row_factors
            )  # fmt: skip
            if boundary:
                for j in range(n_labels):
                    tables.start[j] += boundary_rate[0, j] * node[place, j]
                    tables.end[j] += boundary_rate[1, j] * node[place + n_steps - 1, j]
        if columns is not None:
            matrix, factors = columns
            add_transposed_product(matrix, index, bounds[group.size], node, factors, rows)
        for a in range(n_labels):
            for b in range(n_labels):
                pairwise[a, b] -= rate_now * (transitions[a, b] * pairwise_rate[a, b])
        if scale < 1e-6:
            for k in range(weights.size):
                weights[k] *= scale
            scale = 1.0
        step += group.size
    return step, scale, total
