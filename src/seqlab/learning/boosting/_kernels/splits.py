"""Histograms of the nodes of a tree, and the best split of a node.

A split into parts ``a`` and ``b`` gains ``g_a^2 / (h_a + l2) + g_b^2 / (h_b + l2) - g^2 / (h + l2)``, where
``g`` and ``h`` are sums of the gradient and of the curvature. The categories of a categorical feature, and
the previous labels, are ordered by ``g / h``; the best split into two sets is then one of those that cut
this order (exact for ``l2 = 0``: Breiman et al. 1984, theorem 4.5).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]

LEAF, COLUMNS = -1, -2  # values of ``feature`` at nodes that do not split on a feature


@njit(nogil=True, cache=True)
def add_rows(
    indptr: Ints32,
    entries: Ints32,
    rows: Ints32,
    row_g: Ints,
    row_h: Ints,
    begin: int,
    stop: int,
    bins: Ints,
) -> None:
    """Add the rows ``begin <= p < stop`` of a node to a histogram (n_bins, 2)."""
    for p in range(begin, stop):
        g, h = row_g[p], row_h[p]
        if h == 0 and g == 0:
            continue
        row = rows[p]
        for e in range(indptr[row], indptr[row + 1]):
            bins[entries[e], 0] += g
            bins[entries[e], 1] += h


@njit(nogil=True, cache=True)
def fill_defaults(bin_begin: Ints32, default_bin: Ints32, g: int, h: int, bins: Ints) -> None:
    """Set the bins of the default values, which rows do not store, to total minus the other bins."""
    for f in range(default_bin.size):
        rest_g, rest_h = g, h
        for b in range(bin_begin[f], bin_begin[f + 1]):
            rest_g -= bins[b, 0]
            rest_h -= bins[b, 1]
        bins[default_bin[f], 0] += rest_g
        bins[default_bin[f], 1] += rest_h


@njit(nogil=True, cache=True)
def add_columns(
    gradient: Ints,
    curvature: Ints,
    rows: Ints32,
    begin: int,
    stop: int,
    member: Bools,
    sums: Ints,
) -> None:
    """Add the rows of a node to the sums of its columns (n_columns, 2)."""
    n_columns = member.size
    for p in range(begin, stop):
        row = rows[p]
        for c in range(n_columns):
            sums[c, 0] += gradient[row, c]
            sums[c, 1] += curvature[row, c]
    for c in range(n_columns):
        if not member[c]:
            sums[c, 0] = 0
            sums[c, 1] = 0


@njit(nogil=True, cache=True)
def score_of(g: float, h: float, l2: float) -> float:
    """Return twice the decrease of the quadratic model that the best constant gives."""
    return g * g / (h + l2) if h + l2 > 0.0 else 0.0


@njit(nogil=True, cache=True)
def best_feature_split(
    bins: Ints,
    bin_begin: Ints32,
    is_categorical: Bools,
    g: int,
    h: int,
    l2: float,
    min_h: float,
    order: Ints,
    means: Floats,
) -> tuple[float, int, int]:
    """Return the gain, the feature and the number of bins (in order) of the left part."""
    best, feature, place = 0.0, LEAF, 0
    whole = score_of(float(g), float(h), l2)
    for f in range(bin_begin.size - 1):
        begin, n_bins = bin_begin[f], bin_begin[f + 1] - bin_begin[f]
        if n_bins == 2:  # the usual case of a binary feature
            right_g, right_h = float(bins[begin + 1, 0]), float(bins[begin + 1, 1])
            left_g, left_h = float(g) - right_g, float(h) - right_h
            if left_h >= min_h and right_h >= min_h:
                gain = score_of(left_g, left_h, l2) + score_of(right_g, right_h, l2) - whole
                if gain > best:
                    best, feature, place = gain, f, 1
            continue
        n_used = n_bins
        if is_categorical[f]:
            n_used = sort_by_mean(bins[begin : begin + n_bins], order, means)
        left_g, left_h = 0.0, 0.0
        for r in range(n_used - 1):
            b = begin + (order[r] if is_categorical[f] else r)
            if bins[b, 1] == 0 and bins[b, 0] == 0:
                continue
            left_g += bins[b, 0]
            left_h += bins[b, 1]
            right_g, right_h = float(g) - left_g, float(h) - left_h
            if left_h >= min_h and right_h >= min_h:
                gain = score_of(left_g, left_h, l2) + score_of(right_g, right_h, l2) - whole
                if gain > best:
                    best, feature, place = gain, f, r + 1
    return best, feature, place


@njit(nogil=True, cache=True)
def sort_by_mean(sums: Ints, order: Ints, means: Floats) -> int:
    """Order the categories with data by ``g / h``; returns their number. Ties keep the order of codes."""
    count = 0
    for c in range(sums.shape[0]):
        if sums[c, 1] <= 0:
            continue
        mean = float(sums[c, 0]) / float(sums[c, 1])
        place = count
        while place > 0 and means[place - 1] > mean:
            means[place], order[place] = means[place - 1], order[place - 1]
            place -= 1
        means[place], order[place] = mean, c
        count += 1
    return count


@njit(nogil=True, cache=True)
def best_column_split(
    sums: Ints, g: int, h: int, l2: float, min_h: float, order: Ints, means: Floats
) -> tuple[float, int]:
    """Return the gain of the best split of the columns and the number of columns (in order) on the left."""
    best, place = 0.0, 0
    n_used = sort_by_mean(sums, order, means)
    whole = score_of(float(g), float(h), l2)
    left_g, left_h = 0.0, 0.0
    for r in range(n_used - 1):
        left_g += sums[order[r], 0]
        left_h += sums[order[r], 1]
        right_g, right_h = float(g) - left_g, float(h) - left_h
        if left_h >= min_h and right_h >= min_h:
            gain = score_of(left_g, left_h, l2) + score_of(right_g, right_h, l2) - whole
            if gain > best:
                best, place = gain, r + 1
    return best, place
