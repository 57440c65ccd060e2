"""GraphLayout: what inference needs to know of the edges of many graphs, computed once.

Inference works on *simple* edges: pairs of different nodes ``(a, b)`` with ``a < b``, each once.
`GraphLayout` maps the given edges to simple ones, splits them by graph and finds the graphs without cycles
and the junction trees of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.data.graphs import check_edges
from seqlab.inference.kernels.forests import breadth_first

if TYPE_CHECKING:
    from seqlab.inference.graphs.elimination import CliqueTree

Ints = NDArray[np.int64]


class BreadthFirst:
    """Breadth-first order of a graph: each node after its parent.

    Attributes
    ----------
    is_forest : bool
        Whether the graph has no cycle.
    order, parent, parent_link : arrays of shape (n_nodes,)
        The order, and the parent of each node with the edge to it (-1 for roots).
    """

    def __init__(self, starts: Ints, neighbours: Ints, links: Ints) -> None:
        n_nodes = starts.size - 1
        self.order, self.parent, self.parent_link = (
            np.empty(n_nodes, dtype=np.int64) for _ in range(3)
        )
        n_trees = breadth_first(
            starts, neighbours, links, self.order, self.parent, self.parent_link
        )
        self.is_forest = neighbours.size // 2 == n_nodes - n_trees

    def component_of_node(self) -> Ints:
        """Number of the connected component of each node, shape (n_nodes,)."""
        component = np.zeros(self.order.size, dtype=np.int64)
        n_components = 0
        for i in self.order.tolist():
            if self.parent[i] < 0:
                component[i] = n_components
                n_components += 1
            else:
                component[i] = component[self.parent[i]]
        return component


@dataclass(slots=True)
class OneGraph:
    """The simple edges of one graph; nodes are counted from its first node.

    Attributes
    ----------
    n_nodes : int
    edges : array of shape (n_simple_edges, 2)
        Both nodes of each edge, the smaller first.
    first_edge : int
        Row of the first of these edges among the simple edges of all graphs.
    starts, neighbours, links : arrays
        Node ``i`` is joined to ``neighbours[starts[i]:starts[i + 1]]`` by the edges ``links[...]`` (rows of
        ``edges``), in the order of the neighbours.
    breadth_first : BreadthFirst
    """

    n_nodes: int
    edges: Ints
    first_edge: int
    starts: Ints = field(init=False)
    neighbours: Ints = field(init=False)
    links: Ints = field(init=False)
    breadth_first: BreadthFirst = field(init=False)
    _trees: dict[int, CliqueTree | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        ends = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        others = np.concatenate([self.edges[:, 1], self.edges[:, 0]])
        links = np.tile(np.arange(len(self.edges)), 2)
        order = np.lexsort((others, ends))
        self.neighbours, self.links = others[order], links[order]
        counts = np.bincount(ends, minlength=self.n_nodes)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.breadth_first = BreadthFirst(self.starts, self.neighbours, self.links)

    def clique_tree(self, max_clique: int) -> CliqueTree | None:
        """Return cliques of an elimination order; None if one has more than ``max_clique`` nodes."""
        if max_clique not in self._trees:
            # Imported here because chains, which import this module, do not need it.
            from seqlab.inference.graphs.elimination import eliminate

            self._trees[max_clique] = eliminate(self.starts, self.neighbours, max_clique)
        return self._trees[max_clique]


class GraphLayout:
    """The edges of many graphs, prepared for inference.

    Parameters
    ----------
    edges : int array of shape (n_edges, 2)
        The nodes that each edge joins, counted over all graphs.
    offsets : array of shape (n_graphs + 1,)
        First node of each graph; the last entry is the number of nodes.
    """

    def __init__(self, edges: ArrayLike, offsets: ArrayLike) -> None:
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        if self.offsets.ndim != 1 or self.offsets.size == 0 or self.offsets[0] != 0:
            raise InputError("offsets must be a list of integers that begins with 0")
        if np.any(np.diff(self.offsets) < 0):
            raise InputError("offsets must not decrease")
        self.n_nodes = int(self.offsets[-1])
        self.edges = check_edges(edges, self.n_nodes, "edges")
        self.n_edges = len(self.edges)
        self.graph_of_node = np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))
        graphs = (
            self.graph_of_node[self.edges] if self.n_edges else np.zeros((0, 2), dtype=np.int64)
        )
        apart = graphs[:, 0] != graphs[:, 1]
        if apart.any():
            e = int(np.argmax(apart))
            raise InputError(
                f"edges[{e}] joins a node of graph {graphs[e, 0]} to one of graph {graphs[e, 1]}"
            )
        self.is_loop = self.edges[:, 0] == self.edges[:, 1]
        self.is_flipped = self.edges[:, 0] > self.edges[:, 1]
        pairs = np.sort(self.edges[~self.is_loop], axis=1)
        self.simple, inverse = np.unique(pairs, axis=0, return_inverse=True)
        self.simple = self.simple.reshape(-1, 2)
        # Row of the simple edge of each given edge; -1 for an edge from a node to itself.
        self.slot = np.full(self.n_edges, -1, dtype=np.int64)
        self.slot[~self.is_loop] = inverse.reshape(-1)

    def locate(self, node: int) -> tuple[int, int]:
        """Graph of a node, and its number in that graph."""
        graph = int(np.searchsorted(self.offsets, node, side="right") - 1)
        return graph, node - int(self.offsets[graph])

    @cached_property
    def graphs(self) -> list[OneGraph]:
        """The simple edges of each graph."""
        bounds = np.searchsorted(self.simple[:, 0], self.offsets)  # simple edges are sorted
        result = []
        for g, begin in enumerate(self.offsets[:-1].tolist()):
            rows = self.simple[bounds[g] : bounds[g + 1]] - begin
            result.append(OneGraph(int(self.offsets[g + 1]) - begin, rows, int(bounds[g])))
        return result

    def merge(
        self, unary: NDArray[np.float64], tables: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return node scores and the scores of simple edges, in which all given edges are contained."""
        if self.is_loop.any():
            unary = unary.copy()
            np.add.at(
                unary,
                self.edges[self.is_loop, 0],
                np.diagonal(tables[self.is_loop], axis1=1, axis2=2),
            )
        merged = np.zeros((len(self.simple), unary.shape[1], unary.shape[1]))
        forward = ~self.is_loop & ~self.is_flipped
        np.add.at(merged, self.slot[forward], tables[forward])
        np.add.at(merged, self.slot[self.is_flipped], tables[self.is_flipped].transpose(0, 2, 1))
        return unary, merged

    def spread(self, node: NDArray[np.float64], pair: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the pair marginals of the given edges from those of nodes and simple edges."""
        result = np.zeros((self.n_edges, node.shape[1], node.shape[1]))
        forward = ~self.is_loop & ~self.is_flipped
        result[forward] = pair[self.slot[forward]]
        result[self.is_flipped] = pair[self.slot[self.is_flipped]].transpose(0, 2, 1)
        loops = np.flatnonzero(self.is_loop)
        diagonal = np.arange(node.shape[1])
        result[loops[:, None], diagonal, diagonal] = node[self.edges[loops, 0]]
        return result
