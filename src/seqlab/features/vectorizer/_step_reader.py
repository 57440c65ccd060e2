"""Reading sequences of dicts or bags: chunks of checked steps, and error messages that name the place."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from seqlab.data.convert import describe, frame_records, is_frame, refuse_step
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.utils.signals import check_signals

# Sequences converted at a time: more need more memory, fewer more calls per sequence.
_SEQUENCES_PER_CHUNK = 256
_KIND_OF_TYPE: dict[type, type] = {dict: Mapping, list: Collection, set: Collection}


class Chunk(NamedTuple):
    """Some consecutive sequences of X."""

    first: int  # index of the first sequence in X
    sequences: list[list[Any]]
    steps: list[Any]  # the steps of all sequences


class StepReader:
    """Read the sequences of X in chunks; all steps must be of one kind.

    `kind` is Mapping for dicts and Collection for bags; None until the first step has been read.
    """

    def __init__(self, X: Any) -> None:
        if isinstance(X, str | bytes | Mapping | Set | Sequences) or sp.issparse(X) or is_frame(X):
            raise InputError(
                f"X is {describe(X)}: expected a list of sequences of dicts or of bags of strings"
            )
        self.items = enumerate(X)
        self.kind: type | None = None
        self.first_place = ""

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the chunks; all steps are dicts or all are bags."""
        first = 0
        # Each item is read before the next one is requested: items may share one underlying iterator.
        while sequences := [
            item if type(item) is list else _list_steps(item, f"X[{index}]")
            for index, item in islice(self.items, _SEQUENCES_PER_CHUNK)
        ]:
            steps = list(chain.from_iterable(sequences))
            self._check_all(sequences, steps, first)
            if any(issubclass(kind, Set) for kind in set(map(type, steps))):
                sequences = [list(map(in_fixed_order, sequence)) for sequence in sequences]
                steps = list(chain.from_iterable(sequences))
            check_signals()
            yield Chunk(first, sequences, steps)
            first += len(sequences)

    def _check_all(self, sequences: list[list[Any]], steps: list[Any], first: int) -> None:
        if steps and self.kind is None:
            index = next(i for i, sequence in enumerate(sequences, first) if sequence)
            self._check(steps[0], f"X[{index}][0]")
        types = set(map(type, steps))
        if all(self.kind is _KIND_OF_TYPE.get(kind, type) for kind in types):
            return
        for index, sequence in enumerate(sequences, first):
            for position, step in enumerate(sequence):
                self._check(step, f"X[{index}][{position}]")

    def _check(self, step: Any, place: str) -> None:
        if isinstance(step, Mapping):
            kind: type = Mapping
        elif isinstance(step, tuple | str | bytes) or not isinstance(step, Collection):
            refuse_step(step, place)
        else:
            kind = Collection
        if self.kind is None:
            self.kind, self.first_place = kind, place
        if kind is not self.kind:
            expected = "a dict" if self.kind is Mapping else "a bag of strings"
            raise InputError(
                f"{place} is {describe(step)} but {self.first_place} is {expected}: "
                "all steps must be of one kind"
            )


def _list_steps(item: Any, place: str) -> list[Any]:
    """Return the steps of one sequence as a list."""
    if is_frame(item):
        item = frame_records(item)
    elif isinstance(item, Mapping):
        raise InputError(f"{place} is a dict: X is a list of sequences; wrap it in a list: [X]")
    elif isinstance(item, str | bytes | Set) or sp.issparse(item) or not isinstance(item, Iterable):
        raise InputError(f"{place} is {describe(item)}, but a sequence is a list of steps")
    return item if isinstance(item, list) else list(item)


def in_fixed_order(bag: Any) -> Any:
    """Return the strings of a set in order, because that of a set differs from run to run; others as is."""
    if isinstance(bag, Set):
        with suppress(TypeError):  # not only strings: the error is raised later
            return sorted(bag)
    return bag


def is_finite(number: Any) -> bool:
    """Whether a number is finite as a double; an integer may have hundreds of digits."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def raise_unsupported(chunk: Chunk) -> None:
    """Raise an error that names the first value of a chunk that cannot be a feature, if there is one."""
    for index, steps in enumerate(chunk.sequences, chunk.first):
        for position, step in enumerate(steps):
            place = f"X[{index}][{position}]"
            if isinstance(step, Mapping):
                _check_dict(step, place)
                continue
            for attribute in step:
                if not isinstance(attribute, str):
                    raise InputError(
                        f"{place} holds {describe(attribute)}, but a bag may hold only strings"
                    )


def _check_dict(step: Mapping[Any, Any], place: str) -> None:
    for name, value in step.items():
        where = f"{place}[{name!r}]"
        if not isinstance(name, str):
            raise InputError(f"{place} has the name {name!r}, but feature names must be strings")
        if isinstance(value, Mapping):
            _check_dict(value, where)
        elif isinstance(value, list | tuple | Set):
            for item in value:
                if not isinstance(item, str):
                    raise InputError(
                        f"{where} holds {describe(item)}, but a list may hold only strings"
                    )
        elif isinstance(value, numbers.Real) and not is_finite(value):
            what = "NaN" if value != value else "infinity"
            raise InputError(f"{where} is {what}: a feature must be finite")
        elif not (value is None or isinstance(value, str | numbers.Real | np.bool_)):
            raise InputError(
                f"{where} is {describe(value)}: a feature is a string, a number, a bool, a list of "
                "strings or a dict"
            )
