"""Phrase: a labelled part of a sequence, and the checks on a set of phrases.

A phrase covers the steps ``start, ..., stop - 1``. A *phrase set* of a sequence of ``length``
steps is a list of phrases that are sorted, disjoint and inside the sequence::

    0 <= start_1 < stop_1 <= start_2 < stop_2 <= ... <= length

Tag schemes (`seqlab.data.tags`) write a phrase set as one label per step, open/close decisions
(`seqlab.data.open_close`) as two.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

from seqlab.data.errors import InputError


class Phrase(NamedTuple):
    """A labelled part of a sequence.

    Attributes
    ----------
    start : int
        First step of the phrase, counted from 0.
    stop : int
        The step after the last one, so that ``sequence[start:stop]`` is the phrase.
    type : str or None
        The label (``"NP"``, ``"person"``); None if phrases have no types.

    Examples
    --------
    >>> from seqlab.data import Phrase
    >>> phrase = Phrase(0, 2, "NP")
    >>> phrase
    Phrase(start=0, stop=2, type='NP')
    >>> ["the", "cat", "sat"][phrase.start : phrase.stop]
    ['the', 'cat']
    """

    start: int
    stop: int
    type: str | None = None


def check_phrases(phrases: Iterable[Any], length: int | None = None) -> list[Phrase]:
    """Return the phrases as a list of `Phrase`; raise an error if they are not a phrase set.

    Parameters
    ----------
    phrases : iterable of Phrase or (start, stop, type) tuples
        Must be sorted by position; see `sort_phrases` if they are not.
    length : int, optional
        Number of steps of the sequence. If None, the end of the sequence is not checked.

    Returns
    -------
    list of Phrase

    Raises
    ------
    InputError
        If a phrase is empty, is not inside the sequence, is out of order or overlaps the previous
        one.

    Examples
    --------
    >>> from seqlab.data import check_phrases
    >>> check_phrases([(0, 2, "NP"), (2, 3, "VP")], length=3)
    [Phrase(start=0, stop=2, type='NP'), Phrase(start=2, stop=3, type='VP')]
    >>> check_phrases([(0, 2), (1, 3)])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    seqlab.data.errors.InputError: phrase 1 (steps 1:3, type None) overlaps phrase 0 ... at step 1
    """
    checked: list[Phrase] = []
    for index, item in enumerate(phrases):
        phrase = _as_phrase(item, index)
        name = _name(phrase, index)
        if phrase.start < 0:
            raise InputError(f"{name} starts before step 0")
        if phrase.stop <= phrase.start:
            raise InputError(f"{name} is empty: stop must be greater than start")
        if length is not None and phrase.stop > length:
            raise InputError(f"{name} ends after the last of {length} steps")
        if checked and phrase.start < checked[-1].stop:
            before = _name(checked[-1], index - 1)
            if phrase.stop <= checked[-1].start:
                raise InputError(f"{name} comes before {before}: phrases must be sorted")
            step = max(phrase.start, checked[-1].start)
            raise InputError(f"{name} overlaps {before} at step {step}")
        checked.append(phrase)
    return checked


def sort_phrases(phrases: Iterable[Any]) -> list[Phrase]:
    """Return the phrases sorted by position.

    Examples
    --------
    >>> from seqlab.data import sort_phrases
    >>> sort_phrases([(2, 3, "VP"), (0, 2, None)])
    [Phrase(start=0, stop=2, type=None), Phrase(start=2, stop=3, type='VP')]
    """
    # The type is not part of the key: None and strings cannot be compared.
    return sorted(
        (_as_phrase(item, index) for index, item in enumerate(phrases)), key=lambda p: p[:2]
    )


def _as_phrase(item: Any, index: int) -> Phrase:
    try:
        start, stop, *rest = item
        (type_,) = rest or (None,)
        phrase = Phrase(operator.index(start), operator.index(stop), type_)
    except (TypeError, ValueError):
        raise InputError(f"phrase {index} is {item!r}: expected (start, stop, type)") from None
    if phrase.type is not None and not isinstance(phrase.type, str):
        raise InputError(f"phrase {index} has the type {phrase.type!r}: expected a string or None")
    return phrase


def _name(phrase: Phrase, index: int) -> str:
    return f"phrase {index} (steps {phrase.start}:{phrase.stop}, type {phrase.type!r})"
