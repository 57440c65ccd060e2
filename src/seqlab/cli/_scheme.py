"""Detect the tag scheme of a set of labels."""

from __future__ import annotations

from collections.abc import Iterable

_TYPED = "BIESLU"
_BARE = frozenset("BIESLUO")


def detect_scheme(labels: Iterable[str]) -> str | None:
    """Return the tag scheme that the labels follow, or None if they are not tags.

    Examples
    --------
    >>> detect_scheme(["B-NP", "I-NP", "O"]), detect_scheme(["S-NP", "B-NP", "E-NP", "O"])
    ('IOB2', 'IOBES')
    >>> detect_scheme(["NOUN", "VERB"]) is None
    True
    """
    names = {str(label) for label in labels}
    letters = set()
    typed = False
    for name in names:
        letter, hyphen, kind = name.partition("-")
        if name == "O":
            continue
        if hyphen and kind and letter in tuple(_TYPED):
            typed = True
            letters.add(letter)
        elif name in _BARE:
            letters.add(name)
        else:
            return None
    # Single letters without a type are tags only if together they look like a scheme.
    if not typed and not ({"B", "I"} <= letters or (letters == {"I"} and "O" in names)):
        return None
    if letters & {"L", "U"}:
        return None if letters & {"E", "S"} else "BILOU"
    if letters & {"E", "S"}:
        return "IOBES"
    return "IO" if letters == {"I"} else "IOB2"
