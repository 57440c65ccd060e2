"""Beam search: Viterbi on the chain that keeps only the best ``width`` labels of every step.

The forward pass computes ``value[t, j] = unary[t, j] + max_{i kept} value[t-1, i] + pairwise[t][i, j]``
(``start`` is added at the first step, ``end`` at the last) and keeps the ``width`` labels with the largest
value. Then the best path through the kept labels is found as in exact Viterbi: suffix values from the last
step to the first, labels from the first to the last, ties to the lexicographically first labeling. With
``width = L`` the result is that of exact Viterbi.

If ``gold`` is given, either the search stops at the first step at which the gold label is not in the beam,
and the best *prefix* up to that step is returned (the early update of Collins & Roark 2004), or the gold
label is always kept in the beam.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import longest
from seqlab.inference.scores import ChainArrays, Floats

Ints = NDArray[np.int64]


@njit(nogil=True, cache=True)
def keep_best(values: Floats, n_labels: int, width: int, forced: int, kept: Ints) -> int:
    """Write the labels of the ``width`` largest finite ``values`` into ``kept``, in increasing order.

    Ties go to the lower label. The label ``forced``, if not negative and legal, is always kept. Returns the
    number of labels kept.
    """
    count = 0
    if forced >= 0 and values[forced] > -np.inf:
        kept[0] = forced
        count = 1
    protected = count
    for j in range(n_labels):
        if values[j] == -np.inf or (protected == 1 and j == forced):
            continue
        if count == width:
            if count == protected or not values[j] > values[kept[count - 1]]:
                continue
            count -= 1
        place = count  # kept is sorted by decreasing value after the protected label
        while place > protected and values[j] > values[kept[place - 1]]:
            kept[place] = kept[place - 1]
            place -= 1
        kept[place] = j
        count += 1
    for r in range(1, count):  # few labels: insertion sort
        label, place = kept[r], r
        while place > 0 and kept[place - 1] > label:
            kept[place] = kept[place - 1]
            place -= 1
        kept[place] = label
    return count


@njit(nogil=True, cache=True)
def beam_workspace(
    n_labels: int, n_rows: int, width: int
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Allocate the workspaces ``(kept, n_kept, table, values, candidates)`` of `beam_one`."""
    return (
        np.zeros((n_rows, width), dtype=np.int64),
        np.zeros(n_rows, dtype=np.int64),
        np.zeros((n_rows, width)),
        np.zeros(n_labels),
        np.zeros(n_labels),
    )


@njit(nogil=True, cache=True)
def beam_one(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    t0: int,
    t1: int,
    gold: Ints,
    keep_gold: bool,
    kept: Ints,
    n_kept: Ints,
    table: Floats,
    values: Floats,
    candidates: Floats,
    labels: Ints,
) -> tuple[float, int]:
    """Write the best labeling of the rows ``t0:t1`` within the beam into ``labels[t0:...]``.

    Parameters
    ----------
    gold : int array of shape (n_steps,) or (0,)
        True labels; size 0 for a search that does not use them.
    keep_gold : bool
        Whether the gold label is always kept; if not, the search stops when it is not in the beam.
    kept, n_kept, table, values, candidates
        From `beam_workspace`, which determines the width of the beam.
    labels : int array of shape (n_steps,)
        Receives the labeling.

    Returns
    -------
    score : float
        Score of the labeling or prefix; ``-inf`` if no legal path is left in the beam.
    n_done : int
        Number of labeled steps: ``t1 - t0``, or less if the gold label was not in the beam at step
        ``n_done - 1``. The ``end`` scores are added only at the last step of the sequence.
    """
    n_labels, width, n_steps = unary.shape[1], kept.shape[1], t1 - t0
    n_done = n_steps
    for t in range(n_steps):
        if t == 0:
            for j in range(n_labels):
                candidates[j] = start[j]
        else:
            for j in range(n_labels):
                candidates[j] = -np.inf
            for r in range(n_kept[t - 1]):
                label = kept[t - 1, r]
                arcs, a = pairwise3[(t0 + t) * stride, label], values[label]
                for j in range(n_labels):
                    value = a + arcs[j]
                    candidates[j] = value if value > candidates[j] else candidates[j]
        for j in range(n_labels):
            values[j] = candidates[j] + unary[t0 + t, j]
        if t == n_steps - 1:
            for j in range(n_labels):
                values[j] += end[j]
        forced = gold[t0 + t] if keep_gold else -1
        n_kept[t] = keep_best(values, n_labels, width, forced, kept[t])
        if n_kept[t] == 0:
            return -np.inf, 0
        if gold.size > 0 and not keep_gold:
            found = False
            for r in range(n_kept[t]):
                found = found or kept[t, r] == gold[t0 + t]
            if not found:
                n_done = t + 1
                break
    return decode_kept(
        unary, pairwise3, stride, start, end, t0, n_done, n_done == n_steps,
        kept, n_kept, table, labels,
    ), n_done  # fmt: skip


@njit(nogil=True, cache=True)
def decode_kept(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    t0: int,
    n_steps: int,
    with_end: bool,
    kept: Ints,
    n_kept: Ints,
    table: Floats,
    labels: Ints,
) -> float:
    """Exact Viterbi of the first ``n_steps`` steps over the kept labels; returns the score."""
    if n_steps == 0:
        return 0.0
    for t in range(n_steps - 1, -1, -1):
        for r in range(n_kept[t]):
            i = kept[t, r]
            best = 0.0
            if t < n_steps - 1:
                best = -np.inf
                for q in range(n_kept[t + 1]):
                    value = pairwise3[(t0 + t + 1) * stride, i, kept[t + 1, q]] + table[t + 1, q]
                    best = value if value > best else best
            elif with_end:
                best = end[i]
            table[t, r] = best + unary[t0 + t, i]
    best, label = -np.inf, 0
    for r in range(n_kept[0]):
        value = start[kept[0, r]] + table[0, r]
        if value > best:
            best, label = value, kept[0, r]
    labels[t0] = label
    for t in range(1, n_steps):
        highest, arcs = -np.inf, pairwise3[(t0 + t) * stride, label]
        label = 0
        for r in range(n_kept[t]):
            value = arcs[kept[t, r]] + table[t, r]
            if value > highest:
                highest, label = value, kept[t, r]
        labels[t0 + t] = label
    return best


@njit(nogil=True, cache=True)
def beam_block(
    chain: ChainArrays, first: int, last: int, width: int, labels: Ints, score: Floats
) -> None:
    """`beam_one`, full search, on the sequences ``first <= i < last``."""
    unary, pairwise3, stride, start, end, offsets = chain
    kept, n_kept, table, values, candidates = beam_workspace(
        unary.shape[1], longest(offsets, first, last), width
    )
    no_gold = np.zeros(0, dtype=np.int64)
    for i in range(first, last):
        score[i], _ = beam_one(
            unary, pairwise3, stride, start, end, offsets[i], offsets[i + 1], no_gold, False,
            kept, n_kept, table, values, candidates, labels,
        )  # fmt: skip
