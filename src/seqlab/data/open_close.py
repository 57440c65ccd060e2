"""Open/close coding: a phrase set as two decisions per step.

Each step takes first an *open* decision, then a *close* decision ("i": inside a phrase, "o":
outside)::

    open   O    a phrase begins here         close   C    the phrase ends here
           nOi  no, and we are inside one            nCi  it goes on
           nOo  no, and we are outside               nCo  there is none to end

A sequence of T steps becomes 2T decisions. The legal ones are the paths of this diagram, from
``O`` or ``nOo`` to ``C`` or ``nCo``::

    within a step     O -> C, nCi    nOi -> C, nCi    nOo -> nCo
    to the next step  C -> O, nOo    nCi -> nOi       nCo -> O, nOo

Legal paths and phrase sets of one type correspond one to one; there are 1, 2, 5, 13, 34, 89, ...
of them for T = 0, 1, 2, ... (every second Fibonacci number).

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from seqlab.data.errors import InputError
from seqlab.data.phrases import Phrase, check_phrases, sort_phrases
from seqlab.data.tags import SchemeMask

OPEN_DECISIONS: tuple[str, ...] = ("O", "nOi", "nOo")
CLOSE_DECISIONS: tuple[str, ...] = ("C", "nCi", "nCo")
DECISIONS: tuple[str, ...] = OPEN_DECISIONS + CLOSE_DECISIONS

_FOLLOWERS: dict[str, tuple[str, ...]] = {
    "O": ("C", "nCi"),
    "nOi": ("C", "nCi"),
    "nOo": ("nCo",),
    "C": ("O", "nOo"),
    "nCi": ("nOi",),
    "nCo": ("O", "nOo"),
}
_FIRST = ("O", "nOo")
_LAST = ("C", "nCo")


def phrases_to_open_close(phrases: Iterable[Any], length: int) -> list[str]:
    """Write a phrase set as open and close decisions.

    Parameters
    ----------
    phrases : iterable of Phrase or (start, stop, type) tuples
        Disjoint and inside the sequence, in any order, all of one type: the decisions cannot
        carry it.
    length : int
        Steps of the sequence.

    Returns
    -------
    list of str
        ``2 * length`` decisions: open and close of step 0, open and close of step 1, ...

    Examples
    --------
    >>> from seqlab.data import phrases_to_open_close
    >>> phrases_to_open_close([(0, 2, "NP")], length=3)
    ['O', 'nCi', 'nOi', 'C', 'nOo', 'nCo']
    """
    checked = check_phrases(sort_phrases(phrases), length)
    types = dict.fromkeys(phrase.type for phrase in checked)
    if len(types) > 1:
        raise InputError(
            f"open/close decisions carry one phrase type, got {', '.join(map(repr, types))}"
        )
    decisions = ["nOo", "nCo"] * length
    for start, stop, _ in checked:
        decisions[2 * start : 2 * stop] = ["nOi", "nCi"] * (stop - start)
        decisions[2 * start] = "O"
        decisions[2 * stop - 1] = "C"
    return decisions


def open_close_to_phrases(decisions: Sequence[str], type: str | None = None) -> list[Phrase]:
    """Phrases that a legal sequence of decisions describes.

    Parameters
    ----------
    decisions : sequence of str
        Open and close decision of every step in turn.
    type : str, optional
        Type to give to the phrases.

    Raises
    ------
    InputError
        For a path that the diagram does not have, with the step.

    Examples
    --------
    >>> from seqlab.data import open_close_to_phrases
    >>> open_close_to_phrases(["O", "nCi", "nOi", "C", "nOo", "nCo"], type="NP")
    [Phrase(start=0, stop=2, type='NP')]
    """
    if len(decisions) % 2:
        raise InputError(f"{len(decisions)} decisions are not two per step")
    phrases = []
    start = 0
    allowed: tuple[str, ...] = _FIRST
    for index, decision in enumerate(decisions):
        step = index // 2
        if decision not in allowed:
            raise InputError(
                f"decision {decision!r} at step {step} is not legal there: expected "
                f"{' or '.join(allowed)}"
            )
        if decision == "O":
            start = step
        elif decision == "C":
            phrases.append(Phrase(start, step + 1, type))
        allowed = _FOLLOWERS[decision]
    if len(decisions) and decisions[-1] not in _LAST:
        raise InputError(f"the phrase that opens at step {start} is never closed")
    return phrases


def open_close_mask() -> SchemeMask:
    """The diagram as boolean arrays over ``DECISIONS``: a chain of 2T steps under it is legal.

    Opens are followed only by closes and closes by opens, so the mask also keeps the two kinds in
    turn.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.data import open_close_mask
    >>> transitions, start, end = (part.astype(int) for part in open_close_mask())
    >>> [int(start @ np.linalg.matrix_power(transitions, 2 * n - 1) @ end) for n in range(1, 6)]
    [2, 5, 13, 34, 89]
    """
    transitions = np.array([[b in _FOLLOWERS[a] for b in DECISIONS] for a in DECISIONS])
    start = np.array([a in _FIRST for a in DECISIONS])
    end = np.array([a in _LAST for a in DECISIONS])
    return SchemeMask(transitions, start, end)
