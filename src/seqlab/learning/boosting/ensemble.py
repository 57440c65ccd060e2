"""TreeEnsemble: the fitted trees as plain arrays, which can be checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.learning.boosting._kernels.label_trees import number_sets
from seqlab.learning.boosting._kernels.predict import add_trees
from seqlab.learning.boosting._kernels.splits import COLUMNS, LEAF
from seqlab.learning.boosting.binned import MAX_BINS, Bins
from seqlab.learning.boosting.growers import GrownTrees

Floats = NDArray[np.float64]


class TreeEnsemble:
    """Sums of regression trees, one sum per label.

    The nodes of all trees are stacked; children have higher numbers than their parents. Tree ``i`` belongs to
    label ``i % n_labels``.

    Parameters
    ----------
    n_labels, n_features : int
    has_pairs : bool
        Whether trees may split on the previous label.
    tree_offsets : int64 array of shape (n_trees + 1,)
        First node of each tree.
    feature : int32 array of shape (n_nodes,)
        Feature of the split; -1 for a leaf, -2 for a split on the previous label.
    threshold : array of shape (n_nodes,)
        Values up to the threshold go left.
    child : int32 array of shape (n_nodes,)
        The left child, counted from the first node of the tree; the right child is the next node.
    value : array of shape (n_nodes,)
        Value of a leaf; 0 at other nodes.
    gain : array of shape (n_nodes,)
        Decrease of the loss by the split, according to its quadratic model.
    label_set : int32 array of shape (n_nodes,)
        Row of ``label_sets``: the previous labels of a leaf; -1 for all.
    label_sets : uint8 array of shape (n_sets, n_bytes)
        Sets of previous labels, as bits; the last element stands for "no previous label".
    category_set, category_sets : int32 array of shape (n_nodes,), uint8 array of shape (n_sets, 32)
        The categories that go left, for splits on categorical features.
    """

    _ARRAYS = {
        "tree_offsets": np.int64,
        "feature": np.int32,
        "threshold": np.float64,
        "child": np.int32,
        "value": np.float64,
        "label_set": np.int32,
        "label_sets": np.uint8,
        "category_set": np.int32,
        "category_sets": np.uint8,
        "gain": np.float64,
    }

    tree_offsets: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: Floats
    child: NDArray[np.int32]
    value: Floats
    label_set: NDArray[np.int32]
    label_sets: NDArray[np.uint8]
    category_set: NDArray[np.int32]
    category_sets: NDArray[np.uint8]
    gain: Floats

    def __init__(self, n_labels: int, n_features: int, has_pairs: bool, **arrays: Any) -> None:
        self.n_labels = n_labels
        self.n_features = n_features
        self.has_pairs = has_pairs
        for name in self._ARRAYS:
            setattr(self, name, arrays[name])

    @classmethod
    def from_rounds(
        cls,
        rounds: list[tuple[float, list[GrownTrees]]],
        bins: Bins,
        n_labels: int,
        *,
        has_pairs: bool,
    ) -> TreeEnsemble:
        """Collect the trees of boosting; the step of a round is multiplied into the values."""
        trees = [(step, some) for step, of_labels in rounds for some in of_labels]
        sizes = [some.feature.size for _, some in trees]
        begins = np.cumsum([0, *sizes]).tolist()
        ends = [
            some.tree_offsets[1:] + begin
            for (_, some), begin in zip(trees, begins[:-1], strict=True)
        ]

        def stack(name: str, empty: Any) -> Any:
            return np.concatenate([empty, *(getattr(some, name) for _, some in trees)])

        feature = stack("feature", np.zeros(0, dtype=np.int32))
        place = stack("place", np.zeros(0, dtype=np.int32))
        steps = np.repeat([step for step, _ in trees] or [0.0], sizes or [0])
        member = stack("member", np.zeros((0, n_labels + 1 if has_pairs else 1), dtype=np.bool_))
        threshold = np.empty(feature.size)
        label_set, category_set = np.empty((2, feature.size), dtype=np.int32)
        number_sets(
            feature, place, member, bins.begin, bins.upper, bins.is_categorical, threshold,
            label_set, category_set,
        )  # fmt: skip
        by_category = np.flatnonzero(category_set >= 0)
        sets = np.zeros((by_category.size, MAX_BINS + 1), dtype=np.bool_)
        if by_category.size:
            goes_left = [row for _, some in trees for row in some.goes_left]
            for i, at in enumerate(by_category):
                begin = bins.begin[feature[at]]
                left = np.flatnonzero(goes_left[at])
                sets[i, bins.upper[begin + left].astype(np.int64)] = True
        return cls(
            n_labels,
            bins.n_features,
            has_pairs,
            tree_offsets=np.concatenate([np.zeros(1, dtype=np.int64), *ends]),
            feature=feature,
            threshold=threshold,
            child=stack("child", np.zeros(0, dtype=np.int32)),
            value=stack("value", np.zeros(0)) * steps,
            label_set=label_set,
            label_sets=np.packbits(member[label_set >= 0], axis=1),
            category_set=category_set,
            category_sets=np.packbits(sets, axis=1),
            gain=stack("gain", np.zeros(0)) * steps,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.tree_offsets.size - 1)

    def _check_state(self) -> None:
        """Raise `InputError` if the arrays do not describe trees: the compiled loops do not check them."""
        state_checks.check_int(self.n_labels, "n_labels", 1)
        state_checks.check_int(self.n_features, "n_features", 0)
        state_checks.check_type(self.has_pairs, "has_pairs", bool)
        for name, dtype in self._ARRAYS.items():
            array, n_axes = getattr(self, name), 2 if name in ("label_sets", "category_sets") else 1
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != n_axes:
                raise InputError(
                    f"{name} of the trees must be a {n_axes}-D array of {dtype.__name__}"
                )
        n_nodes, offsets = self.feature.size, self.tree_offsets
        sizes = np.diff(offsets)
        problem = ""
        if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != n_nodes or np.any(sizes < 1):
            problem = "tree_offsets do not divide the nodes into trees"
        elif any(
            getattr(self, name).size != n_nodes
            for name in ("threshold", "child", "value", "label_set", "category_set", "gain")
        ):
            problem = "the arrays of the nodes have different sizes"
        elif self.n_trees % self.n_labels:
            problem = "the number of trees is not a multiple of the number of labels"
        else:
            problem = self._find_bad_node(sizes)
        if problem:
            raise InputError(f"the trees are invalid: {problem}")

    def _find_bad_node(self, sizes: NDArray[np.int64]) -> str:
        feature, child = self.feature, self.child.astype(np.int64)
        place = np.arange(feature.size) - np.repeat(self.tree_offsets[:-1], sizes)
        size = np.repeat(sizes, sizes)
        splits = feature != LEAF
        if np.any((feature < COLUMNS) | (feature >= self.n_features)):
            return "a node splits on a feature that does not exist"
        if not self.has_pairs and np.any(feature == COLUMNS):
            return "a tree without previous labels splits on them"
        # Children behind their parents: a walk always ends.
        if np.any(splits & ((child <= place) | (child + 1 >= size))):
            return "a child of a node is outside the tree or before its parent"
        # One parent for each node: both children of a split on the previous label are visited, so the time of
        # a walk could otherwise grow exponentially with the depth.
        left = (np.arange(feature.size) - place + child)[splits]
        n_parents = np.bincount(left, minlength=feature.size + 1)
        n_parents[1:] += n_parents[:-1].copy()
        if not np.array_equal(n_parents[: feature.size], place > 0):
            return "a node has no parent, or several"
        n_columns = self.n_labels + 1 if self.has_pairs else 1
        for name, n_elements in (("label_set", n_columns), ("category_set", MAX_BINS + 1)):
            index, sets = getattr(self, name), getattr(self, name + "s")
            if sets.shape[1] != -(-n_elements // 8):
                return f"{name}s has rows of {sets.shape[1]} bytes"
            if np.any((index < -1) | (index >= sets.shape[0])):
                return f"a node has a {name} that does not exist"
        if not self.has_pairs and np.any(self.label_set >= 0):
            return "a tree without previous labels has a set of them"
        if not (np.isfinite(self.value).all() and np.isfinite(self.gain).all()):
            return "a value is not finite"
        if np.isnan(self.threshold).any():
            return "a threshold is not a number"
        return ""

    def add_scores(
        self, indptr: Any, indices: Any, data: Floats, node: Floats, pair: Floats
    ) -> None:
        """Add the scores of the rows of a CSR matrix.

        Parameters
        ----------
        indptr, indices : int32 arrays
        data : array
        node : array of shape (n_labels, n_rows)
        pair : array of shape (n_labels, n_rows, n_labels + 1), or with 0 columns without pairs
        """
        # The compiled loop does not check its indices.
        if indices.size and int(indices.max()) >= self.n_features:
            raise InputError(
                f"a row has the feature {int(indices.max())}, but the trees have {self.n_features} features"
            )
        members = np.unpackbits(self.label_sets, axis=1)
        add_trees(
            self.tree_offsets, self.feature, self.threshold, self.child, self.value, self.label_set,
            members, self.category_set, self.category_sets, self.n_features,
            indptr, indices, data, node, pair,
        )  # fmt: skip

    def importances(self) -> tuple[Floats, float]:
        """Return the summed gains of the splits on each feature, and on the previous label."""
        is_split = self.feature >= 0
        sums = np.zeros(self.n_features)
        np.add.at(sums, self.feature[is_split], self.gain[is_split])
        return sums, float(self.gain[self.feature == COLUMNS].sum())
