"""The Markov chain of labels: counts, structural zeros, probabilities.

    P(s first) = (c1(s) + e) / (N + e n),    P(s | s') = (c(s', s) + e) / (c(s') + e n)

over the n legal labels; every other label has probability exactly 0. If the end is modelled, it is one
more target of every label. Without counts and without smoothing, legal targets are equally probable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ChainCounts(NamedTuple):
    """How often labels came first, followed each other and came last.

    Parameters
    ----------
    start, end : arrays of shape (n_labels,)
    transitions : array of shape (n_labels, n_labels)
    """

    start: Floats
    transitions: Floats
    end: Floats

    def plus(self, other: ChainCounts) -> ChainCounts:
        """Return the sum of both."""
        return ChainCounts(*(a + b for a, b in zip(self, other, strict=True)))


class LegalTransitions(NamedTuple):
    """Which labels may come first, follow each other and come last; the rest are structural zeros.

    Parameters
    ----------
    start, end : boolean arrays of shape (n_labels,)
    transitions : boolean array of shape (n_labels, n_labels)
    """

    start: Bools
    transitions: Bools
    end: Bools

    @classmethod
    def unrestricted(cls, n_labels: int) -> LegalTransitions:
        """Return an instance that allows everything."""
        every = np.ones(n_labels, dtype=bool)
        return cls(every, np.ones((n_labels, n_labels), dtype=bool), every)


class MarkovChain(NamedTuple):
    """Probabilities of a Markov chain of labels.

    Parameters
    ----------
    start : array of shape (n_labels,)
    transitions : array of shape (n_labels, n_labels)
    end : array of shape (n_labels,) or None
        Probability that the sequence ends after a label; None if the end is not modelled.
    """

    start: Floats
    transitions: Floats
    end: Floats | None


def count_chain(codes: Ints, offsets: Ints, weights: Floats, n_labels: int) -> ChainCounts:
    """Count first labels, transitions and last labels, with weights, as far as known (codes >= 0)."""
    steps = np.repeat(weights, np.diff(offsets))
    inside = np.ones(codes.size, dtype=bool)
    inside[offsets[:-1]] = False
    before, after, pair_weights = np.roll(codes, 1)[inside], codes[inside], steps[inside]
    known = (before >= 0) & (after >= 0)
    pair_codes = before[known] * n_labels + after[known]
    pairs: Any = np.bincount(pair_codes, pair_weights[known], minlength=n_labels**2)

    def count_at(rows: Ints) -> Any:
        labels = codes[rows]
        is_known = labels >= 0
        return np.bincount(labels[is_known], weights[is_known], minlength=n_labels)

    transitions = pairs.reshape(n_labels, n_labels)
    return ChainCounts(count_at(offsets[:-1]), transitions, count_at(offsets[1:] - 1))


def fill_empty_rows(counts: ChainCounts) -> ChainCounts:
    """Replace the transitions of labels that nothing followed by the frequencies of all labels.

    A uniform row would make a label that was seen once, as a last label, likely to follow itself.
    """
    followed = counts.transitions.any(axis=1, keepdims=True)
    labels = counts.start + counts.transitions.sum(axis=0)
    return counts._replace(transitions=np.where(followed, counts.transitions, labels))


def estimate_chain(
    counts: ChainCounts, legal: LegalTransitions, smoothing: float, *, with_end: bool
) -> MarkovChain:
    """Return the most probable chain given counts."""
    start = _normalise_rows(counts.start[None], legal.start[None], smoothing)[0]
    targets, allowed = counts.transitions, legal.transitions
    if not with_end:
        return MarkovChain(start, _normalise_rows(targets, allowed, smoothing), None)
    targets = np.column_stack([targets, counts.end])
    rows = _normalise_rows(targets, np.column_stack([allowed, legal.end]), smoothing)
    return MarkovChain(start, np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy())


def chain_log_prior(chain: MarkovChain, legal: LegalTransitions, smoothing: float) -> float:
    """Return the log-density of the Dirichlet prior that smoothing implies, up to a constant."""
    if smoothing == 0:
        return 0.0
    parts = [chain.start[legal.start], chain.transitions[legal.transitions]]
    if chain.end is not None:
        parts.append(chain.end[legal.end])
    return smoothing * float(sum(np.log(part).sum() for part in parts))


def check_training_labels(
    codes: Ints, offsets: Ints, legal: LegalTransitions, classes: NDArray[Any]
) -> None:
    """Raise an error that names the first training label that is not legal."""
    first, last = offsets[:-1], offsets[1:] - 1
    wrong = np.zeros(codes.size, dtype=bool)
    known = codes >= 0
    safe = np.maximum(codes, 0)
    wrong[first] |= known[first] & ~legal.start[safe[first]]
    wrong[last] |= known[last] & ~legal.end[safe[last]]
    pair = known & np.roll(known, 1)
    pair[first] = False
    wrong |= pair & ~legal.transitions[np.roll(safe, 1), safe]
    if not wrong.any():
        return
    step = int(np.argmax(wrong))
    sequence = int(np.searchsorted(offsets, step, side="right") - 1)
    position = step - int(offsets[sequence])
    label = classes.tolist()[codes[step]]
    problem = "cannot come last"
    if position == 0 and not legal.start[codes[step]]:
        problem = "cannot come first"
    elif pair[step] and not legal.transitions[codes[step - 1], codes[step]]:
        problem = f"cannot follow {classes.tolist()[codes[step - 1]]!r}"
    raise InputError(
        f"y[{sequence}][{position}] is {label!r}, which {problem} under the constraints"
    )


def _normalise_rows(counts: Floats, legal: Bools, smoothing: float) -> Floats:
    """Return rows of probabilities over the legal entries; a row without any is zero."""
    values = np.where(legal, counts + smoothing, 0.0)
    totals = values.sum(axis=1, keepdims=True)
    n_legal = np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return np.where(totals > 0, values / np.where(totals > 0, totals, 1.0), legal / n_legal)
