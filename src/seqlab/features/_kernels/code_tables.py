"""Tables that number rows of integer codes.

A feature is a row of ``width`` codes, and a table numbers the distinct rows. For a width of 1 the table
is an array: ``slots[code]`` is the row number or -1. Otherwise it is a hash table with open addressing:
``slots`` (their number is a power of two, at most half are in use) holds row numbers or -1, and a probe
compares the whole row, so two features are never confused. Memory latency limits the speed: each template
and step costs one random access to ``slots`` and, for wide rows, one to ``keys``.

Two faster layouts exist for tables that no longer grow: a dense array over all combinations of a small
number of codes (`find_rows_dense`, no branches), and slots that hold pairs of codes themselves
(`find_rows_of_pairs`, one random access instead of two).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.features._kernels import Ints

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads consecutive codes
_HALF = np.uint64(32)
_MIN_SLOTS = 16
_COLLISION = -2  # instead of a row number: another feature is in the first slot of this one


def count_slots(n_rows: int) -> int:
    """Return the number of slots for ``n_rows`` rows: a power of two, at most half of them in use."""
    return 1 << max(2 * n_rows - 1, _MIN_SLOTS - 1).bit_length()


@njit(inline="always")
def _hash_column(codes: Ints, reads: Ints, t: int) -> Any:
    h = np.uint64(0)
    for j in range(reads.size):
        h = (h ^ np.uint64(codes[reads[j], t])) * _MULTIPLIER
        h ^= h >> _HALF
    return h


@njit(cache=True, nogil=True)
def fill_slots(keys: Ints, n_rows: int, slots: Ints) -> None:
    """Insert the first ``n_rows`` rows of ``keys``, all different, into empty ``slots``."""
    if keys.shape[1] == 1:
        for row in range(n_rows):
            slots[keys[row, 0]] = row
        return
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
    codes: Ints, reads: Ints, skip: NDArray[np.bool_], keys: Ints, slots: Ints, out: Ints
) -> None:
    """Look up one template's feature at each step.

    Parameters
    ----------
    codes : int32 array of shape (n_reads, n_steps)
        The codes of all reads; a template has no feature at a step if one of its codes is negative.
    reads : int64 array of shape (width,)
        The reads of this template.
    skip : bool array of shape (n_steps,) or (0,)
        Steps that have no feature in this table.
    keys : int32 array of shape (n_rows, width)
    slots : int32 array
    out : int32 array of shape (n_steps,)
        Row number of each step's feature, -1 if there is none or it is unknown.
    """
    width = reads.size
    if keys.shape[0] == 0:
        out[:] = -1
        return
    if width == 1:
        for t in range(codes.shape[1]):
            code = codes[reads[0], t]
            wanted = 0 <= code < slots.size and not (skip.size and skip[t])
            out[t] = slots[code] if wanted else np.int32(-1)
        return
    # The first two loops have no branches, so that their random memory accesses overlap: one finds the
    # first row to compare, the other compares it. The third handles collisions.
    mask = np.uint64(slots.size - 1)
    for t in range(codes.shape[1]):
        lowest = np.int32(0)
        for j in range(width):
            lowest = min(lowest, codes[reads[j], t])
        row = slots[_hash_column(codes, reads, t) & mask]
        out[t] = row if lowest == 0 else np.int32(-1)
    for t in range(codes.shape[1]):
        row = max(out[t], np.int32(0))
        same = True
        for j in range(width):
            same &= keys[row, j] == codes[reads[j], t]
        out[t] = out[t] if same | (out[t] < 0) else np.int32(_COLLISION)
    for t in range(codes.shape[1]):
        if out[t] == _COLLISION:
            out[t] = _find_after_collision(codes, reads, t, keys, slots)
    if skip.size:
        for t in range(codes.shape[1]):
            out[t] = np.int32(-1) if skip[t] else out[t]


@njit(cache=True, nogil=True)
def _find_after_collision(codes: Ints, reads: Ints, t: int, keys: Ints, slots: Ints) -> int:
    """Row of the feature at a step, searched from its second slot on; -1 if there is none."""
    mask = np.uint64(slots.size - 1)
    slot = _hash_column(codes, reads, t) & mask
    while True:
        slot = (slot + np.uint64(1)) & mask
        row = slots[slot]
        if row < 0:
            return -1
        same = True
        for j in range(reads.size):
            same &= keys[row, j] == codes[reads[j], t]
        if same:
            return int(row)


@njit(cache=True, nogil=True)
def fill_pair_slots(keys: Ints, slots: Ints) -> None:
    """Insert all rows of ``keys``, which are pairs of codes, into ``slots``; see `find_rows_of_pairs`."""
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(keys.shape[0]):
        key = np.int64(keys[row, 0]) << 32 | np.int64(keys[row, 1])
        slot = _hash_pair(key) & mask
        while slots[slot, 0] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot, 0], slots[slot, 1] = key, row


@njit(cache=True, nogil=True)
def find_rows_of_pairs(
    codes: Ints, reads: Ints, skip: NDArray[np.bool_], slots: Ints, out: Ints
) -> None:
    """`find_rows` for pairs of codes in slots that hold the keys: one random access instead of two.

    Parameters
    ----------
    codes, reads, skip, out : as in `find_rows`
    slots : int64 array of shape (n_slots, 2)
        Both codes of a pair in one number, -1 in an empty slot; and its row.
    """
    mask = np.uint64(slots.shape[0] - 1)
    left, right = reads[0], reads[1]
    for t in range(out.size):
        a, b = codes[left, t], codes[right, t]
        key = np.int64(a) << 32 | np.int64(b)
        slot = _hash_pair(key) & mask
        stored, row = slots[slot, 0], np.int32(slots[slot, 1])
        row = row if stored == key else np.int32(-1) if stored < 0 else np.int32(_COLLISION)
        out[t] = row if min(a, b) >= 0 else np.int32(-1)
    for t in range(out.size):
        if out[t] == _COLLISION:
            key = np.int64(codes[left, t]) << 32 | np.int64(codes[right, t])
            slot = _hash_pair(key) & mask
            while slots[slot, 0] >= 0 and slots[slot, 0] != key:
                slot = (slot + np.uint64(1)) & mask
            out[t] = slots[slot, 1] if slots[slot, 0] == key else -1
    if skip.size:
        for t in range(out.size):
            out[t] = np.int32(-1) if skip[t] else out[t]


@njit(inline="always")
def _hash_pair(key: Any) -> Any:
    h = np.uint64(key) * _MULTIPLIER
    return h ^ (h >> _HALF)


@njit(cache=True, nogil=True)
def find_rows_dense(
    codes: Ints, reads: Ints, skip: NDArray[np.bool_], sizes: Ints, slots: Ints, out: Ints
) -> None:
    """`find_rows` in an array over all combinations of codes, without branches.

    Parameters
    ----------
    codes, reads, skip, out : as in `find_rows`
    sizes : int64 array of shape (width,)
        Number of different codes at each place of a row.
    slots : int32 array of shape (1 + product of the sizes,)
        An entry of -1, then the row number of each combination, the last code varying fastest.
    """
    first, n_first = reads[0], np.int32(sizes[0])
    for t in range(out.size):
        code = codes[first, t]
        out[t] = code if (code >= 0) & (code < n_first) else np.int32(-1)
    for j in range(1, reads.size):
        read, size = reads[j], np.int32(sizes[j])
        for t in range(out.size):
            code, place = codes[read, t], out[t]
            inside = (place >= 0) & (code >= 0) & (code < size)
            out[t] = place * size + code if inside else np.int32(-1)
    if skip.size:
        for t in range(out.size):
            out[t] = np.int32(-1) if skip[t] else out[t]
    for t in range(out.size):
        out[t] = slots[out[t] + 1]


@njit(cache=True, nogil=True)
def add_rows(
    codes: Ints,
    reads: Ints,
    skip: NDArray[np.bool_],
    keys: Ints,
    slots: Ints,
    counts: Ints,
    n_rows: int,
    out: Ints,
) -> int:
    """Look up one template's feature at each step, add and count new ones; return the number of rows.

    The parameters are those of `find_rows`; ``keys``, ``slots`` and ``counts`` need room for one new row
    per step, and for a width of 1 ``slots`` needs an entry for every code.
    """
    width = reads.size
    if width == 1:
        for t in range(codes.shape[1]):
            code = codes[reads[0], t]
            out[t] = -1
            if code < 0 or (skip.size and skip[t]):
                continue
            if slots[code] < 0:
                slots[code] = n_rows
                keys[n_rows, 0] = code
                n_rows += 1
            counts[slots[code]] += 1
            out[t] = slots[code]
        return n_rows
    mask = np.uint64(slots.size - 1)
    for t in range(codes.shape[1]):
        out[t] = -1
        complete = not (skip.size and skip[t])
        for j in range(width):
            if codes[reads[j], t] < 0:
                complete = False
        if not complete:
            continue
        slot = _hash_column(codes, reads, t) & mask
        row = slots[slot]
        found = False
        while row >= 0 and not found:
            found = True
            for j in range(width):
                if keys[row, j] != codes[reads[j], t]:
                    found = False
            if not found:
                slot = (slot + np.uint64(1)) & mask
                row = slots[slot]
        if not found:
            row = np.int32(n_rows)
            slots[slot] = row
            for j in range(width):
                keys[row, j] = codes[reads[j], t]
            n_rows += 1
        counts[row] += 1
        out[t] = row
    return n_rows
