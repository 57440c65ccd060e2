"""Suggest the name that the user probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(given: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the most similar known name, or all known names.

    Examples
    --------
    >>> suggest("max_itr", ["c1", "c2", "max_iter"])
    "; did you mean 'max_iter'?"
    >>> suggest("xyz", ["c1", "c2"])
    '; choose from c1, c2'
    """
    names = list(known)
    folded = {name.lower(): name for name in reversed(names)}
    close = get_close_matches(given.lower(), folded, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    return f"; choose from {', '.join(names)}"
