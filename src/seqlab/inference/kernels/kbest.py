"""The k best labelings of each chain: a sorted list of best suffixes in every cell.

Cell ``(t, i)`` holds the scores of the ``k`` best labelings of the steps ``t .. T-1`` that begin with
label ``i``, best first, each with the label and the rank of its continuation at ``t + 1``. The lists
of the next step are sorted, so the ``k`` best continuations are merged from their heads. Because suffixes
are extended to the left, "lower next label first, then lower rank" is the lexicographic order that breaks
ties. Cost per sequence: O(T L^2 k) time, O(T L k) memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import ChainArrays, Floats


@njit(nogil=True, cache=True)
def bounded_power(base: int, exponent: int, bound: int) -> int:
    """``min(base ** exponent, bound)`` without overflow."""
    power = 1
    for _ in range(exponent):
        power *= base
        if power >= bound or power <= 1:
            return min(power, bound)
    return min(power, bound)


@njit(nogil=True, cache=True)
def merge_heads(
    arcs: Floats,
    values: Floats,
    counts: NDArray[np.int64],
    heads: NDArray[np.int64],
    out_values: Floats,
    out_labels: NDArray[np.int64],
    out_ranks: NDArray[np.int64],
) -> int:
    """Best sums ``arcs[j] + values[j, rank]`` in decreasing order; returns their number.

    Ties go to the lower ``j``, then to the lower rank. ``heads`` is workspace of shape (n_labels,).
    """
    n_labels = arcs.shape[0]
    for j in range(n_labels):
        heads[j] = 0 if arcs[j] > -np.inf else counts[j]
    for r in range(out_values.shape[0]):
        best, label = -np.inf, -1
        for j in range(n_labels):
            if heads[j] < counts[j]:
                value = arcs[j] + values[j, heads[j]]
                if value > best:
                    best, label = value, j
        if label < 0:
            return r
        out_values[r], out_labels[r], out_ranks[r] = best, label, heads[label]
        heads[label] += 1
    return out_values.shape[0]


@njit(nogil=True, cache=True)
def kbest_one(chain: ChainArrays, i: int, labels: NDArray[np.int64], score: Floats) -> int:
    """Write the best labelings of sequence ``i`` into its columns of ``labels`` (k, n_steps).

    Their scores are written into ``score`` (k,). Returns their number.
    """
    unary, pairwise3, stride, start, end, offsets = chain
    t0, t1 = offsets[i], offsets[i + 1]
    n_labels, n_steps = unary.shape[1], t1 - t0
    if n_steps == 0:
        score[0] = 0.0
        return 1
    k = bounded_power(n_labels, n_steps, score.shape[0])
    values = np.empty((2, n_labels, k))  # only the scores of the next step are needed
    counts = np.zeros((2, n_labels), dtype=np.int64)
    next_label = np.empty((n_steps, n_labels, k), dtype=np.int64)
    next_rank = np.empty((n_steps, n_labels, k), dtype=np.int64)
    heads = np.empty(n_labels, dtype=np.int64)
    for i in range(n_labels):
        value = unary[t1 - 1, i] + end[i]
        values[(n_steps - 1) % 2, i, 0] = value
        counts[(n_steps - 1) % 2, i] = 1 if value > -np.inf else 0
    for t in range(n_steps - 2, -1, -1):
        here, after = t % 2, (t + 1) % 2
        pairwise = pairwise3[(t0 + t + 1) * stride]
        for i in range(n_labels):
            counts[here, i] = 0
            if unary[t0 + t, i] == -np.inf:
                continue
            found = merge_heads(
                pairwise[i], values[after], counts[after], heads,
                values[here, i], next_label[t, i], next_rank[t, i],
            )  # fmt: skip
            counts[here, i] = found
            for r in range(found):
                values[here, i, r] += unary[t0 + t, i]
    first_label = np.empty(k, dtype=np.int64)
    first_rank = np.empty(k, dtype=np.int64)
    found = merge_heads(start, values[0], counts[0], heads, score[:k], first_label, first_rank)
    for r in range(found):
        label, rank = first_label[r], first_rank[r]
        labels[r, t0] = label
        for t in range(n_steps - 1):
            label, rank = next_label[t, label, rank], next_rank[t, label, rank]
            labels[r, t0 + t + 1] = label
    return found


@njit(nogil=True, cache=True)
def kbest_block(
    chain: ChainArrays,
    first: int,
    last: int,
    labels: NDArray[np.int64],
    score: Floats,
    found: NDArray[np.int64],
) -> None:
    """`kbest_one` on the sequences ``first <= i < last``.

    ``labels`` is (k, n_steps), ``score`` (n_sequences, k), ``found`` (n_sequences,).
    """
    for i in range(first, last):
        found[i] = kbest_one(chain, i, labels, score[i])
