"""Tree growers: the part of boosting that knows the features.

Boosting asks a grower for one regression tree per label and round. `FeatureTreeGrower` grows trees over the
columns of X; a grower with other tests, such as relational queries, needs only the methods of `TreeGrower`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.boosting._kernels.grow import add_leaves, grow_tree
from seqlab.learning.boosting.binned import BinnedRows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


class TreeGrower(Protocol):
    """Grows regression trees over rows and previous labels.

    Attributes
    ----------
    row_of_step : int32 array of shape (n_steps,)
        Steps with the same row have the same features.
    n_rows : int
    """

    row_of_step: Ints32
    n_rows: int

    def grow(self, gradient: Ints, curvature: Ints, scale: float) -> Any:
        """Return a tree (with the method `GrownTree.add_to`) fitted to the gradient.

        Parameters
        ----------
        gradient, curvature : int64 arrays of shape (n_rows, n_columns)
            Fixed-point sums; a column is a previous label, the last one for steps without.
        scale : float
            One in fixed point.
        """
        ...


class GrownTree(NamedTuple):
    """A tree over the columns of X, with the rows of its leaves."""

    feature: Ints32  # (n_nodes,), negative for leaves and for splits on the previous label
    place: Ints32  # number of bins on the left
    child: Ints32  # the left child; the right one is the next node
    goes_left: (
        Bools  # (n_nodes, n_most_categories): bins on the left, if the feature is categorical
    )
    member: Bools  # (n_nodes, n_columns): previous labels of each node
    value: Floats
    gain: Floats
    rows: Ints32
    begin: Ints
    stop: Ints

    def add_to(self, factor: float, node: Floats, pair: Floats) -> None:
        """Add ``factor`` times the tree to the scores of a label.

        Parameters
        ----------
        factor : float
        node : array of shape (n_rows,)
            Gets the leaves that do not depend on the previous label.
        pair : array of shape (n_rows, n_columns)
            Gets the other leaves.
        """
        leaves = self.feature, self.member, self.value, self.rows, self.begin, self.stop
        add_leaves(*leaves, factor, node, pair)


class FeatureTreeGrower:
    """Best-first regression trees over binned features.

    Parameters
    ----------
    rows : BinnedRows
    max_leaf_nodes : int
    l2 : float
        Added to the curvature of every leaf.
    min_curvature : float
        Minimum curvature of a leaf.
    max_value : float
        Limit of the absolute value of a leaf.
    """

    def __init__(
        self,
        rows: BinnedRows,
        *,
        max_leaf_nodes: int,
        l2: float = 0.0,
        min_curvature: float = 0.0,
        max_value: float = np.inf,
    ) -> None:
        self.rows = rows
        self.row_of_step = rows.row_of_step
        self.n_rows = rows.n_rows
        bins = rows.bins
        lists = rows.list_begin, rows.listed_rows
        of_bins = bins.begin, bins.default, bins.is_categorical
        self._arrays = rows.indptr, rows.entries, *lists, *of_bins
        self._options = float(l2), float(min_curvature), int(max_leaf_nodes), float(max_value)

    def grow(self, gradient: Ints, curvature: Ints, scale: float) -> GrownTree:
        """Return a tree fitted to the gradient; see `TreeGrower`."""
        return GrownTree(*grow_tree(gradient, curvature, scale, *self._arrays, *self._options))
