"""Detect what X is, from its first steps that are not empty.

Two questions: are the items of X sequences, or the steps of a single sequence? And does a step hold numbers,
or is it symbolic (a dict, or a bag of attribute strings)?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from seqlab.data._matrices import (
    RESHAPE_HINT,
    WRAP_HINT,
    describe,
    frame_is_numeric,
    is_frame,
    is_number,
    refuse_series,
    refuse_step,
)
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.symbolic import SymbolicSequences

Kind = Literal["numeric", "symbolic"]


class _Found(NamedTuple):
    """What an item or a step shows of X."""

    kind: Kind
    nested: bool  # items of X are sequences, not steps


def unwrap(X: Any) -> Any:
    """Convert other array-like objects to an array; object arrays and symbolic sequences to a list."""
    if isinstance(X, SymbolicSequences):
        return list(X)
    is_known = isinstance(X, Sequences | list | tuple) or sp.issparse(X) or is_frame(X)
    if hasattr(X, "__array__") and not is_known:
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        if X.ndim == 1 and X.dtype == object and X.size and not is_number(X[0]):
            return list(X)
        if X.ndim < 2 or X.ndim > 3:
            raise InputError(
                f"Expected 2D array, got {X.ndim}D array instead (3D for sequences of equal "
                f"length). {RESHAPE_HINT}"
            )
    return X


def detect(X: Any, *, stacked: bool = False) -> tuple[Iterator[Any], Kind | None, bool]:
    """Read items of X until one of them is not empty.

    Parameters
    ----------
    X : iterable of sequences or of steps
    stacked : bool
        Whether lengths were given. Then a list of strings is a step (a bag of attributes), not a
        sequence of raw tokens.

    Returns
    -------
    stream : iterator
        All items of X.
    kind : {"numeric", "symbolic"} or None
        None if everything is empty.
    nested : bool
        Whether the items are sequences, as opposed to the steps of a single sequence.
    """
    if isinstance(X, str | bytes | Mapping | Set) or not isinstance(X, Iterable):
        raise InputError(f"X is {describe(X)}, but X must be a list of sequences")
    stream = iter(X)
    seen: list[Any] = []
    kind: Kind | None = None
    nested = not stacked
    for index, item in enumerate(stream):
        place = f"X[{index}]"
        if stacked and _is_bag(item, place):
            found: _Found | None = _Found("symbolic", nested=False)
        else:
            found, item = _inspect_item(item, place)
        seen.append(item)
        if found is not None:
            kind, nested = found
            break
    if not seen:
        raise InputError("X is empty: at least one sequence is required")
    return chain(seen, stream), kind, nested


def _is_bag(item: Any, place: str) -> bool:
    """Whether an item of a flat list of steps is a bag of one or more strings."""
    if isinstance(item, str | bytes):
        refuse_step(item, place)
    if is_frame(item) or sp.issparse(item) or not isinstance(item, Collection):
        return False
    if isinstance(item, np.ndarray) and item.ndim != 1:
        return False
    if isinstance(item, Mapping | Sequences) or not isinstance(next(iter(item), None), str):
        return False
    if isinstance(item, tuple):
        refuse_step(item, place)
    return True


def _inspect_item(item: Any, place: str) -> tuple[_Found | None, Any]:
    """What one item of X shows (None if it is empty), and the item itself: a list if it was an iterator."""
    if is_frame(item):
        return _Found("numeric" if frame_is_numeric(item) else "symbolic", nested=True), item
    if sp.issparse(item) or isinstance(item, Sequences):
        return _Found("numeric", nested=True), item
    if isinstance(item, np.ndarray) and item.ndim > 1:
        return _Found("numeric", nested=True), item
    if isinstance(item, Mapping):
        return _Found("symbolic", nested=False), item
    if is_number(item) or (isinstance(item, np.ndarray) and item.ndim == 0):
        raise InputError(
            f"Expected 2D array, got 1D array instead: {place} is a number. {RESHAPE_HINT}"
        )
    if isinstance(item, str | bytes | Set) or not isinstance(item, Iterable):
        raise InputError(
            f"{place} is {describe(item)}, but a sequence is a list of steps. {WRAP_HINT}"
        )
    if not isinstance(item, Collection):
        item = list(item)
    for position, step in enumerate(item):
        found = _inspect_step(step, f"{place}[{position}]", item, place)
        if found is not None:
            return found, item
    return None, item


def _inspect_step(step: Any, where: str, item: Any, place: str) -> _Found | None:
    """What one step of an item shows of X, or None if it is empty."""
    if isinstance(step, Mapping):
        return _Found("symbolic", nested=True)
    if is_number(step) or isinstance(step, str):
        refuse_series(item, place)
    if is_number(step):
        return _Found("numeric", nested=False)
    if isinstance(step, str | bytes | tuple) or not isinstance(step, Collection):
        refuse_step(step, where)
    for attribute in step:
        if isinstance(attribute, str):
            return _Found("symbolic", nested=True)
        if is_number(attribute):
            return _Found("numeric", nested=True)
        raise InputError(
            f"{where} holds {describe(attribute)}: a step holds either numbers or strings"
        )
    return None
