"""Many strings as two arrays: one UTF-8 blob and the offset of each string in it.

Any content is possible: line breaks, NUL, lone surrogates from undecodable input. A vocabulary keeps its
names in this form, and a model file its lists of strings.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.string_table import ERRORS


class PackedStrings(NamedTuple):
    """Strings as arrays.

    Attributes
    ----------
    blob : uint8 array
        The strings in UTF-8, one after the other.
    offsets : int64 array of shape (n_strings + 1,)
        String i is ``blob[offsets[i] : offsets[i + 1]]``.
    """

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def pack_strings(strings: list[str]) -> PackedStrings:
    """Return the strings as arrays.

    Examples
    --------
    >>> blob, offsets = pack_strings(["to", "", "be"])
    >>> bytes(blob), offsets.tolist()
    (b'tobe', [0, 2, 2, 4])
    >>> unpack_strings(blob, offsets)
    ['to', '', 'be']
    """
    joined = "".join(strings)
    blob = joined.encode("utf-8", ERRORS)
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    if len(blob) == len(joined):  # all ASCII: a character is a byte
        sizes: Iterable[int] = map(len, strings)
    else:
        sizes = (len(string.encode("utf-8", ERRORS)) for string in strings)
    np.cumsum(np.fromiter(sizes, np.int64, len(strings)), out=offsets[1:])
    return PackedStrings(np.frombuffer(blob, dtype=np.uint8), offsets)


def unpack_strings(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """Return the strings of a blob."""
    data = blob.tobytes()
    bounds = offsets.tolist()
    if data.isascii():
        text = data.decode("ascii")
        return [text[a:b] for a, b in pairwise(bounds)]
    return [data[a:b].decode("utf-8", ERRORS) for a, b in pairwise(bounds)]


def check_packed_strings(blob: NDArray[Any], offsets: NDArray[Any], name: str) -> None:
    """Raise an `InputError` for arrays that `pack_strings` cannot have returned."""
    is_valid = (
        isinstance(blob, np.ndarray)
        and isinstance(offsets, np.ndarray)
        and blob.dtype == np.uint8
        and blob.ndim == 1
        and offsets.dtype == np.int64
        and offsets.ndim == 1
        and offsets.size > 0
        and offsets[0] == 0
        and offsets[-1] == blob.size
        and not np.any(offsets[1:] < offsets[:-1])
    )
    if not is_valid:
        raise InputError(f"the stored state of {name} is invalid")
    try:
        blob.tobytes().decode("utf-8", ERRORS)
    except UnicodeDecodeError as error:
        raise InputError(f"the stored state of {name} is invalid: {error}") from None
    # The blob is valid UTF-8, and so is each string unless it begins inside a character.
    begins = offsets[offsets < blob.size]
    if np.any(blob[begins] & 0xC0 == 0x80):
        raise InputError(
            f"the stored state of {name} is invalid: a string begins inside a character"
        )
