"""Dual training over stored labelings: block-coordinate Frank-Wolfe with pairwise steps on cached planes.

Every chain has a set of labelings, its *planes*; plane ``y`` bounds the slack from below by
``h(y) = loss(y) - scale(y) w' psi(y)``. ``scale`` is 1 for margin rescaling and ``loss(y)`` for slack
rescaling. The weights of the planes of a chain sum to its limit; plane 0 is the gold labeling, for which
``h = 0``. A step moves weight from the plane of lowest ``h`` that has weight to the plane of highest ``h``
(Lacoste-Julien & Jaggi 2015); new planes come from loss-augmented inference, and steps on cached planes
need no inference.

``store`` is the tuple (labels, weight, loss, scale, count): plane ``k`` of chain ``i`` is ``labels[k,
t0:t1]``, ``weight[i, k]`` and so on, for ``k < count[i]``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import longest
from seqlab.inference.kernels.error_count import (
    error_count_workspace,
    fill_error_counts,
    trace_errors,
)
from seqlab.inference.kernels.span_loss import count_span_loss, span_viterbi, span_workspace
from seqlab.inference.kernels.viterbi import transpose_pairwise, viterbi_one, viterbi_workspace
from seqlab.structures.chain._kernels.dual_scores import labeling_score, list_changes
from seqlab.structures.chain._kernels.dual_space import (
    apply_change,
    finish_chain,
    load_chain,
    new_entries,
    new_local,
    squared_norm,
)

# What `find_violator` maximises: costs that are sums over steps, the Hamming loss with slack rescaling, or
# the span loss. ``rule`` is the tuple (one of these, continues, types); the last two as in `span_viterbi`.
COSTS, SLACK, SPANS = 0, 1, 2


@njit(nogil=True, cache=True)
def new_search(n_rows, n_labels, rule):
    """Return the workspace of `find_violator`."""
    transposed, table = viterbi_workspace(n_labels, n_rows)
    tables, back = error_count_workspace(n_labels, n_rows if rule[0] == SLACK else 0)
    span_table, span_back = span_workspace(n_labels, n_rows if rule[0] == SPANS else 0)
    augmented = np.empty((n_rows, n_labels))
    best = np.empty(n_rows + 1)
    return transposed, table, augmented, tables, back, best, span_table, span_back


@njit(nogil=True, cache=True)
def find_violator(rule, unit, gold, costs, t0, n_steps, local, stride, start, end, search, labels):
    """Write the labeling of highest ``h`` into ``labels``; return ``h``, its loss and its scale.

    All losses are multiplied by ``unit`` in the search, which scales the model by ``1 / unit``.
    """
    unary, pairwise3, _, _ = local
    mode, continues, types = rule
    transposed, table, augmented, tables, back, best, span_table, span_back = search
    gold_score = labeling_score(gold, unary, pairwise3, stride, start, end, n_steps)
    if mode == SPANS:
        highest = span_viterbi(
            unary, pairwise3, stride, start, end, gold, continues, types, unit, n_steps, span_table,
            span_back, labels,
        )  # fmt: skip
        loss = count_span_loss(gold, labels, continues, types, n_steps)
        return highest - gold_score, loss, 1.0
    if mode == SLACK:
        now = fill_error_counts(
            unary, pairwise3, stride, start, end, gold, 0, n_steps, tables, back, best
        )
        n_wrong, highest = 0, 0.0
        for k in range(1, n_steps + 1):
            value = k * (unit - gold_score + best[k])
            if value > highest:
                n_wrong, highest = k, value
        if n_wrong == 0:
            for t in range(n_steps):
                labels[t] = gold[t]
            return 0.0, 0.0, 1.0
        trace_errors(n_wrong, now, end, gold, n_steps, tables, back, labels)
        return highest, float(n_wrong), float(n_wrong)
    for t in range(n_steps):
        for s in range(unary.shape[1]):
            augmented[t, s] = unary[t, s] + unit * costs[t0 + t, s]
    if stride == 0:
        transpose_pairwise(pairwise3[0], transposed)
    highest = viterbi_one(
        augmented, pairwise3, stride, start, end, 0, n_steps, transposed, table, labels
    )
    loss = 0.0
    for t in range(n_steps):
        loss += costs[t0 + t, labels[t]]
    return highest - gold_score, loss, 1.0


@njit(nogil=True, cache=True)
def find_plane(store, i, t0, n_steps, labels):
    """Return the number of the plane with these labels; -1 if there is none."""
    kept, _, _, _, count = store
    for k in range(count[i]):
        same = True
        for t in range(n_steps):
            if kept[k, t0 + t] != labels[t]:
                same = False
                break
        if same:
            return k
    return -1


@njit(nogil=True, cache=True)
def add_plane(store, i, t0, n_steps, labels, loss, scale):
    """Store a plane, in a new slot or in place of one without weight; return its number, -1 if full."""
    kept, weight, losses, scales, count = store
    k = count[i]
    if k == kept.shape[0]:
        k = -1
        for m in range(1, count[i]):
            if weight[i, m] == 0.0:
                k = m
                break
        if k < 0:
            return -1
    else:
        count[i] += 1
    for t in range(n_steps):
        kept[k, t0 + t] = labels[t]
    weight[i, k], losses[i, k], scales[i, k] = 0.0, loss, scale
    return k


@njit(nogil=True, cache=True)
def find_extremes(store, i, t0, n_steps, gold_score, local, stride, start, end):
    """Return the planes of highest ``h``, and of lowest ``h`` among those with weight, and both values."""
    kept, weight, losses, scales, count = store
    unary, pairwise3, _, _ = local
    high, low, highest, lowest = 0, -1, -np.inf, np.inf
    for k in range(count[i]):
        score = labeling_score(kept[k, t0:], unary, pairwise3, stride, start, end, n_steps)
        value = losses[i, k] - scales[i, k] * (gold_score - score)
        if value > highest:
            high, highest = k, value
        if weight[i, k] > 0.0 and value < lowest:
            low, lowest = k, value
    return high, low, highest, lowest


@njit(nogil=True, cache=True)
def plane_pass(order, begin, problem, space, store, rule, use_oracle, max_steps, shrink):
    """Visit chains in order, from entry ``begin`` on: search a new plane, then step on the stored planes.

    Up to ``max_steps`` steps on each; a visit ends early once the largest difference of ``h`` is at most
    ``shrink`` times the first one. Returns the number of entries of ``order`` that are done (fewer than all
    if ``store`` must grow first) and the number of steps.
    """
    offsets, codes, costs, _, boundary = problem
    _, _, _, arcs, n_edge_columns = space
    kept, weight, _, scales, _ = store
    n_labels = costs.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    local = new_local(n_rows, n_labels, n_edge_columns)
    unary, pairwise3, _, _ = local
    search = new_search(n_rows, n_labels, rule)
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    nodes, arc_entries = new_entries(n_rows), new_entries(n_rows)
    arc_scratch = np.zeros(arcs.size)
    labels = np.empty(n_rows, dtype=np.int64)
    n_taken = 0
    for at in range(begin, order.size):
        i = order[at]
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        gold = codes[t0 : t0 + n_steps]
        load_chain(space, t0, n_steps, local)
        if use_oracle:
            _, loss, scale = find_violator(
                rule, 1.0, gold, costs, t0, n_steps, local, stride, start, end, search,
                labels,
            )  # fmt: skip
            known = find_plane(store, i, t0, n_steps, labels)
            if known < 0 and add_plane(store, i, t0, n_steps, labels, loss, scale) < 0:
                return at, n_taken
        target = 0.0
        for step in range(max_steps):
            gold_score = labeling_score(gold, unary, pairwise3, stride, start, end, n_steps)
            high, low, highest, lowest = find_extremes(
                store, i, t0, n_steps, gold_score, local, stride, start, end
            )
            if low < 0:
                break
            violation = highest - lowest
            if step == 0:
                target = max(shrink * violation, 1e-12 * (1.0 + abs(gold_score)))
            if not violation > target:
                break
            n_nodes, n_arcs = list_changes(
                gold, kept[high, t0:], scales[i, high], kept[low, t0:], scales[i, low],
                n_steps, n_labels, boundary, nodes, arc_entries,
            )  # fmt: skip
            norm = squared_norm(space, t0, n_nodes, nodes, n_arcs, arc_entries, arc_scratch)
            amount = weight[i, low]
            if norm * amount > violation:
                amount = violation / norm
                weight[i, low] -= amount
            else:
                weight[i, low] = 0.0
            weight[i, high] += amount
            apply_change(space, amount, t0, n_steps, n_nodes, nodes, n_arcs, arc_entries, local)
            n_taken += 1
        finish_chain(space, t0, n_steps, local)
    return order.size, n_taken


@njit(nogil=True, cache=True)
def find_violators(problem, space, rule, unit, found, slack, losses, scales):
    """Search the labeling of highest ``h`` of every chain; ``found`` (n_steps,) receives the labels."""
    offsets, codes, costs, _, _ = problem
    _, _, _, arcs, n_edge_columns = space
    n_labels = costs.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    local = new_local(n_rows, n_labels, n_edge_columns)
    search = new_search(n_rows, n_labels, rule)
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    for i in range(offsets.size - 1):
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        load_chain(space, t0, n_steps, local)
        slack[i], losses[i], scales[i] = find_violator(
            rule, unit, codes[t0 : t0 + n_steps], costs, t0, n_steps, local, stride, start,
            end, search, found[t0:],
        )  # fmt: skip


@njit(nogil=True, cache=True)
def measure_planes(problem, space, store, gaps, slack):
    """Set ``gaps[i]`` to limit times slack minus the weighted ``h``; return the weighted loss."""
    offsets, codes, costs, limits, _ = problem
    _, _, _, arcs, n_edge_columns = space
    kept, weight, losses, scales, count = store
    n_labels = costs.shape[1]
    local = new_local(longest(offsets, 0, offsets.size - 1), n_labels, n_edge_columns)
    unary, pairwise3, _, _ = local
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    total = 0.0
    for i in range(offsets.size - 1):
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        load_chain(space, t0, n_steps, local)
        gold = codes[t0 : t0 + n_steps]
        gold_score = labeling_score(gold, unary, pairwise3, stride, start, end, n_steps)
        gaps[i] = limits[i] * slack[i]
        for k in range(count[i]):
            if weight[i, k] > 0.0:
                score = labeling_score(kept[k, t0:], unary, pairwise3, stride, start, end, n_steps)
                gaps[i] -= weight[i, k] * (losses[i, k] - scales[i, k] * (gold_score - score))
                total += weight[i, k] * losses[i, k]
    return total


@njit(nogil=True, cache=True)
def subgradient_pass(order, n_updates, problem, space, sums, rule):
    """Stochastic subgradient steps with rate 1 / t; ``w = v / t``, where ``v`` is the model in ``space``.

    ``v`` is the sum of the subgradients and ``sums`` (coefs or weights, edge table, arcs) the sum of each
    times the number of its step, from which the weighted average follows. Returns the number of updates so
    far.
    """
    offsets, codes, costs, limits, boundary = problem
    _, _, _, arcs, n_edge_columns = space
    table_sums, edge_sums, arc_sums = sums
    n_labels = costs.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    local = new_local(n_rows, n_labels, n_edge_columns)
    search = new_search(n_rows, n_labels, rule)
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    nodes, arc_entries = new_entries(n_rows), new_entries(n_rows)
    labels = np.empty(n_rows, dtype=np.int64)
    n_chains = offsets.size - 1
    for i in order:
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        gold = codes[t0 : t0 + n_steps]
        load_chain(space, t0, n_steps, local)
        _, _, scale = find_violator(
            rule, max(float(n_updates), 1.0), gold, costs, t0, n_steps, local, stride,
            start, end, search, labels,
        )  # fmt: skip
        n_updates += 1
        n_nodes, n_arcs = list_changes(
            gold, labels, scale, gold, 0.0, n_steps, n_labels, boundary, nodes, arc_entries
        )
        factor = n_chains * limits[i]
        for k in range(n_arcs):
            arc_sums[arc_entries[1][k]] += n_updates * factor * arc_entries[2][k]
        _add_to_sums(
            space,
            n_updates * factor,
            t0,
            n_nodes,
            nodes,
            n_arcs,
            arc_entries,
            table_sums,
            edge_sums,
        )
        apply_change(space, factor, t0, n_steps, n_nodes, nodes, n_arcs, arc_entries, local)
        finish_chain(space, t0, n_steps, local)
    return n_updates


@njit(nogil=True, cache=True)
def _add_to_sums(space, factor, t0, n_nodes, nodes, n_arcs, arc_entries, table_sums, edge_sums):
    """Add ``factor`` times a change to tables of weights or of coefficients."""
    is_linear, linear, kernel, _, _ = space
    for part in range(2):
        n, entries, out = (
            (n_nodes, nodes, table_sums) if part == 0 else (n_arcs, arc_entries, edge_sums)
        )
        step, columns, values = entries
        for k in range(n):
            if columns[k] < out.shape[1]:
                change = factor * values[k]
                if is_linear:
                    indptr, indices, data = linear[0]
                    for p in range(indptr[t0 + step[k]], indptr[t0 + step[k] + 1]):
                        out[indices[p], columns[k]] += change * data[p]
                else:
                    out[kernel[2][t0 + step[k]], columns[k]] += change
