"""Error-count Viterbi: the best labeling of a chain with exactly ``k`` wrong labels, for every ``k``.

``table[s, k]`` is the best score of a prefix that ends with label ``s`` and has ``k`` labels that differ
from the gold ones. Cost O(T^2 L^2) for T steps and L labels; the back pointers take T (T + 1) L numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import ChainArrays, Floats


@njit(nogil=True, cache=True)
def error_count_workspace(n_labels: int, n_rows: int) -> tuple[Floats, NDArray[np.int32]]:
    """Workspaces ``(tables, back)`` of `fill_error_counts` for up to ``n_rows`` steps."""
    return np.empty((2, n_labels, n_rows + 1)), np.empty((n_rows, n_labels, n_rows + 1), np.int32)


@njit(nogil=True, cache=True)
def fill_error_counts(
    unary: Floats,
    pairwise3: Floats,
    stride: int,
    start: Floats,
    end: Floats,
    gold: NDArray[np.int64],
    t0: int,
    n_steps: int,
    tables: Floats,
    back: NDArray[np.int32],
    best: Floats,
) -> int:
    """Write the best score with ``k`` errors into ``best[k]`` for ``k = 0 .. n_steps``.

    ``-inf`` if no labeling has ``k`` errors. Returns which of the two tables holds the last step;
    `trace_errors` needs it. ``gold`` begins at the first step of the chain; ``unary`` and ``pairwise3`` at
    row ``t0``.
    """
    n_labels = unary.shape[1]
    now = 0
    for t in range(n_steps):
        before, now = now, 1 - now
        for s in range(n_labels):
            wrong = 1 if s != gold[t] else 0
            row, pointers = tables[now, s], back[t, s]
            for k in range(n_steps + 1):
                row[k] = -np.inf
            if t == 0:
                row[wrong] = start[s] + unary[t0, s]
                continue
            for i in range(n_labels):
                arc = pairwise3[(t0 + t) * stride, i, s] + unary[t0 + t, s]
                source = tables[before, i]
                for k in range(wrong, t + 1 + wrong):
                    value = source[k - wrong] + arc
                    if value > row[k]:
                        row[k] = value
                        pointers[k] = i
    for k in range(n_steps + 1):
        best[k] = -np.inf
        for s in range(n_labels):
            best[k] = max(best[k], tables[now, s, k] + end[s])
    return now


@njit(nogil=True, cache=True)
def trace_errors(
    k: int,
    now: int,
    end: Floats,
    gold: NDArray[np.int64],
    n_steps: int,
    tables: Floats,
    back: NDArray[np.int32],
    labels: NDArray[np.int64],
) -> None:
    """Write the best labeling with ``k`` errors, which must exist, into ``labels[:n_steps]``."""
    label = 0
    for s in range(tables.shape[1]):
        if tables[now, s, k] + end[s] > tables[now, label, k] + end[label]:
            label = s
    for t in range(n_steps - 1, -1, -1):
        labels[t] = label
        following = back[t, label, k]
        if label != gold[t]:
            k -= 1
        label = following


@njit(nogil=True, cache=True)
def error_count_block(
    chain: ChainArrays, codes: NDArray[np.int64], first: int, last: int, out: Floats
) -> None:
    """Write the best score with ``k`` errors of sequence ``i`` into ``out[offsets[i] + i + k]``."""
    unary, pairwise3, stride, start, end, offsets = chain
    n_rows = 0
    for i in range(first, last):
        n_rows = max(n_rows, offsets[i + 1] - offsets[i])
    tables, back = error_count_workspace(unary.shape[1], n_rows)
    for i in range(first, last):
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        best = out[t0 + i : t0 + i + n_steps + 1]
        if n_steps == 0:
            best[0] = 0.0
            continue
        fill_error_counts(
            unary, pairwise3, stride, start, end, codes[t0 : t0 + n_steps], t0, n_steps, tables, back,
            best,
        )  # fmt: skip
