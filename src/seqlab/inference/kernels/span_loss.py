"""Loss-augmented Viterbi for the span loss: missed gold spans plus predicted spans that are wrong.

A span begins at a step whose label is not "outside" and does not continue the label before it, and lasts as
long as labels continue each other. The loss is ``n_gold + n_predicted - 2 n_matched``. Predicted spans can
be counted by transitions; matches need one bit of memory: whether the labels so far agree with the gold
span that covers the step, from its beginning. So the states are (label, bit), and the cost is O(T L^2).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import Floats


@njit(nogil=True, cache=True)
def span_workspace(n_labels: int, n_rows: int) -> tuple[Floats, NDArray[np.int32]]:
    """Workspaces ``(table, back)`` of `span_viterbi` for up to ``n_rows`` steps."""
    return np.empty((2, n_labels, 2)), np.empty((n_rows, n_labels, 2), np.int32)


@njit(nogil=True, cache=True)
def begins_span(
    before: int, label: int, t: int, continues: NDArray[np.bool_], types: NDArray[np.int64]
) -> bool:
    """Return whether a span begins at step ``t``."""
    return types[label] >= 0 and (t == 0 or not continues[before, label])


@njit(nogil=True, cache=True)
def span_viterbi(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    gold: NDArray[np.int64],
    continues: NDArray[np.bool_],
    types: NDArray[np.int64],
    unit: float,
    n_steps: int,
    table: Floats,
    back: NDArray[np.int32],
    labels: NDArray[np.int64],
) -> float:
    """Write the labeling of highest ``score + unit * loss`` into ``labels``; return that value.

    ``continues[i, j]``: label ``j`` after label ``i`` is in the same span; ``types`` is negative for labels
    outside of spans.
    """
    n_labels = unary.shape[1]
    now = 0
    n_gold = 0
    for t in range(n_steps):
        before, now = now, 1 - now
        gold_before = gold[t - 1] if t > 0 else 0
        gold_begins = begins_span(gold_before, gold[t], t, continues, types)
        gold_inside = types[gold[t]] >= 0 and not gold_begins
        n_gold += 1 if gold_begins else 0
        for j in range(n_labels):
            for bit in range(2):
                table[now, j, bit] = -np.inf
            for i in range(n_labels if t > 0 else 1):
                begins = begins_span(i, j, t, continues, types)
                arc = start[j] if t == 0 else pairwise3[t * stride, i, j]
                value = arc + unary[t, j] + (unit if begins else 0.0)
                goes_on = t > 0 and continues[i, j]
                for old in range(2 if t > 0 else 1):
                    if gold_begins:
                        bit = 1 if begins and types[j] == types[gold[t]] else 0
                    else:
                        bit = 1 if gold_inside and old == 1 and goes_on else 0
                    total = value + (table[before, i, old] if t > 0 else 0.0)
                    # The gold span that ended at the step before is matched.
                    if old == 1 and not gold_inside and not goes_on:
                        total -= 2.0 * unit
                    if total > table[now, j, bit]:
                        table[now, j, bit] = total
                        back[t, j, bit] = 2 * i + old
    label, bit, highest = 0, 0, -np.inf
    for j in range(n_labels):
        for old in range(2):
            total = table[now, j, old] + end[j] - 2.0 * unit * old
            if total > highest:
                label, bit, highest = j, old, total
    for t in range(n_steps - 1, -1, -1):
        labels[t] = label
        pointer = back[t, label, bit]
        label, bit = pointer // 2, pointer % 2
    return highest + unit * n_gold


@njit(nogil=True, cache=True)
def count_span_loss(
    gold: NDArray[np.int64],
    labels: NDArray[np.int64],
    continues: NDArray[np.bool_],
    types: NDArray[np.int64],
    n_steps: int,
) -> float:
    """Return the number of missed gold spans plus that of wrong predicted spans."""
    loss = 0
    agrees = False
    for t in range(n_steps):
        gold_before = gold[t - 1] if t > 0 else 0
        before = labels[t - 1] if t > 0 else 0
        gold_begins = begins_span(gold_before, gold[t], t, continues, types)
        begins = begins_span(before, labels[t], t, continues, types)
        gold_inside = types[gold[t]] >= 0 and not gold_begins
        goes_on = t > 0 and continues[before, labels[t]]
        if agrees and not gold_inside and not goes_on:
            loss -= 2
        loss += (1 if gold_begins else 0) + (1 if begins else 0)
        if gold_begins:
            agrees = begins and types[labels[t]] == types[gold[t]]
        else:
            agrees = agrees and gold_inside and goes_on
    return float(loss - 2 if agrees else loss)
