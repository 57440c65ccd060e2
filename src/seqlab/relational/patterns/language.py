"""PatternLanguage: which patterns the search may build."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from numbers import Integral
from typing import Any

from seqlab.data.errors import InputError
from seqlab.data.symbolic import AtomTable
from seqlab.features.window import check_window
from seqlab.relational.literals import Literal
from seqlab.relational.modes import COMPARISONS, CONSTANT, NEW, OLD, Mode, Place, parse_modes
from seqlab.relational.patterns.pattern import Pattern

# The canonical form of a pattern compares all orders of its variables: 720 of 6.
MAX_VARIABLES = 6


class PatternLanguage:
    """The literals that patterns may contain.

    A pattern belongs to the language if it can be built literal by literal, each of them declared by a mode,
    so that it is connected after every one.

    Parameters
    ----------
    table : AtomTable
        The atoms of the data.
    window : tuple (before, after)
        Literals refer to steps ``t - before`` to ``t + after``.
    modes : sequence of str or None
        Such as ``"on(#)"`` (a constant: one literal for each sensor), ``"use(?)"`` (a variable: some object,
        the same in all literals with this variable) or ``"color(?, #)"`` (an attribute of such an object);
        `seqlab.relational.modes` describes the other forms. By default every predicate with constants only.
    max_variables : int
        Limit on the variables of a pattern.
    link : {"time", "variables"}
        What connects the literals of a pattern; see `Pattern.is_connected`.
    """

    def __init__(
        self,
        table: AtomTable,
        *,
        window: tuple[int, int] = (2, 0),
        modes: Sequence[str] | None = None,
        max_variables: int = 2,
        link: str = "time",
    ) -> None:
        if not isinstance(table, AtomTable):
            raise InputError(f"table must be an AtomTable, not {type(table).__name__}")
        if link not in ("time", "variables"):
            raise InputError(f"link must be 'time' or 'variables', got {link!r}")
        if not _is_whole(max_variables) or max_variables > MAX_VARIABLES:
            raise InputError(
                f"max_variables must be a whole number from 0 to {MAX_VARIABLES}, got {max_variables!r}"
            )
        self.max_variables, self.link = max_variables, link
        before, last = check_window(window)
        first = -before
        if modes is None:
            distances = tuple(range(first, last + 1))
            n_arguments = [int(one.rpartition("/")[2]) for one in table.signatures]
            self.modes = [
                Mode(signature, (Place(CONSTANT, ""),) * n, distances)
                for signature, n in zip(table.signatures, n_arguments, strict=True)
            ]
        else:
            self.modes = parse_modes(modes, (first, last))
        self._types = _types_of_arguments(self.modes)
        self._arguments_of: dict[str, list[tuple[str, ...]]] = {}
        for mode in self.modes:
            if mode.signature not in table.signatures:
                if mode.signature in COMPARISONS:
                    raise InputError(
                        f"modes name {mode.signature}: only RelationalBoostedCRF compares variables"
                    )
                known = ", ".join(table.signatures[:6])
                raise InputError(
                    f"modes name {mode.signature}, which X does not have; it has {known}"
                )
            found = table.find_predicate(mode.signature)
            self._arguments_of[mode.signature] = [table.atoms[k].arguments for k in found]
        self._members: dict[Pattern, bool] = {}

    def literals(self, pattern: Pattern) -> list[Literal]:
        """Return the literals that may be added to a pattern."""
        types = self._variable_types(pattern)
        found: dict[Literal, None] = {}
        for mode in self.modes:
            predicate = mode.predicate
            places = [at for at, place in enumerate(mode.places) if place.mark != CONSTANT]
            for names in self._choose_variables([mode.places[at] for at in places], types):
                for arguments in self._arguments_of[mode.signature]:
                    terms = list[str | int](arguments)
                    for at, name in zip(places, names, strict=True):
                        terms[at] = name
                    for offset in mode.distances:
                        found[Literal(offset, predicate, tuple(terms))] = None
        return [literal for literal in found if literal not in pattern]

    def contains(self, pattern: Pattern) -> bool:
        """Return whether a pattern belongs to the language."""
        found = self._members.get(pattern)
        if found is None:
            found = not pattern or (
                pattern.is_connected(self.link)
                and any(self._can_end_with(pattern, literal) for literal in pattern)
            )
            self._members[pattern] = found
        return found

    def _can_end_with(self, pattern: Pattern, literal: Literal) -> bool:
        """Return whether a literal may be the last one that was added."""
        shorter = pattern.without(literal)
        return self.contains(shorter) and any(
            Pattern([*shorter, one]) == pattern for one in self.literals(shorter)
        )

    def _variable_types(self, pattern: Pattern) -> list[str]:
        """Return the type of each variable of a pattern."""
        types = {
            term: self._types[literal.signature, at]
            for literal in pattern
            for at, term in enumerate(literal.arguments)
            if isinstance(term, int)
        }
        return [types[name] for name in range(len(types))]

    def _choose_variables(self, places: list[Place], types: list[str]) -> list[tuple[int, ...]]:
        """Return the ways to fill places with used variables and new ones, which are numbered in order."""
        n_used, chosen = len(types), []
        for names in product(
            range(min(n_used + len(places), self.max_variables)), repeat=len(places)
        ):
            known = list(types)
            for name, (mark, type_) in zip(names, places, strict=True):
                if name > len(known) or (name == len(known) and mark == OLD):
                    break
                if name < len(known) and (known[name] != type_ or mark == NEW):
                    break
                if name == len(known):
                    known.append(type_)
            else:
                chosen.append(names)
        return chosen


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= 0


def _types_of_arguments(modes: list[Mode]) -> dict[tuple[str, int], str]:
    """Return the type of the variables at each place of each predicate."""
    types: dict[tuple[str, int], str] = {}
    for mode in modes:
        for at, place in enumerate(mode.places):
            if place.mark == CONSTANT:
                continue
            known = types.setdefault((mode.signature, at), place.type)
            if known != place.type:
                raise InputError(
                    f"modes give variables of argument {at + 1} of {mode.signature} the types "
                    f"{known!r} and {place.type!r}; patterns need one type"
                )
    return types
