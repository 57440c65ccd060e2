"""Read steps that are symbols: the categories of an HMM.

A step is a plain string (a bag of one), or a dict of named symbols; None is a missing symbol. The result is a
`SymbolicSequences` in which column ``word`` with the symbol ``to`` is the atom ``word(to)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from seqlab.data.convert import describe, frame_records, is_frame
from seqlab.data.errors import InputError
from seqlab.data.symbolic import SymbolicBuilder, SymbolicSequences

UNNAMED = "symbol"  # name of the only column if symbols have no names


def read_categories(items: Iterable[list[Any]]) -> SymbolicSequences:
    """Collect sequences of symbols.

    Parameters
    ----------
    items : iterable of lists of steps
        Each step a bag of at most one string, or a dict of symbols.

    Examples
    --------
    >>> X = read_categories([[{"word": "to"}, {"word": None}], [["be"]]])
    >>> X.table.signatures, X.table.atoms
    (['word/1', 'symbol/1'], ['word(to)', 'symbol(be)'])
    """
    builder = SymbolicBuilder()
    for i, steps in enumerate(items):
        for row in _iter_rows(steps, i):
            builder.add_categories(row)
        builder.end_sequence()
    return builder.build()


def list_steps(item: Any, place: str) -> list[Any]:
    """Return the steps of one sequence: a list, another iterable or a data frame."""
    if is_frame(item):
        return frame_records(item)
    if isinstance(item, str | bytes | Mapping) or not isinstance(item, Iterable):
        raise InputError(f"{place} is {describe(item)}, but a sequence is a list of steps")
    return list(item)


def _iter_rows(steps: list[Any], i: int) -> Iterator[dict[str, str | None]]:
    """Yield every step of sequence ``i`` as a dict of symbols, ``None`` for a missing one."""
    for position, step in enumerate(steps):
        place = f"X[{i}][{position}]"
        if isinstance(step, Mapping):
            yield {
                _check_name(name, place): _as_symbol(value, f"{place}[{name!r}]")
                for name, value in step.items()
            }
            continue
        if isinstance(step, tuple | str | bytes) or not isinstance(step, Collection):
            raise InputError(
                f"{place} is {describe(step)}, but a step of symbols is a string, None if it is "
                "missing, or a dict of strings"
            )
        if len(step) > 1:
            raise InputError(
                f"{place} has {len(step)} strings, but a categorical step is one symbol; name "
                "several in a dict ({'word': ..., 'pos': ...}) or set emissions='bernoulli'"
            )
        yield {UNNAMED: _as_symbol(next(iter(step)), place)} if len(step) else {}


def _check_name(name: Any, place: str) -> str:
    if not isinstance(name, str):
        raise InputError(f"{place} has the name {name!r}, but feature names must be strings")
    return name


def _as_symbol(value: Any, place: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Integral | np.bool_):
        return str(value)
    number = float(value) if isinstance(value, Real) else None
    if number is not None and np.isnan(number):
        return None
    if number is not None and number.is_integer():
        return str(int(number))
    what = describe(value) if number is None else str(value)
    raise InputError(f"{place} is {what}, but a symbol is a string or a whole number")
