"""Exact inference on graphs without cycles: two passes of messages over each tree.

Nodes are visited in breadth-first order from the first node of each tree, so that a parent comes before its
children. The pass from the leaves to the roots computes ``up[i] = unary[i] + messages of the children`` and
the message of ``i`` to its parent; the pass back computes beliefs. With ``use_max`` sums become maxima. All
in logs; forbidden is ``-inf``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(nogil=True, cache=True)
def breadth_first(
    starts: Ints, neighbours: Ints, links: Ints, order: Ints, parent: Ints, parent_link: Ints
) -> int:
    """Fill the breadth-first order of a graph and the parents of its nodes (-1: root); count the trees."""
    n_nodes = starts.size - 1
    seen = np.zeros(n_nodes, dtype=np.bool_)
    n_found = 0
    n_trees = 0
    for root in range(n_nodes):
        if seen[root]:
            continue
        n_trees += 1
        seen[root] = True
        parent[root] = -1
        parent_link[root] = -1
        order[n_found] = root
        at = n_found
        n_found += 1
        while at < n_found:
            i = order[at]
            at += 1
            for k in range(starts[i], starts[i + 1]):
                j = neighbours[k]
                if not seen[j]:
                    seen[j] = True
                    parent[j] = i
                    parent_link[j] = links[k]
                    order[n_found] = j
                    n_found += 1
    return n_trees


@njit(nogil=True, cache=True)
def combine(values: Floats, use_max: bool) -> float:
    """Maximum, or logarithm of the sum of exponentials, of a vector."""
    top = -np.inf
    for value in values:
        top = max(top, value)
    if use_max or top == -np.inf:
        return top
    total = 0.0
    for value in values:
        total += np.exp(value - top)
    return top + np.log(total)


@njit(nogil=True, cache=True)
def forest_beliefs(
    unary: Floats,
    pair: Floats,
    edges: Ints,
    order: Ints,
    parent: Ints,
    parent_link: Ints,
    use_max: bool,
    up: Floats,
    message: Floats,
    belief: Floats,
) -> float:
    """Fill messages and beliefs of one forest; return the sum of its trees' log-partitions (or best scores).

    ``belief[i, l]`` is the log of the sum (or the maximum) of ``exp(score(y))`` over the labelings of the
    tree of ``i`` with ``y_i = l``.
    """
    n_labels = unary.shape[1]
    row = np.empty(n_labels)
    up[:] = unary
    total = 0.0
    for k in range(order.size - 1, -1, -1):
        i = order[k]
        p = parent[i]
        if p < 0:
            total += combine(up[i], use_max)
            continue
        table = pair[parent_link[i]]
        parent_is_first = edges[parent_link[i], 0] == p
        for lp in range(n_labels):
            for label in range(n_labels):
                edge = table[lp, label] if parent_is_first else table[label, lp]
                row[label] = edge + up[i, label]
            message[i, lp] = combine(row, use_max)
            up[p, lp] += message[i, lp]
    for i in order:
        p = parent[i]
        if p < 0:
            belief[i] = up[i]
            continue
        table = pair[parent_link[i]]
        parent_is_first = edges[parent_link[i], 0] == p
        for label in range(n_labels):
            for lp in range(n_labels):
                edge = table[lp, label] if parent_is_first else table[label, lp]
                # The belief of the parent contains the message: both are -inf, or the message is finite.
                rest = belief[p, lp] - message[i, lp] if message[i, lp] > -np.inf else -np.inf
                row[lp] = rest + edge
            belief[i, label] = up[i, label] + combine(row, use_max)
    return total


@njit(nogil=True, cache=True)
def forest_marginals(
    pair: Floats,
    edges: Ints,
    order: Ints,
    parent: Ints,
    parent_link: Ints,
    up: Floats,
    message: Floats,
    belief: Floats,
    node: Floats,
    pair_marginals: Floats,
) -> None:
    """Fill node and pair marginals from the messages and beliefs of `forest_beliefs`."""
    n_labels = belief.shape[1]
    for i in order:
        log_z = combine(belief[i], False)
        for label in range(n_labels):
            node[i, label] = np.exp(belief[i, label] - log_z)
        p = parent[i]
        if p < 0:
            continue
        link = parent_link[i]
        parent_is_first = edges[link, 0] == p
        for lp in range(n_labels):
            rest = belief[p, lp] - message[i, lp] if message[i, lp] > -np.inf else -np.inf
            for label in range(n_labels):
                if parent_is_first:
                    value = np.exp(rest + pair[link, lp, label] + up[i, label] - log_z)
                    pair_marginals[link, lp, label] = value
                else:
                    value = np.exp(rest + pair[link, label, lp] + up[i, label] - log_z)
                    pair_marginals[link, label, lp] = value


@njit(nogil=True, cache=True)
def decode_forest(
    pair: Floats,
    edges: Ints,
    order: Ints,
    parent: Ints,
    parent_link: Ints,
    up: Floats,
    labels: Ints,
) -> None:
    """Fill the best labels from the ``up`` table of `forest_beliefs` with ``use_max``; ties: the lowest."""
    n_labels = up.shape[1]
    for i in order:
        p = parent[i]
        best = -1
        best_value = -np.inf
        for label in range(n_labels):
            value = up[i, label]
            if p >= 0:
                link = parent_link[i]
                if edges[link, 0] == p:
                    value += pair[link, labels[p], label]
                else:
                    value += pair[link, label, labels[p]]
            if best < 0 or value > best_value:
                best = label
                best_value = value
        labels[i] = best
