"""The trees of several labels in one call: growing them, adding them to scores, and storing them.

A call from Python takes longer than a small tree, and threads wait for the interpreter lock after each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.learning.boosting._kernels.grow import (
    copy_rows_to,
    copy_to,
    extended,
    grow_tree,
    largest_number_of_leaves,
    most_categories,
)
from seqlab.learning.boosting._kernels.splits import LEAF, Bools, Floats, Ints, Ints32


@njit(nogil=True, cache=True)
def add_leaves(
    tree_offsets: Ints,
    feature: Ints32,
    member: Bools,
    value: Floats,
    rows: Ints32,
    begin: Ints,
    stop: Ints,
    factor: float,
    node: Floats,
    pair: Floats,
) -> None:
    """Add ``factor`` times the value of each leaf of tree ``k`` to its cells of the scores.

    Leaves that depend on the previous label are added to ``pair[k]`` (n_rows, n_columns), the others to
    ``node[k]`` (n_rows,).
    """
    n_columns = member.shape[1]
    for k in range(tree_offsets.size - 1):
        for i in range(tree_offsets[k], tree_offsets[k + 1]):
            if feature[i] != LEAF:
                continue
            change = factor * value[i]
            if member[i].all():
                for p in range(begin[i], stop[i]):
                    node[k, rows[p]] += change
            else:
                for p in range(begin[i], stop[i]):
                    for c in range(n_columns):
                        if member[i, c]:
                            pair[k, rows[p], c] += change


@njit(nogil=True, cache=True)
def grow_trees(
    gradient: Ints,
    curvature: Ints,
    scale: float,
    indptr: Ints32,
    entries: Ints32,
    list_begin: Ints32,
    listed_rows: Ints32,
    bin_begin: Ints32,
    default_bin: Ints32,
    is_categorical: Bools,
    l2: float,
    min_curvature: float,
    max_leaf_nodes: int,
    max_value: float,
    min_gain: float,
    factor: float,
    node: Floats,
    pair: Floats,
) -> tuple[Ints, Ints32, Ints32, Ints32, Bools, Bools, Floats, Floats, Ints32, Ints, Ints]:
    """Grow one tree per label, and add ``factor`` times the trees to the scores of the labels.

    Parameters
    ----------
    gradient, curvature : int64 arrays of shape (n_trees, n_rows, n_columns)
    scale, indptr, entries, ..., max_value, min_gain
        See `grow_tree`.
    factor, node, pair
        See `add_leaves`.

    Returns
    -------
    tree_offsets : int64 array of shape (n_trees + 1,)
        First node of each tree.
    feature, place, child, goes_left, member, value, gain, rows, begin, stop : arrays
        Those of all trees, concatenated; children are counted from the first node of their tree.
    """
    n_trees, n_rows, n_columns = gradient.shape
    n_most = most_categories(bin_begin, is_categorical)
    most = n_trees * (2 * largest_number_of_leaves(max_leaf_nodes, n_rows, n_columns) - 1)
    offsets = np.zeros(n_trees + 1, dtype=np.int64)
    feature = np.empty(most, dtype=np.int32)
    place, child = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    goes_left = np.empty((most, n_most), dtype=np.bool_)
    member = np.empty((most, n_columns), dtype=np.bool_)
    value, gain = np.empty(most), np.empty(most)
    begin, stop = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    rows, n_used = np.empty(n_trees * n_rows, dtype=np.int32), 0
    for k in range(n_trees):
        tree = grow_tree(
            gradient[k], curvature[k], scale, indptr, entries, list_begin, listed_rows, bin_begin,
            default_bin, is_categorical, l2, min_curvature, max_leaf_nodes, max_value,
            min_gain,
        )  # fmt: skip
        own_rows = tree[7]
        a, b = offsets[k], offsets[k] + tree[0].size
        offsets[k + 1] = b
        copy_to(tree[0], feature, a)
        copy_to(tree[1], place, a)
        copy_to(tree[2], child, a)
        copy_rows_to(tree[3], goes_left, a)
        copy_rows_to(tree[4], member, a)
        copy_to(tree[5], value, a)
        copy_to(tree[6], gain, a)
        for i in range(b - a):
            begin[a + i], stop[a + i] = tree[8][i] + n_used, tree[9][i] + n_used
        if n_used + own_rows.size > rows.size:
            rows = extended(rows, max(2 * rows.size, n_used + own_rows.size))
        copy_to(own_rows, rows, n_used)
        n_used += own_rows.size
    n = offsets[n_trees]
    add_leaves(offsets, feature, member, value, rows, begin, stop, factor, node, pair)
    return (
        offsets, feature[:n].copy(), place[:n].copy(), child[:n].copy(), goes_left[:n].copy(),
        member[:n].copy(), value[:n].copy(), gain[:n].copy(), rows[:n_used].copy(),
        begin[:n].copy(), stop[:n].copy(),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def number_sets(
    feature: Ints32,
    place: Ints32,
    member: Bools,
    bin_begin: Ints32,
    upper: Floats,
    is_categorical: Bools,
    threshold: Floats,
    label_set: Ints32,
    category_set: Ints32,
) -> None:
    """Set the thresholds of all nodes, and number the leaves and splits that need a set.

    These are leaves of a part of the previous labels and splits on categorical features; the others have the
    number -1.
    """
    n_label_sets, n_category_sets = 0, 0
    for i in range(feature.size):
        f = feature[i]
        threshold[i], label_set[i], category_set[i] = 0.0, -1, -1
        if f >= 0 and is_categorical[f]:
            category_set[i] = n_category_sets
            n_category_sets += 1
        elif f >= 0:
            threshold[i] = upper[bin_begin[f] + place[i] - 1]
        elif f == LEAF and not member[i].all():
            label_set[i] = n_label_sets
            n_label_sets += 1
