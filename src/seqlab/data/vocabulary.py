"""Vocabulary: an immutable ordered set of strings, stored as one block of bytes.

The position of a name is its column number. In memory a vocabulary is a list of names and, once
someone asks for positions, a dict. On disk and between processes it is one UTF-8 blob and the
offset of each name in it: two arrays, whatever the number of names and whatever they contain
(line breaks, NUL, lone surrogates from undecodable input).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

# Lone surrogates stand for bytes that were not UTF-8 where the text was read; keep them.
_ERRORS = "surrogatepass"


class Vocabulary:
    """Names in a fixed order, each once, with their positions.

    Parameters
    ----------
    names : iterable of str
        Different strings, in the order of their positions.

    Attributes
    ----------
    names : ndarray of object, shape (n_names,)
        The names; read-only.
    index : dict of str to int
        Position of each name; built on first use. Not to be changed.

    Examples
    --------
    >>> vocabulary = Vocabulary(["w=to", "w=be", "bias"])
    >>> len(vocabulary), vocabulary.index["w=be"], vocabulary[2], "w=or" in vocabulary
    (3, 1, 'bias', False)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = list(names)
        self._index: dict[str, int] | None = None
        self._array: NDArray[np.object_] | None = None
        for position, name in enumerate(self._names):
            if not isinstance(name, str):
                raise InputError(
                    f"name {position} of a vocabulary is {type(name).__name__}, not a string"
                )
        if len(self.index) != len(self._names):
            raise InputError(f"a vocabulary has {_first_repeated(self._names)!r} twice")

    @classmethod
    def from_index(cls, index: dict[str, int]) -> Vocabulary:
        """Take over a dict whose values are 0, 1, 2, ... in the order of its keys, unchecked."""
        vocabulary = cls()
        vocabulary._names = list(index)
        vocabulary._index = index
        return vocabulary

    @property
    def index(self) -> dict[str, int]:
        """Position of each name."""
        if self._index is None:
            self._index = dict(zip(self._names, range(len(self._names)), strict=True))
        return self._index

    @property
    def names(self) -> NDArray[np.object_]:
        """The names as an object array."""
        if self._array is None:
            array = np.empty(len(self._names), dtype=object)
            array[:] = self._names
            array.flags.writeable = False
            self._array = array
        return self._array

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, position: int) -> str:
        return self._names[position]

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._names == other._names

    def __hash__(self) -> int:
        return hash((len(self._names), *self._names[:8]))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._names[:3]))
        return f"Vocabulary({len(self)} names: {shown}{', ...' if len(self) > 3 else ''})"

    def __getstate__(self) -> dict[str, NDArray[Any]]:
        joined = "".join(self._names)
        blob = joined.encode("utf-8", _ERRORS)
        offsets = np.zeros(len(self._names) + 1, dtype=np.int64)
        if len(blob) == len(joined):  # all ASCII: a character is a byte
            sizes: Iterable[int] = map(len, self._names)
        else:
            sizes = (len(name.encode("utf-8", _ERRORS)) for name in self._names)
        np.cumsum(np.fromiter(sizes, np.int64, len(self._names)), out=offsets[1:])
        return {"blob": np.frombuffer(blob, dtype=np.uint8), "offsets": offsets}

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        self._names = _split(np.asarray(state["blob"]), np.asarray(state["offsets"]))
        self._index = None
        self._array = None


def _split(blob: NDArray[Any], offsets: NDArray[Any]) -> list[str]:
    """Cut the blob at the offsets, after checking that they are what `__getstate__` writes."""
    sound = (
        blob.dtype == np.uint8
        and blob.ndim == 1
        and offsets.dtype == np.int64
        and offsets.ndim == 1
        and offsets.size > 0
        and offsets[0] == 0
        and offsets[-1] == blob.size
        and not np.any(np.diff(offsets) < 0)
    )
    if not sound:
        raise InputError("the stored state of a vocabulary is damaged")
    data = blob.tobytes()
    bounds = offsets.tolist()
    try:
        text = data.decode("utf-8", _ERRORS)
        if len(text) == len(data):
            return [text[a:b] for a, b in pairwise(bounds)]
        return [data[a:b].decode("utf-8", _ERRORS) for a, b in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise InputError(f"the stored state of a vocabulary is damaged: {error}") from None


def _first_repeated(names: list[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("no name is repeated")
