"""Atoms of logical sequences: ``use(kettle)``, ``at(person, kitchen)``, ``raining``.

A ground atom is a predicate with constants as arguments. `Atom` is a string in one canonical form, so that
everything that takes a bag of strings takes a step of atoms: for a learner without variables an atom is one
binary feature. Constants that contain spaces, commas, parentheses or quotes are written in single
quotes, with a backslash before a quote or a backslash.
"""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

from seqlab.data.errors import InputError

_PLAIN = r"[^\s(),'\\]+"
_QUOTED = r"'(?:[^'\\]|\\.)*'"
_IS_PLAIN = re.compile(_PLAIN).fullmatch
_TERM = re.compile(rf"\s*({_PLAIN}|{_QUOTED})\s*", re.DOTALL)
_SEPARATOR = re.compile(r"[,\s]*")


class Atom(str):
    """A predicate with constants: ``Atom("use", "kettle")`` is the string ``use(kettle)``.

    Parameters
    ----------
    predicate : str
    *arguments : str or int
        Constants; numbers become strings.

    Attributes
    ----------
    predicate : str
    arguments : tuple of str

    Examples
    --------
    >>> from seqlab.data import Atom
    >>> atom = Atom("at", "person", "living room")
    >>> print(atom)
    at(person, 'living room')
    >>> Atom.parse("at(person,'living room')") == atom, atom.arguments
    (True, ('person', 'living room'))
    """

    __slots__ = ("arguments", "predicate")

    predicate: str
    arguments: tuple[str, ...]

    def __new__(cls, predicate: str, *arguments: Any) -> Atom:
        """Return the atom; every part must be a string or a whole number."""
        parts = [_as_constant(part) for part in (predicate, *arguments)]
        text = quote(parts[0])
        if arguments:
            text += f"({', '.join(map(quote, parts[1:]))})"
        atom = super().__new__(cls, text)
        atom.predicate, atom.arguments = parts[0], tuple(parts[1:])
        return atom

    def __reduce__(self) -> tuple[type[Atom], tuple[str, ...]]:
        return Atom, (self.predicate, *self.arguments)

    @property
    def signature(self) -> str:
        """Predicate and number of arguments, such as ``use/1``."""
        return f"{self.predicate}/{len(self.arguments)}"

    @classmethod
    def parse(cls, text: str) -> Atom:
        """Read one atom; raises an `InputError` if the text is not an atom."""
        atoms = parse_atoms(text)
        if len(atoms) != 1:
            raise InputError(f"{text!r} is not one atom, but {len(atoms)}")
        return atoms[0]


def parse_atoms(text: str) -> list[Atom]:
    """Read atoms that are separated by commas or spaces; ``true`` and empty text mean no atom.

    Examples
    --------
    >>> parse_atoms("use(kettle), at(kitchen)")
    ['use(kettle)', 'at(kitchen)']
    >>> parse_atoms("true")
    []
    """
    atoms, place = [], _end(_SEPARATOR, text, 0)
    while place < len(text):
        parts, place = _parse_atom(text, place)
        atoms.append(Atom(*parts))
        after = _end(_SEPARATOR, text, place)
        if after == place and place < len(text):
            raise InputError(f"unexpected {text[place]!r} in {text!r}, at character {place + 1}")
        place = after
    return [] if atoms == ["true"] else atoms


def parse_literal(text: str) -> tuple[str, list[str]]:
    """Read one predicate with arguments of any form, for languages that extend atoms."""
    parts, place = _parse_atom(text, 0)
    if text[place:].strip():
        raise InputError(f"unexpected {text[place:].strip()!r} after {text[:place].strip()!r}")
    return parts[0], parts[1:]


def as_atom(value: Any, place: str) -> Atom:
    """Return a string, a tuple (predicate, constants ...) or an atom as an `Atom`."""
    if isinstance(value, Atom):
        return value
    try:
        if isinstance(value, str):
            return Atom.parse(value)
        if isinstance(value, tuple) and value:
            return Atom(*value)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    raise InputError(f"{place} is {value!r}, but an atom is a string such as 'use(kettle)'")


def quote(constant: str) -> str:
    """Return a constant as it is written in an atom."""
    if _IS_PLAIN(constant):
        return constant
    return "'" + constant.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _as_constant(part: Any) -> str:
    if isinstance(part, str):
        return str(part)
    if isinstance(part, Integral) and not isinstance(part, bool):
        return str(int(part))
    raise InputError(f"the parts of an atom are strings or whole numbers, not {part!r}")


def _parse_atom(text: str, place: int) -> tuple[list[str], int]:
    """Read the predicate and the arguments of the atom at a place; returns them and the next place."""
    name, place = _term(text, place)
    parts = [name]
    if place < len(text) and text[place] == "(":
        mark = "("
        while mark in "(,":
            argument, place = _term(text, place + 1)
            parts.append(argument)
            mark = text[place : place + 1] or " "
            if mark not in ",)":
                raise InputError(f"{text!r} has no closing parenthesis")
        place += 1
    return parts, place


def _term(text: str, place: int) -> tuple[str, int]:
    match = _TERM.match(text, place)
    if match is None:
        found = repr(text[place]) if place < len(text) else "the end"
        raise InputError(f"a name is missing in {text!r}: character {place + 1} is {found}")
    term = match[1]
    if term[0] == "'":
        term = re.sub(r"\\(.)", r"\1", term[1:-1], flags=re.DOTALL)
    return term, match.end()


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return place if match is None else match.end()
