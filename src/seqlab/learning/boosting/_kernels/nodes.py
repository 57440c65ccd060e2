"""The best split of one node, for trees whose nodes have tests of their own."""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.learning.boosting._kernels.splits import (
    Bools,
    Ints,
    Ints32,
    add_columns,
    add_rows,
    best_column_split,
    best_feature_split,
    fill_defaults,
    sort_by_mean,
)


@njit(nogil=True, cache=True)
def sum_member_columns(
    gradient: Ints, curvature: Ints, rows: Ints32, member: Bools
) -> tuple[Ints, Ints]:
    """Return the sums of each row over the columns of a node."""
    row_g, row_h = np.zeros(rows.size, dtype=np.int64), np.zeros(rows.size, dtype=np.int64)
    for p in range(rows.size):
        for c in range(member.size):
            if member[c]:
                row_g[p] += gradient[rows[p], c]
                row_h[p] += curvature[rows[p], c]
    return row_g, row_h


@njit(nogil=True, cache=True)
def find_test(
    rows: Ints32,
    row_g: Ints,
    row_h: Ints,
    indptr: Ints32,
    entries: Ints32,
    bin_begin: Ints32,
    default_bin: Ints32,
    is_categorical: Bools,
    l2: float,
    min_h: float,
) -> tuple[float, int, int]:
    """Return the gain, the number and the place (bins on the left) of the best test of a table."""
    bins = np.zeros((bin_begin[-1], 2), dtype=np.int64)
    order, means = np.zeros(1, dtype=np.int64), np.zeros(1)
    g, h = row_g.sum(), row_h.sum()
    add_rows(indptr, entries, rows, row_g, row_h, 0, rows.size, bins)
    fill_defaults(bin_begin, default_bin, g, h, bins)
    return best_feature_split(bins, bin_begin, is_categorical, g, h, l2, min_h, order, means)


@njit(nogil=True, cache=True)
def find_column_split(
    gradient: Ints,
    curvature: Ints,
    rows: Ints32,
    member: Bools,
    l2: float,
    min_h: float,
) -> tuple[float, Bools]:
    """Return the gain of the best split of the previous labels, and those that go left."""
    sums = np.zeros((member.size, 2), dtype=np.int64)
    order, means = np.zeros(member.size, dtype=np.int64), np.zeros(member.size)
    add_columns(gradient, curvature, rows, 0, rows.size, member, sums)
    g, h = sums[:, 0].sum(), sums[:, 1].sum()
    gain, place = best_column_split(sums, g, h, l2, min_h, order, means)
    goes_left = np.zeros(member.size, dtype=np.bool_)
    sort_by_mean(sums, order, means)
    for r in range(place):
        goes_left[order[r]] = True
    return gain, goes_left


@njit(nogil=True, cache=True)
def find_left_rows(
    rows: Ints32,
    indptr: Ints32,
    entries: Ints32,
    first_bin: int,
    stop_bin: int,
    default: int,
    n_left: int,
) -> Bools:
    """Return which rows are in one of the first ``n_left`` bins of a test."""
    is_left = np.zeros(rows.size, dtype=np.bool_)
    for p in range(rows.size):
        found = default
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            if first_bin <= entries[e] < stop_bin:
                found = entries[e]
                break
        is_left[p] = found - first_bin < n_left
    return is_left


@njit(nogil=True, cache=True)
def leaf_value(g: int, h: int, l2: float, max_value: float) -> float:
    """Return the best constant of a leaf."""
    step = float(g) / (float(h) + l2) if h > 0 else 0.0
    return min(max(step, -max_value), max_value)
