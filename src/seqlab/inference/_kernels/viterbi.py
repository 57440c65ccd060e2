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
from seqlab.inference._kernels.max_plus import max_plus
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
    return np.full((width, width), -np.inf), np.full((n_rows, width), -np.inf)


@njit(nogil=True, cache=True)
def best_suffixes(
    unary: Floats, pairwise3: Floats, stride: int, end: Floats, t0: int, t1: int,
    transposed: Floats, table: Floats,
) -> None:  # fmt: skip
    """``table[t - t0, i]``: best score of steps ``t .. t1 - 1`` given label ``i`` at ``t``."""
    n_labels = unary.shape[1]
    for i in range(n_labels):
        table[t1 - 1 - t0, i] = unary[t1 - 1, i] + end[i]
    for t in range(t1 - 2, t0 - 1, -1):
        if stride == 1:
            transpose_pairwise(pairwise3[t + 1], transposed)
        row = table[t - t0]
        max_plus(table[t - t0 + 1], transposed, row)
        for i in range(n_labels):
            row[i] += unary[t, i]


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
    best, label = -np.inf, 0
    for i in range(n_labels):
        value = start[i] + table[0, i]
        if value > best:
            best, label = value, i
    labels[t0] = label
    for t in range(t0 + 1, t1):
        arcs, row = pairwise3[t * stride, label], table[t - t0]
        highest, label = -np.inf, 0
        for j in range(n_labels):
            value = arcs[j] + row[j]
            if value > highest:
                highest, label = value, j
        labels[t] = label
    return best


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
) -> None:
    """Best labelings into ``labels`` (n_steps,), their scores into ``score`` (n_sequences,)."""
    transposed, table = viterbi_workspace(unary.shape[1], longest(offsets, first, last))
    if stride == 0:
        transpose_pairwise(pairwise3[0], transposed)
    for i in range(first, last):
        score[i] = viterbi_one(
            unary,
            pairwise3,
            stride,
            start,
            end,
            offsets[i],
            offsets[i + 1],
            transposed,
            table,
            labels,
        )


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
