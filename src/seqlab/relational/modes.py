"""Mode declarations: the literals that mined patterns and the queries of relational trees may have.

Both are conjunctions of literals about the steps around ``t``: "some object is used now and one step before".
They are built literal by literal, and a mode declares one form of literal that may be added::

    use(#object)          a constant of the data in this place
    use(-object)          a new variable
    use(+object)          a variable of the same type that an earlier literal has
    use(+-object)         a variable, old or new; ``use(?object)`` is the same
    use(+object)@-3..-1   only steps from t-3 to t-1; by default all steps of the window
    same(+object, +object), different(+object, +object)     comparisons of two variables, in trees only

The word after the mark is the type of the argument; variables are shared between places of the same type. It
may be left out: ``use(#)``, ``use(?)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from seqlab.data.atoms import parse_literal
from seqlab.data.errors import InputError

CONSTANT, OLD, NEW, ANY = "#", "+", "-", "+-"
COMPARISONS = ("same/2", "different/2")
_PLACE = re.compile(r"(#|\?|\+-|-\+|\+|-)(\w*)")
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
                    f"mode {text!r}: the argument {argument!r} must begin with #, ?, +, - or +-"
                )
            mark = ANY if match[1] in ("?", "-+") else match[1]
            places.append(Place(mark, match[2]))
        return cls(f"{predicate}/{len(places)}", tuple(places), tuple(range(first, last + 1)))

    @property
    def predicate(self) -> str:
        """The signature without the number of arguments."""
        return self.signature.rpartition("/")[0]

    @property
    def is_propositional(self) -> bool:
        """Whether all arguments are constants."""
        return all(place.mark == CONSTANT for place in self.places)


def parse_modes(modes: Iterable[str], window: tuple[int, int]) -> list[Mode]:
    """Read declarations, and check that every ``+`` can get its variable from some ``-``."""
    if isinstance(modes, str):
        raise InputError("modes must be a list of strings")
    parsed = [Mode.parse(text, window) for text in modes]
    if not parsed:
        raise InputError("modes is empty: no literal is allowed; the default is None")
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
