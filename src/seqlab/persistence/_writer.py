"""From a model to the content of its file.

Everything is built in memory and read back like `load` does, so that a file that `load` would refuse is
never written.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from seqlab.persistence import _archive, _skops_parts
from seqlab.persistence._nodes import Encoder
from seqlab.persistence._reader import read_model
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits, MeasuredLimits


def to_bytes(model: Any, trusted: list[str]) -> bytes:
    """Return the content of the model file, after a check that it can be loaded.

    The limits protect `load`; a model that is beyond them can be saved, with a warning.
    """
    name = type(model).__name__
    encoder = Encoder()
    foreign = None
    measured = MeasuredLimits()
    try:
        root = encoder.encode(model)
        if encoder.foreign:
            _check_keys(encoder.foreign, name, model)
            foreign = _skops_parts.dump(encoder.foreign)
        header = {"model": name, "root": root}
        data = _archive.write_archive(header, encoder.arrays.members(), foreign)
        read_model(io.BytesIO(data), "its file", trusted, measured)
    except MemoryError:
        raise
    except Exception as error:
        untrusted = _skops_parts.find_untrusted(foreign, trusted) if foreign else set()
        if untrusted:
            raise ModelFileError(_refusal(model, name, untrusted)) from error
        raise ModelFileError(f"this {name} cannot be saved: {error}") from error
    needed = measured.beyond(Limits())
    if needed:
        values = ", ".join(f"{limit}={value}" for limit, value in needed.items())
        warnings.warn(
            f"this {name} is beyond the default limits of load(); to load it, pass "
            f"limits=Limits({values}) of seqlab.persistence",
            stacklevel=3,
        )
    return data


def _check_keys(foreign: list[Any], name: str, model: Any) -> None:
    """Raise an error for a dict that skops would change: ``bool("false")`` is True, ``1`` becomes ``"1"``."""
    bad = {
        id(value)
        for one in foreign
        for _, value in _walk(one, "")
        if isinstance(value, dict) and not _has_storable_keys(value)
    }
    for place, value in _walk(model, name) if bad else ():
        if id(value) in bad:
            raise ModelFileError(
                f"{place} is a dict with keys that a model file cannot hold: use strings, or "
                "numbers of one type (not bool)"
            )


def _refusal(model: Any, name: str, untrusted: set[str]) -> str:
    """Return a message that names the parts of the model with types that `load` would refuse."""
    found: dict[str, str] = {}
    for place, value in _walk(model, name):
        for kind in (value, type(value)):
            full = f"{getattr(kind, '__module__', '')}.{getattr(kind, '__name__', '')}"
            if full in untrusted:
                found.setdefault(full, place)
    said = [
        f"{place} is {'' if full.endswith('>') else 'a '}{full}"
        for full, place in sorted(found.items())
    ]
    said += [f"{name} holds a {full}" for full in sorted(untrusted - set(found))]
    return (
        f"{', '.join(said)}, which load() would refuse{_skops_parts.explain_trees(untrusted)}; pass "
        f"trusted={sorted(untrusted)} to save() and load() if you know that code"
    )


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a model with their names: attributes of estimators, items of containers."""
    yield place, value
    if isinstance(value, BaseEstimator):
        parts: Iterable[tuple[str, Any]] = [(f"{place}.{k}", v) for k, v in vars(value).items()]
    elif isinstance(value, dict):
        parts = [(f"{place}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{place}[{k}]", v) for k, v in enumerate(value)]
    else:
        return
    for inner, part in parts:
        yield from _walk(part, inner)


def _has_storable_keys(value: dict[Any, Any]) -> bool:
    """Return whether skops gives the same keys back."""
    kinds = set(map(type, value))
    return len(kinds) <= 1 and not kinds & {bool, np.bool_, type(None)}
