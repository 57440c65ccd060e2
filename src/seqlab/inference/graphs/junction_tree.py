"""Exact inference on graphs of small treewidth: messages between the cliques of an elimination order.

The table of the clique of node ``v`` has one axis per node, ``v`` first, then its separator in the order of
elimination; the separator is contained in the clique of its first node, whose axes have the same order, so
a message only needs axes of length 1 to be added. The cost is the number of entries of all tables,
``n_labels ** (treewidth + 1)`` each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.inference.graphs.elimination import CliqueTree
from seqlab.inference.graphs.layout import OneGraph

Floats = NDArray[np.float64]


class JunctionTree:
    """Tables and messages of one graph, towards the last node to be eliminated.

    Parameters
    ----------
    graph : OneGraph
    cliques : CliqueTree
    unary : array of shape (n_nodes, n_labels)
    pair : array of shape (n_simple_edges, n_labels, n_labels)
    use_max : bool
        Whether to compute maxima instead of sums.
    """

    def __init__(
        self, graph: OneGraph, cliques: CliqueTree, unary: Floats, pair: Floats, use_max: bool
    ) -> None:
        self.graph, self.cliques, self.use_max = graph, cliques, use_max
        self.n_labels = unary.shape[1]
        self._parent = [nodes[0] if nodes else -1 for nodes in cliques.separators]
        self.tables: list[Floats] = [np.empty(0)] * graph.n_nodes
        self.messages: list[Floats] = [np.empty(0)] * graph.n_nodes
        waiting: list[list[int]] = [[] for _ in range(graph.n_nodes)]
        self.total = 0.0  # log-partition, or the best score
        for v in cliques.order:
            table = self._factor(v, unary, pair)
            for child in waiting[v]:
                table = table + self.messages[child].reshape(self._shape(v, child))
            self.tables[v] = table
            self.messages[v] = table.max(axis=0) if use_max else _log_sum(table)
            if self._parent[v] >= 0:
                waiting[self._parent[v]].append(v)
            else:
                self.total += float(self.messages[v])

    def _factor(self, v: int, unary: Floats, pair: Floats) -> Floats:
        """Scores of a node and of its edges to nodes that are eliminated later."""
        separator = self.cliques.separators[v]
        L, graph = self.n_labels, self.graph
        table = unary[v].reshape((L,) + (1,) * len(separator))
        table = np.broadcast_to(table, (L,) * (len(separator) + 1)).copy()
        axis = {u: k + 1 for k, u in enumerate(separator)}
        for k in range(graph.starts[v], graph.starts[v + 1]):
            u = int(graph.neighbours[k])
            if u in axis:
                scores = pair[graph.links[k]] if v < u else pair[graph.links[k]].T
                shape = [L] + [1] * len(separator)
                shape[axis[u]] = L
                table += scores.reshape(shape)
        return table

    def _shape(self, v: int, child: int) -> tuple[int, ...]:
        """Shape of a child's message, with axes of length 1 for the other nodes of the clique of ``v``."""
        inside = set(self.cliques.separators[child])
        clique = [v, *self.cliques.separators[v]]
        return tuple(self.n_labels if u in inside else 1 for u in clique)

    def _other_axes(self, v: int, child: int) -> tuple[int, ...]:
        return tuple(k for k, size in enumerate(self._shape(v, child)) if size == 1)

    def decode(self) -> NDArray[np.int64]:
        """Return a best labeling (with ``use_max``); the lowest label in case of ties."""
        labels = np.zeros(self.graph.n_nodes, dtype=np.int64)
        for v in reversed(self.cliques.order):
            column = self.tables[v][(slice(None), *labels[self.cliques.separators[v]])]
            labels[v] = np.argmax(column)
        return labels

    def sample(self, uniform: Floats) -> NDArray[np.int64]:
        """Draw a labeling, with one uniform number per node."""
        labels = np.zeros(self.graph.n_nodes, dtype=np.int64)
        for v in reversed(self.cliques.order):
            column = self.tables[v][(slice(None), *labels[self.cliques.separators[v]])]
            cumulated = np.cumsum(np.exp(column - column.max()))
            drawn = np.searchsorted(cumulated, uniform[v] * cumulated[-1], side="right")
            labels[v] = min(drawn, self.n_labels - 1)
        return labels

    def marginals(self, node: Floats, pair: Floats) -> None:
        """Fill the marginals of all nodes and simple edges."""
        separator_marginals: list[Floats] = [np.ones(())] * self.graph.n_nodes
        children = self._children()
        for v in reversed(self.cliques.order):
            with np.errstate(invalid="ignore"):
                conditional = np.exp(self.tables[v] - self.messages[v])  # P(y_v | separator)
            joint = np.where(self.messages[v] > -np.inf, conditional, 0.0) * separator_marginals[v]
            separator = self.cliques.separators[v]
            node[v] = joint.sum(axis=tuple(range(1, joint.ndim)))
            axis = {u: k + 1 for k, u in enumerate(separator)}
            for k in range(self.graph.starts[v], self.graph.starts[v + 1]):
                u = int(self.graph.neighbours[k])
                if u in axis:
                    rest = tuple(a for a in range(1, joint.ndim) if a != axis[u])
                    both = joint.sum(axis=rest)
                    pair[self.graph.links[k]] = both if v < u else both.T
            for child in children[v]:
                separator_marginals[child] = joint.sum(axis=self._other_axes(v, child))

    def max_marginals(self, out: Floats) -> None:
        """Fill, for each label of each node, the best score of a labeling of its component through it."""
        separator_best: list[Floats] = [np.zeros(())] * self.graph.n_nodes
        children = self._children()
        for v in reversed(self.cliques.order):
            root = self._parent[v] < 0
            with np.errstate(invalid="ignore"):
                rest = 0.0 if root else separator_best[v] - self.messages[v]
            rest = np.where(np.isnan(rest), -np.inf, rest)
            joint = self.tables[v] + rest
            out[v] = joint.max(axis=tuple(range(1, joint.ndim)))
            for child in children[v]:
                separator_best[child] = joint.max(axis=self._other_axes(v, child))

    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in range(self.graph.n_nodes)]
        for v in self.cliques.order:
            if self._parent[v] >= 0:
                children[self._parent[v]].append(v)
        return children


def _log_sum(table: Floats) -> Floats:
    """Logarithm of the sum of exponentials over the first axis."""
    top = table.max(axis=0)
    safe = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        result: Floats = np.log(np.exp(table - safe).sum(axis=0)) + safe
    return result
