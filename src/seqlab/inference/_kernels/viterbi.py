"""Best labelings of blocks of chains: Viterbi and max-marginals.

The recursion runs from the end, over best *suffixes* (``start``, ``end`` at the boundary)::

    best[t, i] = unary[t, i] + max_j pairwise[t+1][i, j] + best[t+1, j]

and the labels are read off forwards, lowest index first. So among tied labelings the one that comes
first in lexicographic order is found, which is also the first of the k-best list. Only the table of
values is kept, no back pointers: along the one path that is read, the argmax is taken again.

The arguments ``unary, pairwise3, stride, start, end, offsets, first, last`` are those of
`seqlab.inference._kernels.forward_backward`. Scores must be free of NaN and ``+inf``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference._kernels.dense import longest, padded_width
from seqlab.inference._kernels.max_plus import add_at, max_plus, max_plus_at
from seqlab.inference.scores import Floats


@njit(nogil=True, cache=True)
def transpose_pairwise(pairwise: Floats, out: Floats) -> None:
    """``out[j, i] = pairwise[i, j]``; the padding of ``out`` is left alone."""
    for i in range(pairwise.shape[0]):
        for j in range(pairwise.shape[1]):
            out[j, i] = pairwise[i, j]


@njit(nogil=True, cache=True)
def copy_pairwise(pairwise: Floats, out: Floats) -> None:
    """``out[i, j] = pairwise[i, j]``; the padding of ``out`` is left alone."""
    for i in range(pairwise.shape[0]):
        for j in range(pairwise.shape[1]):
            out[i, j] = pairwise[i, j]


@njit(nogil=True, cache=True)
def viterbi_workspace(n_labels: int, n_rows: int) -> tuple[Floats, Floats]:
    """Workspaces ``(transposed, table)`` of `viterbi_one` for up to ``n_rows`` steps."""
    width = padded_width(n_labels)
    return np.full((width, width), -np.inf), np.empty((n_rows, width))


# The steps below take tables and row numbers, not rows: to make a row of an array costs as much as a step.


@njit(nogil=True, cache=True)
def last_suffix(unary: Floats, end: Floats, t: int, table: Floats, row: int) -> None:
    """Scores of the last step, ``table[row, i] = unary[t, i] + end[i]``; ``-inf`` in the padding.

    The steps before find their padding from this one.
    """
    n_labels = unary.shape[1]
    for i in range(n_labels):
        table[row, i] = unary[t, i] + end[i]
    for i in range(n_labels, table.shape[1]):
        table[row, i] = -np.inf


@njit(nogil=True, cache=True, inline="always")
def suffix_step(unary: Floats, t: int, transposed: Floats, table: Floats, row: int) -> None:
    """``table[row, i] = unary[t, i] + max_j pairwise[i, j] + table[row + 1, j]``."""
    width, n_labels = table.shape[1], unary.shape[1]
    max_plus_at(table, (row + 1) * width, transposed, table, row * width, width, n_labels)
    add_at(unary, t * n_labels, table, row * width, n_labels)


@njit(nogil=True, cache=True, inline="always")
def best_label(
    arcs: Floats, before: int, table: Floats, row: int, n_labels: int
) -> tuple[int, float]:
    """``argmax_j arcs[before, j] + table[row, j]``, the lowest of several, and the maximum.

    In two loops without branches: where the maximum lies cannot be predicted.
    """
    highest = -np.inf
    for j in range(n_labels):
        value = arcs[before, j] + table[row, j]
        highest = value if value > highest else highest
    label = 0
    for j in range(n_labels - 1, -1, -1):
        label = j if arcs[before, j] + table[row, j] == highest else label
    return label, highest


@njit(nogil=True, cache=True)
def best_suffixes(
    unary: Floats, pairwise3: Floats, stride: int, end: Floats, t0: int, t1: int,
    transposed: Floats, table: Floats,
) -> None:  # fmt: skip
    """``table[t - t0, i]``: best score of steps ``t .. t1 - 1`` given label ``i`` at ``t``."""
    last_suffix(unary, end, t1 - 1, table, t1 - 1 - t0)
    for t in range(t1 - 2, t0 - 1, -1):
        if stride == 1:
            transpose_pairwise(pairwise3[t + 1], transposed)
        suffix_step(unary, t, transposed, table, t - t0)


@njit(nogil=True, cache=True)
def viterbi_one(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    t0: int,
    t1: int,
    transposed: Floats,
    table: Floats,
    labels: NDArray[np.int64],
) -> float:
    """Best labeling of the rows ``t0:t1`` into ``labels[t0:t1]``; returns its score.

    ``transposed`` and ``table`` come from `viterbi_workspace`. For constant scores (``stride`` 0)
    ``transposed`` must hold ``pairwise3[0]``, put there by `transpose_pairwise`. The score is
    ``-inf`` if no labeling is legal (the labels then mean nothing), 0 for an empty sequence.
    """
    if t0 == t1:
        return 0.0
    n_labels = unary.shape[1]
    best_suffixes(unary, pairwise3, stride, end, t0, t1, transposed, table)
    label, best = best_label(start.reshape(1, n_labels), 0, table, 0, n_labels)
    labels[t0] = label
    arcs = pairwise3[0]
    for t in range(t0 + 1, t1):
        if stride == 1:
            arcs = pairwise3[t]
        label, _ = best_label(arcs, label, table, t - t0, n_labels)
        labels[t] = label
    return best


@njit(nogil=True, cache=True)
def viterbi_two(
    unary: Floats,
    pairwise: Floats,
    start: Floats,
    end: Floats,
    a0: int,
    a1: int,
    b1: int,
    transposed: Floats,
    table: Floats,
    labels: NDArray[np.int64],
) -> tuple[float, float]:
    """`viterbi_one` of the neighbours ``a0:a1`` and ``a1:b1``, none of them empty, step by step in turns.

    A step waits for the one before it; while it does, the processor is busy with the other chain. For
    constant scores.
    """
    n_labels, n_a, n_b = unary.shape[1], a1 - a0, b1 - a1
    last_suffix(unary, end, a1 - 1, table, n_a - 1)
    last_suffix(unary, end, b1 - 1, table, n_a + n_b - 1)
    for k in range(2, max(n_a, n_b) + 1):
        if k <= n_a:
            suffix_step(unary, a1 - k, transposed, table, n_a - k)
        if k <= n_b:
            suffix_step(unary, b1 - k, transposed, table, n_a + n_b - k)
    first = start.reshape(1, n_labels)
    label_a, best_a = best_label(first, 0, table, 0, n_labels)
    label_b, best_b = best_label(first, 0, table, n_a, n_labels)
    labels[a0], labels[a1] = label_a, label_b
    for k in range(1, max(n_a, n_b)):
        if k < n_a:
            label_a, _ = best_label(pairwise, label_a, table, k, n_labels)
            labels[a0 + k] = label_a
        if k < n_b:
            label_b, _ = best_label(pairwise, label_b, table, n_a + k, n_labels)
            labels[a1 + k] = label_b
    return best_a, best_b


@njit(nogil=True, cache=True)
def viterbi_block(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    labels: NDArray[np.int64],
    score: Floats,
    table: Floats,
) -> None:
    """Best labelings into ``labels`` (n_steps,), their scores into ``score`` (n_sequences,).

    ``table`` is a workspace of as many rows as two neighbours have steps, and padded width.
    """
    transposed = np.full((table.shape[1], table.shape[1]), -np.inf)
    if stride == 0:
        transpose_pairwise(pairwise3[0], transposed)
    i = first
    while i < last:
        a0, a1 = offsets[i], offsets[i + 1]
        if stride == 0 and i + 1 < last and a0 < a1 and a1 < offsets[i + 2]:
            score[i], score[i + 1] = viterbi_two(
                unary, pairwise3[0], start, end, a0, a1, offsets[i + 2], transposed, table, labels
            )
            i += 2
        else:
            score[i] = viterbi_one(
                unary, pairwise3, stride, start, end, a0, a1, transposed, table, labels
            )
            i += 1


@njit(nogil=True, cache=True)
def max_marginals_block(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    out: Floats,
) -> None:
    """``out[t, s]``: the best score of any labeling with label ``s`` at step ``t``."""
    n_labels = unary.shape[1]
    transposed, table = viterbi_workspace(n_labels, longest(offsets, first, last))
    arcs = np.full_like(transposed, -np.inf)
    before, after = np.full(arcs.shape[0], -np.inf), np.full(arcs.shape[0], -np.inf)
    if stride == 0:
        transpose_pairwise(pairwise3[0], transposed)
        copy_pairwise(pairwise3[0], arcs)
    for k in range(first, last):
        t0, t1 = offsets[k], offsets[k + 1]
        if t0 == t1:
            continue
        best_suffixes(unary, pairwise3, stride, end, t0, t1, transposed, table)
        for j in range(n_labels):
            before[j] = start[j]  # best prefix that leads to, but does not count, step t
        for t in range(t0, t1):
            if t > t0:
                if stride == 1:
                    copy_pairwise(pairwise3[t], arcs)
                max_plus(before, arcs, after)
                before, after = after, before
            for j in range(n_labels):
                out[t, j] = before[j] + table[t - t0, j]
                before[j] += unary[t, j]
