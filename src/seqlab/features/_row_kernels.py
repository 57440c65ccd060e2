"""Compiled kernel of the vectorizer: rows of attributes to rows of CSR.

A row is short (some 20 attributes), nearly always without repetition, and the order of its columns
is as good as random, so that sorting by exchange would be bound by mispredicted branches. Short rows
are sorted by rank instead: every column is compared with every other, several at a time in vector
code, without a branch. Long rows, repeated columns and weights take the general way.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]

_SHORT = 48  # whole registers; attributes up to which comparing all pairs is faster than sorting
_LANES = 16  # int32 in the widest vector register
_PLACE = 0xFFFFFFFF


@njit(inline="always")
def _rank(columns: Ints, n: int, ranks: Ints) -> int:
    """Count for each of ``n`` columns the smaller ones; the sum of the counts.

    Each pair of different columns adds 1 to the sum: it is ``n * (n - 1) / 2`` where none is repeated.
    """
    width = (n + _LANES - 1) & ~(_LANES - 1)  # whole registers: no scalar rest
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
    """Shell's method; insertion where there are few."""
    gap = 1
    if n > _SHORT:
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
    """Sort the columns of each row, sum the weights of equal ones, drop negative ones.

    Parameters
    ----------
    columns : int32 array of shape (n_attributes,)
        Columns of all rows, one row after the other. Receives the columns that are stored: a row
        never becomes longer, so that it overwrites nothing that has not been read.
    weights : float64 array of shape (n_attributes,), or empty
        Their weights; all are 1 where it is empty.
    sizes : int32 array of shape (n_rows,)
        Attributes of each row.
    indptr : int64 array of shape (n_rows + 1,)
        Receives where each row begins among the stored entries.
    out : float64 array of shape (n_attributes,)
        Receives the stored weights.
    """
    longest = 0
    for size in sizes:
        longest = max(longest, size)
    short = np.empty(_SHORT, dtype=np.int32)
    ranks = np.empty(_SHORT, dtype=np.int32)
    keys = np.empty(longest, dtype=np.int64)  # column << 32 | place in the row: no two are equal
    begin = 0
    stored = 0
    indptr[0] = 0
    for row in range(sizes.size):
        size = sizes[row]
        n = 0
        ranked = False
        if size <= _SHORT and weights.size == 0:
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
                weight = weights[begin + (keys[k] & _PLACE)] if weights.size else 1.0
                if column == last:
                    out[stored - 1] += weight
                else:
                    columns[stored] = column
                    out[stored] = weight
                    stored += 1
                    last = column
        indptr[row + 1] = stored
        begin += size
