"""The linear-programming relaxation of the best labeling of a graph (local polytope).

    max  sum_i unary[i] . mu_i + sum_e pairwise[e] . mu_e s.t. mu >= 0,  sum_l mu_i(l) = 1,  sum_k mu_e(l,
    k) = mu_a(l),  sum_l mu_e(l, k) = mu_b(k)   for e = (a, b)

Its value is an upper bound on the best score. A solution with values 0 and 1 only is a best labeling; on
graphs without cycles there always is one. Trees that hang on the rest of the graph are solved by
max-product messages beforehand, so that the program (solved by HiGHS) has variables for the nodes on cycles
and between them only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from seqlab.data.errors import NumericalError
from seqlab.inference.graphs.layout import OneGraph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Numbers closer than this to 0 or 1 count as integers: the tolerance of HiGHS.
INTEGRAL = 1e-6


class Relaxed(NamedTuple):
    """Solution of the relaxation of one graph."""

    value: float  # upper bound on the best score
    node: Floats  # (n_nodes, n_labels)
    pair: Floats  # (n_simple_edges, n_labels, n_labels)
    is_integral: bool


def solve_relaxation(graph: OneGraph, unary: Floats, pair: Floats) -> Relaxed:
    """Maximise the score of a graph over the local polytope.

    Parameters
    ----------
    graph : OneGraph
    unary : array of shape (n_nodes, n_labels)
    pair : array of shape (n_simple_edges, n_labels, n_labels)
    """
    unary = unary.copy()
    peeled = _peel(graph)
    best_child: dict[int, Ints] = {}
    value = 0.0
    for v, p, e in peeled:
        if p < 0:
            value += float(unary[v].max())
            continue
        table = pair[e] if graph.edges[e, 0] == p else pair[e].T
        scores = table + unary[v]
        best_child[v] = scores.argmax(axis=1)
        unary[p] += scores.max(axis=1)
    node, mu = np.zeros(unary.shape), np.zeros(pair.shape)
    outside = np.ones(graph.n_nodes, dtype=bool)
    outside[[v for v, _, _ in peeled]] = False
    core = np.flatnonzero(outside)
    if core.size:
        value += _solve_core(graph, core, unary, pair, node, mu)
    labels = np.arange(unary.shape[1])
    for v, p, e in reversed(peeled):
        if p < 0:
            node[v, np.argmax(unary[v])] = 1.0
            continue
        joint = np.zeros((labels.size, labels.size))
        joint[labels, best_child[v]] = node[p]
        node[v] = joint.sum(axis=0)
        mu[e] = joint if graph.edges[e, 0] == p else joint.T
    is_integral = bool((np.minimum(node, 1.0 - node) < INTEGRAL).all())
    return Relaxed(value, node, mu, is_integral)


def _peel(graph: OneGraph) -> list[tuple[int, int, int]]:
    """Remove nodes with at most one neighbour, again and again.

    Returns (node, its remaining neighbour or -1, the edge to it) in the order of removal.
    """
    degree = np.diff(graph.starts)
    gone = np.zeros(graph.n_nodes, dtype=bool)
    waiting = np.flatnonzero(degree <= 1).tolist()[::-1]
    result = []
    while waiting:
        v = waiting.pop()
        if gone[v]:
            continue
        gone[v] = True
        p, e = -1, -1
        for k in range(graph.starts[v], graph.starts[v + 1]):
            if not gone[graph.neighbours[k]]:
                p, e = int(graph.neighbours[k]), int(graph.links[k])
        result.append((v, p, e))
        if p >= 0:
            degree[p] -= 1
            if degree[p] <= 1:
                waiting.append(p)
    return result


def _solve_core(
    graph: OneGraph, core: Ints, unary: Floats, pair: Floats, node: Floats, mu: Floats
) -> float:
    """Solve the program of the nodes on cycles; fill their part of ``node`` and ``mu``."""
    L = unary.shape[1]
    number = np.full(graph.n_nodes, -1)
    number[core] = np.arange(core.size)
    links = np.flatnonzero((number[graph.edges] >= 0).all(axis=1))
    ends = number[graph.edges[links]]
    scores = np.concatenate([unary[core].ravel(), pair[links].ravel()])
    forbidden = np.isneginf(scores)
    matrix, right = _constraints(core.size, ends, L)
    found = linprog(
        -np.where(forbidden, 0.0, scores),
        A_eq=matrix,
        b_eq=right,
        # The equations imply that no variable exceeds 1.
        bounds=np.column_stack([np.zeros(scores.size), np.where(forbidden, 0.0, np.inf)]),
        method="highs",
        options={"presolve": False},  # twice as fast: there is little to simplify
    )
    if found.status == 2:  # infeasible: every labeling is forbidden
        return -np.inf
    if not found.success:
        raise NumericalError(f"HiGHS could not solve the relaxation: {found.message}")
    node[core] = found.x[: core.size * L].reshape(-1, L)
    mu[links] = found.x[core.size * L :].reshape(-1, L, L)
    return -float(found.fun)


def _constraints(n_nodes: int, ends: Ints, n_labels: int) -> tuple[sp.csr_matrix, Floats]:
    """Equations of the local polytope: node sums, then the sums of each edge at both of its ends."""
    L, n_edges = n_labels, len(ends)
    n_node = n_nodes * L
    ones = sp.kron(sp.identity(n_nodes), np.ones((1, L)))
    first = sp.kron(sp.identity(n_edges), sp.kron(sp.identity(L), np.ones((1, L))))
    second = sp.kron(sp.identity(n_edges), sp.kron(np.ones((1, L)), sp.identity(L)))

    def choose(nodes: Ints) -> sp.csr_matrix:
        columns = (nodes[:, np.newaxis] * L + np.arange(L)).ravel()
        rows = np.arange(columns.size)
        return sp.csr_matrix((-np.ones(columns.size), (rows, columns)), (n_edges * L, n_node))

    matrix = sp.bmat(
        [[ones, None], [choose(ends[:, 0]), first], [choose(ends[:, 1]), second]], format="csr"
    )
    right = np.concatenate([np.ones(n_nodes), np.zeros(2 * n_edges * L)])
    return matrix, right
