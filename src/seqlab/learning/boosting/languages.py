"""Trees whose tests depend on the path to a node, such as queries with variables.

`FeatureTreeGrower` offers the same tests at every node. Here a *language* says which tests a node has: a node
has a state, which changes along the branches of the tree. Growth, statistics and tie-breaking are those of
`FeatureTreeGrower`: with a language whose tests are the columns of X, both grow the same trees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.boosting._kernels.grow import MIN_GAIN
from seqlab.learning.boosting._kernels.nodes import (
    find_column_split,
    find_left_rows,
    find_test,
    leaf_value,
    sum_member_columns,
)
from seqlab.learning.boosting._kernels.splits import COLUMNS, LEAF
from seqlab.learning.boosting.growers import GrownTrees
from seqlab.utils.signals import check_signals
from seqlab.utils.training_clock import training_time

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


class NodeTests(NamedTuple):
    """Tests of a node, and the bin of every row in each of them.

    Test ``k`` has the bins ``bin_begin[k]`` to ``bin_begin[k + 1] - 1``; a row lists its bins except default
    bins. The first bins go left.
    """

    indptr: Ints32  # (n_rows + 1,)
    entries: Ints32
    bin_begin: Ints32  # (n_tests + 1,)
    default_bin: Ints32  # (n_tests,)

    @property
    def n_tests(self) -> int:
        """Number of tests."""
        return int(self.default_bin.size)


class TreeLanguage(Protocol):
    """The tests of a tree.

    Attributes
    ----------
    row_of_step : int32 array of shape (n_steps,)
    n_rows : int
    root : object
        State of the root.
    """

    row_of_step: Ints32
    n_rows: int
    root: Any

    def tables(self, state: Any) -> list[NodeTests]:
        """Return the tests of a node; earlier ones are preferred if gains are equal."""
        ...

    def describe_test(self, state: Any, table: int, test: int) -> Any:
        """Return a hashable description of a test."""
        ...

    def branch(self, state: Any, table: int, test: int, *, is_left: bool) -> Any:
        """Return the state of a child."""
        ...


class DescribedTrees(NamedTuple):
    """Trees and the descriptions of their tests: ``trees.feature`` is an index of ``tests``."""

    trees: GrownTrees
    tests: list[Any]

    def add_to(self, factor: float, node: Floats, pair: Floats) -> None:
        """Add ``factor`` times the trees to the scores of their labels; see `GrownTrees.add_to`."""
        self.trees.add_to(factor, node, pair)


@dataclass(slots=True)
class _Node:
    """A node while the tree grows: rows times previous labels, and its best split."""

    rows: Ints32
    member: Bools
    state: Any
    row_g: Ints = field(init=False)
    row_h: Ints = field(init=False)
    gain: float = 0.0
    table: int = LEAF
    test: int = 0
    place: int = 0
    columns_left: Bools | None = None
    child: int = 0  # the left child, once the node is split


class LanguageTreeGrower:
    """Best-first regression trees over the tests of a language.

    Parameters
    ----------
    language : TreeLanguage
    max_leaf_nodes : int
    l2, max_value, min_gain : float
        See `FeatureTreeGrower`.
    deadline : float, default=inf
        Time, by `training_time`, after which nodes are not split: the caller stops after the round.
    """

    def __init__(
        self,
        language: TreeLanguage,
        *,
        max_leaf_nodes: int,
        l2: float,
        max_value: float,
        min_gain: float = MIN_GAIN,
        deadline: float = math.inf,
    ) -> None:
        self.language, self.deadline = language, deadline
        self.row_of_step, self.n_rows = language.row_of_step, language.n_rows
        self.max_leaf_nodes, self.l2, self.max_value = max_leaf_nodes, l2, max_value
        self.min_gain = min_gain

    def grow(
        self,
        gradient: Ints,
        curvature: Ints,
        scale: float,
        factor: float,
        node: Floats,
        pair: Floats,
    ) -> DescribedTrees:
        """Fit trees and add them to the scores; see `TreeGrower`."""
        nodes = [self._grow_tree(*sums, scale) for sums in zip(gradient, curvature, strict=True)]
        grown = self._describe(nodes, scale)
        grown.add_to(factor, node, pair)
        return grown

    def is_late(self) -> bool:
        """Return whether the deadline is over."""
        return training_time() >= self.deadline

    def _grow_tree(self, gradient: Ints, curvature: Ints, scale: float) -> list[_Node]:
        """Return the nodes of a tree."""
        n_columns, penalty = gradient.shape[1], self.l2 * scale
        everything = np.arange(self.n_rows, dtype=np.int32)
        root = _Node(everything, np.ones(n_columns, dtype=np.bool_), self.language.root)
        nodes, n_leaves, first_new = [root], 1, 0
        while True:
            for node in nodes[first_new:]:
                self._sum(node, gradient, curvature)
            if n_leaves == self.max_leaf_nodes or self.is_late():
                break
            for node in nodes[first_new:]:
                check_signals()
                self._find_split(node, gradient, curvature, penalty)
            best, chosen = self.min_gain * scale, None
            for node in nodes:
                if not node.child and node.gain > best:
                    best, chosen = node.gain, node
            if chosen is None:
                break
            first_new = chosen.child = len(nodes)
            nodes += self._split(chosen)
            n_leaves += 1
        return nodes

    def _sum(self, node: _Node, gradient: Ints, curvature: Ints) -> None:
        node.row_g, node.row_h = sum_member_columns(gradient, curvature, node.rows, node.member)

    def _find_split(self, node: _Node, gradient: Ints, curvature: Ints, penalty: float) -> None:
        """Find the best split of a node: a test, or a set of previous labels."""
        for number, table in enumerate(self.language.tables(node.state)):
            if not table.n_tests:
                continue
            ordered = np.zeros(table.n_tests, dtype=np.bool_)
            gain, test, place = find_test(
                node.rows, node.row_g, node.row_h, *table, ordered, penalty, 1.0
            )
            if gain > node.gain:
                node.gain, node.table, node.test, node.place = gain, number, test, place
        if node.member.size > 1:
            gain, left = find_column_split(
                gradient, curvature, node.rows, node.member, penalty, 1.0
            )
            if gain > node.gain:
                node.gain, node.table, node.columns_left = gain, COLUMNS, left

    def _split(self, node: _Node) -> list[_Node]:
        """Return the children of a node."""
        if node.columns_left is not None:
            left, right = node.member & node.columns_left, node.member & ~node.columns_left
            return [_Node(node.rows, part, node.state) for part in (left, right)]
        table = self.language.tables(node.state)[node.table]
        bins = table.bin_begin[node.test], table.bin_begin[node.test + 1]
        default = table.default_bin[node.test]
        is_left = find_left_rows(node.rows, table.indptr, table.entries, *bins, default, node.place)
        return [
            _Node(
                node.rows[part],
                node.member,
                self.language.branch(node.state, node.table, node.test, is_left=goes_left),
            )
            for part, goes_left in ((is_left, True), (~is_left, False))
        ]

    def _describe(self, trees: list[list[_Node]], scale: float) -> DescribedTrees:
        nodes, penalty = [node for tree in trees for node in tree], self.l2 * scale
        tests: dict[Any, int] = {}
        feature = np.full(len(nodes), LEAF, dtype=np.int32)
        value, gain = np.zeros(len(nodes)), np.zeros(len(nodes))
        for i, node in enumerate(nodes):
            if not node.child:
                sums = int(node.row_g.sum()), int(node.row_h.sum())
                value[i] = leaf_value(*sums, penalty, self.max_value)
                continue
            gain[i] = node.gain / scale
            feature[i] = COLUMNS
            if node.columns_left is None:
                test = self.language.describe_test(node.state, node.table, node.test)
                feature[i] = tests.setdefault(test, len(tests))
        rows = [node.rows if not node.child else node.rows[:0] for node in nodes]
        stop = np.cumsum([part.size for part in rows]).astype(np.int64)
        is_split = feature >= 0
        grown = GrownTrees(
            tree_offsets=np.cumsum([0, *map(len, trees)]).astype(np.int64),
            feature=feature,
            place=np.array([node.place for node in nodes], dtype=np.int32) * is_split,
            child=np.array([node.child for node in nodes], dtype=np.int32),
            goes_left=np.zeros((len(nodes), 1), dtype=np.bool_),
            member=np.array([node.member for node in nodes]),
            value=value,
            gain=gain,
            rows=np.concatenate(rows),
            begin=stop - np.array([part.size for part in rows]),
            stop=stop,
        )
        return DescribedTrees(grown, list(tests))
