"""Equal rows of a CSR matrix, found with a hash table; the rows of each column."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints32 = NDArray[np.int32]

# Multiplier and start of the FNV-1a hash (64 bits), written as signed integers.
FNV_PRIME = np.int64(1099511628211)
FNV_START = np.int64(-3750763034362895579)


@njit(nogil=True, cache=True)
def find_unique_rows(
    indptr: Ints32, keys: Ints32, values: NDArray[np.int64]
) -> tuple[Ints32, Ints32]:
    """Number the distinct rows in the order of their first occurrence.

    Parameters
    ----------
    indptr : int32 array of shape (n + 1,)
    keys : int32 array
        Column of each entry.
    values : int64 array
        The bits of the value of each entry; size 0 if only the keys matter.

    Returns
    -------
    row_of : int32 array of shape (n,)
    first : int32 array of shape (n_rows,)
        Where each distinct row occurs first.
    """
    n = indptr.size - 1
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    hashes = np.empty(n, dtype=np.int64)
    row_of, first = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    n_rows = 0
    has_values = values.size > 0
    for i in range(n):
        begin, stop = indptr[i], indptr[i + 1]
        mixed = FNV_START
        for e in range(begin, stop):
            mixed = (mixed ^ np.int64(keys[e])) * FNV_PRIME
            if has_values:
                mixed = (mixed ^ (values[e] ^ (values[e] >> 32))) * FNV_PRIME
        place = (mixed ^ (mixed >> 29)) & (size - 1)
        while True:
            other = table[place]
            if other < 0:
                table[place] = n_rows
                hashes[n_rows] = mixed
                first[n_rows] = i
                row_of[i] = n_rows
                n_rows += 1
                break
            if hashes[other] == mixed:
                at = indptr[first[other]]
                equal = indptr[first[other] + 1] - at == stop - begin
                e = begin
                while equal and e < stop:
                    equal = keys[e] == keys[at]
                    if equal and has_values:
                        equal = values[e] == values[at]
                    e, at = e + 1, at + 1
                if equal:
                    row_of[i] = other
                    break
            place = (place + 1) & (size - 1)
    return row_of, first[:n_rows].copy()


@njit(nogil=True, cache=True)
def list_rows(indptr: Ints32, keys: Ints32, n_keys: int) -> tuple[Ints32, Ints32]:
    """List the rows of each key (column) in increasing order: ``rows[begin[key]:begin[key + 1]]``."""
    begin = np.zeros(n_keys + 1, dtype=np.int32)
    for e in range(keys.size):
        begin[keys[e] + 1] += 1
    for key in range(n_keys):
        begin[key + 1] += begin[key]
    place, rows = begin[:-1].copy(), np.empty(keys.size, dtype=np.int32)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            rows[place[keys[e]]] = i
            place[keys[e]] += 1
    return begin, rows
