"""Cheapest sets of disjoint phrases of blocks of sequences: shortest paths over the gaps between steps.

A sequence of T steps has the gaps 0, ..., T. With ``v[g]`` the cost of the best path to gap ``g``::

    v[0] = 0
    v[j + 1] = min(v[j] + outside[j], min_{i <= j, k} v[i] + cost_k(i, j))

where ``cost_k(i, j)`` is the cost of a phrase of type ``k`` over the steps ``i, ..., j``. Three kernels
compute it: `quadratic_one` for every cost and with length limits, `envelope_one` in O(T log T) for the
product, `running_one` in O(T) for the sum. Ties go to the step outside, then to the earliest start, then to
the lowest type (in `envelope_one` to any of the phrases).

Each kernel sets ``came_from[t]`` to the first step of the phrase that ends at step ``t`` on the best path
(-1 if ``t`` is outside), and ``came_type[t]`` to its type.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import longest as longest_sequence
from seqlab.inference.scores import Bools, Floats

Ints = NDArray[np.int64]

PRODUCT, LOG_ODDS, SUM = range(3)
QUADRATIC, FAST = range(2)
# Largest probability of a phrase: with 1, the log-odds would be infinite.
CERTAIN = 1.0 - 1e-12


class CostArrays(NamedTuple):
    """The arrays of a `seqlab.inference.PhraseCosts`, described there."""

    first: Floats  # (n_steps, n_types)
    last: Floats
    through: Floats  # (n_steps,)
    outside: Floats
    opens: Bools  # (n_steps, n_types)
    closes: Bools
    threshold: Floats  # (n_types,)
    shortest: Ints
    longest: Ints
    offsets: Ints  # (n_sequences + 1,)


@njit(nogil=True, cache=True)
def pair_cost(kind: int, first: float, last: float, threshold: float) -> float:
    """Cost of a phrase from the values at its two ends; for `SUM`, without the steps between."""
    if kind == SUM:
        return threshold + (first + last)
    p = first * last
    if kind == PRODUCT:
        return threshold - p
    if p <= 0.0:
        return np.inf
    p = min(p, CERTAIN)
    return threshold + (np.log1p(-p) - np.log(p))


@njit(nogil=True, cache=True)
def quadratic_one(
    kind: int, costs: CostArrays, t0: int, t1: int, value: Floats, came_from: Ints, came_type: Ints
) -> None:
    """All pairs of ends, O(T * longest * n_types), or O(T ** 2 * n_types) without a length limit."""
    first, last, through, outside, opens, closes, threshold, shortest, longest, _ = costs
    value[0] = 0.0
    for t in range(t0, t1):
        best, start, type_ = np.inf, -1, -1
        for k in range(first.shape[1]):
            if not closes[t, k]:
                continue
            inside = 0.0
            for i in range(t, max(t0, t + 1 - longest[k]) - 1, -1):
                if kind == SUM and i < t:
                    inside += through[i]
                if not opens[i, k] or t + 1 - i < shortest[k]:
                    continue
                cost = pair_cost(kind, first[i, k], last[t, k], threshold[k])
                cost = value[i - t0] + (cost + inside)
                if cost < best or (cost == best and i < start):
                    best, start, type_ = cost, i, k
        skip = value[t - t0] + outside[t]
        if best < skip:
            value[t + 1 - t0], came_from[t], came_type[t] = best, start, type_
        else:
            value[t + 1 - t0], came_from[t] = skip, -1


@njit(nogil=True, cache=True)
def running_one(
    costs: CostArrays, t0: int, t1: int, value: Floats, carried: Floats, carried_start: Ints,
    came_from: Ints, came_type: Ints,
) -> None:  # fmt: skip
    """`SUM` in O(T * n_types): keep, for each type, the best path that is inside a phrase."""
    first, last, through, outside, opens, closes, threshold, _, _, _ = costs
    n_types = first.shape[1]
    value[0] = 0.0
    for k in range(n_types):
        carried[k], carried_start[k] = np.inf, -1
    for t in range(t0, t1):
        best, start, type_ = np.inf, -1, -1
        for k in range(n_types):
            if t > t0:
                carried[k] += through[t - 1]
            if opens[t, k] and value[t - t0] + first[t, k] < carried[k]:
                carried[k], carried_start[k] = value[t - t0] + first[t, k], t
            if closes[t, k]:
                cost = carried[k] + (last[t, k] + threshold[k])
                if cost < best or (cost == best and carried_start[k] < start):
                    best, start, type_ = cost, carried_start[k], k
        skip = value[t - t0] + outside[t]
        if best < skip:
            value[t + 1 - t0], came_from[t], came_type[t] = best, start, type_
        else:
            value[t + 1 - t0], came_from[t] = skip, -1


@njit(nogil=True, cache=True)
def envelope_one(
    costs: CostArrays, t0: int, t1: int, value: Floats, points: Floats, rank: Ints, tree: Ints,
    came_from: Ints, came_type: Ints,
) -> None:  # fmt: skip
    """`PRODUCT` in O(T log T * n_types), with one Li Chao tree per type.

    As a function of ``x = last[j, k]``, a phrase that begins at ``i`` costs ``v[i] + threshold - first[i,
    k] * x``, which is a line. Each node of the tree over the T sorted values of ``last`` holds the line
    that is lowest in the middle of its interval; the lowest line at a point is on the path from the root.

    ``points`` (n_types, >= T), ``rank`` (>= T, n_types) and ``tree`` (n_types, >= 4 T) are workspace.
    """
    first, last, _, outside, opens, closes, threshold, _, _, _ = costs
    n_types, n_steps = first.shape[1], t1 - t0
    value[0] = 0.0
    for k in range(n_types):
        order = np.argsort(last[t0:t1, k])
        for r in range(n_steps):
            points[k, r] = last[t0 + order[r], k]
            rank[order[r], k] = r
        tree[k, : 4 * n_steps] = -1
    for t in range(t0, t1):
        best, start, type_ = np.inf, -1, -1
        for k in range(n_types):
            if opens[t, k]:
                _insert_line(t, k, n_steps, first, threshold[k], t0, value, points[k], tree[k])
            if not closes[t, k]:
                continue
            low, high, node, target = 0, n_steps - 1, 0, rank[t - t0, k]
            while True:
                i = tree[k, node]
                if i < 0:  # lines move down only through occupied nodes
                    break
                cost = value[i - t0] + (threshold[k] - first[i, k] * last[t, k])
                if cost < best or (cost == best and i < start):
                    best, start, type_ = cost, i, k
                if low == high:
                    break
                middle = (low + high) // 2
                if target <= middle:
                    node, high = 2 * node + 1, middle
                else:
                    node, low = 2 * node + 2, middle + 1
        skip = value[t - t0] + outside[t]
        if best < skip:
            value[t + 1 - t0], came_from[t], came_type[t] = best, start, type_
        else:
            value[t + 1 - t0], came_from[t] = skip, -1


@njit(nogil=True, cache=True)
def _insert_line(
    new: int, k: int, n_steps: int, first: Floats, threshold: float, t0: int,
    value: Floats, points: Floats, tree: Ints,
) -> None:  # fmt: skip
    low, high, node = 0, n_steps - 1, 0
    while True:
        old = tree[node]
        if old < 0:
            tree[node] = new
            return
        middle = (low + high) // 2
        x = points[middle]
        if value[new - t0] + (threshold - first[new, k] * x) < value[old - t0] + (
            threshold - first[old, k] * x
        ):
            tree[node] = new
            new, old = old, new
        # The other line can be lower only on one side.
        if low == high:
            return
        if first[new, k] > first[old, k]:
            node, low = 2 * node + 2, middle + 1
        elif first[new, k] < first[old, k]:
            node, high = 2 * node + 1, middle
        else:
            return
        if low > high:
            return


@njit(nogil=True, cache=True)
def backtrack_path(
    t0: int, t1: int, came_from: Ints, came_type: Ints, stop: Ints, type_: Ints
) -> None:
    """Follow the path back from the last gap; ``stop[t]`` is -1 if no phrase begins at ``t``."""
    for t in range(t0, t1):
        stop[t] = -1
    end = t1
    while end > t0:
        start = came_from[end - 1]
        if start < 0:
            end -= 1
        else:
            stop[start], type_[start] = end, came_type[end - 1]
            end = start


@njit(nogil=True, cache=True)
def best_phrases_block(
    kind: int, method: int, costs: CostArrays, fast_from: int, first_sequence: int,
    last_sequence: int, stop: Ints, type_: Ints, total: Floats,
) -> None:  # fmt: skip
    """Write phrases into ``stop`` and ``type_`` (n_steps,), see `backtrack_path`; costs into ``total``.

    ``method`` `FAST` uses the fast kernel for sequences of at least ``fast_from`` steps.
    """
    offsets, n_types = costs.offsets, costs.first.shape[1]
    n_rows = longest_sequence(offsets, first_sequence, last_sequence)
    value = np.zeros(n_rows + 1)
    carried, carried_start = np.zeros(n_types), np.zeros(n_types, dtype=np.int64)
    fast_rows = n_rows if method == FAST and kind == PRODUCT and n_rows >= fast_from else 0
    points = np.zeros((n_types, fast_rows))
    rank = np.zeros((fast_rows, n_types), dtype=np.int64)
    tree = np.zeros((n_types, 4 * fast_rows), dtype=np.int64)
    came_from = np.zeros(stop.size, dtype=np.int64)
    came_type = np.zeros(stop.size, dtype=np.int64)
    for s in range(first_sequence, last_sequence):
        t0, t1 = offsets[s], offsets[s + 1]
        if method == QUADRATIC or t1 - t0 < fast_from:
            quadratic_one(kind, costs, t0, t1, value, came_from, came_type)
        elif kind == SUM:
            running_one(costs, t0, t1, value, carried, carried_start, came_from, came_type)
        else:
            envelope_one(costs, t0, t1, value, points, rank, tree, came_from, came_type)
        total[s] = value[t1 - t0]
        backtrack_path(t0, t1, came_from, came_type, stop, type_)


@njit(nogil=True, cache=True)
def count_candidates(costs: CostArrays) -> int:
    """Number of phrases that `list_candidates` writes."""
    _, _, _, _, opens, closes, _, shortest, longest, offsets = costs
    count = 0
    for s in range(offsets.size - 1):
        for i in range(offsets[s], offsets[s + 1]):
            for k in range(opens.shape[1]):
                if not opens[i, k]:
                    continue
                for j in range(i + shortest[k] - 1, min(offsets[s + 1], i + longest[k])):
                    count += closes[j, k]
    return count


@njit(nogil=True, cache=True)
def list_candidates(
    kind: int, costs: CostArrays, start: Ints, stop: Ints, type_: Ints, cost: Floats
) -> None:
    """Write every allowed phrase, sorted by start, type and stop, with its cost."""
    first, last, through, _, opens, closes, threshold, shortest, longest, offsets = costs
    n = 0
    for s in range(offsets.size - 1):
        for i in range(offsets[s], offsets[s + 1]):
            for k in range(opens.shape[1]):
                if not opens[i, k]:
                    continue
                inside = 0.0
                for j in range(i, min(offsets[s + 1], i + longest[k])):
                    if kind == SUM and j > i:
                        inside += through[j - 1]
                    if closes[j, k] and j + 1 - i >= shortest[k]:
                        start[n], stop[n], type_[n] = i, j + 1, k
                        cost[n] = pair_cost(kind, first[i, k], last[j, k], threshold[k]) + inside
                        n += 1


@njit(nogil=True, cache=True)
def find_best_listed(
    start: Ints, stop: Ints, type_: Ints, cost: Floats, outside: Floats, offsets: Ints,
    out_stop: Ints, out_type: Ints, total: Floats,
) -> None:  # fmt: skip
    """Cheapest sets of listed phrases (sorted by start); results as in `best_phrases_block`."""
    n_steps = outside.size
    value = np.full(n_steps, np.inf)  # best cost of a path with a phrase that ends at each step
    came_from = np.full(n_steps, -1, dtype=np.int64)
    came_type = np.zeros(n_steps, dtype=np.int64)
    n = 0
    for s in range(offsets.size - 1):
        t0, t1 = offsets[s], offsets[s + 1]
        here = 0.0
        for t in range(t0, t1):
            while n < start.size and start[n] == t:
                at, candidate = stop[n] - 1, here + cost[n]
                if candidate < value[at]:
                    value[at], came_from[at], came_type[at] = candidate, t, type_[n]
                n += 1
            skip = here + outside[t]
            if skip <= value[t]:
                came_from[t] = -1
            here = min(skip, value[t])
        total[s] = here
        backtrack_path(t0, t1, came_from, came_type, out_stop, out_type)
