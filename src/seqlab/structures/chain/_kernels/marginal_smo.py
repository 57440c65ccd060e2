"""SMO on the marginals of chains (max-margin Markov networks, Taskar, Guestrin & Koller 2003).

For one chain, ``v(y)`` is the score of a labeling plus its loss. A step moves mass from ``y2``, the labeling
of lowest ``v`` among those whose edges all have mass, to ``y1``, the labeling of highest ``v``; both are
found by inference. The dual rises by ``m (v(y1) - v(y2)) - m^2 |f(y1) - f(y2)|^2 / 2`` for a mass ``m``,
which is maximised exactly, up to the smallest mass on the edges of ``y2`` that ``y1`` does not share. A
chain is optimal if ``v(y1) = v(y2)``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import longest
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
from seqlab.structures.chain._kernels.support import (
    expected_score,
    lowest_labeling,
    move_mass,
    smallest_mass,
)

# Edges whose mass falls below this share of the limit are removed: the mass is rounding error.
NEGLIGIBLE_SHARE = 1e-12


@njit(nogil=True, cache=True)
def add_costs(costs, t0, n_steps, unary):
    """Add the costs of the labels to the scores of a chain."""
    for t in range(n_steps):
        for s in range(unary.shape[1]):
            unary[t, s] += costs[t0 + t, s]


@njit(nogil=True, cache=True)
def smo_pass(order, begin, problem, space, lists, max_steps, shrink):
    """Visit chains in order, from entry ``begin`` on; up to ``max_steps`` steps on each.

    A visit ends early once the violation ``v(y1) - v(y2)`` is at most ``shrink`` times the first one.
    Returns the number of entries of ``order`` that are done (fewer than all if ``lists`` must grow first)
    and the number of steps.
    """
    offsets, codes, costs, limits, boundary = problem
    is_linear, _, _, arcs, n_edge_columns = space
    n_labels = costs.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    local = new_local(n_rows, n_labels, n_edge_columns)
    unary, pairwise3, _, _ = local
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    nodes, arc_entries = new_entries(n_rows), new_entries(n_rows)
    arc_scratch = np.zeros(arcs.size)
    transposed, table = viterbi_workspace(n_labels, n_rows)
    low_table = np.empty((n_rows, n_labels))
    back = np.empty((n_rows, n_labels), dtype=np.int64)
    high = np.empty(n_rows, dtype=np.int64)
    low = np.empty(n_rows, dtype=np.int64)
    n_taken = 0
    for at in range(begin, order.size):
        i = order[at]
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        if lists[4][1] < n_steps * max_steps:
            return at, n_taken
        gold = codes[t0 : t0 + n_steps]
        load_chain(space, t0, n_steps, local)
        add_costs(costs, t0, n_steps, unary)
        target = 0.0
        for k in range(max_steps):
            if stride == 0:
                transpose_pairwise(pairwise3[0], transposed)
            best = viterbi_one(
                unary, pairwise3, stride, start, end, 0, n_steps, transposed, table, high
            )
            lowest = lowest_labeling(
                t0, n_steps, n_labels, unary, pairwise3, stride, start, end, lists, low_table, back,
                low,
            )  # fmt: skip
            violation = best - lowest
            # Rounding gives violations of about 1e-16 of the scores.
            if k == 0:
                target = max(shrink * violation, 1e-12 * (1.0 + abs(best)))
            if not violation > target:
                break
            n_nodes, n_arcs = list_changes(
                gold, high, 1.0, low, 1.0, n_steps, n_labels, boundary, nodes, arc_entries
            )
            norm = squared_norm(space, t0, n_nodes, nodes, n_arcs, arc_entries, arc_scratch)
            amount = smallest_mass(t0, n_steps, n_labels, low, high, lists)
            if norm * amount > violation:
                amount = violation / norm
            smallest = NEGLIGIBLE_SHARE * limits[i]
            move_mass(t0, n_steps, n_labels, high, low, amount, smallest, lists)
            apply_change(space, amount, t0, n_steps, n_nodes, nodes, n_arcs, arc_entries, local)
            if is_linear:  # the scores were computed again
                add_costs(costs, t0, n_steps, unary)
            n_taken += 1
        finish_chain(space, t0, n_steps, local)
    return order.size, n_taken


@njit(nogil=True, cache=True)
def measure_marginals(problem, space, lists, slack, gaps):
    """Compute slack and duality gap of each chain; return the expected loss, summed over chains.

    ``slack[i] = max_y v(y) - v(gold)``; ``gaps[i]`` is the limit times ``max_y v(y)``, minus the expected
    ``v`` under the marginals.
    """
    offsets, codes, costs, limits, _ = problem
    _, _, _, arcs, n_edge_columns = space
    n_labels = costs.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    local = new_local(n_rows, n_labels, n_edge_columns)
    unary, pairwise3, _, _ = local
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    transposed, table = viterbi_workspace(n_labels, n_rows)
    labels = np.empty(n_rows, dtype=np.int64)
    zero3, zeros = np.zeros((1, n_labels, n_labels)), np.zeros(n_labels)
    loss = 0.0
    for i in range(offsets.size - 1):
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        load_chain(space, t0, n_steps, local)
        add_costs(costs, t0, n_steps, unary)
        if stride == 0:
            transpose_pairwise(pairwise3[0], transposed)
        best = viterbi_one(
            unary, pairwise3, stride, start, end, 0, n_steps, transposed, table, labels
        )
        gold = codes[t0 : t0 + n_steps]
        slack[i] = best - labeling_score(gold, unary, pairwise3, stride, start, end, n_steps)
        gaps[i] = limits[i] * best - expected_score(
            t0, n_steps, n_labels, unary, pairwise3, stride, start, end, lists
        )
        loss += expected_score(
            t0, n_steps, n_labels, costs[t0 : t0 + n_steps], zero3, 0, zeros, zeros, lists
        )
    return loss
