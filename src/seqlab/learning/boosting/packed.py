"""PackedTrees: the trees of many models with two labels, in a form that is fast to walk.

What a walk reads of a node is next to each other in memory, children are numbered over all trees, and
features over those that occur in a split: a row of features is short even if X has many columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.learning.boosting._kernels.predict import is_in_categories
from seqlab.learning.boosting._kernels.splits import COLUMNS
from seqlab.learning.boosting.ensemble import TreeEnsemble

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]

# ``link`` is the left child of a split, the set of previous labels of a leaf (-1 for all of them).
NODE = np.dtype([("feature", np.int32), ("link", np.int32), ("number", np.float64)])


class PackedTrees:
    """The trees of several ensembles with two labels.

    Parameters
    ----------
    ensembles : sequence of TreeEnsemble
        All with previous labels, or all without.

    Attributes
    ----------
    nodes : record array of shape (n_nodes,)
        Feature; left child, or set of previous labels of a leaf; threshold, or value of a leaf.
    tree_begin : int64 array of shape (n_trees,)
        Root of each tree.
    ensemble_begin : int64 array of shape (n_ensembles + 1,)
        First tree of each ensemble.
    place : int32 array
        Where a feature is in a row; -1 if no tree tests it.
    n_places : int
        Length of a row.
    """

    def __init__(self, ensembles: Sequence[TreeEnsemble]) -> None:
        self.ensembles = list(ensembles)
        sizes = [one.feature.size for one in ensembles]
        first_node = np.cumsum([0, *sizes])
        self.ensemble_begin = np.cumsum([0, *(one.n_trees for one in ensembles)])
        self.tree_begin = np.concatenate(
            [one.tree_offsets[:-1] + first_node[k] for k, one in enumerate(ensembles)]
        )
        feature = np.concatenate([one.feature for one in ensembles])
        is_split = feature >= 0
        used = np.unique(feature[is_split])
        self.n_places = int(used.size)
        self.place = np.full(max((one.n_features for one in ensembles), default=0), -1, np.int32)
        self.place[used] = np.arange(used.size)
        self.nodes = np.zeros(feature.size, dtype=NODE)
        self.nodes["feature"] = np.where(is_split, self.place[np.maximum(feature, 0)], feature)
        self.category_set = np.full(feature.size, -1, dtype=np.int32)
        label_sets, category_sets, n_label_sets, n_category_sets = [], [], 0, 0
        for k, one in enumerate(ensembles):
            part = slice(first_node[k], first_node[k + 1])
            roots = np.repeat(one.tree_offsets[:-1], np.diff(one.tree_offsets)) + first_node[k]
            own = self.nodes[part]
            is_leaf = one.feature == -1
            sets = np.where(one.label_set >= 0, one.label_set + n_label_sets, -1)
            own["link"] = np.where(is_leaf, sets, one.child + roots)
            own["number"] = np.where(is_leaf, one.value, one.threshold)
            by_category = one.category_set >= 0
            self.category_set[part][by_category] = one.category_set[by_category] + n_category_sets
            label_sets.append(np.unpackbits(one.label_sets, axis=1)[:, :3])
            category_sets.append(one.category_sets)
            n_label_sets += one.label_sets.shape[0]
            n_category_sets += one.category_sets.shape[0]
        self.label_sets = np.ascontiguousarray(np.concatenate(label_sets), dtype=np.float64)
        self.category_sets = np.ascontiguousarray(np.concatenate(category_sets))
        self.has_categories = bool((self.category_set >= 0).any())

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Arguments of `add_packed_trees`."""
        return self.nodes, self.label_sets, self.category_set, self.category_sets

    @property
    def depth(self) -> int:
        """Largest number of nodes of a tree, which bounds the nodes that wait during a walk."""
        ends = np.append(self.tree_begin[1:], self.nodes.size)
        return int(max((ends - self.tree_begin).max(initial=1), 1))


@njit(nogil=True, cache=True)
def add_packed_trees(
    nodes: Any,
    label_sets: Floats,
    category_set: Ints32,
    category_sets: Bytes,
    tree_begin: Ints,
    first: int,
    last: int,
    has_categories: bool,
    x: Floats,
    n_rows: int,
    stack: Ints,
    scores: Floats,
) -> None:
    """Add the trees ``first <= i < last`` of an ensemble to the scores of rows.

    Parameters
    ----------
    nodes, label_sets, category_set, category_sets, tree_begin, has_categories
        Of `PackedTrees`.
    x : array of shape (at least n_rows, n_places)
    stack : int64 array of length `PackedTrees.depth`
        Workspace.
    scores : array of shape (at least n_rows, 2, 3)
        Scores of label ``k`` after label ``c``, or, for ``c = 2``, at a first step.
    """
    for i in range(first, last):
        label, root = (i - first) & 1, tree_begin[i]
        for row in range(n_rows):
            features, out = x[row], scores[row, label]
            stack[0], n_waiting = root, 1
            while n_waiting > 0:
                n_waiting -= 1
                at = stack[n_waiting]
                f = nodes[at].feature
                while f >= 0:
                    if has_categories and category_set[at] >= 0:
                        sets = category_sets[category_set[at]]
                        goes_right = not is_in_categories(features[f], sets)
                    else:
                        # A missing value is larger than any threshold, as in `add_trees`.
                        goes_right = not (features[f] <= nodes[at].number)
                    at = nodes[at].link + (1 if goes_right else 0)
                    f = nodes[at].feature
                link = nodes[at].link
                if f == COLUMNS:
                    stack[n_waiting], stack[n_waiting + 1] = link, link + 1
                    n_waiting += 2
                elif link < 0:
                    value = nodes[at].number
                    out[0] += value
                    out[1] += value
                    out[2] += value
                else:
                    value, members = nodes[at].number, label_sets[link]
                    out[0] += value * members[0]
                    out[1] += value * members[1]
                    out[2] += value * members[2]
