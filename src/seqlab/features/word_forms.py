r"""Word forms: what a template can read of a token instead of the token itself.

A form is a function of one string, computed once per *distinct* value of a column. It is None if a value
does not have it (the 4-letter prefix of a 2-letter word), and a template that reads it has no feature there.

=================== =============================================================================
``lower``           ``McDonald's`` → ``mcdonald's``
``shape``           ``McDonald's`` → ``XxXxxxxx'x``, ``B-747`` → ``X-ddd``
``short_shape``     the shape with repeated characters collapsed: ``XxXx'x``, ``X-d``
``case``            ``lower``, ``upper``, ``title``, ``mixed`` or ``none`` (no letters)
``digits``          ``all``, ``number`` (digits and ``. , : / - + % $``), ``some`` or ``none``
``punctuation``     ``all``, ``some`` or ``none``
``prefix1`` ...     the first n characters, None for shorter words
``suffix1`` ...     the last n characters, None for shorter words
=================== =============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import TypeAlias

from seqlab.data.errors import InputError
from seqlab.features._wapiti_regex import WapitiRegex

Form: TypeAlias = Callable[[str], str | None]

_REPEATS = re.compile(r"(.)\1+", re.DOTALL)
_NUMBER = re.compile(r"(?=.*\d)[\d.,:/+%$\-]+")
_AFFIX = re.compile(r"(prefix|suffix)([1-9][0-9]?)")


def lower(word: str) -> str:
    """Lower case.

    Examples
    --------
    >>> lower("McDonald's")
    "mcdonald's"
    """
    return word.lower()


def shape(word: str) -> str:
    """Case pattern: ``X`` upper case, ``x`` other letters, ``d`` digits, other characters unchanged.

    Examples
    --------
    >>> shape("B-747"), shape("McDonald's")
    ('X-ddd', "XxXxxxxx'x")
    """
    return word.translate(_SHAPES)


def short_shape(word: str) -> str:
    """Case pattern with repeated characters collapsed.

    Examples
    --------
    >>> short_shape("B-747"), short_shape("Pennsylvania")
    ('X-d', 'Xx')
    """
    return _REPEATS.sub(r"\1", shape(word))


def case(word: str) -> str:
    """Name of the case pattern: lower, upper, title or mixed; none for a word without letters.

    Examples
    --------
    >>> [case(word) for word in ("the", "IBM", "London", "iPhone", "1.8")]
    ['lower', 'upper', 'title', 'mixed', 'none']
    """
    letters = [character for character in word if character.isalpha()]
    if not letters:
        return "none"
    uppers = [character.isupper() for character in letters]
    if not any(uppers):
        return "lower"
    if all(uppers):
        return "upper"
    return "title" if uppers[0] and not any(uppers[1:]) else "mixed"


def digits(word: str) -> str:
    """How much of the word is digits: ``all``, ``number``, ``some`` or ``none``.

    Examples
    --------
    >>> [digits(word) for word in ("1600", "35,486.38", "B-747", "Avenue")]
    ['all', 'number', 'some', 'none']
    """
    if not any(map(str.isdigit, word)):
        return "none"
    if word.isdigit():
        return "all"
    return "number" if _NUMBER.fullmatch(word) else "some"


def punctuation(word: str) -> str:
    """How much of the word is neither letter nor digit: ``all``, ``some`` or ``none``.

    Examples
    --------
    >>> [punctuation(word) for word in ("--", "U.S.", "Avenue")]
    ['all', 'some', 'none']
    """
    is_punctuation = [not character.isalnum() for character in word]
    if not any(is_punctuation):
        return "none"
    return "all" if all(is_punctuation) else "some"


def prefix(word: str, n: int) -> str | None:
    """First n characters; None for a shorter word.

    Examples
    --------
    >>> prefix("Avenue", 3), prefix("of", 3)
    ('Ave', None)
    """
    return word[:n] if len(word) >= n else None


def suffix(word: str, n: int) -> str | None:
    """Last n characters; None for a shorter word.

    Examples
    --------
    >>> suffix("walking", 3), suffix("of", 3)
    ('ing', None)
    """
    return word[-n:] if len(word) >= n else None


class _Shapes(dict[int, str]):
    """Table for `str.translate`, filled when a character is first seen."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isalpha():
            shown = "X" if character.isupper() else "x"
        else:
            shown = "d" if character.isdigit() else character
        self[code] = shown
        return shown


_SHAPES = _Shapes()
_FORMS: dict[str, Form] = {
    "case": case,
    "digits": digits,
    "lower": lower,
    "punctuation": punctuation,
    "shape": shape,
    "short_shape": short_shape,
}


def form_function(name: str) -> Form:
    r"""Return the function that computes a form.

    Parameters
    ----------
    name : str
        A name from the table above; ``""`` for the token itself; ``"t:REGEX"`` and ``"m:REGEX"`` for
        Wapiti's test and match; ``"X"``, ``"T:REGEX"``, ``"M:REGEX"`` for their results in lower case.

    Examples
    --------
    >>> form_function("suffix2")("walking"), form_function(r"t:^\d*$")("1984")
    ('ng', 'true')
    """
    if name in _FORMS:
        return _FORMS[name]
    if name == "":
        return str
    if name == "X":
        return lower
    affix = _AFFIX.fullmatch(name)
    if affix:
        return partial(prefix if affix[1] == "prefix" else suffix, n=int(affix[2]))
    command, colon, pattern = name.partition(":")
    if colon and command in ("t", "T", "m", "M"):
        regex = WapitiRegex(pattern)
        if command in "tT":
            return lambda value: "false" if regex.search(value) is None else "true"
        if command == "m":
            return lambda value: regex.search(value) or ""
        return lambda value: (regex.search(value) or "").lower()
    near = get_close_matches(name, [*_FORMS, "prefix3", "suffix3"], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    known = ", ".join([*sorted(_FORMS), "prefixN", "suffixN"])
    raise InputError(f"unknown word form {name!r}{hint} (known: {known})")


def applies_to_marks(name: str) -> bool:
    """Whether a form is also applied to the marks of positions outside the sequence.

    Wapiti applies its commands to marks such as ``_x-1`` as to any token; other forms do not change
    marks.
    """
    return name == "X" or name[:2] in ("t:", "T:", "m:", "M:")
