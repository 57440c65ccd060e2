"""Local search: change single labels of a labeling as long as that raises the score."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.graphs.layout import OneGraph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def improve(graph: OneGraph, unary: Floats, pair: Floats, labels: Ints) -> None:
    """Change ``labels`` in place until no single change raises the score (iterated conditional modes)."""
    _improve(unary, pair, graph.edges, graph.starts, graph.neighbours, graph.links, labels)


@njit(nogil=True, cache=True)
def _improve(
    unary: Floats,
    pair: Floats,
    edges: Ints,
    starts: Ints,
    neighbours: Ints,
    links: Ints,
    labels: Ints,
) -> None:
    n_labels = unary.shape[1]
    changed = True
    while changed:
        changed = False
        for i in range(unary.shape[0]):
            best, best_value, present = labels[i], -np.inf, -np.inf
            for label in range(n_labels):
                value = unary[i, label]
                for k in range(starts[i], starts[i + 1]):
                    other = labels[neighbours[k]]
                    if edges[links[k], 0] == i:
                        value += pair[links[k], label, other]
                    else:
                        value += pair[links[k], other, label]
                if label == labels[i]:
                    present = value
                if value > best_value:
                    best, best_value = label, value
            # A tiny gain may be rounding, which could go round in circles.
            if best_value > present + 1e-12 * (1.0 + abs(best_value)):
                labels[i] = best
                changed = True
