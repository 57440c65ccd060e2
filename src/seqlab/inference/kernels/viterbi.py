"""Best labelings of blocks of chains: Viterbi and max-marginals.

The recursion runs from the end, over the best *suffixes* (``end`` is added at the last step)::

    best[t, i] = unary[t, i] + max_j pairwise[t+1][i, j] + best[t+1, j]

Then the labels are chosen from the first step to the last, the lowest index in case of ties. So of several
best labelings the first in lexicographic order is found, as in the k-best list. Only the table of values is
kept, without back pointers: the argmax is computed again along the one path that is chosen.

The arguments are those of `seqlab.inference.kernels.forward_backward`. No score may be NaN or ``+inf``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import longest, padded_width
from seqlab.inference.scores import ChainArrays, Floats
from seqlab.simd.max_plus import COLUMNS, argmax_of_sum, max_plus_step, max_plus_step_two


@njit(nogil=True, cache=True)
def transpose_pairwise(pairwise: Floats, out: Floats) -> None:
    """``out[j, i] = pairwise[i, j]``; the padding of ``out`` is not changed."""
    for i in range(pairwise.shape[0]):
        for j in range(pairwise.shape[1]):
            out[j, i] = pairwise[i, j]


@njit(nogil=True, cache=True)
def copy_pairwise(pairwise: Floats, out: Floats) -> None:
    """``out[i, j] = pairwise[i, j]``; the padding of ``out`` is not changed."""
    for i in range(pairwise.shape[0]):
        for j in range(pairwise.shape[1]):
            out[i, j] = pairwise[i, j]


@njit(nogil=True, cache=True)
def viterbi_workspace(n_labels: int, n_rows: int) -> tuple[Floats, Floats]:
    """Workspaces ``(transposed, table)`` of `viterbi_one` for up to ``n_rows`` steps."""
    width = padded_width(n_labels)
    return np.empty((width, width)), np.empty((n_rows, width))


# The functions below take tables and row numbers instead of rows: creating a view of a row costs as much as
# a step. numba would compile a function again for a literal 0 or 1, hence these names.
_ZERO: Any = np.int64(0)
_ONE: Any = np.int64(1)


@njit(nogil=True, cache=True, inline="always")
def start_suffixes(unary: Floats, end: Floats, t: int, table: Floats, row: int) -> None:
    """Suffixes of the last step only: ``table[row, i] = unary[t, i] + end[i]``."""
    for i in range(unary.shape[1]):
        table[row, i] = unary[t, i] + end[i]


@njit(nogil=True, cache=True, inline="always")
def max_plus_rows(
    vectors: Floats,
    source: int,
    matrix: Floats,
    out: Floats,
    target: int,
    extras: Floats,
    extra: int,
) -> None:
    """``out[target, j] = extras[extra, j] + max_i vectors[source, i] + matrix[i, j]``."""
    n = extras.shape[1]
    if n >= COLUMNS:
        max_plus_step(
            vectors, source * vectors.shape[1], matrix, out, target * out.shape[1],
            extras, extra * n, matrix.shape[1], n,
        )  # fmt: skip
        return
    for j in range(n):
        highest = -np.inf
        for i in range(n):
            value = vectors[source, i] + matrix[i, j]
            highest = value if value > highest else highest
        out[target, j] = highest + extras[extra, j]


@njit(nogil=True, cache=True, inline="always")
def choose_label(arcs: Floats, before: int, table: Floats, row: int) -> int:
    """``argmax_j arcs[before, j] + table[row, j]``, the lowest j in case of ties (of at least one label)."""
    n_labels = arcs.shape[1]
    if n_labels >= COLUMNS:
        return argmax_of_sum(arcs, before * n_labels, table, row * table.shape[1], n_labels)
    label, highest = 0, arcs[before, 0] + table[row, 0]
    for j in range(1, n_labels):
        value = arcs[before, j] + table[row, j]
        label = j if value > highest else label  # without a branch, which could not be predicted
        highest = value if value > highest else highest
    return label


@njit(nogil=True, cache=True)
def extend_suffixes(
    unary: Floats, t0: int, t1: int, transposed: Floats, table: Floats, first_row: int
) -> None:
    """Extend the best suffixes of step ``t1`` to the steps ``t0:t1``, the first one in ``first_row``."""
    for t in range(t1 - 1, t0 - 1, -1):
        row = first_row + t - t0
        max_plus_rows(table, row + 1, transposed, table, row, unary, t)


@njit(nogil=True, cache=True)
def backtrack(
    pairwise: Floats,
    label: int,
    table: Floats,
    row: int,
    labels: NDArray[np.int64],
    t0: int,
    t1: int,
) -> None:
    """Choose ``labels[t0:t1]`` after ``label``; the best suffixes of step ``t0`` are in ``row``."""
    for t in range(t0, t1):
        label = choose_label(pairwise, label, table, row + t - t0)
        labels[t] = label


@njit(nogil=True, cache=True, inline="always")
def fill_suffixes(
    unary: Floats, pairwise3: Floats, stride: int, end: Floats, t0: int, t1: int,
    transposed: Floats, table: Floats,
) -> None:  # fmt: skip
    """``table[t - t0, i]``: best score of the steps ``t .. t1 - 1`` with label ``i`` at ``t``."""
    start_suffixes(unary, end, t1 - 1, table, t1 - 1 - t0)
    if stride == 0:
        extend_suffixes(unary, t0, t1 - 1, transposed, table, _ZERO)
        return
    for t in range(t1 - 2, t0 - 1, -1):
        transpose_pairwise(pairwise3[t + 1], transposed)
        extend_suffixes(unary, t, t + 1, transposed, table, t - t0)


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
    """Write the best labeling of the rows ``t0:t1`` into ``labels[t0:t1]``; returns its score.

    ``transposed`` and ``table`` come from `viterbi_workspace`. For constant scores (``stride`` 0)
    ``transposed`` must hold ``pairwise3[0]``, written by `transpose_pairwise`. The score is ``-inf`` if no
    labeling is legal (the labels then have no meaning), 0 for an empty sequence.
    """
    n_labels = unary.shape[1]
    if t0 == t1:
        return 0.0
    if n_labels == 0:
        return -np.inf
    fill_suffixes(unary, pairwise3, stride, end, t0, t1, transposed, table)
    backtrack(start.reshape(1, n_labels), _ZERO, table, _ZERO, labels, t0, t0 + 1)
    label = labels[t0]
    best = start[label] + table[0, label]
    if stride == 0:
        backtrack(pairwise3[0], label, table, _ONE, labels, t0 + 1, t1)
        return best
    for t in range(t0 + 1, t1):
        backtrack(pairwise3[t], labels[t - 1], table, t - t0, labels, t, t + 1)
    return best


# Two neighbouring sequences take their steps in turns: while a step of one waits for the step before it,
# the processor works on the other. Both passes are functions of their own, which LLVM optimises better.


@njit(nogil=True, cache=True)
def fill_suffixes_two(
    unary: Floats, end: Floats, a0: int, a1: int, b1: int, transposed: Floats, table: Floats
) -> None:
    """`fill_suffixes` of the rows ``a0:a1`` and ``a1:b1``, one below the other in ``table``.

    Only for constant scores and at least `COLUMNS` labels.
    """
    n_labels, n_a, n_b, width = unary.shape[1], a1 - a0, b1 - a1, table.shape[1]
    start_suffixes(unary, end, a1 - 1, table, n_a - 1)
    start_suffixes(unary, end, b1 - 1, table, n_a + n_b - 1)
    n_both = min(n_a, n_b)
    for k in range(2, n_both + 1):
        max_plus_step_two(
            table, (n_a - k) * width, (n_a + n_b - k) * width, transposed,
            unary, (a1 - k) * n_labels, (b1 - k) * n_labels, width, n_labels,
        )  # fmt: skip
    if n_a > n_b:
        extend_suffixes(unary, a0, a1 - n_both, transposed, table, _ZERO)
    else:
        extend_suffixes(unary, a1, b1 - n_both, transposed, table, n_a)


@njit(nogil=True, cache=True)
def backtrack_two(
    pairwise: Floats,
    start: Floats,
    a0: int,
    a1: int,
    b1: int,
    table: Floats,
    labels: NDArray[np.int64],
) -> tuple[float, float]:
    """`backtrack` on the table of `fill_suffixes_two`; returns the scores of both labelings."""
    n_labels, n_a, n_b = pairwise.shape[1], a1 - a0, b1 - a1
    first = start.reshape(1, n_labels)
    backtrack(first, _ZERO, table, _ZERO, labels, a0, a0 + 1)
    backtrack(first, _ZERO, table, n_a, labels, a1, a1 + 1)
    label_a, label_b = labels[a0], labels[a1]
    best_a, best_b = start[label_a] + table[0, label_a], start[label_b] + table[n_a, label_b]
    n_both = min(n_a, n_b)
    for k in range(1, n_both):
        label_a = choose_label(pairwise, label_a, table, k)
        label_b = choose_label(pairwise, label_b, table, n_a + k)
        labels[a0 + k], labels[a1 + k] = label_a, label_b
    if n_a > n_b:
        backtrack(pairwise, label_a, table, n_both, labels, a0 + n_both, a1)
    else:
        backtrack(pairwise, label_b, table, n_a + n_both, labels, a1 + n_both, b1)
    return best_a, best_b


@njit(nogil=True, cache=True)
def viterbi_block(
    chain: ChainArrays,
    first: int,
    last: int,
    labels: NDArray[np.int64],
    score: Floats,
    table: Floats,
) -> None:
    """Write the best labelings into ``labels`` (n_steps,) and their scores into ``score`` (n_sequences,).

    ``table`` is a workspace of padded width, with as many rows as two neighbouring sequences have steps.
    """
    unary, pairwise3, stride, start, end, offsets = chain
    transposed = np.empty((table.shape[1], table.shape[1]))
    if stride == 0:
        transpose_pairwise(pairwise3[0], transposed)
    together = stride == 0 and unary.shape[1] >= COLUMNS
    i = first
    while i < last:
        a0, a1 = offsets[i], offsets[i + 1]
        if together and i + 1 < last and a0 < a1 and a1 < offsets[i + 2]:
            b1 = offsets[i + 2]
            fill_suffixes_two(unary, end, a0, a1, b1, transposed, table)
            score[i], score[i + 1] = backtrack_two(pairwise3[0], start, a0, a1, b1, table, labels)
            i += 2
        else:
            score[i] = viterbi_one(
                unary, pairwise3, stride, start, end, a0, a1, transposed, table, labels
            )
            i += 1


@njit(nogil=True, cache=True)
def max_marginals_block(chain: ChainArrays, first: int, last: int, out: Floats) -> None:
    """``out[t, s]``: the best score of any labeling with label ``s`` at step ``t``."""
    unary, pairwise3, stride, start, end, offsets = chain
    n_labels = unary.shape[1]
    transposed, table = viterbi_workspace(n_labels, longest(offsets, first, last))
    arcs = np.empty_like(transposed)
    # Row 0: best prefixes up to a step, without its own unary score; row 1: with it.
    prefixes = np.empty((2, n_labels))
    zeros = np.zeros((1, n_labels))
    if stride == 0:
        transpose_pairwise(pairwise3[0], transposed)
        copy_pairwise(pairwise3[0], arcs)
    for k in range(first, last):
        t0, t1 = offsets[k], offsets[k + 1]
        if t0 == t1:
            continue
        fill_suffixes(unary, pairwise3, stride, end, t0, t1, transposed, table)
        for j in range(n_labels):
            prefixes[0, j] = start[j]
        for t in range(t0, t1):
            if t > t0:
                if stride == 1:
                    copy_pairwise(pairwise3[t], arcs)
                extend_suffixes(zeros, _ZERO, _ONE, arcs, prefixes, _ZERO)
            for j in range(n_labels):
                out[t, j] = prefixes[0, j] + table[t - t0, j]
                prefixes[1, j] = prefixes[0, j] + unary[t, j]
