"""Log-partition and expected features of many chains, eight at a time.

For each group of eight chains of similar length: emission, forward-backward in the lanes of vector
registers, scatter, all on buffers that fit in the L2 cache. Padding labels have scores of ``-inf``, so that
their marginals are exactly zero.

Measured on text (CoNLL-2000, 22 labels, one thread, per step): emission 0.09 us and scatter 0.10 us (see
`mixed_rows`), exponentials into the lanes 0.03 us, forward-backward 0.09 us, a whole pass 0.37 us.
Forward-backward is limited by arithmetic: 1,728 fused multiply-adds per step (padding included), 20 billion
per second, 70 % of the 29 billion that the same core reached on registers alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import exp_matrix
from seqlab.inference.kernels.groups import fill_lanes, fold_products, group_marginals, group_space
from seqlab.simd.aligned import aligned_vector
from seqlab.simd.dense_products import add_product, add_transposed_product
from seqlab.simd.lanes import LANES
from seqlab.structures.chain._kernels.dense_matrix import add_squares
from seqlab.structures.chain._kernels.hidden_runs import (
    has_exact_runs,
    longest_run,
    run_space,
    subtract_runs,
)
from seqlab.structures.chain._kernels.mixed_rows import emit_mixed, scatter_mixed


@njit(nogil=True, cache=True)
def load_group(
    group, offsets, steps, columns, tables, n_labels, scale, bounds, index, unary
):  # fmt: skip
    """Write the scores of the chains ``group`` to ``unary``, and the first row of each to ``bounds``.

    State weights are multiplied by ``scale``; boundary scores are added at their steps. ``index``
    receives the step of each row.
    """
    dense, state, _, start, end = tables
    place = 0
    for c in range(group.size):
        begin = offsets[group[c]]
        n_steps = offsets[group[c] + 1] - begin
        bounds[c] = place
        bounds[c + 1] = place + n_steps
        emit_mixed(
            steps, dense, state, scale, n_labels, begin, begin + n_steps, unary[place:]
        )  # fmt: skip
        for t in range(n_steps):
            index[place + t] = begin + t
        place += n_steps
    if columns is not None:
        add_product(columns.matrix, index, place, dense, unary)
    for c in range(group.size):
        for j in range(n_labels):
            unary[bounds[c], j] += start[j]
            unary[bounds[c + 1] - 1, j] += end[j]


@njit(nogil=True, cache=True, inline="always")
def gold_score(unary, place, pairwise, codes, begin, n_steps):
    """Return the score of the gold labeling of a chain whose scores begin at row ``place``.

    Negative codes, of labels that are not known, are left out.
    """
    total = 0.0
    for t in range(n_steps):
        code = codes[begin + t]
        if code >= 0:
            total += unary[place + t, code]
            if t > 0 and codes[begin + t - 1] >= 0:
                total += pairwise[codes[begin + t - 1], code]
    return total


@njit(nogil=True, cache=True)
def likelihood_slot(
    order, offsets, steps, columns, tables, n_labels, sequence_weights,
    runs, curvature, factors, log_z, sums, out_labels, first_place, variances, skipped,
):  # fmt: skip
    """Add the expected features of the chains in ``order`` to ``sums``; set their ``log_z``.

    ``steps`` is the `RowArrays` of the data, ``columns`` their `MatrixColumns` or None, ``tables`` and
    ``sums`` are `WeightTables`. With ``curvature`` the diagonal of the Hessian is added instead of the
    gradient: every marginal ``p`` becomes ``p (1 - p)`` (transitions keep their expected counts;
    ``out_labels`` receives the sums over all steps); those of step ``t`` of chain ``i`` are written to column
    ``first_place[i] + t`` of ``variances``, unless ``first_place`` is negative or has size 0. ``factors`` is
    ``steps`` with the feature values for the sums: those of the data, or their squares for the curvature.
    ``sequence_weights`` may have size 0. ``runs`` is the `RunArrays` of hidden labels, whose log-partitions
    and expected features are subtracted (but not their curvature: the difference may be negative). For
    ``columns`` or ``runs`` None, numba compiles a kernel without matrix products or hidden labels. Chains
    that `group_marginals` cannot compute are marked in ``skipped``; returns their number.
    """
    width, n_skipped = tables.dense.shape[1], 0
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
    labels_only = np.empty((n_labels, n_labels))
    for a in range(n_labels):
        for b in range(n_labels):
            labels_only[a, b] = tables.pairwise[0, a, b]
    pair_shift, pair_spread = exp_matrix(labels_only, exp_pairwise, exp_transposed)
    bounds, lane_weights = np.empty(LANES + 1, dtype=np.int64), np.empty(LANES)
    for c in range(LANES):
        lane_weights[c] = 1.0
    index = np.empty(n_rows, dtype=np.int64)
    group_log_z = np.empty(LANES)
    is_exact = True
    if runs is not None:
        workspace = run_space(longest_run(runs, order), n_labels, exp_pairwise, exp_transposed)
    for g in range(0, order.size, LANES):
        group = order[g : g + LANES]
        load_group(
            group, offsets, steps, columns, tables, n_labels, 1.0, bounds, index, unary
        )  # fmt: skip
        if sequence_weights.size > 0:
            for c in range(group.size):
                lane_weights[c] = sequence_weights[group[c]]
        if runs is not None:
            is_exact = has_exact_runs(runs, group, offsets, bounds, unary, n_labels, pair_spread)
        done = is_exact and group_marginals(
            unary, bounds, group.size, exp_pairwise, exp_transposed, pair_shift, pair_spread,
            lane_weights, space, products, node, group_log_z,
        )  # fmt: skip
        if not done:
            for c in range(group.size):
                skipped[group[c]] = True
            n_skipped += group.size
            continue
        for c in range(group.size):
            i, place, last = group[c], bounds[c], bounds[c + 1] - 1
            log_z[i] = group_log_z[c]
            scale = lane_weights[c]
            if runs is not None:
                log_z[i] -= 0.0 if curvature else subtract_runs(
                    runs, i, offsets[i], place, unary, tables.pairwise, pair_shift, workspace,
                    scale, node, sums.pairwise[0],
                )  # fmt: skip
            if curvature or scale != 1.0:
                for t in range(place, last + 1):
                    for j in range(width):
                        p = node[t, j]
                        node[t, j] = scale * (p * (1.0 - p) if curvature else p)
                        out_labels[j] += node[t, j]
            if curvature and first_place.size > 0 and first_place[i] >= 0:
                for j in range(n_labels):
                    for t in range(place, last + 1):
                        variances[j, first_place[i] + t - place] = node[t, j]
            for j in range(n_labels):
                sums.start[j] += node[place, j]
                sums.end[j] += node[last, j]
            scatter_mixed(
                factors, node, place, offsets[i], offsets[i + 1], sums.dense, sums.state
            )  # fmt: skip
        if columns is not None:
            matrix, factors_of_columns = columns
            if curvature:
                add_squares(matrix, index, bounds[group.size], node, sums.dense)
            else:
                add_transposed_product(
                    matrix, index, bounds[group.size], node, factors_of_columns, sums.dense
                )
    fold_products(products, exp_pairwise, sums.pairwise[0])
    return n_skipped
