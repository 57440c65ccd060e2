"""Constraints on phrase sets, and the rows that they add to an integer program.

There are two kinds. `LengthLimit` and `Covered` change the graph of the shortest path, without further
cost. `CountLimit`, `TypeOrder` and `Requires` relate several phrases; they become linear rows over the 0/1
variables of an integer program (`seqlab.inference.phrases.integer_program`).

``type=None`` means phrases of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.phrases import Phrase

Ints = NDArray[np.int64]


class Rows(Protocol):
    """The integer program of one sequence, as constraints use it."""

    start: Ints  # (n_candidates,)
    stop: Ints
    n_steps: int

    def of_type(self, type_: str | None) -> Ints:
        """Indices of the candidates of a type; of all candidates for None."""
        ...

    def add(
        self, columns: Ints, values: Any, *, low: float = -np.inf, high: float = np.inf
    ) -> None:
        """Add the row ``low <= values @ x[columns] <= high``."""
        ...

    def new_switches(self, n: int) -> Ints:
        """Add ``n`` 0/1 variables without a cost; returns their indices."""
        ...


@dataclass(frozen=True)
class LengthLimit:
    """Phrases (of a type) have between ``shortest`` and ``longest`` steps.

    Parameters
    ----------
    shortest : int
    longest : int, optional
    type : str, optional
        All types by default.

    Examples
    --------
    >>> from seqlab.inference import LengthLimit
    >>> LengthLimit(longest=3, type="NP")
    LengthLimit(shortest=1, longest=3, type='NP')
    """

    shortest: int = 1
    longest: int | None = None
    type: str | None = None

    def __post_init__(self) -> None:
        _check_integer(self.shortest, 1, "shortest")
        if self.longest is not None:
            _check_integer(self.longest, self.shortest, "longest")

    def types(self) -> tuple[str, ...]:
        """Types that it names."""
        return () if self.type is None else (self.type,)


@dataclass(frozen=True)
class Covered:
    """The given steps are in a phrase; by default all steps of the sequence.

    Parameters
    ----------
    steps : tuple of int, optional
        Positions; negative ones count from the end. Positions beyond the ends of a sequence are ignored.

    Examples
    --------
    >>> from seqlab.inference import Covered
    >>> Covered((0, -1)).mask(4).tolist()
    [True, False, False, True]
    """

    steps: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for step in self.steps or ():
            _check_integer(step, None, "a step")

    def types(self) -> tuple[str, ...]:
        """Types that it names: none."""
        return ()

    def mask(self, n_steps: int) -> NDArray[np.bool_]:
        """Which steps of a sequence must be in a phrase."""
        if self.steps is None:
            return np.ones(n_steps, dtype=bool)
        mask = np.zeros(n_steps, dtype=bool)
        mask[[step for step in self.steps if -n_steps <= step < n_steps]] = True
        return mask


@dataclass(frozen=True)
class CountLimit:
    """A sequence has between ``at_least`` and ``at_most`` phrases (of a type).

    Parameters
    ----------
    at_most : int, optional
    at_least : int
    type : str, optional
        By default phrases of all types are counted together.

    Examples
    --------
    >>> from seqlab.inference import CountLimit
    >>> CountLimit(1, type="City").allows([(0, 1, "City"), (3, 4, "City")])
    False
    """

    at_most: int | None = None
    at_least: int = 0
    type: str | None = None

    def __post_init__(self) -> None:
        _check_integer(self.at_least, 0, "at_least")
        if self.at_most is not None:
            _check_integer(self.at_most, self.at_least, "at_most")

    def types(self) -> tuple[str, ...]:
        """Types that it names."""
        return () if self.type is None else (self.type,)

    def allows(self, phrases: Sequence[Any]) -> bool:
        """Whether the phrases of a sequence satisfy it."""
        count = sum(self.type is None or type_ == self.type for _, _, type_ in phrases)
        return self.at_least <= count and (self.at_most is None or count <= self.at_most)

    def add_to(self, rows: Rows) -> None:
        """``at_least <= sum of x <= at_most``."""
        columns = rows.of_type(self.type)
        high = np.inf if self.at_most is None else float(self.at_most)
        rows.add(columns, 1.0, low=float(self.at_least), high=high)


@dataclass(frozen=True)
class TypeOrder:
    """All phrases of a type come before all phrases of the types named after it.

    Parameters
    ----------
    order : tuple of str
        At least two different types. Phrases of other types may be anywhere.

    Examples
    --------
    >>> from seqlab.inference import TypeOrder
    >>> TypeOrder(("Street", "City")).allows([(0, 2, "City"), (2, 3, "Street")])
    False
    """

    order: tuple[str, ...]

    def __post_init__(self) -> None:
        if (
            isinstance(self.order, str)
            or len(set(self.order)) != len(tuple(self.order))
            or (len(self.order) < 2)
        ):
            raise InputError(f"order must be two or more different types, got {self.order!r}")
        object.__setattr__(self, "order", tuple(self.order))

    def types(self) -> tuple[str, ...]:
        """Types that it names."""
        return self.order

    def allows(self, phrases: Sequence[Any]) -> bool:
        """Whether the phrases of a sequence, sorted by start, satisfy it."""
        ranks = [self.order.index(type_) for _, _, type_ in phrases if type_ in self.order]
        return ranks == sorted(ranks)

    def add_to(self, rows: Rows) -> None:
        """Add, for each pair of neighbouring types, one 0/1 switch per step that changes once, from 0 to 1.

        A phrase may begin at ``t`` only if, at ``t``, the switches after its type are 0 and those before
        its type are 1.
        """
        starts = [rows.start[rows.of_type(type_)] for type_ in self.order]
        for border in range(1, len(self.order)):
            switch = rows.new_switches(rows.n_steps)
            for t in range(1, rows.n_steps):
                rows.add(switch[t - 1 : t + 1], [1.0, -1.0], high=0.0)
            for rank, type_ in enumerate(self.order):
                columns = rows.of_type(type_)
                for t in np.unique(starts[rank]):
                    here = columns[starts[rank] == t]
                    both = np.append(here, switch[t])
                    if rank < border:  # sum of x + switch <= 1
                        rows.add(both, 1.0, high=1.0)
                    else:  # sum of x <= switch
                        rows.add(both, np.append(np.ones(here.size), -1.0), high=0.0)


@dataclass(frozen=True)
class Requires:
    """If there is a phrase of one type, there is one of another type.

    Parameters
    ----------
    type, other : str
        Every phrase of ``type`` requires at least one of ``other``.
    where : {"anywhere", "before", "after"}
        Where the required phrase must be, relative to the phrase of ``type``.

    Examples
    --------
    >>> from seqlab.inference import Requires
    >>> rule = Requires("Unit", "Street", where="before")
    >>> rule.allows([(0, 2, "Street"), (2, 4, "Unit")]), rule.allows([(0, 2, "Unit")])
    (True, False)
    """

    type: str
    other: str
    where: str = "anywhere"

    def __post_init__(self) -> None:
        if self.where not in ("anywhere", "before", "after"):
            raise InputError(f'where must be "anywhere", "before" or "after", got {self.where!r}')
        if self.type == self.other:
            raise InputError(f"a phrase of type {self.type!r} cannot require one of its own type")

    def types(self) -> tuple[str, ...]:
        """Types that it names."""
        return (self.type, self.other)

    def allows(self, phrases: Sequence[Any]) -> bool:
        """Whether the phrases of a sequence satisfy it."""
        given = [Phrase(*phrase) for phrase in phrases]
        others = [phrase for phrase in given if phrase.type == self.other]
        return all(
            any(self._is_satisfied_by(phrase.start, other.start) for other in others)
            for phrase in given
            if phrase.type == self.type
        )

    def _is_satisfied_by(self, start: Any, other_start: Any) -> Any:
        """Whether a phrase that starts at ``other_start`` is where it must be, relative to ``start``."""
        if self.where == "before":
            return other_start < start
        if self.where == "after":
            return other_start > start
        return other_start >= 0  # anywhere

    def add_to(self, rows: Rows) -> None:
        """Add ``x <= sum of the others``; phrases with the same start exclude each other and share a row."""
        columns, others = rows.of_type(self.type), rows.of_type(self.other)
        for start in np.unique(rows.start[columns]):
            here = columns[rows.start[columns] == start]
            required = others[self._is_satisfied_by(start, rows.start[others])]
            values = np.append(np.ones(here.size), -np.ones(required.size))
            rows.add(np.append(here, required), values, high=0.0)


PathConstraint = LengthLimit | Covered
LinearConstraint = CountLimit | TypeOrder | Requires


def check_constraints(
    constraints: Any, types: Sequence[str | None]
) -> tuple[list[PathConstraint], list[LinearConstraint]]:
    """Split constraints into those for the shortest path and those for the integer program.

    Parameters
    ----------
    constraints : iterable of constraints, or a single one
    types : sequence
        All types of phrases; a constraint that names another type is an error.
    """
    if isinstance(constraints, PathConstraint | LinearConstraint | str):
        constraints = (constraints,)
    path: list[PathConstraint] = []
    linear: list[LinearConstraint] = []
    for constraint in constraints or ():
        if isinstance(constraint, PathConstraint):
            path.append(constraint)
        elif isinstance(constraint, LinearConstraint):
            linear.append(constraint)
        else:
            raise InputError(
                f"{constraint!r} is not a constraint on phrases: expected LengthLimit, Covered, "
                "CountLimit, TypeOrder or Requires"
            )
        for type_ in constraint.types():
            if type_ not in types:
                known = ", ".join(map(repr, types))
                raise InputError(
                    f"{constraint} names the type {type_!r}, but the types are {known}"
                )
    return path, linear


def _check_integer(value: Any, low: int | None, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be an integer, got {value!r}")
    if low is not None and value < low:
        raise InputError(f"{name} must be at least {low}, got {value}")
