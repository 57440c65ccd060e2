"""Vocabulary: an immutable ordered set of strings, stored as one block of bytes.

The position of a name is its column number. On disk and between processes a vocabulary is one UTF-8
blob and the offset of each name in it: two arrays, for any number of names with any content (line
breaks, NUL, lone surrogates from undecodable input). In memory it has the form it was created from,
the names or the blob; the other forms (names, dict of positions, table of the bytes) are built on first
use. Fitting, tagging, saving and loading create no Python string per name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.packed_strings import (
    PackedStrings,
    check_packed_strings,
    pack_strings,
    unpack_strings,
)
from seqlab.data.string_table import ERRORS, StringTable


class Vocabulary:
    """Distinct names in a fixed order, with their positions.

    Parameters
    ----------
    names : iterable of str
        Different strings, in the order of their positions.

    Attributes
    ----------
    names : ndarray of object, shape (n_names,)
        The names; read-only.
    index : dict of str to int
        Position of each name; built on first use. Do not modify it.
    table : StringTable
        Looks up many strings at once; built on first use. Do not modify it.

    Examples
    --------
    >>> vocabulary = Vocabulary(["w=to", "w=be", "bias"])
    >>> len(vocabulary), vocabulary.index["w=be"], vocabulary[2], "w=or" in vocabulary
    (3, 1, 'bias', False)
    """

    # Each may be None until first use, but never both. A derived form is complete before it is
    # assigned, and two threads derive the same one, so that no lock is needed.
    _names: list[str] | None
    _stored: PackedStrings | None

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = list(names)
        for position, name in enumerate(given):
            if not isinstance(name, str):
                raise InputError(
                    f"name {position} of a vocabulary is {type(name).__name__}, not a string"
                )
        self._names, self._stored = given, None
        if len(self.index) != len(given):
            repeated = next(name for at, name in enumerate(given) if self.index[name] != at)
            raise InputError(f"a vocabulary has {repeated!r} twice")

    @classmethod
    def _wrap(
        cls, names: list[str] | None, stored: PackedStrings | None, **cached: Any
    ) -> Vocabulary:
        """Make a vocabulary of one of its forms, with the values of cached properties."""
        vocabulary = cls.__new__(cls)
        vocabulary._names, vocabulary._stored = names, stored
        vars(vocabulary).update(cached)
        return vocabulary

    @classmethod
    def from_index(cls, index: dict[str, int]) -> Vocabulary:
        """Wrap a dict with the values 0, 1, 2, ... in the order of its keys; this is not checked."""
        return cls._wrap(list(index), None, index=index)

    @classmethod
    def from_table(cls, table: StringTable) -> Vocabulary:
        """Wrap a table, to which nothing may be added afterwards."""
        table.trim()
        return cls._wrap(None, _locked(table.blob, table.offsets), table=table)

    def select(self, kept: NDArray[np.bool_]) -> Vocabulary:
        """Vocabulary of some of the names, in the same order.

        Parameters
        ----------
        kept : bool array of shape (n_names,)
        """
        blob, offsets = self._arrays()
        sizes = np.diff(offsets)
        bounds = np.zeros(int(kept.sum()) + 1, dtype=np.int64)
        np.cumsum(sizes[kept], out=bounds[1:])
        return Vocabulary._wrap(None, _locked(blob[np.repeat(kept, sizes)], bounds))

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each name."""
        names = self._list()
        return dict(zip(names, range(len(names)), strict=True))

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """The names as an object array."""
        array = np.empty(len(self), dtype=object)
        array[:] = self._list()
        array.flags.writeable = False
        return array

    @cached_property
    def table(self) -> StringTable:
        """The names as a table of bytes."""
        return StringTable.from_blob(*self._arrays())

    def _list(self) -> list[str]:
        if self._names is None:
            self._names = unpack_strings(*self._arrays())
        return self._names

    def _arrays(self) -> PackedStrings:
        if self._stored is None:
            self._stored = _locked(*pack_strings(self._list()))
        return self._stored

    def __len__(self) -> int:
        if self._names is not None:
            return len(self._names)
        return self._arrays().offsets.size - 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._list())

    def __getitem__(self, position: int) -> str:
        if self._names is not None:
            return self._names[position]
        place = range(len(self))[position]
        blob, offsets = self._arrays()
        return blob[offsets[place] : offsets[place + 1]].tobytes().decode("utf-8", ERRORS)

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        if self._names is not None and other._names is not None:
            return self._names == other._names
        ours, theirs = self._arrays(), other._arrays()
        return np.array_equal(ours.offsets, theirs.offsets) and np.array_equal(
            ours.blob, theirs.blob
        )

    def __hash__(self) -> int:
        return hash((len(self), *self._first(8)))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._first(3)))
        return f"Vocabulary({len(self)} names: {shown}{', ...' if len(self) > 3 else ''})"

    def _first(self, n: int) -> list[str]:
        return [self[position] for position in range(min(n, len(self)))]

    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return self._arrays()._asdict()

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        blob, offsets = np.asarray(state["blob"]), np.asarray(state["offsets"])
        check_packed_strings(blob, offsets, "a vocabulary")
        self._names, self._stored = None, _locked(blob, offsets)


def _locked(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> PackedStrings:
    """Read-only views, because `__getstate__` returns these arrays."""
    stored = PackedStrings(blob.view(), offsets.view())
    for array in stored:
        array.flags.writeable = False
    return stored
