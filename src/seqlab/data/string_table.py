"""StringTable: consecutive numbers for distinct strings, faster than a dict.

A dict takes some 300 ns to look up a string that is new to the process: its hash must be computed, and
the dict, the key and the string are far apart in memory. Here a batch of strings is joined by NUL in one
call and encoded in one call, and one compiled loop looks all of them up in a table of bytes, without a
Python string per entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

# Keep lone surrogates: they represent bytes of the input that were not UTF-8.
ERRORS = "surrogatepass"
_PADDING = 8  # as in seqlab.data._kernels, which is imported on first use


class Batch(NamedTuple):
    """Strings as bytes, joined by NUL."""

    data: NDArray[np.uint8]  # padded
    ends: NDArray[np.int64]  # (n_strings,)
    hashes: NDArray[np.int64]  # (n_strings,)


def pack(bags: Any, n_strings: int) -> Batch:
    """Join the strings of some bags.

    Parameters
    ----------
    bags : list of collections of str, none of them empty
    n_strings : int
        Total number of strings.

    Raises
    ------
    TypeError
        If an entry is not a string.
    """
    from seqlab.data._kernels import hash_strings, split_and_hash

    ends = np.empty(n_strings, dtype=np.int64)
    hashes = np.empty(n_strings, dtype=np.int64)
    if not n_strings:
        return Batch(np.zeros(_PADDING, dtype=np.uint8), ends, hashes)
    encoded = "\0".join(map("\0".join, bags)).encode("utf-8", ERRORS)
    data = padded(np.frombuffer(encoded, dtype=np.uint8))
    if not split_and_hash(data, len(encoded), ends, hashes):
        # Some string contains NUL: measure the strings one by one.
        strings = chain.from_iterable(bags)
        sizes = (len(str.encode(string, "utf-8", ERRORS)) + 1 for string in strings)
        np.cumsum(np.fromiter(sizes, np.int64, n_strings), out=ends)
        ends -= 1
        hash_strings(data, ends, 1, hashes)
    return Batch(data, ends, hashes)


class StringTable:
    """Distinct strings, numbered in the order in which they were added.

    Threads may call `find` concurrently, but not while another one calls `add`.

    Examples
    --------
    >>> table = StringTable()
    >>> table.add([["w=to", "w=be"], ["w=to"]], 3).tolist()
    [0, 1, 0]
    >>> table.find([["w=be", "w=or"]], 2).tolist()
    [1, -1]
    >>> len(table), bytes(table.blob)
    (2, b'w=tow=be')
    """

    def __init__(self) -> None:
        self._n = 0
        self._slots = np.zeros(1024, dtype=np.int64)
        self._blob = np.zeros(4096, dtype=np.uint8)
        self._offsets = np.zeros(512, dtype=np.int64)

    @classmethod
    def from_blob(cls, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> StringTable:
        """Build the table of the strings ``blob[offsets[i]:offsets[i + 1]]``."""
        from seqlab.data._kernels import hash_strings, insert_strings

        table = cls()
        table._n = offsets.size - 1
        table._blob = padded(blob)
        table._offsets = np.array(offsets, dtype=np.int64)
        table._slots = np.zeros(_power_of_two(2 * table._n), dtype=np.int64)
        hashes = np.empty(table._n, dtype=np.int64)
        hash_strings(table._blob, table._offsets[1:], 0, hashes)
        repeated = insert_strings(hashes, table._slots, table._blob, table._offsets)
        if repeated >= 0:
            raise InputError(f"name {repeated} of a vocabulary occurs twice")
        return table

    def __len__(self) -> int:
        return self._n

    @property
    def blob(self) -> NDArray[np.uint8]:
        """The concatenated strings in UTF-8."""
        return self._blob[: self._offsets[self._n]]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First byte of each string in the blob, then its size; shape (n_strings + 1,)."""
        return self._offsets[: self._n + 1]

    def find(self, bags: Iterable[Any], n_strings: int) -> NDArray[np.int32]:
        """Look up the strings of some bags.

        Parameters
        ----------
        bags : list of collections of str, none of them empty
        n_strings : int
            Total number of strings.

        Returns
        -------
        int32 array of shape (n_strings,)
            Their numbers; -1 for strings that are not in the table.
        """
        from seqlab.data._kernels import find_strings

        batch = pack(bags, n_strings)
        out = np.empty(n_strings, dtype=np.int32)
        find_strings(*batch, self._slots, self._blob, self._offsets, out)
        return out

    def add(self, bags: Iterable[Any], n_strings: int) -> NDArray[np.int32]:
        """Look up the strings of some bags, as `find` does, and add those that are new.

        Nothing is added if an entry is not a string.
        """
        return self.add_batch(pack(bags, n_strings))

    def add_batch(self, batch: Batch) -> NDArray[np.int32]:
        """Do the same as `add` for strings that are already packed; runs without the interpreter lock."""
        from seqlab.data._kernels import add_strings

        self._reserve(batch.ends.size, batch.data.size)
        out = np.empty(batch.ends.size, dtype=np.int32)
        self._n = add_strings(*batch, self._slots, self._blob, self._offsets, self._n, out)
        return out

    def add_parts(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int32]:
        """Look up the parts of a text, and add those that are new; runs without the interpreter lock.

        Parameters
        ----------
        data : uint8 array
            UTF-8 text, followed by unused bytes; see `padded`.
        ends : int64 array of shape (n_strings,)
            End of each part; one byte separates it from the next.

        Examples
        --------
        >>> data = padded(np.frombuffer(b"to be,to", np.uint8))
        >>> StringTable().add_parts(data, np.array([2, 5, 8])).tolist()
        [0, 1, 0]
        """
        from seqlab.data._kernels import hash_strings

        hashes = np.empty(ends.size, dtype=np.int64)
        hash_strings(data, ends, 1, hashes)
        return self.add_batch(Batch(data, ends, hashes))

    def trim(self) -> None:
        """Free the memory reserved for further strings."""
        self._blob = padded(self.blob)
        self._offsets = self.offsets.copy()

    def _reserve(self, n_strings: int, n_bytes: int) -> None:
        """Reserve memory for further strings."""
        from seqlab.data._kernels import move_slots

        if self._n + n_strings > np.iinfo(np.int32).max:
            raise InputError(f"more than {self._n} distinct strings: too many for int32")
        if 2 * (self._n + n_strings) > self._slots.size:
            slots = np.zeros(_power_of_two(2 * (self._n + n_strings)), dtype=np.int64)
            move_slots(self._slots, slots)
            self._slots = slots
        self._offsets = _extended(self._offsets, self._n + n_strings + 1)
        used = int(self._offsets[self._n])
        self._blob = _extended(self._blob, used + n_bytes + _PADDING)


def padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Copy of bytes, followed by zeros: kernels read eight bytes at a time, also at the end."""
    longer = np.zeros(data.size + _PADDING, dtype=np.uint8)
    longer[: data.size] = data
    return longer


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 1023).bit_length()


def _extended(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array if it has ``size`` entries, else a copy that is at least twice as long."""
    if size <= array.size:
        return array
    longer = np.zeros(max(size, 2 * array.size), dtype=array.dtype)
    longer[: array.size] = array
    return longer
