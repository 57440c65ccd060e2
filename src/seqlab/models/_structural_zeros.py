"""Which label may follow which: the structural zeros of a labeler that counts or projects.

Training data show some transitions and not others. An unseen one is either rare (give it a little
probability) or impossible (keep it at exactly 0: a structural zero). `find_legal` draws the line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.open_close import DECISIONS, open_close_mask
from seqlab.inference import Mask
from seqlab.models._base import TrainingData
from seqlab.models._chain import ChainLabeler
from seqlab.models._markov import ChainCounts, Legal, check_legal

# A transition that labels drawn without regard to each other would show this often, and that never
# occurs, is impossible: the chance of being wrong is exp(-10), 1 in 22,000.
EVIDENCE = 10.0

LEGAL_CONSTRAINTS: list[Any] = [str, Mask, None]


def find_legal(labeler: ChainLabeler, data: TrainingData, counts: ChainCounts) -> Legal:
    """What the ``constraints`` parameter of a labeler means for its training data.

    ===========  =================================================================================
    None         everything may follow everything
    ``"auto"``   open/close decisions follow their diagram; of other labels, an unseen move is impossible
                 where labels drawn independently would have shown it at least `EVIDENCE` times
    ``"seen"``   only what training shows (a label that was never followed: anything)
    a scheme     as ``"IOB2"``: what the tag scheme allows
    a `Mask`     what it says
    ===========  =================================================================================

    Training data that break a scheme or a mask are an `InputError` that names the place.
    """
    constraints = getattr(labeler, "constraints", None)
    classes = labeler.classes_
    every = np.ones(classes.size, dtype=bool)
    everything = Legal(every, np.ones((classes.size, classes.size), dtype=bool), every)
    if constraints is None:
        return everything
    if isinstance(constraints, str) and constraints == "seen":
        followed = counts.transitions.any(axis=1, keepdims=True)
        return Legal(counts.start > 0, (counts.transitions > 0) | ~followed, every)
    if isinstance(constraints, str) and constraints == "auto":
        diagram = _open_close(counts, classes)
        return _by_evidence(counts) if diagram is None else diagram
    mask = labeler._mask(constraints, data.X, None)
    assert mask is not None
    if mask.steps is not None:
        raise InputError(
            "constraints of a model are rules for all sequences, but mask.steps is given"
        )
    legal = Legal(
        every if mask.start is None else mask.start,
        everything.transitions if mask.transitions is None else mask.transitions,
        every if mask.end is None else mask.end,
    )
    check_legal(data.codes, data.X.offsets, legal, classes)
    return legal


def _by_evidence(counts: ChainCounts) -> Legal:
    """Moves that were seen, or that independent labels would have shown too rarely to tell."""
    labels = counts.start + counts.transitions.sum(axis=0)
    share = labels / max(labels.sum(), 1e-300)
    expected = counts.transitions.sum(axis=1, keepdims=True) * share
    first = counts.start.sum() * share
    return Legal(
        (counts.start > 0) | (first < EVIDENCE),
        (counts.transitions > 0) | (expected < EVIDENCE),
        np.ones(labels.size, dtype=bool),
    )


def _open_close(counts: ChainCounts, classes: NDArray[Any]) -> Legal | None:
    """The diagram of open/close decisions, where that is what the labels are."""
    names = classes.tolist()
    # "O" and "C" alone could be anything; the four that begin with "n" have no other use.
    if not set(names) <= set(DECISIONS) or set(names) <= {"O", "C"}:
        return None
    rows = [DECISIONS.index(name) for name in names]
    transitions, start, end = open_close_mask()
    legal = Legal(start[rows], transitions[np.ix_(rows, rows)], end[rows])
    if any(seen[~may].any() for seen, may in zip(counts, legal, strict=True)):
        return None  # other labels of the same names
    return legal


def log_or_forbidden(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Logarithms, ``-inf`` for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)
