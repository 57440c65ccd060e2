"""Suggesting the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(given: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, or all of them.

    Examples
    --------
    >>> nearest("max_itr", ["c1", "c2", "max_iter"])
    "; did you mean 'max_iter'?"
    >>> nearest("xyz", ["c1", "c2"])
    '; there are c1, c2'
    """
    names = list(known)
    folded = {name.lower(): name for name in reversed(names)}
    close = get_close_matches(given.lower(), folded, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    return f"; there are {', '.join(names)}"
