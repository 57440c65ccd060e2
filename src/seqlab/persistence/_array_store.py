"""Arrays of a model, packed into one npy member per type.

A model of 200 inner models has thousands of small arrays; a zip member for each would be larger and
slower to read than the arrays. All float64 data are one array in ``float64.npy``, all int32 data one in
``int32.npy``, and so on, in the order in which the description of the model mentions them. The
description says ``[type, stored type, shape, order]``. A reader takes the arrays in the same order, so
that no part of a member can be used twice.

Integers are stored in the smallest type that holds them: label codes and counts take one byte instead of
four or eight. Strings of fixed width are stored as numbers of characters.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.persistence.errors import ModelFileError

Spec = list[Any]

_STORED = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
_STORED |= {name: np.dtype(name).newbyteorder("<") for name in ("float32", "float64")}
MEMBERS = {f"{name}.npy": dtype for name, dtype in _STORED.items()}
"""Names of the members and the type of each."""

# Booleans, numbers, complex numbers, strings and bytes of fixed width, dates and durations.
_DTYPE = re.compile(r"[<>|][biufcSUmM][0-9]{1,9}(\[[0-9]{0,4}[A-Za-z]{1,2}\])?")
_NARROW = ("uint8", "uint16", "uint32", "int8", "int16", "int32")
_MAX_CHARACTER = 0x10FFFF


class ArrayWriter:
    """Collects the arrays of a model."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {}

    def add(self, array: NDArray[Any]) -> Spec:
        """Store an array; return what the description says about it."""
        if not can_store(array.dtype):
            raise ModelFileError(f"arrays of type {array.dtype} cannot be stored")
        is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        flat = np.ravel(array, order="F" if is_fortran else "C")
        plain = _to_plain(flat)
        spec: Spec = [array.dtype.str, plain.dtype.name, list(array.shape)]
        if is_fortran:
            spec.append("F")
        self._parts.setdefault(plain.dtype.name, []).append(plain)
        return spec

    def members(self) -> dict[str, NDArray[Any]]:
        """Return the packed array of each member."""
        return {
            f"{name}.npy": np.concatenate(parts).astype(_STORED[name], copy=False)
            for name, parts in self._parts.items()
        }


class ArrayReader:
    """Hands out the arrays of a model in the order in which they were stored.

    Parameters
    ----------
    members : dict of str to array
        The packed array of each member.
    """

    def __init__(self, members: dict[str, NDArray[Any]]) -> None:
        self._members = members
        self._used = dict.fromkeys(members, 0)

    def take(self, spec: Any) -> NDArray[Any]:
        """Return the next array, which must be described by ``spec``; large arrays are not copied."""
        dtype, member, shape, is_fortran = _read_spec(spec)
        size = math.prod(shape) * _n_values(dtype)
        if member not in self._members:
            raise ModelFileError(f"the member {member} is missing")
        begin = self._used[member]
        stop = begin + size
        if stop > self._members[member].size:
            raise ModelFileError(f"an array is larger than what is left in {member}")
        self._used[member] = stop
        array = _from_plain(self._members[member][begin:stop], dtype)
        return array.reshape(shape, order="F" if is_fortran else "C")

    def check_all_used(self) -> None:
        """Raise an error if a member holds more than the arrays that were taken."""
        for member, array in self._members.items():
            if self._used[member] != array.size:
                raise ModelFileError(f"the member {member} holds more than the model needs")


def can_store(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this type can be stored: not objects, not records."""
    return dtype.kind in "biufcSUmM" and _DTYPE.fullmatch(dtype.str) is not None


def _to_plain(flat: NDArray[Any]) -> NDArray[Any]:
    """Return a 1-D array as one of the stored types."""
    if flat.dtype.kind == "U":
        # Characters as numbers; most fit into one byte.
        characters = flat.astype(flat.dtype.newbyteorder("="), copy=False).view(np.uint32)
        return _narrowed(characters)
    if flat.dtype.kind in "iu" and flat.dtype.isnative:
        return _narrowed(flat)
    if flat.dtype.name in _STORED and flat.dtype.isnative:
        return flat
    return np.ascontiguousarray(flat).view(np.uint8)


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of integers in the smallest type that holds all of them."""
    if not array.size:
        return array
    low, high = int(array.min()), int(array.max())
    for name in _NARROW:
        dtype = np.dtype(name)
        info = np.iinfo(dtype)
        if dtype.itemsize < array.dtype.itemsize and info.min <= low and high <= info.max:
            return array.astype(dtype)
    return array


def _read_spec(spec: Any) -> tuple[np.dtype[Any], str, tuple[int, ...], bool]:
    if not isinstance(spec, list) or len(spec) not in (3, 4) or spec[3:] not in ([], ["F"]):
        raise ModelFileError("the description of an array is malformed")
    text, stored, shape = spec[:3]
    if not isinstance(text, str) or _DTYPE.fullmatch(text) is None or stored not in _STORED:
        raise ModelFileError("an array has an unknown type")
    if (
        not isinstance(shape, list)
        or len(shape) > 32
        or any(type(n) is not int or not 0 <= n < 2**48 for n in shape)
    ):
        raise ModelFileError("an array has an invalid shape")
    dtype = np.dtype(text)
    # Which stored type belongs to which: numbers are narrowed within their kind, the rest is bytes.
    if dtype.kind == "U":
        is_possible = stored in ("uint8", "uint16", "uint32")
    elif dtype.kind in "iu" and dtype.isnative:
        given = _STORED[stored]
        is_possible = given.kind in "iu" and given.itemsize <= dtype.itemsize
    elif dtype.name in _STORED and dtype.isnative:
        is_possible = stored == dtype.name
    else:
        is_possible = stored == "uint8"
    if not is_possible or (dtype.itemsize == 0 and math.prod(shape)):
        raise ModelFileError("an array has an unknown type")
    return dtype, f"{stored}.npy", tuple(shape), len(spec) == 4


def _n_values(dtype: np.dtype[Any]) -> int:
    """Return the number of stored values per entry."""
    if dtype.kind == "U":
        return dtype.itemsize // 4
    if dtype.name in _STORED and dtype.isnative:
        return 1
    return dtype.itemsize


def _from_plain(plain: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "U":
        if plain.size and int(plain.max()) > _MAX_CHARACTER:
            raise ModelFileError("a string holds something that is not a character")
        native = dtype.newbyteorder("=")
        if not dtype.itemsize:
            return np.zeros(0, dtype=native)
        return plain.astype(np.uint32).view(native).astype(dtype, copy=False)
    if dtype.name in _STORED and dtype.isnative:
        if dtype.kind == "b" and plain.size and plain.view(np.uint8).max() > 1:
            raise ModelFileError("an array of booleans holds other numbers")
        return plain.astype(dtype, copy=False)
    return plain.copy().view(dtype)  # the copy is aligned
