"""GraphScores: the input of inference on graphs.

The score of a labeling ``y`` of one graph is::

    score(y) = sum_i unary[i, y_i] + sum_e pairwise[e][y_a, y_b]        with edges[e] = (a, b)

``pairwise[e][i, j]`` is the score of label ``i`` at the first node of the edge and label ``j`` at the
second, so an edge may be directed. Several edges may join the same two nodes: their scores add up. An edge
from a node to itself adds ``pairwise[e][i, i]`` to label ``i`` of that node. A forbidden label or pair has
the score ``-inf``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NumericalError
from seqlab.inference.graphs.layout import GraphLayout
from seqlab.inference.scores import Floats, Mask


@dataclass(frozen=True, slots=True)
class GraphScores:
    """Scores of many graphs, stacked.

    Parameters
    ----------
    unary : array of shape (n_nodes, n_labels)
        Score of each label at each node of all graphs, stacked.
    pairwise : array of shape (n_labels, n_labels) or (n_edges, n_labels, n_labels)
        Score of each pair of labels on an edge: of its first node (first label axis) and of its second node.
    edges : int array of shape (n_edges, 2)
        The nodes that each edge joins, as rows of ``unary``. Both belong to the same graph.
    offsets : array of shape (n_graphs + 1,), optional
        Row of the first node of each graph; the last entry is ``n_nodes``. One graph by default.
    layout : GraphLayout, optional
        The layout of these edges, if it is already known.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import GraphScores, marginals, viterbi
    >>> scores = GraphScores(np.array([[1.0, 0], [0, 0], [0, 0.5]]), np.eye(2), [[0, 1], [1, 2], [2, 0]])
    >>> viterbi(scores)
    Labelings(labels=array([0, 0, 0]), score=array([4.]))
    >>> marginals(scores).node.round(3)
    array([[0.667, 0.333],
           [0.572, 0.428],
           [0.521, 0.479]])
    """

    unary: Floats
    pairwise: Floats
    edges: NDArray[np.int64]
    offsets: NDArray[np.int64]
    layout: GraphLayout

    def __init__(
        self,
        unary: ArrayLike,
        pairwise: ArrayLike,
        edges: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        layout: GraphLayout | None = None,
    ) -> None:
        unary = np.ascontiguousarray(unary, dtype=np.float64)
        if unary.ndim != 2:
            raise InputError(f"unary must be (n_nodes, n_labels), got shape {unary.shape}")
        n_nodes, n_labels = unary.shape
        if layout is None:
            layout = GraphLayout(edges, [0, n_nodes] if offsets is None else offsets)
        if layout.n_nodes != n_nodes:
            raise InputError(f"offsets must run from 0 to the {n_nodes} nodes of unary")
        pairwise = np.ascontiguousarray(pairwise, dtype=np.float64)
        shape = (n_labels, n_labels)
        if pairwise.shape not in (shape, (layout.n_edges, *shape)):
            raise InputError(
                f"pairwise must be {shape} or {(layout.n_edges, *shape)} to match unary and edges, "
                f"got shape {pairwise.shape}"
            )
        object.__setattr__(self, "unary", unary)
        object.__setattr__(self, "pairwise", pairwise)
        object.__setattr__(self, "edges", layout.edges)
        object.__setattr__(self, "offsets", layout.offsets)
        object.__setattr__(self, "layout", layout)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.unary.shape[1])

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return int(self.unary.shape[0])

    @property
    def n_steps(self) -> int:
        """The same as ``n_nodes``: functions of chains count steps."""
        return self.n_nodes

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return int(self.offsets.size - 1)

    @property
    def tables(self) -> Floats:
        """Scores of each edge, shape (n_edges, n_labels, n_labels)."""
        shape = (self.edges.shape[0], self.n_labels, self.n_labels)
        return np.broadcast_to(self.pairwise, shape)

    def check(self) -> None:
        """Raise `NumericalError` if a score is NaN or ``+inf`` (``-inf`` means forbidden)."""
        bad = ~(self.unary < np.inf).all(axis=1)
        if bad.any():
            graph, node = self.layout.locate(int(np.argmax(bad)))
            raise NumericalError(
                f"a score of graph {{sequence}} at node {node} is NaN or +inf", graph
            )
        if not np.all(self.pairwise < np.inf):
            raise NumericalError("the pairwise scores contain NaN or +inf")

    def masked(self, mask: Mask | None) -> GraphScores:
        """Return the same scores, with ``-inf`` for everything that ``mask`` forbids.

        ``mask.transitions`` applies to all edges; a graph has neither start nor end.
        """
        if mask is None:
            return self
        if mask.start is not None or mask.end is not None:
            raise InputError(
                "a graph has no first and last node: mask.start and mask.end must be None"
            )
        mask.check(self.n_nodes, self.n_labels)
        unary, pairwise = self.unary, self.pairwise
        if mask.steps is not None:
            unary = np.where(mask.steps, unary, -np.inf)
        if mask.transitions is not None:
            pairwise = np.where(mask.transitions, pairwise, -np.inf)
        return GraphScores(unary, pairwise, self.edges, self.offsets, layout=self.layout)

    def with_unary(self, unary: Floats) -> GraphScores:
        """Return scores with other node scores and the same edges."""
        return GraphScores(unary, self.pairwise, self.edges, self.offsets, layout=self.layout)
