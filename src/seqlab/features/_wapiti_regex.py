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

References
----------
T. Lavergne, O. Cappé, F. Yvon (2010), "Practical very large scale CRFs", ACL; the manual page of
Wapiti, section PATTERNS.
"""

from __future__ import annotations

from collections.abc import Callable
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
        starts = range(1) if self._at_start else range(len(text) + 1)
        for start in starts:
            end = self._match(0, text, start)
            if end is not None:
                return text[start:end]
        return None

    def _match(self, element: int, text: str, at: int) -> int | None:
        """Return the end of a match of ``elements[element:]`` that begins at `at`, or None."""
        if element == len(self._elements):
            return at if not self._at_end or at == len(text) else None
        accepts, repeat = self._elements[element]
        if repeat == "*":
            while True:
                end = self._match(element + 1, text, at)
                if end is not None or at == len(text) or not accepts(text[at]):
                    return end
                at += 1
        fits = at < len(text) and accepts(text[at])
        end = self._match(element + 1, text, at + 1) if fits else None
        if end is None and repeat == "?":
            end = self._match(element + 1, text, at)
        return end


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
            accepts = _accept_any if character == "." else character.__eq__
        at += 1
        repeat = body[at] if at < len(body) and body[at] in "*?" else ""
        at += len(repeat)
        elements.append(_Element(accepts, repeat))
    return elements, False


def _accept_any(character: str) -> bool:
    return True


def _accept_escaped(letter: str) -> Callable[[str], bool]:
    accepts = _CLASSES.get(letter.lower())
    if accepts is None:
        return letter.__eq__
    if letter.islower():
        return accepts
    return lambda character: not accepts(character)
