"""PatternLanguage: which patterns the search may build."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from seqlab.data.atoms import Atom, parse_literal
from seqlab.data.errors import InputError
from seqlab.relational.patterns.pattern import Literal, Pattern

CONSTANT, VARIABLE = "#", "?"


class Mode(NamedTuple):
    """How a predicate may be used: each argument is a constant (``#``) or a variable (``?``)."""

    predicate: str
    arguments: tuple[str, ...]


class PatternLanguage:
    """The literals that patterns may contain.

    Parameters
    ----------
    atoms : sequence of Atom
        The atom of each column of the data.
    window : tuple (before, after)
        Literals refer to steps ``t - before`` to ``t + after``.
    modes : sequence of str or None
        Such as ``"on(#)"`` (a constant: one literal for each sensor), ``"use(?)"`` (a variable: some object,
        the same in all literals with this variable) or ``"color(?, #)"`` (an attribute of such an object).
        By default every predicate with constants only.
    max_variables : int
        Limit on the variables of a pattern.
    link : {"time", "variables"}
        What connects the literals of a pattern; see `Pattern.is_connected`.
    """

    def __init__(
        self,
        atoms: Sequence[Atom],
        *,
        window: tuple[int, int] = (2, 0),
        modes: Sequence[str] | None = None,
        max_variables: int = 2,
        link: str = "time",
    ) -> None:
        self.atoms = list(atoms)
        self.offsets = range(-window[0], window[1] + 1)
        self.max_variables, self.link = max_variables, link
        by_signature: dict[tuple[str, int], list[Atom]] = {}
        for atom in self.atoms:
            by_signature.setdefault((atom.predicate, len(atom.arguments)), []).append(atom)
        if modes is None:
            self.modes = [Mode(name, (CONSTANT,) * n) for name, n in by_signature]
        else:
            self.modes = [read_mode(mode) for mode in modes]
        self._atoms_of: dict[Mode, list[Atom]] = {}
        for mode in self.modes:
            found = by_signature.get((mode.predicate, len(mode.arguments)))
            if found is None:
                known = ", ".join(f"{name}/{n}" for name, n in list(by_signature)[:6])
                wanted = f"{mode.predicate}/{len(mode.arguments)}"
                raise InputError(f"modes name {wanted}, which X does not have; it has {known}")
            self._atoms_of[mode] = found

    def literals(self, pattern: Pattern) -> list[Literal]:
        """Return the literals that may be added to a pattern."""
        n = pattern.n_variables
        found: dict[Literal, None] = {}
        for mode in self.modes:
            places = [k for k, kind in enumerate(mode.arguments) if kind == VARIABLE]
            for names in _variable_choices(len(places), n, self.max_variables):
                for atom in self._atoms_of[mode]:
                    terms = list[str | int](atom.arguments)
                    for place, name in zip(places, names, strict=True):
                        terms[place] = name
                    for offset in self.offsets:
                        found[Literal(offset, mode.predicate, tuple(terms))] = None
        return [literal for literal in found if literal not in pattern]


def read_mode(text: str) -> Mode:
    """Read a mode such as ``color(?, #)``."""
    predicate, arguments = parse_literal(text)
    wrong = [one for one in arguments if one not in (CONSTANT, VARIABLE)]
    if wrong:
        raise InputError(f"mode {text!r} has the argument {wrong[0]!r}; it must be # or ?")
    return Mode(predicate, tuple(arguments))


def _variable_choices(n_places: int, n_used: int, max_variables: int) -> list[tuple[int, ...]]:
    """Return the ways to fill places with used variables and new ones, which are numbered in order."""
    chosen = []
    for names in product(range(min(n_used + n_places, max_variables)), repeat=n_places):
        new = [name for name in dict.fromkeys(names) if name >= n_used]
        if new == list(range(n_used, n_used + len(new))):
            chosen.append(names)
    return chosen
