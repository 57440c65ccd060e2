"""Tree growers: the part of boosting that knows the features.

Boosting asks a grower for one regression tree per label and round, for a few labels at a time.
`FeatureTreeGrower` grows trees over the columns of X; a grower with other tests, such as relational queries,
needs only the methods of `TreeGrower`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.boosting._kernels.grow import MIN_GAIN
from seqlab.learning.boosting._kernels.label_trees import add_leaves, grow_trees
from seqlab.learning.boosting.binned import BinnedRows
from seqlab.utils.training_clock import training_time

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

    def grow(
        self,
        gradient: Ints,
        curvature: Ints,
        scale: float,
        factor: float,
        node: Floats,
        pair: Floats,
    ) -> Any:
        """Fit one tree per label to the gradients, and add ``factor`` times the trees to the scores.

        Parameters
        ----------
        gradient, curvature : int64 arrays of shape (n_trees, n_rows, n_columns)
            Fixed-point sums; a column is a previous label, the last one for steps without.
        scale : float
            One in fixed point.
        factor, node, pair
            See `GrownTrees.add_to`, which the returned trees also have.
        """
        ...

    def is_late(self) -> bool:
        """Return whether the time for growing trees is over, so that trees may be smaller."""
        ...


class GrownTrees(NamedTuple):
    """Trees over the columns of X, with the rows of their leaves; the nodes of all trees are stacked."""

    tree_offsets: Ints  # (n_trees + 1,): first node of each tree
    feature: Ints32  # (n_nodes,), negative for leaves and for splits on the previous label
    place: Ints32  # number of bins on the left
    child: (
        Ints32  # the left child, counted from the first node of the tree; the right one is the next
    )
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
        """Add ``factor`` times the trees to the scores of their labels.

        Parameters
        ----------
        factor : float
        node : array of shape (n_trees, n_rows)
            Gets the leaves that do not depend on the previous label.
        pair : array of shape (n_trees, n_rows, n_columns)
            Gets the other leaves.
        """
        leaves = self.feature, self.member, self.value, self.rows, self.begin, self.stop
        add_leaves(self.tree_offsets, *leaves, factor, node, pair)


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
    min_gain : float
        Gain that a split needs.
    deadline : float, default=inf
        Time, by `training_time`, after which trees are single leaves: the caller stops after the round.
    """

    def __init__(
        self,
        rows: BinnedRows,
        *,
        max_leaf_nodes: int,
        l2: float = 0.0,
        min_curvature: float = 0.0,
        max_value: float = np.inf,
        min_gain: float = MIN_GAIN,
        deadline: float = math.inf,
    ) -> None:
        self.rows, self.deadline = rows, deadline
        self.row_of_step = rows.row_of_step
        self.n_rows = rows.n_rows
        bins = rows.bins
        lists = rows.list_begin, rows.listed_rows
        of_bins = bins.begin, bins.default, bins.is_categorical
        self._arrays = rows.indptr, rows.entries, *lists, *of_bins
        limits = float(l2), float(min_curvature), int(max_leaf_nodes), float(max_value)
        self._options = *limits, float(min_gain)

    def grow(
        self,
        gradient: Ints,
        curvature: Ints,
        scale: float,
        factor: float,
        node: Floats,
        pair: Floats,
    ) -> GrownTrees:
        """Fit trees and add them to the scores; see `TreeGrower`."""
        l2, min_curvature, max_leaf_nodes, *limits = self._options
        if self.is_late():
            max_leaf_nodes = 1
        options = *self._arrays, l2, min_curvature, max_leaf_nodes, *limits
        arguments: Any = gradient, curvature, scale, *options, factor, node, pair
        return GrownTrees(*grow_trees(*arguments))

    def is_late(self) -> bool:
        """Return whether the deadline is over."""
        return training_time() >= self.deadline

    @property
    def arguments(self) -> Any:
        """Arguments of the compiled functions: features and options."""
        return *self._arrays, *self._options
