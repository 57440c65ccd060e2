"""Exact inference on graphs without cycles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.inference.graphs.layout import BreadthFirst, OneGraph
from seqlab.inference.kernels.forests import decode_forest, forest_beliefs, forest_marginals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Forest:
    """Messages of one graph without cycles.

    Parameters
    ----------
    graph : OneGraph
    order : BreadthFirst
    unary : array of shape (n_nodes, n_labels)
    pair : array of shape (n_simple_edges, n_labels, n_labels)
    use_max : bool
        Whether to compute maxima instead of sums.
    """

    def __init__(
        self, graph: OneGraph, order: BreadthFirst, unary: Floats, pair: Floats, use_max: bool
    ) -> None:
        self._tree = graph.edges, order.order, order.parent, order.parent_link
        self._pair = pair
        self.up, self.message, self.belief = (np.empty(unary.shape) for _ in range(3))
        self.total = float(
            forest_beliefs(unary, pair, *self._tree, use_max, self.up, self.message, self.belief)
        )

    def marginals(self, node: Floats, pair: Floats) -> None:
        """Fill the marginals of all nodes and edges."""
        tables = self.up, self.message, self.belief
        forest_marginals(self._pair, *self._tree, *tables, node, pair)

    def decode(self) -> Ints:
        """Return the best labeling (with ``use_max``); the lowest label in case of ties."""
        labels = np.zeros(len(self.up), dtype=np.int64)
        decode_forest(self._pair, *self._tree, self.up, labels)
        return labels

    def max_marginals(self, out: Floats) -> None:
        """Fill the best score of a labeling of its tree through each label of each node."""
        out[:] = self.belief
