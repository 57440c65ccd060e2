"""Beam search for the best labeling if a label depends on several labels before it.

A chain of order k scores ``sum_t f(t, (y_{t-1}, ..., y_{t-k}), y_t)``. Keeping the ``width`` best
histories of k labels at every step costs O(T width L); with ``width >= L ** k`` none is dropped and the
search is exact (Viterbi over histories).

All sequences advance together, one position at a time, so that the local scores of a position come from
one call: a classifier that computes them is slow per call, but fast on many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError, NoLegalLabelingError
from seqlab.inference.results import Labelings
from seqlab.inference.scores import Floats, Mask

Codes = NDArray[np.int64]
LocalScores = Callable[[Codes, Codes], Floats]

# Largest number of (step, history, label) entries in a chunk of sequences. More entries need more memory,
# fewer need more calls of the function that computes the scores.
CHUNK = 4_000_000


def history_codes(labels: Codes, offsets: Codes, n_labels: int, history: int) -> Codes:
    """The ``history`` labels before each step as one number per step.

    The number has base ``n_labels + 1``, and its last digit is the latest label. The digit ``n_labels``
    means "before the beginning of the sequence".

    Examples
    --------
    >>> import numpy as np
    >>> history_codes(np.array([1, 0, 1]), np.array([0, 3]), n_labels=2, history=2).tolist()
    [8, 7, 3]
    """
    base = n_labels + 1
    check_history(n_labels, history)
    position = np.arange(labels.size) - np.repeat(offsets[:-1], np.diff(offsets))
    codes = np.zeros(labels.size, dtype=np.int64)
    for lag in range(1, history + 1):
        before = np.full(labels.size, n_labels, dtype=np.int64)
        inside = np.flatnonzero(position >= lag)
        before[inside] = labels[inside - lag]
        codes += before * base ** (lag - 1)
    return codes


def check_history(n_labels: int, history: int) -> None:
    """Raise `InputError` if there are too many histories to number."""
    if (n_labels + 1) ** history >= 2**62:
        raise InputError(
            f"a history of {history} labels, each one of {n_labels}, is too long: "
            "the number of histories must stay below 2 ** 62"
        )


def history_beam(
    local: LocalScores,
    offsets: Codes,
    n_labels: int,
    history: int,
    width: int,
    *,
    mask: Mask | None = None,
) -> Labelings:
    """Best labeling found when only the ``width`` best histories of each step are kept.

    Parameters
    ----------
    local : callable
        ``local(steps, histories)`` gives an array of shape (n, n_labels): the score of each label at each
        of the steps after the history (see `history_codes`).
    offsets : int array of shape (n_sequences + 1,)
        First step of each sequence, and the number of steps.
    n_labels : int
        Number of labels.
    history : int
        Number of previous labels that a score depends on, at least 1.
    width : int
        Number of histories kept; those with the same ``history`` labels count once.
    mask : Mask, optional
        Labelings to exclude.

    Returns
    -------
    Labelings
        ``labels`` of shape (n_steps,) and ``score`` of shape (n_sequences,). Ties go to a labeling with the
        lowest last labels.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference.history_beam import history_beam
    >>> def no_repetition(steps, histories):  # base 3: the last digit is the previous label
    ...     return -1.0 * (histories[:, None] % 3 == np.arange(2)) - 0.1 * np.arange(2)
    >>> history_beam(no_repetition, np.array([0, 3]), n_labels=2, history=1, width=2).labels
    array([0, 1, 0])
    """
    if width < 1 or history < 1:
        raise InputError(f"width and history must be at least 1, got {width} and {history}")
    check_history(n_labels, history)
    if mask is not None:
        mask.check(int(offsets[-1]), n_labels)
    lengths = np.diff(offsets)
    width = min(int(width), n_labels**history)
    labels = np.zeros(int(offsets[-1]), dtype=np.int64)
    score = np.zeros(lengths.size)
    # Longest first: the sequences that are still running are always the first ones.
    order = np.argsort(-lengths, kind="stable")
    for chunk in _chunks(order, lengths, width * n_labels):
        _search(local, offsets, n_labels, history, width, mask, chunk, labels, score)
    return Labelings(labels, score)


def _chunks(order: Codes, lengths: Codes, per_step: int) -> Iterator[Codes]:
    """Split the sequences into chunks with at most `CHUNK` entries (or one sequence)."""
    occupied = order[lengths[order] > 0]
    work = np.cumsum(lengths[occupied]) * per_step // CHUNK
    for part in np.split(occupied, np.flatnonzero(np.diff(work)) + 1):
        if part.size:
            yield part


def _search(
    local: LocalScores,
    offsets: Codes,
    n_labels: int,
    history: int,
    width: int,
    mask: Mask | None,
    chunk: Codes,
    labels: Codes,
    score: Floats,
) -> None:
    """Beam search over the sequences of one chunk (longest first), into ``labels`` and ``score``."""
    # Here because it imports numba.
    from seqlab.inference.kernels.history_beam import backtrack_histories, extend_histories

    base = n_labels + 1
    begin = np.ascontiguousarray(offsets[chunk])
    lengths = np.ascontiguousarray(offsets[chunk + 1] - begin)
    longest = int(lengths[0])
    n_running = np.searchsorted(-lengths, -np.arange(1, longest + 1), side="right")
    starts = np.concatenate([[0], np.cumsum(n_running)]).astype(np.int64)
    parent = np.zeros((int(starts[-1]), width), dtype=np.int32)
    label = np.zeros((int(starts[-1]), width), dtype=np.int32)
    codes = np.full((chunk.size, width), base**history - 1, dtype=np.int64)
    values = np.zeros((chunk.size, width))
    live = np.ones(chunk.size, dtype=np.int64)
    entry = np.arange(width)
    for t in range(longest):
        n = int(n_running[t])
        steps = np.repeat(begin[:n] + t, live[:n])
        alive = codes[:n][entry < live[:n, np.newaxis]]
        found = np.ascontiguousarray(local(steps, alive), dtype=np.float64)
        if mask is not None:
            last = np.repeat(lengths[:n] == t + 1, live[:n])
            found = np.where(_allowed(mask, steps, alive % base, t == 0, last), found, -np.inf)
        first = np.cumsum(live[:n]) - live[:n]
        rows = slice(int(starts[t]), int(starts[t + 1]))
        extend_histories(
            found,
            live[:n],
            first,
            base,
            base ** (history - 1),
            codes,
            values,
            parent[rows],
            label[rows],
        )
    best = np.empty(chunk.size)
    backtrack_histories(live, values, starts, lengths, parent, label, begin, labels, best)
    if np.isneginf(best).any():
        sequence = int(chunk[np.isneginf(best)].min())
        raise NoLegalLabelingError(
            f"a beam of width {width} found no legal labeling of sequence {{sequence}}", sequence
        )
    score[chunk] = best


def _allowed(
    mask: Mask, steps: Codes, previous: Codes, opening: bool, last: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Labels that the mask allows at each step after each previous label; (n, n_labels) or (n, 1)."""
    allowed = np.ones((steps.size, 1), dtype=bool)
    if mask.steps is not None:
        allowed = allowed & mask.steps[steps]
    if opening and mask.start is not None:
        allowed = allowed & mask.start
    if not opening and mask.transitions is not None:
        allowed = allowed & mask.transitions[previous]
    if mask.end is not None:
        allowed = allowed & (mask.end | ~last[:, np.newaxis])
    return allowed
