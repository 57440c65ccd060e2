"""Mode declarations: the queries that relational trees may ask.

A query is a conjunction of literals about the steps around ``t``: ``use(A, t), use(A, t-1)`` holds if some
object is used now and one step before. A mode declares one form of literal::

    use(#object)          a constant of the data in this place
    use(-object)          a new variable
    use(+object)          a variable of the same type that the query already has
    use(+-object)         a variable, old or new
    use(+object)@-3..-1   only steps from t-3 to t-1; by default all steps of the window
    same(+object, +object), different(+object, +object)     built-in comparisons of two variables

The word after the mark is the type of the argument; variables are shared between places of the same type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seqlab.data.atoms import parse_literal, quote
from seqlab.data.errors import InputError

CONSTANT, OLD, NEW, ANY = "#", "+", "-", "+-"
COMPARISONS = ("same/2", "different/2")
_PLACE = re.compile(r"(#|\+-|-\+|\+|-)(\w*)")
_RANGE = re.compile(r"\s*([+-]?\d+)\s*(?:\.\.\s*([+-]?\d+)\s*)?")


class Place(NamedTuple):
    """An argument of a mode."""

    mark: str  # one of CONSTANT, OLD, NEW, ANY
    type: str


class Mode(NamedTuple):
    """One form of literal.

    Examples
    --------
    >>> Mode.parse("use(+-object)@-1..0", (-2, 2))
    Mode(signature='use/1', places=(Place(mark='+-', type='object'),), distances=(-1, 0))
    """

    signature: str
    places: tuple[Place, ...]
    distances: tuple[int, ...]

    @classmethod
    def parse(cls, text: str, window: tuple[int, int]) -> Mode:
        """Read a declaration; ``window`` are the first and the last distance from a step."""
        if not isinstance(text, str):
            raise InputError(f"a mode is a string such as 'use(#object)', not {text!r}")
        head, mark, tail = text.rpartition("@")
        if not mark:
            head, tail = text, f"{window[0]}..{window[1]}"
        found = _RANGE.fullmatch(tail)
        try:
            predicate, arguments = parse_literal(head)
        except InputError as error:
            raise InputError(f"mode {text!r}: {error}") from None
        if found is None:
            raise InputError(f"mode {text!r}: {tail!r} is not a range of steps such as -2..0")
        first = int(found[1])
        last = first if found[2] is None else int(found[2])
        if not window[0] <= first <= last <= window[1]:
            raise InputError(
                f"mode {text!r}: the steps {first}..{last} are not in the window {window[0]}..{window[1]}"
            )
        places = []
        for argument in arguments:
            match = _PLACE.fullmatch(argument)
            if match is None:
                raise InputError(
                    f"mode {text!r}: the argument {argument!r} must begin with #, +, - or +-"
                )
            places.append(Place(ANY if len(match[1]) == 2 else match[1], match[2]))
        return cls(f"{predicate}/{len(places)}", tuple(places), tuple(range(first, last + 1)))

    @property
    def is_propositional(self) -> bool:
        """Whether all arguments are constants."""
        return all(place.mark == CONSTANT for place in self.places)


def parse_modes(modes: Iterable[str], window: tuple[int, int]) -> list[Mode]:
    """Read declarations, and check that every ``+`` can get its variable from some ``-``."""
    if isinstance(modes, str):
        raise InputError("modes must be a list of strings")
    parsed = [Mode.parse(text, window) for text in modes]
    new = {p.type for mode in parsed for p in mode.places if p.mark in (NEW, ANY)}
    for mode in parsed:
        for place in mode.places:
            if place.mark == OLD and place.type not in new:
                raise InputError(
                    f"the mode of {mode.signature} needs a variable of type {place.type!r}, but no mode "
                    f"declares -{place.type}"
                )
        marks = {place.mark for place in mode.places}
        if mode.signature in COMPARISONS and marks != {OLD}:
            raise InputError(f"the arguments of {mode.signature} must be marked with +")
    return parsed


Term = str | int  # a constant, or the number of a variable


class Literal(NamedTuple):
    """A predicate with constants and variables, at a distance from the step.

    ``distance`` is None for a comparison and for background knowledge, which do not depend on the step.
    """

    signature: str
    distance: int | None
    terms: tuple[Term, ...]

    def variables(self) -> list[int]:
        """Return the numbers of the variables, in order of appearance."""
        return [term for term in self.terms if isinstance(term, int)]

    def __str__(self) -> str:
        parts = [_variable_name(t) if isinstance(t, int) else quote(t) for t in self.terms]
        if self.distance is not None:
            parts.append("t" if self.distance == 0 else f"t{self.distance:+d}")
        name = quote(self.signature.rpartition("/")[0])
        return f"{name}({', '.join(parts)})" if parts else name


Query = tuple[Literal, ...]


def format_query(query: Query) -> str:
    """Return a query as text.

    Examples
    --------
    >>> format_query((Literal("use/1", 0, (0,)), Literal("type/2", None, (0, "cup"))))
    'use(A, t), type(A, cup)'
    """
    return ", ".join(map(str, query))


def connected_part(query: Query, n_last: int) -> Query:
    """Return the literals that share variables, directly or not, with the last ones, with renamed variables.

    Examples
    --------
    >>> query = Literal("on/1", 0, (0,)), Literal("on/1", 1, (1,)), Literal("on/1", -1, (1,))
    >>> format_query(connected_part(query, 1))
    'on(A, t+1), on(A, t-1)'
    """
    wanted = {v for literal in query[-n_last:] for v in literal.variables()}
    kept = set(range(len(query) - n_last, len(query)))
    while True:
        more = {
            i
            for i, literal in enumerate(query)
            if i not in kept and wanted & set(literal.variables())
        }
        if not more:
            break
        kept |= more
        wanted |= {v for i in more for v in query[i].variables()}
    return rename_variables([query[i] for i in sorted(kept)])


def rename_variables(literals: Sequence[Literal]) -> Query:
    """Number the variables in order of appearance."""
    numbers: dict[int, int] = {}
    for literal in literals:
        for v in literal.variables():
            numbers.setdefault(v, len(numbers))
    return tuple(
        literal._replace(
            terms=tuple(numbers[t] if isinstance(t, int) else t for t in literal.terms)
        )
        for literal in literals
    )


def _variable_name(number: int) -> str:
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"
