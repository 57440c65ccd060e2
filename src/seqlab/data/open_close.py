"""Open/close coding: a phrase set as two decisions per step.

Each step has an *open* decision, then a *close* decision ("n": not, "i": inside a phrase, "o":
outside)::

    open   O    a phrase begins here         close   C    the phrase ends here
           nOi  no, inside a phrase                  nCi  no, it continues
           nOo  no, outside of phrases               nCo  no, outside of phrases

A sequence of T steps has 2T decisions. The legal ones are the paths of this diagram, from ``O`` or
``nOo`` to ``C`` or ``nCo``::

    within a step     O -> C, nCi    nOi -> C, nCi    nOo -> nCo
    to the next step  C -> O, nOo    nCi -> nOi       nCo -> O, nOo

Each legal path corresponds to exactly one phrase set of one type; there are 1, 2, 5, 13, 34, 89, ...
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
    """Convert a phrase set to open and close decisions.

    Parameters
    ----------
    phrases : iterable of Phrase or (start, stop, type) tuples
        Disjoint and inside the sequence, in any order. All of one type, because the decisions do
        not store it.
    length : int
        Number of steps of the sequence.

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
            f"open/close decisions need phrases of one type, got {', '.join(map(repr, types))}"
        )
    decisions = ["nOo", "nCo"] * length
    for start, stop, _ in checked:
        decisions[2 * start : 2 * stop] = ["nOi", "nCi"] * (stop - start)
        decisions[2 * start] = "O"
        decisions[2 * stop - 1] = "C"
    return decisions


def open_close_to_phrases(decisions: Sequence[str], type: str | None = None) -> list[Phrase]:
    """Convert a legal sequence of decisions to phrases.

    Parameters
    ----------
    decisions : sequence of str
        Open and close decision of each step.
    type : str, optional
        Type of the phrases.

    Raises
    ------
    InputError
        If the decisions are not a path of the diagram; the message gives the step.

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
    """Return the diagram as boolean arrays over ``DECISIONS``, for a chain of 2T steps.

    Only close decisions may follow open decisions, and open decisions close decisions.

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
