"""Compiled kernels of the template transformers: arrays in, arrays out.

A feature is a row of ``width`` integer codes, and a table numbers the distinct rows. For a width
of 1 the table is an array: ``slots[code]`` is the row number or -1. Otherwise it uses open
addressing: ``slots`` (a power of two of them, at most half full) holds row numbers or -1, and a probe
compares the whole row, so that two features are never confused. Memory latency bounds the loops: for
each template and step one random access to ``slots`` and, for wide rows, one to ``keys``.

A finished table is looked up in a layout of its own where there is a faster one: an array over all
combinations of few codes (`find_places`, no branch), or slots that hold pairs of codes themselves
(`find_pairs`, one access instead of two).
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
OTHER = -2  # instead of a row number: the first slot of a feature holds another one


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
        Steps that have no feature here.
    keys : int32 array of shape (n_rows, width)
    slots : int32 array
    out : int32 array of shape (n_steps,)
        Row number of each step's feature, -1 where there is none or it is unknown.
    """
    width = items.size
    if keys.shape[0] == 0:
        out[:] = -1
        return
    if width == 1:
        for t in range(codes.shape[1]):
            code = codes[items[0], t]
            wanted = 0 <= code < slots.size and not (skip.size and skip[t])
            out[t] = slots[code] if wanted else np.int32(-1)
        return
    # Two loops without branches, so that the many reads far apart in memory overlap: the first row to
    # compare, and whether it is the one. Then what is left: another row was in the slot.
    mask = np.uint64(slots.size - 1)
    for t in range(codes.shape[1]):
        lowest = np.int32(0)
        for j in range(width):
            lowest = min(lowest, codes[items[j], t])
        row = slots[_hash_column(codes, items, t) & mask]
        out[t] = row if lowest == 0 else np.int32(-1)
    for t in range(codes.shape[1]):
        row = max(out[t], np.int32(0))
        same = True
        for j in range(width):
            same &= keys[row, j] == codes[items[j], t]
        out[t] = out[t] if same | (out[t] < 0) else np.int32(OTHER)
    for t in range(codes.shape[1]):
        if out[t] == OTHER:
            out[t] = _find_further(codes, items, t, keys, slots)
    if skip.size:
        for t in range(codes.shape[1]):
            out[t] = np.int32(-1) if skip[t] else out[t]


@njit(cache=True, nogil=True)
def _find_further(codes: Ints, items: Ints, t: int, keys: Ints, slots: Ints) -> int:
    """Row of the feature at a step, from the second slot on; -1 where there is none."""
    mask = np.uint64(slots.size - 1)
    slot = _hash_column(codes, items, t) & mask
    while True:
        slot = (slot + np.uint64(1)) & mask
        row = slots[slot]
        if row < 0:
            return -1
        same = True
        for j in range(items.size):
            same &= keys[row, j] == codes[items[j], t]
        if same:
            return int(row)


@njit(cache=True, nogil=True)
def enter_pairs(keys: Ints, slots: Ints) -> None:
    """Enter all rows of ``keys``, pairs of codes, into ``slots``; see `find_pairs`."""
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(keys.shape[0]):
        key = np.int64(keys[row, 0]) << 32 | np.int64(keys[row, 1])
        slot = _hash_pair(key) & mask
        while slots[slot, 0] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot, 0], slots[slot, 1] = key, row


