"""Column numbers of steps that are dicts of named values.

Each name has a table from values to columns, so a value costs two dict look-ups inside `map`, about a tenth
of a microsecond, without a Python loop over values.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.features.vectorizer._step_reader import in_fixed_order, is_finite
from seqlab.features.vectorizer._step_rows import EncodedSteps

# Kinds of values in a dict.
_TEXT, _BOOL, _REAL, _NESTED, _UNSUPPORTED = range(5)


def encode_dicts(steps: list[Any], columns_of_name: DictColumns) -> EncodedSteps:
    """Look up the columns of some dicts.

    Raises
    ------
    UnsupportedValueError, TypeError
        If a value cannot be a feature.
    """
    names: Iterable[Any] = chain.from_iterable(steps)
    values = list(chain.from_iterable(step.values() for step in steps))
    sizes = np.fromiter(map(len, steps), np.int32, len(steps))
    kinds = _kinds(values)
    if (kinds >= _NESTED).any():
        flat = [list(_flatten(step)) for step in steps]
        sizes = np.fromiter(map(len, flat), np.int32, len(flat))
        names = [name for pairs in flat for name, _ in pairs]
        values = [value for pairs in flat for _, value in pairs]
        kinds = _kinds(values)
    found = map(getitem, map(columns_of_name.__getitem__, names), values)
    columns = np.fromiter(found, np.int32, len(values))
    is_number = kinds == _REAL
    if columns_of_name.keep_zeros:  # False is 0; None has the same kind, but no column
        is_number |= (kinds == _BOOL) & (columns >= 0)
    places = np.flatnonzero(is_number)
    if not places.size:
        return EncodedSteps(columns, None, sizes)
    weights = np.ones(len(values))
    weights[places] = [values[place] for place in places.tolist()]
    return EncodedSteps(columns, weights, sizes)


class UnsupportedValueError(Exception):
    """A value cannot be a feature; `raise_unsupported` finds which one and where."""


class DictColumns(dict[str, "_ValueColumns"]):
    """Columns of the values of each name seen so far; False and 0 have one if ``keep_zeros``."""

    def __init__(self, column_of: Callable[[str], int], separator: str, keep_zeros: bool) -> None:
        super().__init__()
        self.column_of = column_of
        self.separator = separator
        self.keep_zeros = keep_zeros

    def __missing__(self, name: str) -> _ValueColumns:
        if not isinstance(name, str):
            raise UnsupportedValueError
        self[name] = columns = _ValueColumns(self, name)
        return columns


class _ValueColumns(dict[Any, int]):
    """Column of each value of one name; -1 if it has no column.

    Numbers are not stored, as every step may have a different one. A stored True equals 1 as a key, and
    both mean the column of the name itself; likewise False and 0, which have no column or the same one.
    """

    def __init__(self, names: DictColumns, name: str) -> None:
        super().__init__()
        self.names = names
        self.name = name

    def __missing__(self, value: Any) -> int:
        if isinstance(value, str):
            text = f"{self.name}{self.names.separator}{value}"
            self[value] = column = self.names.column_of(text)
        elif value is None:
            self[value] = column = -1
        elif not value and not self.names.keep_zeros:
            column = -1
        elif isinstance(value, bool | np.bool_):
            self[value] = column = self.names.column_of(self.name)
        elif is_finite(value):
            column = self.names.column_of(self.name)
        else:
            raise UnsupportedValueError
        return column


class _KindOfType(dict[type, int]):
    """Kind of the values of a Python type, decided once per type."""

    def __missing__(self, type_: type) -> int:
        if issubclass(type_, str):
            kind = _TEXT
        elif issubclass(type_, bool | np.bool_ | type(None)):
            kind = _BOOL
        elif issubclass(type_, numbers.Real):
            kind = _REAL
        elif issubclass(type_, Mapping | Set | list | tuple):
            kind = _NESTED
        else:
            kind = _UNSUPPORTED
        self[type_] = kind
        return kind


def _kinds(values: list[Any]) -> NDArray[np.int8]:
    return np.fromiter(map(_KindOfType().__getitem__, map(type, values)), np.int8, len(values))


def _flatten(step: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of a step, with nested dicts and lists flattened."""
    for name, value in step.items():
        if not isinstance(name, str):
            raise UnsupportedValueError
        full = prefix + name
        if isinstance(value, Mapping):
            yield from _flatten(value, full + ":")
        elif isinstance(value, list | tuple | Set):
            for item in in_fixed_order(value):
                if not isinstance(item, str):
                    raise UnsupportedValueError
                yield full, item
        elif value is None or isinstance(value, str | numbers.Real | np.bool_):
            yield full, value
        else:
            raise UnsupportedValueError
