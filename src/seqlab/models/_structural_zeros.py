"""Structural zeros: which labels may come first, follow each other and come last.

A transition that training never shows is either rare (it gets a small probability) or impossible (its
probability is exactly 0: a structural zero). `find_legal_transitions` decides which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.open_close import DECISIONS, open_close_mask
from seqlab.inference import Mask
from seqlab.learning import TrainingData
from seqlab.models._markov import ChainCounts, LegalTransitions, check_training_labels, count_chain
from seqlab.models.chain_labeler import ChainLabeler

# A transition that never occurs, although independent labels would show it this often, is impossible.
# The probability of a wrong decision is exp(-10), 1 in 22,000. Larger: fewer structural zeros.
MIN_EXPECTED_COUNT = 10.0

CONSTRAINTS: list[Any] = [str, Mask, None]


def find_legal_transitions(
    labeler: ChainLabeler, data: TrainingData, *, with_end: bool = False
) -> LegalTransitions:
    """Find what the ``constraints`` parameter of a labeler allows, given its training data.

    ===========  =================================================================================
    None         every label may follow every other
    ``"auto"``   open/close decisions follow their state diagram; for other labels, an unseen transition
                 is impossible if independent labels would show it at least `MIN_EXPECTED_COUNT` times
    ``"seen"``   only what training shows (after a label that nothing followed: every label)
    a scheme     such as ``"IOB2"``: what the tag scheme allows
    a `Mask`     what the mask allows
    ===========  =================================================================================

    Occurrences count 1 each, whatever the sample weights: their scale says nothing about how much data
    there are, and a sequence of weight 0 still shows what is possible. With ``with_end``, "seen" also
    holds for last labels. Training labels that break a scheme or a mask raise an `InputError` that names
    the position.
    """
    constraints = getattr(labeler, "constraints", None)
    classes = labeler.classes_
    legal = LegalTransitions.unrestricted(classes.size)
    if constraints is None:
        return legal
    if isinstance(constraints, str) and constraints in ("seen", "auto"):
        counts = count_chain(data.codes, data.X.offsets, np.ones(len(data.X)), classes.size)
        if constraints == "auto":
            return _from_open_close(counts, classes) or _from_expected_counts(counts)
        followed = counts.transitions.any(axis=1, keepdims=True)
        end = counts.end > 0 if with_end else legal.end
        return LegalTransitions(counts.start > 0, (counts.transitions > 0) | ~followed, end)
    mask = labeler._mask(constraints, data.X, None)
    assert mask is not None
    if mask.steps is not None:
        raise InputError(
            "the constraints of a model apply to all sequences, so mask.steps must be None"
        )
    given = {"start": mask.start, "transitions": mask.transitions, "end": mask.end}
    legal = legal._replace(**{name: part for name, part in given.items() if part is not None})
    check_training_labels(data.codes, data.X.offsets, legal, classes)
    return legal


def _from_expected_counts(counts: ChainCounts) -> LegalTransitions:
    """Allow what was seen, and what independent labels would have shown too rarely to decide."""
    labels = counts.start + counts.transitions.sum(axis=0)
    frequencies = labels / max(labels.sum(), 1e-300)
    expected = counts.transitions.sum(axis=1, keepdims=True) * frequencies
    expected_start = counts.start.sum() * frequencies
    return LegalTransitions(
        (counts.start > 0) | (expected_start < MIN_EXPECTED_COUNT),
        (counts.transitions > 0) | (expected < MIN_EXPECTED_COUNT),
        np.ones(labels.size, dtype=bool),
    )


def _from_open_close(counts: ChainCounts, classes: NDArray[Any]) -> LegalTransitions | None:
    """Return the state diagram of open/close decisions, or None if the labels are not such decisions."""
    names = classes.tolist()
    # "O" and "C" alone are common tags; the four decisions that begin with "n" have no other use.
    if not set(names) <= set(DECISIONS) or set(names) <= {"O", "C"}:
        return None
    rows = [DECISIONS.index(name) for name in names]
    transitions, start, end = open_close_mask()
    legal = LegalTransitions(start[rows], transitions[np.ix_(rows, rows)], end[rows])
    if any(seen[~may].any() for seen, may in zip(counts, legal, strict=True)):
        return None  # other labels with the same names
    return legal


def log_or_forbidden(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Return logarithms, ``-inf`` for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)
