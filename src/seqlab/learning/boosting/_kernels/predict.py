"""Sums of trees for rows of a CSR matrix."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.learning.boosting._kernels.splits import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]

# Rows that visit a tree together, and doubles of their features: more do not fit in an L2 cache.
MAX_BLOCK_ROWS, BLOCK_DOUBLES = 128, 1 << 15


@njit(nogil=True, cache=True)
def has_bit(bits: Bytes, i: int) -> bool:
    """Return whether element ``i`` is in a set of bits (in the order of ``np.packbits``)."""
    return (bits[i >> 3] >> (7 - (i & 7))) & 1 == 1


@njit(nogil=True, cache=True)
def add_trees(
    tree_offsets: Ints,
    feature: Ints32,
    threshold: Floats,
    child: Ints32,
    value: Floats,
    label_set: Ints32,
    label_sets: Bytes,
    category_set: Ints32,
    category_sets: Bytes,
    n_features: int,
    indptr: Ints32,
    indices: Ints32,
    data: Floats,
    node: Floats,
    pair: Floats,
) -> None:
    """Add the values of all trees to the scores of rows.

    Tree ``i`` belongs to label ``i % n_labels``. ``node`` (n_labels, n_rows) gets the leaves for all previous
    labels, ``pair`` (n_labels, n_rows, n_labels + 1) the others. At a split on the previous label both
    children are visited: the leaves below have their sets of previous labels, here one byte (0 or 1) per
    label. A block of rows visits a tree while it is in the cache.
    """
    n_labels, n_rows = node.shape
    n_trees = tree_offsets.size - 1
    n_block = max(1, min(MAX_BLOCK_ROWS, BLOCK_DOUBLES // max(n_features, 1)))
    x = np.zeros((n_block, n_features))
    longest = 1
    for i in range(n_trees):
        longest = max(longest, tree_offsets[i + 1] - tree_offsets[i])
    stack = np.empty(longest, dtype=np.int64)
    for begin in range(0, n_rows, n_block):
        stop = min(begin + n_block, n_rows)
        for row in range(begin, stop):
            for e in range(indptr[row], indptr[row + 1]):
                x[row - begin, indices[e]] = data[e]
        for i in range(n_trees):
            label, base = i % n_labels, tree_offsets[i]
            for row in range(begin, stop):
                features = x[row - begin]
                stack[0], n_waiting = base, 1
                while n_waiting > 0:
                    n_waiting -= 1
                    at = stack[n_waiting]
                    while feature[at] >= 0:
                        v = features[feature[at]]
                        if category_set[at] < 0:
                            goes_left = v <= threshold[at]
                        else:
                            goes_left = is_in_categories(v, category_sets[category_set[at]])
                        at = base + child[at] + (0 if goes_left else 1)
                    if feature[at] == COLUMNS:
                        stack[n_waiting] = base + child[at]
                        stack[n_waiting + 1] = base + child[at] + 1
                        n_waiting += 2
                    elif label_set[at] < 0:
                        node[label, row] += value[at]
                    else:
                        scores, members = pair[label, row], label_sets[label_set[at]]
                        for c in range(n_labels + 1):
                            scores[c] += value[at] * members[c]
        for row in range(begin, stop):
            for e in range(indptr[row], indptr[row + 1]):
                x[row - begin, indices[e]] = 0.0


@njit(nogil=True, cache=True)
def is_in_categories(v: float, bits: Bytes) -> bool:
    """Return whether a category is in a set; a value that is not a category is in none."""
    if not (v >= 0.0 and v < 8.0 * bits.size):
        return False
    code = int(v)
    return v == code and has_bit(bits, code)
