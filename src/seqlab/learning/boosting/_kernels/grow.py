"""Best-first regression trees from histograms, on merged rows.

A node of a tree is a set of rows times a set of *columns* (previous labels). Its statistics are integer
sums: ``g`` of the gradient and ``h`` of the curvature over its (row, column) cells. The best fit of a
constant is ``g / (h + l2)``, and a split into parts ``a`` and ``b`` gains ``g_a^2 / (h_a + l2) + g_b^2 /
(h_b + l2) - g^2 / (h + l2)``. With ``h`` the number of cells this is a least-squares tree, with ``h`` the
second derivatives a Newton tree.

Splits on features read, for every row of the node, the sums over the columns of the node (kept next to the
row), so their cost does not depend on the number of columns. The histogram of the larger part is that of the
node minus that of the smaller part: exact, since sums are integers. A split on the columns leaves the same
rows in both parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from seqlab.learning.boosting._kernels.splits import (
    COLUMNS,
    LEAF,
    Bools,
    Floats,
    Ints,
    Ints32,
    add_columns,
    add_rows,
    best_column_split,
    best_feature_split,
    fill_defaults,
    sort_by_mean,
)

# Gain that a split needs, in units of the log-likelihood of a step of average weight: less is rounding error.
MIN_GAIN = 1e-7


@njit(nogil=True, cache=True)
def swap_rows(p: int, q: int, rows: Ints32, row_g: Ints, row_h: Ints, positions: Ints32) -> None:
    """Exchange two rows of a node."""
    a, b = rows[p], rows[q]
    rows[p], rows[q] = b, a
    positions[b], positions[a] = p, q
    row_g[p], row_g[q] = row_g[q], row_g[p]
    row_h[p], row_h[q] = row_h[q], row_h[p]


@njit(nogil=True, cache=True)
def split_rows(
    listed: Bools,
    is_left: bool,
    first_bin: int,
    default: int,
    begin: int,
    stop: int,
    indptr: Ints32,
    entries: Ints32,
    list_begin: Ints32,
    listed_rows: Ints32,
    rows: Ints32,
    row_g: Ints,
    row_h: Ints,
    positions: Ints32,
) -> tuple[int, int, int]:
    """Move the rows whose bin is in ``listed`` to the left or right end of the node ``begin:stop``.

    ``listed`` has an entry per bin of the feature, and not the default bin. Either the lists of the rows of
    these bins are read, or the rows of the node, whichever are fewer. The order of rows within a part does
    not matter, because sums are integers.

    Returns the number of moved rows and their sums.
    """
    n_moved, g, h = 0, 0, 0
    n_listed = 0
    for b in range(listed.size):
        if listed[b]:
            n_listed += list_begin[first_bin + b + 1] - list_begin[first_bin + b]
    if n_listed < stop - begin:
        for b in range(listed.size):
            if not listed[b]:
                continue
            for e in range(list_begin[first_bin + b], list_begin[first_bin + b + 1]):
                p = positions[listed_rows[e]]
                if begin <= p < stop:
                    g, h = g + row_g[p], h + row_h[p]
                    q = begin + n_moved if is_left else stop - 1 - n_moved
                    swap_rows(p, q, rows, row_g, row_h, positions)
                    n_moved += 1
        return n_moved, g, h
    last_bin = first_bin + listed.size
    p = begin if is_left else stop - 1
    for _ in range(stop - begin):
        row, found = rows[p], default
        for e in range(indptr[row], indptr[row + 1]):
            if first_bin <= entries[e] < last_bin:
                found = entries[e]
                break
        if listed[found - first_bin]:
            g, h = g + row_g[p], h + row_h[p]
            q = begin + n_moved if is_left else stop - 1 - n_moved
            swap_rows(p, q, rows, row_g, row_h, positions)
            n_moved += 1
        p += 1 if is_left else -1
    return n_moved, g, h


@njit(nogil=True, cache=True)
def largest_number_of_leaves(max_leaf_nodes: int, n_rows: int, n_columns: int) -> int:
    """Return the number of leaves that a tree can have: every leaf has at least one cell."""
    return max(min(max_leaf_nodes, n_rows * n_columns), 1)


@njit(nogil=True, cache=True)
def most_categories(bin_begin: Ints32, is_categorical: Bools) -> int:
    """Return the largest number of categories of a feature; 1 without categorical features."""
    n_most = 1
    for f in range(is_categorical.size):
        if is_categorical[f]:
            n_most = max(n_most, bin_begin[f + 1] - bin_begin[f])
    return n_most


@njit(nogil=True, cache=True)
def grow_tree(
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
) -> tuple[Ints32, Ints32, Ints32, Bools, Bools, Floats, Floats, Ints32, Ints, Ints]:
    """Grow one tree.

    Parameters
    ----------
    gradient, curvature : int64 arrays of shape (n_rows, n_columns)
    scale : float
        One in fixed point.
    indptr, entries : int32 arrays
        The bins of each row, except the default bins.
    list_begin, listed_rows : int32 arrays
        The rows of each bin.
    bin_begin, default_bin, is_categorical : arrays over the features
        Feature ``f`` has the bins ``bin_begin[f]:bin_begin[f + 1]``.
    l2, min_curvature : float
    max_leaf_nodes : int
    max_value : float
        Limit of the absolute value of a leaf.
    min_gain : float
        Gain that a split needs.

    Returns
    -------
    feature, place, child : int32 arrays of shape (n_nodes,)
        The split of each node: feature, number of bins on the left and the left child; the right child
        is the next node.
    goes_left : boolean array of shape (n_nodes, n_most_categories)
        For splits on categorical features: the bins that go left.
    member : boolean array of shape (n_nodes, n_columns)
        The columns of each node.
    value, gain : arrays of shape (n_nodes,)
    rows, begin, stop : arrays
        Node ``i`` holds the rows ``rows[begin[i]:stop[i]]``, if it is a leaf.
    """
    n_rows, n_columns = gradient.shape
    n_features, n_bins = default_bin.size, bin_begin[-1]
    max_leaf_nodes = largest_number_of_leaves(max_leaf_nodes, n_rows, n_columns)
    max_nodes = 2 * max_leaf_nodes - 1
    penalty, min_h = l2 * scale, max(min_curvature * scale, 1.0)
    least_gain = min_gain * scale

    n_most, widest = most_categories(bin_begin, is_categorical), 1
    for f in range(n_features):
        widest = max(widest, bin_begin[f + 1] - bin_begin[f])
    feature = np.full(max_nodes, LEAF, dtype=np.int32)
    place, child = np.zeros(max_nodes, dtype=np.int32), np.zeros(max_nodes, dtype=np.int32)
    goes_left = np.zeros((max_nodes, n_most), dtype=np.bool_)
    member = np.zeros((max_nodes, n_columns), dtype=np.bool_)
    value, gain = np.zeros(max_nodes), np.zeros(max_nodes)
    begin, stop = np.zeros(max_nodes, dtype=np.int64), np.zeros(max_nodes, dtype=np.int64)
    node_g, node_h = np.zeros(max_nodes, dtype=np.int64), np.zeros(max_nodes, dtype=np.int64)
    slot, group = np.zeros(max_nodes, dtype=np.int64), np.zeros(max_nodes, dtype=np.int64)
    order = np.zeros(max(n_columns, n_most), dtype=np.int64)
    means = np.zeros(max(n_columns, n_most))
    on_left = np.zeros(max(n_columns, widest), dtype=np.bool_)

    bins = np.zeros((max_leaf_nodes, n_bins, 2), dtype=np.int64)
    columns = np.zeros((max_leaf_nodes, n_columns, 2), dtype=np.int64)
    rows = np.empty(n_rows, dtype=np.int32)
    # Where each row is in ``rows``; a split on the columns copies rows, and the copies are a new group.
    positions = np.empty((1, n_rows), dtype=np.int32)
    for row in range(n_rows):
        rows[row] = positions[0, row] = row
    row_g, row_h = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    for row in range(n_rows):
        g, h = 0, 0
        for c in range(n_columns):
            g += gradient[row, c]
            h += curvature[row, c]
            columns[0, c, 0] += gradient[row, c]
            columns[0, c, 1] += curvature[row, c]
        row_g[row], row_h[row] = g, h
        node_g[0] += g
        node_h[0] += h
    n_used, n_groups = n_rows, 1
    stop[0] = n_rows
    member[0] = True
    add_rows(indptr, entries, rows, row_g, row_h, 0, n_rows, bins[0])
    fill_defaults(bin_begin, default_bin, node_g[0], node_h[0], bins[0])

    n_nodes, n_leaves, node = 1, 1, 0
    first_new, last_new = 0, 1  # nodes whose best split is not known yet
    while n_leaves < max_leaf_nodes:
        for i in range(first_new, last_new):
            gain[i], feature_i, place_i = best_feature_split(
                bins[slot[i]], bin_begin, is_categorical, node_g[i], node_h[i], penalty, min_h,
                order, means,
            )  # fmt: skip
            if n_columns > 1:
                other, at = best_column_split(
                    columns[slot[i]], node_g[i], node_h[i], penalty, min_h, order, means
                )
                if other > gain[i]:
                    gain[i], feature_i, place_i = other, COLUMNS, at
            place[i] = place_i
            child[i] = feature_i  # until the node is split
        node, best = -1, least_gain
        for i in range(n_nodes):
            if feature[i] == LEAF and gain[i] > best:
                node, best = i, gain[i]
        if node < 0:
            break

        f, left, right = child[node], n_nodes, n_nodes + 1
        n_nodes, n_leaves = n_nodes + 2, n_leaves + 1
        feature[node], child[node] = f, left
        a, b = begin[node], stop[node]
        for c in range(n_columns):
            member[left, c] = member[right, c] = member[node, c]
        group[left], group[right] = group[node], group[node]
        on_left[:] = False
        if f == COLUMNS:
            sort_by_mean(columns[slot[node]], order, means)
            for r in range(place[node]):
                on_left[order[r]] = True
            for c in range(n_columns):  # columns without data in this node go right
                member[left, c] = member[node, c] and on_left[c]
                member[right, c] = member[node, c] and not on_left[c]
            if n_used + b - a > rows.size:
                size = max(2 * rows.size, n_used + b - a)
                rows = extended(rows, size)
                row_g, row_h = extended(row_g, size), extended(row_h, size)
            if n_groups == positions.shape[0]:
                more = np.full((2 * n_groups, n_rows), -1, dtype=np.int32)
                copy_rows_to(positions, more, 0)
                positions = more
            group[right] = n_groups
            begin[left], stop[left] = a, b
            begin[right], stop[right] = n_used, n_used + b - a
            for p in range(a, b):
                g, h, row = 0, 0, rows[p]
                for c in range(n_columns):
                    if member[left, c]:
                        g += gradient[row, c]
                        h += curvature[row, c]
                q = n_used + p - a
                rows[q], row_g[q], row_h[q] = row, row_g[p] - g, row_h[p] - h
                positions[n_groups, row] = q
                row_g[p], row_h[p] = g, h
                node_g[left] += g
                node_h[left] += h
            n_used += b - a
            n_groups += 1
        else:
            first_bin, n_own = bin_begin[f], bin_begin[f + 1] - bin_begin[f]
            if is_categorical[f]:
                sort_by_mean(bins[slot[node], first_bin : first_bin + n_own], order, means)
            for r in range(place[node]):
                on_left[order[r] if is_categorical[f] else r] = True
            for k in range(min(n_most, n_own)):
                goes_left[node, k] = on_left[k]
            # The rows of the side without the default bin are moved.
            moves_left = not on_left[default_bin[f] - first_bin]
            for k in range(n_own):
                on_left[k] = on_left[k] == moves_left
            n_moved, g, h = split_rows(
                on_left[:n_own], moves_left, first_bin, default_bin[f], a, b, indptr, entries,
                list_begin, listed_rows, rows, row_g, row_h, positions[group[node]],
            )  # fmt: skip
            middle = a + n_moved if moves_left else b - n_moved
            begin[left], stop[left], begin[right], stop[right] = a, middle, middle, b
            node_g[left] = g if moves_left else node_g[node] - g
            node_h[left] = h if moves_left else node_h[node] - h
        node_g[right], node_h[right] = node_g[node] - node_g[left], node_h[node] - node_h[left]

        first_new, last_new = left, n_nodes
        if n_leaves == max_leaf_nodes:
            break
        # The part with fewer rows is summed, the other one is the difference.
        small = left if stop[left] - begin[left] <= stop[right] - begin[right] else right
        large = left + right - small
        slot[small], slot[large] = n_leaves - 1, slot[node]
        small_bins, large_bins = bins[slot[small]], bins[slot[large]]
        add_rows(indptr, entries, rows, row_g, row_h, begin[small], stop[small], small_bins)
        fill_defaults(bin_begin, default_bin, node_g[small], node_h[small], small_bins)
        for k in range(n_bins):
            large_bins[k, 0] -= small_bins[k, 0]
            large_bins[k, 1] -= small_bins[k, 1]
        if n_columns > 1:
            small_columns, large_columns = columns[slot[small]], columns[slot[large]]
            if f == COLUMNS:
                for c in range(n_columns):
                    if member[small, c]:
                        for k in range(2):
                            small_columns[c, k] = large_columns[c, k]
                            large_columns[c, k] = 0
            else:
                add_columns(
                    gradient,
                    curvature,
                    rows,
                    begin[small],
                    stop[small],
                    member[small],
                    small_columns,
                )
                for c in range(n_columns):
                    large_columns[c, 0] -= small_columns[c, 0]
                    large_columns[c, 1] -= small_columns[c, 1]

    for i in range(n_nodes):
        if feature[i] == LEAF:
            child[i], place[i], gain[i] = 0, 0, 0.0
            step = float(node_g[i]) / (float(node_h[i]) + penalty) if node_h[i] > 0 else 0.0
            value[i] = min(max(step, -max_value), max_value)
        else:
            gain[i] /= scale
    return (
        feature[:n_nodes].copy(), place[:n_nodes].copy(), child[:n_nodes].copy(),
        goes_left[:n_nodes].copy(), member[:n_nodes].copy(), value[:n_nodes].copy(),
        gain[:n_nodes].copy(), rows, begin[:n_nodes].copy(), stop[:n_nodes].copy(),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def extended(array: Any, size: int) -> Any:
    """Return a longer copy of an array."""
    longer = np.empty(size, dtype=array.dtype)
    copy_to(array, longer, 0)
    return longer


@njit(nogil=True, cache=True)
def copy_to(array: Any, out: Any, begin: int) -> None:
    """Copy an array into a longer one. Assigning to a slice would take seconds to compile."""
    for i in range(array.size):
        out[begin + i] = array[i]


@njit(nogil=True, cache=True)
def copy_rows_to(array: Any, out: Any, begin: int) -> None:
    """Copy the rows of a 2-D array into a longer one."""
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            out[begin + i, j] = array[i, j]
