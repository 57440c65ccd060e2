r"""The small regular expressions of Wapiti's templates.

Wapiti has its own regular expressions, with few operators and one difference that changes the matched
text: ``*`` matches as *few* characters as possible, ``?`` matches one if it can. The whole language:

- ``.``: any character
- ``\d`` digit, ``\a`` letter, ``\w`` letter or digit, ``\l`` lower case, ``\u`` upper case, ``\p``
  punctuation, ``\s`` space; in upper case the complement; any other character after a backslash matches
  itself
- ``x*``: any number of the preceding character or class
- ``x?``: the preceding character or class, or nothing
- ``^`` first: only at the beginning; ``$`` last: only at the end

Classes follow Unicode (Wapiti's classes cover ASCII bytes only, for which both agree).

The time of a search is proportional to the length of the expression times that of the text, for any
expression: an expression may come from somebody else's template file, and backtracking would need
exponential time for some. For each element, from the last to the first, a set of positions says where the
rest of the expression matches; the match is then read off from left to right without a wrong turn. A set is
an integer whose bit i stands for position i.

References
----------
T. Lavergne, O. Cappé, F. Yvon (2010), "Practical very large scale CRFs", ACL; the manual page of
Wapiti, section PATTERNS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from seqlab.data.errors import InputError

_CLASSES: dict[str, Callable[[str], bool]] = {
    "a": str.isalpha,
    "d": str.isdigit,
    "l": str.islower,
    "p": lambda c: not c.isalnum() and not c.isspace() and c.isprintable(),
    "s": str.isspace,
    "u": str.isupper,
    "w": str.isalnum,
}


class _Element(NamedTuple):
    accepts: Callable[[str], bool]
    repeat: str  # "", "*" or "?"


class WapitiRegex:
    r"""A compiled expression.

    Parameters
    ----------
    pattern : str
        The expression, as written between the quotes of ``%t[0,0,"..."]``.

    Examples
    --------
    >>> WapitiRegex(r"^\u\u*$").search("IBM")
    'IBM'
    >>> WapitiRegex(".?.?.?$").search("walking"), WapitiRegex(r"\d").search("walking")
    ('ing', None)
    """

    __slots__ = ("_at_end", "_at_start", "_elements", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._at_start = pattern.startswith("^")
        body = pattern[1:] if self._at_start else pattern
        self._elements, self._at_end = _compile(body, pattern)

    def search(self, text: str) -> str | None:
        """Return the first matching part of the text, or None."""
        distinct = {accepts for accepts, _ in self._elements}
        positions = {accepts: _positions(accepts, text) for accepts in distinct}
        accepted = [positions[accepts] for accepts, _ in self._elements]
        matches = self._match_sets(accepted, len(text))
        starts = matches[0] & 1 if self._at_start else matches[0]
        if not starts:
            return None
        start = at = (starts & -starts).bit_length() - 1
        for element, here, rest in zip(self._elements, accepted, matches[1:], strict=True):
            if element.repeat == "*":
                ends = rest >> at
                at += (ends & -ends).bit_length() - 1
            elif element.repeat == "" or (here >> at & 1 and rest >> (at + 1) & 1):
                at += 1
        return text[start:at]

    def _match_sets(self, accepted: list[int], size: int) -> list[int]:
        """Return, for each k, the positions at which ``elements[k:]`` match."""
        sets = [1 << size if self._at_end else (2 << size) - 1]
        for element, here in zip(reversed(self._elements), reversed(accepted), strict=True):
            rest = sets[-1]
            if element.repeat == "*":
                sets.append(_extend_back(rest, here))
            else:
                once = rest >> 1 & here
                sets.append(once | rest if element.repeat == "?" else once)
        return sets[::-1]


def _positions(accepts: Callable[[str], bool], text: str) -> int:
    """Return the positions whose character is accepted."""
    if accepts is _accept_any:
        return (1 << len(text)) - 1
    return int("".join(["01"[accepts(c)] for c in reversed(text)]) or "0", 2)


def _extend_back(ends: int, here: int) -> int:
    """Return the positions from which positions in ``here``, or none, lead to one in ``ends``."""
    reach = 1  # ``here``: positions that begin a run of this length
    while here:
        ends |= ends >> reach & here
        here &= here >> reach
        reach *= 2
    return ends


def _compile(body: str, pattern: str) -> tuple[list[_Element], bool]:
    elements: list[_Element] = []
    at = 0
    while at < len(body):
        character = body[at]
        if character == "$" and at == len(body) - 1:
            return elements, True
        if character in "*?":
            raise InputError(
                f'regular expression "{pattern}": nothing before {character!r} to repeat'
            )
        if character == "\\":
            at += 1
            if at == len(body):
                raise InputError(f'regular expression "{pattern}" ends in a backslash')
            accepts = _accept_escaped(body[at])
        else:
            accepts = _accept_any if character == "." else _accept_only(character)
        at += 1
        repeat = body[at] if at < len(body) and body[at] in "*?" else ""
        at += len(repeat)
        elements.append(_Element(accepts, repeat))
    return elements, False


def _accept_any(character: str) -> bool:
    return True


@cache
def _accept_only(character: str) -> Callable[[str], bool]:
    return character.__eq__


@cache
def _accept_escaped(letter: str) -> Callable[[str], bool]:
    accepts = _CLASSES.get(letter.lower())
    if accepts is None:
        return _accept_only(letter)
    if letter.islower():
        return accepts
    return lambda character: not accepts(character)
