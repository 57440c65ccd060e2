"""Elimination orders: from a graph to the cliques of a junction tree.

Nodes are eliminated one by one; when node ``v`` goes, its remaining neighbours ``S`` are joined to each
other. The next node is one whose elimination adds the fewest edges (min-fill), the lowest number in case of
ties. ``{v} + S`` is the clique of ``v``, ``S`` its separator from the clique of the first of ``S`` to be
eliminated. These cliques have the running intersection property, so that two passes over them give exact
results.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Counting the edges among more neighbours than this takes too long; such nodes are eliminated late anyway.
_MANY = 64


@dataclass(frozen=True, slots=True)
class CliqueTree:
    """Cliques of an elimination order.

    Attributes
    ----------
    order : list of int
        The nodes, in the order in which they are eliminated.
    separators : list of list of int
        For each node (by its number), the separator of its clique, in the order of elimination.
    """

    order: list[int]
    separators: list[list[int]]

    @property
    def width(self) -> int:
        """Treewidth of this order: nodes of the largest clique, minus one."""
        return max((len(nodes) for nodes in self.separators), default=0)

    def n_entries(self, n_labels: int) -> int:
        """Entries of all clique tables."""
        return sum(n_labels ** (len(nodes) + 1) for nodes in self.separators)


def eliminate(starts: Ints, neighbours: Ints, max_clique: int) -> CliqueTree | None:
    """Eliminate the nodes of a graph in min-fill order.

    Parameters
    ----------
    starts, neighbours : arrays
        Neighbours of node ``i`` are ``neighbours[starts[i]:starts[i + 1]]``.
    max_clique : int
        Largest number of nodes in a clique.

    Returns
    -------
    CliqueTree or None
        None if a clique would have more than ``max_clique`` nodes.
    """
    n_nodes = starts.size - 1
    near = [set(neighbours[starts[i] : starts[i + 1]].tolist()) for i in range(n_nodes)]
    heap = [(_fill(near, i), i) for i in range(n_nodes)]
    heapq.heapify(heap)
    current = {i: fill for fill, i in heap}
    position = np.zeros(n_nodes, dtype=np.int64)
    order: list[int] = []
    separators: list[list[int]] = [[] for _ in range(n_nodes)]
    while heap:
        fill, v = heapq.heappop(heap)
        if current.get(v) != fill:
            continue  # outdated
        del current[v]
        position[v] = len(order)
        order.append(v)
        around = near[v]
        if len(around) >= max_clique:
            return None
        separators[v] = list(around)
        for u in around:
            near[u].discard(v)
        changed = set(around)
        if fill:
            for u in around:
                missing = around - near[u] - {u}
                if missing:
                    near[u] |= missing
                    changed |= near[u]
        for u in changed:
            if u in current:
                current[u] = _fill(near, u)
                heapq.heappush(heap, (current[u], u))
    for nodes in separators:
        nodes.sort(key=lambda u: position[u])
    return CliqueTree(order, separators)


def _fill(near: list[set[int]], v: int) -> int:
    """Count the edges that eliminating a node adds; an upper bound if it has many neighbours."""
    around = near[v]
    if len(around) < 2:
        return 0
    if len(around) > _MANY:
        return len(around) * (len(around) - 1) // 2
    present = sum(len(near[u] & around) for u in around)
    return (len(around) * (len(around) - 1) - present) // 2
