"""Kernel of `SequenceVectorizer`: the attributes of each step as a CSR row.

A row is short (about 20 attributes), nearly always without repetition, and its columns come in a nearly
random order, so the speed of a sort by exchanges would be limited by mispredicted branches. Short rows are
sorted by rank instead: every column is compared with every other, several at a time in vector
instructions, without branches. Rows that are long, weighted or have repeated columns are sorted by keys.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.features._kernels import Floats, Ints

_INTS_PER_REGISTER = 16  # int32 in the widest vector register
# Rows of up to this many attributes are sorted by rank (a multiple of _INTS_PER_REGISTER). The number of
# comparisons grows with its square: beyond it, sorting is faster.
_MAX_RANKED = 48
_PLACE_BITS = 0xFFFFFFFF


@njit(inline="always")
def _rank(columns: Ints, n: int, ranks: Ints) -> int:
    """Set the rank of each of ``n`` columns, the number of smaller ones; return the sum of the ranks.

    Each pair of different columns adds 1 to the sum, so it is ``n * (n - 1) / 2`` if none is repeated.
    """
    width = (n + _INTS_PER_REGISTER - 1) & ~(_INTS_PER_REGISTER - 1)  # no scalar remainder
    for k in range(n, width):
        columns[k] = 0
    for k in range(width):
        ranks[k] = 0
    for i in range(n):
        column = columns[i]
        for k in range(width):
            ranks[k] += np.int32(columns[k] > column)
    total = 0
    for k in range(n):
        total += ranks[k]
    return total


@njit(inline="always")
def _sort(keys: Ints, n: int) -> None:
    """Shell sort; insertion sort for short rows."""
    gap = 1
    if n > _MAX_RANKED:
        while 3 * gap + 1 < n:
            gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            key = keys[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 3


@njit(cache=True, nogil=True)
def compact_rows(columns: Ints, weights: Floats, sizes: Ints, indptr: Ints, out: Floats) -> None:
    """Sort the columns of each row, sum the weights of equal columns, drop negative columns.

    Parameters
    ----------
    columns : int32 array of shape (n_attributes,)
        Columns of all rows, one row after another. Overwritten by the stored columns: rows never become
        longer, so nothing is overwritten before it has been read.
    weights : float64 array of shape (n_attributes,), or empty
        Their weights; empty if all are 1.
    sizes : int32 array of shape (n_rows,)
        Number of attributes of each row.
    indptr : int64 array of shape (n_rows + 1,)
        Set to the begin of each row in the stored entries.
    out : float64 array of shape (n_attributes,)
        Set to the stored weights.
    """
    longest = 0
    for size in sizes:
        longest = max(longest, size)
    short = np.empty(_MAX_RANKED, dtype=np.int32)
    ranks = np.empty(_MAX_RANKED, dtype=np.int32)
    keys = np.empty(longest, dtype=np.int64)  # column << 32 | place in the row: no two are equal
    begin = 0
    stored = 0
    indptr[0] = 0
    for row in range(sizes.size):
        size = sizes[row]
        n = 0
        ranked = False
        if size <= _MAX_RANKED and weights.size == 0:
            for k in range(begin, begin + size):
                short[n] = columns[k]
                n += columns[k] >= 0
            ranked = 2 * _rank(short, n, ranks) == n * (n - 1)
        if ranked:
            for k in range(n):
                columns[stored + ranks[k]] = short[k]
                out[stored + k] = 1.0
            stored += n
        else:
            n = 0
            for place in range(size):
                column = np.int64(columns[begin + place])
                if column >= 0:
                    keys[n] = (column << 32) | place
                    n += 1
            _sort(keys, n)
            last = np.int64(-1)
            for k in range(n):
                column = keys[k] >> 32
                weight = weights[begin + (keys[k] & _PLACE_BITS)] if weights.size else 1.0
                if column == last:
                    out[stored - 1] += weight
                else:
                    columns[stored] = column
                    out[stored] = weight
                    stored += 1
                    last = column
        indptr[row + 1] = stored
        begin += size