@njit(cache=True, nogil=True)
def find_pairs(codes: Ints, items: Ints, skip: NDArray[np.bool_], slots: Ints, out: Ints) -> None:
    """`find_rows` of pairs of codes in a table that holds the keys itself: one read far away, not two.

    Parameters
    ----------
    codes, items, skip, out : as in `find_rows`
    slots : int64 array of shape (n_slots, 2)
        Both codes of a pair in one number, -1 in an empty slot; and its row.
    """
    mask = np.uint64(slots.shape[0] - 1)
    left, right = items[0], items[1]
    for t in range(out.size):
        a, b = codes[left, t], codes[right, t]
        key = np.int64(a) << 32 | np.int64(b)
        slot = _hash_pair(key) & mask
        there, row = slots[slot, 0], np.int32(slots[slot, 1])
        row = row if there == key else np.int32(-1) if there < 0 else np.int32(OTHER)
        out[t] = row if min(a, b) >= 0 else np.int32(-1)
    for t in range(out.size):
        if out[t] == OTHER:
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
def find_places(
    codes: Ints, items: Ints, skip: NDArray[np.bool_], sizes: Ints, slots: Ints, out: Ints
) -> None:
    """`find_rows` in an array over all combinations of few codes, without a branch.

    Parameters
    ----------
    codes, items, skip, out : as in `find_rows`
    sizes : int64 array of shape (width,)
        Number of codes of each hole.
    slots : int32 array of shape (1 + product of the sizes,)
        Row number of each combination, the last hole running fastest, behind a first entry of -1.
    """
    first, n_first = items[0], np.int32(sizes[0])
    for t in range(out.size):
        code = codes[first, t]
        out[t] = code if (code >= 0) & (code < n_first) else np.int32(-1)
    for j in range(1, items.size):
        item, size = items[j], np.int32(sizes[j])
        for t in range(out.size):
            code, place = codes[item, t], out[t]
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
    items: Ints,
    skip: NDArray[np.bool_],
    keys: Ints,
    slots: Ints,
    counts: Ints,
    n_rows: int,
    out: Ints,
) -> int:
    """Look up one template's feature at each step, entering new ones; return the number of rows.

    As `find_rows`; ``keys``, ``slots`` and ``counts`` must have room for one new row per step, and for
    width 1 ``slots`` for every code.
    """
    width = items.size
    if width == 1:
        for t in range(codes.shape[1]):
            code = codes[items[0], t]
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
def fill_plain_csr(numbers: Ints, begins: Ints, end: int, indptr: Ints, indices: Ints) -> int:
    """`fill_csr` where every number is a column, counted from ``begins``, and templates ascend."""
    for t in range(numbers.shape[1]):
        for i in range(numbers.shape[0]):
            number = numbers[i, t]
            indices[end] = begins[i] + number  # the next one overwrites it where there is none
            end += number >= 0
        indptr[t] = end
    return end


@njit(cache=True, nogil=True)
def fill_csr(
    numbers: Ints,
    columns: Ints,
    begins: Ints,
    text_begins: Ints,
    end: int,
    indptr: Ints,
    indices: Ints,
    data: Floats,
) -> int:
    """Write feature numbers as CSR rows, sorted; a feature met twice in a row has the value 2.

    Parameters
    ----------
    numbers : int32 array of shape (n_templates, n_steps)
        Feature numbers of each template's table.
    columns : int32 array
        Column of each feature number, table after table, -1 for none.
    begins, text_begins : int64 arrays of shape (n_templates,)
        Where in `columns` the numbers 0, 1, ... and -2, -3, ... of a template's table begin.
    end : int
        Number of entries there already.
    indptr : int32 array of shape (n_steps,)
        Set to the end of each row.
    indices, data : int32 and float64 arrays with room for every number

    Returns
    -------
    The new number of entries.
    """
    for t in range(numbers.shape[1]):
        begin = end
        for i in range(numbers.shape[0]):
            number = numbers[i, t]
            if number == -1:
                continue
            column = columns[begins[i] + number if number >= 0 else text_begins[i] - 2 - number]
            if column < 0:
                continue
            # Insertion sort: templates are numbered in order, so this is one comparison as a rule.
            at = end
            while at > begin and indices[at - 1] > column:
                at -= 1
            if at > begin and indices[at - 1] == column:
                data[at - 1] += 1.0
                continue
            for k in range(end, at, -1):
                indices[k] = indices[k - 1]
                data[k] = data[k - 1]
            indices[at] = column
            data[at] = 1.0
            end += 1
        indptr[t] = end
    return end
