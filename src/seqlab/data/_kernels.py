"""Compiled kernels of `StringTable`: strings as bytes in, numbers out.

A batch of strings is one array of bytes: string ``i`` ends before ``ends[i]``, and ``gap`` bytes
separate it from the next (1 if strings are joined by NUL, 0 in the blob of a vocabulary). Arrays of
bytes are followed by `PADDING` unused bytes, so that strings can be read eight bytes at a time.

The table uses open addressing: an entry of ``slots`` (a power of two of them, at most half full) is 0 or
``hash << 32 | number + 1``. Strings with equal hashes are compared byte for byte. The slot of a string
is given by the low bits of its hash, so that a table grows without reading its strings again.

Lookups are limited by memory latency (slot, offset and bytes of a string are in three places), so each
is prefetched some strings ahead; hashing is limited by the mispredicted branch at the end of each string.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.simd.scalars import count_trailing_zeros, load_word, prefetch

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[Any]

PADDING = 8

_ONE = np.uint64(1)
_BYTE = np.uint64(8)
_HALF = np.uint64(32)
_TOP = np.uint64(33)  # shift that leaves 31 bits, so that hashes are positive as int64
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio
_NUMBER = 0xFFFFFFFF
_AHEAD = (
    16  # strings between a prefetch and its use: fewer wait for memory, more overflow the cache
)


@njit(inline="always")
def _mix(h: Any, word: Any) -> Any:
    h = (h ^ word) * _MULTIPLIER
    return h ^ (h >> _HALF)


@njit(inline="always")
def _first_bytes(word: Any, n: Any) -> Any:
    """The first ``n < 8`` bytes of the word; the others are set to zero."""
    return word & ((_ONE << (n * _BYTE)) - _ONE)


@njit(inline="always")
def _finish(h: Any, last: Any, length: Any) -> Any:
    return np.int64(_mix(_mix(h, last), np.uint64(length)) >> _TOP)


@njit(cache=True, nogil=True)
def split_and_hash(data: Bytes, n_bytes: int, ends: Ints, hashes: Ints) -> bool:
    """Find and hash strings that are each followed by NUL.

    Parameters
    ----------
    data : uint8 array of at least n_bytes + PADDING, zero from n_bytes on
    n_bytes : int
    ends : int64 array of shape (n_strings,)
        Output: the end of each string.
    hashes : int64 array of shape (n_strings,)
        Output: 31-bit hashes.

    Returns
    -------
    bool
        Whether there are exactly n_strings; False if a string contains NUL.
    """
    place = 0
    for i in range(ends.size):
        begin = place
        h = np.uint64(0)
        while True:
            word = load_word(data, place)
            # The lowest set bit marks the first zero byte.
            zeros = (word - _LOW_BITS) & ~word & _HIGH_BITS
            if zeros:
                break
            h = _mix(h, word)
            place += 8
        n = count_trailing_zeros(zeros) // _BYTE
        place += np.int64(n)  # type: ignore[assignment]
        ends[i] = place
        hashes[i] = _finish(h, _first_bytes(word, n), place - begin)
        place += 1
        if place > n_bytes:
            return i == ends.size - 1
    return False


@njit(cache=True, nogil=True)
def hash_strings(data: Bytes, ends: Ints, gap: int, hashes: Ints) -> None:
    """Hash strings with known ends, as `split_and_hash` does."""
    begin = 0
    for i in range(ends.size):
        length = ends[i] - begin
        place = begin
        h = np.uint64(0)
        while place + 8 <= ends[i]:
            h = _mix(h, load_word(data, place))
            place += 8
        last = _first_bytes(load_word(data, place), np.uint64(ends[i] - place))
        hashes[i] = _finish(h, last, length)
        begin = ends[i] + gap


@njit(inline="always")
def _equal(a: Bytes, in_a: int, b: Bytes, in_b: int, length: int) -> bool:
    while length >= 8:
        if load_word(a, in_a) != load_word(b, in_b):
            return False
        in_a += 8
        in_b += 8
        length -= 8
    difference = load_word(a, in_a) ^ load_word(b, in_b)
    return _first_bytes(difference, np.uint64(length)) == np.uint64(0)


@njit(inline="always")
def _probe(
    data: Bytes, begin: int, end: int, h: int, slots: Ints, blob: Bytes, offsets: Ints
) -> tuple[int, int]:
    """Number of a string, or -1, and the last slot of the search."""
    slot = h & (slots.size - 1)
    while True:
        entry = slots[slot]
        if entry == 0:
            return -1, slot
        if entry >> 32 == h:
            number = (entry & _NUMBER) - 1
            first = offsets[number]
            length = offsets[number + 1] - first
            if length == end - begin and _equal(data, begin, blob, first, length):
                return number, slot
        slot = (slot + 1) & (slots.size - 1)


@njit(inline="always")
def _prefetch_ahead(i: int, hashes: Ints, slots: Ints, blob: Bytes, offsets: Ints) -> None:
    """Prefetch what the strings after the i-th will be compared with."""
    mask = slots.size - 1
    if i + 3 * _AHEAD < hashes.size:
        prefetch(slots, hashes[i + 3 * _AHEAD] & mask)
    # An empty slot gives the number 0, which is a valid index too.
    if i + 2 * _AHEAD < hashes.size:
        prefetch(offsets, slots[hashes[i + 2 * _AHEAD] & mask] & _NUMBER)
    if i + _AHEAD < hashes.size:
        end = slots[hashes[i + _AHEAD] & mask] & _NUMBER
        prefetch(blob, offsets[max(end - 1, 0)])


@njit(cache=True, nogil=True)
def find_strings(
    data: Bytes,
    ends: Ints,
    hashes: Ints,
    slots: Ints,
    blob: Bytes,
    offsets: Ints,
    out: Ints,
) -> None:
    """Look up strings that are joined by NUL.

    Parameters
    ----------
    data : uint8 array
    ends, hashes : int64 arrays of shape (n_strings,)
    slots : int64 array, a power of two long
    blob : uint8 array
        The strings of the table.
    offsets : int64 array
        First byte of each of them, then the size of the blob.
    out : int32 array of shape (n_strings,)
        Output: the numbers; -1 for strings that are not in the table.
    """
    begin = 0
    for i in range(ends.size):
        _prefetch_ahead(i, hashes, slots, blob, offsets)
        out[i], _ = _probe(data, begin, ends[i], hashes[i], slots, blob, offsets)
        begin = ends[i] + 1


@njit(cache=True, nogil=True)
def add_strings(
    data: Bytes,
    ends: Ints,
    hashes: Ints,
    slots: Ints,
    blob: Bytes,
    offsets: Ints,
    n_known: int,
    out: Ints,
) -> int:
    """Look up strings that are joined by NUL, and give new ones the next numbers.

    As `find_strings`; slots, blob and offsets must be large enough for all the strings.

    Returns
    -------
    int
        Number of strings in the table now.
    """
    begin = 0
    for i in range(ends.size):
        _prefetch_ahead(i, hashes, slots, blob, offsets)
        number, slot = _probe(data, begin, ends[i], hashes[i], slots, blob, offsets)
        if number < 0:
            number = n_known
            place = offsets[number]
            for k in range(begin, ends[i]):
                blob[place] = data[k]
                place += 1
            n_known += 1
            offsets[n_known] = place
            slots[slot] = (hashes[i] << 32) | n_known
        out[i] = number
        begin = ends[i] + 1
    return n_known


@njit(cache=True, nogil=True)
def insert_strings(hashes: Ints, slots: Ints, blob: Bytes, offsets: Ints) -> int:
    """Insert the strings of a blob into empty slots.

    Returns
    -------
    int
        The first string that equals an earlier one, or -1.
    """
    for i in range(hashes.size):
        number, slot = _probe(blob, offsets[i], offsets[i + 1], hashes[i], slots, blob, offsets)
        if number >= 0:
            return i
        slots[slot] = (hashes[i] << 32) | (i + 1)
    return -1


@njit(cache=True, nogil=True)
def move_slots(old: Ints, new: Ints) -> None:
    """Copy the entries of one array of slots to a larger, empty one."""
    for entry in old:
        if entry:
            slot = (entry >> 32) & (new.size - 1)
            while new[slot]:
                slot = (slot + 1) & (new.size - 1)
            new[slot] = entry
