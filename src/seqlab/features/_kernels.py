"""Compiled kernels of the template transformers: arrays in, arrays out.

A feature is a row of ``width`` integer codes. Tables of distinct rows use open addressing:
``slots`` (a power of two of them, at most half full) holds row numbers or -1, and a probe
compares the whole row, so that two features are never confused. Memory traffic bounds these
loops: one random access to ``slots`` and one to ``keys`` for each template and step.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads consecutive codes
_HALF = np.uint64(32)


@njit(cache=True, nogil=True)
def read_codes(
    codes: Ints, position: Ints, remaining: Ints, target: Ints, before: Ints, after: Ints, out: Ints
) -> None:
    """Read ``codes`` at position ``target`` of each step's own sequence.

    Parameters
    ----------
    codes : int32 array of shape (n_steps,)
    position, remaining : int32 arrays of shape (n_steps,)
        Steps before and after each step in its sequence.
    target : int32 array of shape (n_steps,)
        Position to read, counted from the first step of the sequence; may lie outside.
    before, after : int32 arrays
        Codes of the positions 1, 2, ... outside the sequence; farther ones get the last.
    out : int32 array of shape (n_steps,)
    """
    for t in range(codes.size):
        p = target[t]
        last = position[t] + remaining[t]
        if p < 0:
            out[t] = before[min(-p, before.size) - 1]
        elif p > last:
            out[t] = after[min(p - last, after.size) - 1]
        else:
            out[t] = codes[t - position[t] + p]


@njit(inline="always")
def _hash_column(codes: Ints, items: Ints, t: int) -> Any:
    h = np.uint64(0)
    for j in range(items.size):
        h = (h ^ np.uint64(codes[items[j], t])) * _MULTIPLIER
        h ^= h >> _HALF
    return h


@njit(cache=True, nogil=True)
def rebuild_slots(keys: Ints, n_rows: int, slots: Ints) -> None:
    """Enter the first ``n_rows`` rows of ``keys``, all different, into empty ``slots``."""
    mask = np.uint64(slots.size - 1)
    for row in range(n_rows):
        h = np.uint64(0)
        for j in range(keys.shape[1]):
            h = (h ^ np.uint64(keys[row, j])) * _MULTIPLIER
            h ^= h >> _HALF
        slot = h & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = row


@njit(cache=True, nogil=True)
def find_rows(
    codes: Ints, items: Ints, skip: NDArray[np.bool_], keys: Ints, slots: Ints, out: Ints
) -> None:
    """Look up one template's feature at each step.

    Parameters
    ----------
    codes : int32 array of shape (n_reads, n_steps)
        Codes read; negative where there is nothing to read, and then there is no feature.
    items : int64 array of shape (width,)
        The reads of this template.
    skip : bool array of shape (n_steps,) or (0,)
        Steps to leave alone (nothing is written there).
    keys : int32 array of shape (n_rows, width)
    slots : int32 array
    out : int32 array of shape (n_steps,)
        Row number of each step's feature, -1 where unknown.
    """
    width = items.size
    mask = np.uint64(slots.size - 1)
    for t in range(codes.shape[1]):
        if skip.size and skip[t]:
            continue
        out[t] = -1
        complete = True
        for j in range(width):
            if codes[items[j], t] < 0:
                complete = False
        if not complete:
            continue
        slot = _hash_column(codes, items, t) & mask
        row = slots[slot]
        while row >= 0:
            same = True
            for j in range(width):
                if keys[row, j] != codes[items[j], t]:
                    same = False
            if same:
                out[t] = row
                break
            slot = (slot + np.uint64(1)) & mask
            row = slots[slot]


@njit(cache=True, nogil=True)
def add_rows(
    codes: Ints,
    items: Ints,
    skip: NDArray[np.bool_],
    keys: Ints,
    slots: Ints,
    counts: Ints,
    n_rows: int,
    out: Ints,
) -> int:
    """Look up one template's feature at each step, entering new ones; return the number of rows.

    As `find_rows`; ``keys``, ``slots`` and ``counts`` must have room for one new row per step.
    """
    width = items.size
    mask = np.uint64(slots.size - 1)
    for t in range(codes.shape[1]):
        if skip.size and skip[t]:
            continue
        out[t] = -1
        complete = True
        for j in range(width):
            if codes[items[j], t] < 0:
                complete = False
        if not complete:
            continue
        slot = _hash_column(codes, items, t) & mask
        row = slots[slot]
        found = False
        while row >= 0 and not found:
            found = True
            for j in range(width):
                if keys[row, j] != codes[items[j], t]:
                    found = False
            if not found:
                slot = (slot + np.uint64(1)) & mask
                row = slots[slot]
        if not found:
            row = np.int32(n_rows)
            slots[slot] = row
            for j in range(width):
                keys[row, j] = codes[items[j], t]
            n_rows += 1
        counts[row] += 1
        out[t] = row
    return n_rows


@njit(cache=True, nogil=True)
def count_entries(features: Ints) -> int:
    """Count the entries of (n_templates, n_steps) feature numbers that are not negative."""
    total = 0
    for i in range(features.shape[0]):
        for t in range(features.shape[1]):
            if features[i, t] >= 0:
                total += 1
    return total


@njit(cache=True, nogil=True)
def fill_csr(features: Ints, indptr: Ints, indices: Ints, data: Floats) -> int:
    """Write feature numbers as CSR rows, sorted, a number met twice in a row as value 2.

    Parameters
    ----------
    features : int32 array of shape (n_templates, n_steps)
        Negative where there is none.
    indptr : int32 array of shape (n_steps + 1,)
    indices, data : int32 and float64 arrays with room for every entry

    Returns
    -------
    Number of entries written.
    """
    end = 0
    indptr[0] = 0
    for t in range(features.shape[1]):
        begin = end
        for i in range(features.shape[0]):
            feature = features[i, t]
            if feature < 0:
                continue
            # Insertion sort: templates are numbered in order, so this is one comparison as a rule.
            at = end
            while at > begin and indices[at - 1] > feature:
                at -= 1
            if at > begin and indices[at - 1] == feature:
                data[at - 1] += 1.0
                continue
            for k in range(end, at, -1):
                indices[k] = indices[k - 1]
                data[k] = data[k - 1]
            indices[at] = feature
            data[at] = 1.0
            end += 1
        indptr[t + 1] = end
    return end


@njit(cache=True, nogil=True)
def count_products(indptr: Ints, size: int) -> int:
    """Number of products of 2 to ``size`` entries of the same CSR row, over all rows."""
    total = 0
    for row in range(indptr.size - 1):
        n = indptr[row + 1] - indptr[row]
        choices = n
        for k in range(2, size + 1):
            choices = choices * (n - k + 1) // k
            total += max(choices, 0)
            if choices <= 0:
                break
    return total


@njit(cache=True, nogil=True)
def fill_products(
    indptr: Ints, indices: Ints, data: Floats, size: int, codes: Ints, steps: Ints, values: Floats
) -> None:
    """List the products of 2 to ``size`` entries of the same CSR row.

    Parameters
    ----------
    indptr, indices, data : CSR arrays
    codes : int32 array of shape (size, n_products), zero
        Set to the columns of each product plus one, ascending; the rest stays 0.
    steps, values : arrays of shape (n_products,)
    """
    at = 0
    pick = np.empty(size, np.int64)
    for row in range(indptr.size - 1):
        begin, n = indptr[row], indptr[row + 1] - indptr[row]
        for k in range(2, min(size, n) + 1):
            for j in range(k):
                pick[j] = j
            while True:
                value = 1.0
                for j in range(k):
                    codes[j, at] = indices[begin + pick[j]] + 1
                    value *= data[begin + pick[j]]
                steps[at] = row
                values[at] = value
                at += 1
                # Next combination in lexicographic order.
                j = k - 1
                while j >= 0 and pick[j] == n - k + j:
                    j -= 1
                if j < 0:
                    break
                pick[j] += 1
                for i in range(j + 1, k):
                    pick[i] = pick[i - 1] + 1
