"""One step of a beam search over histories, for many sequences at once, and the choice of the labels.

A history of k labels is a number in base ``n_labels + 1`` whose last digit is the latest label (the digit
``n_labels`` means "before the beginning"). Two histories with the same last ``k - 1`` labels and the same
next label are merged: only the better one can be part of a best labeling.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]

# Up to this number of histories, insertion is faster than a general sort.
_FEW = 32


@njit(nogil=True, cache=True)
def extend_histories(
    local: Floats,
    live: Ints,
    first: Ints,
    base: int,
    tails: int,
    codes: Ints,
    score: Floats,
    parent: SmallInts,
    label: SmallInts,
) -> None:
    """Extend the histories of every sequence by one label and keep the best.

    Parameters
    ----------
    local : float64 array (n_entries, n_labels)
        Log-probability of each next label after each kept history, sequence by sequence.
    live : int64 array (n_active,), in and out
        Number of histories kept in each sequence.
    first : int64 array (n_active,)
        First row of each sequence in ``local``.
    base, tails : int
        ``n_labels + 1`` and ``base ** (k - 1)``.
    codes, score : arrays (>= n_active, width), in and out
        Histories and their scores.
    parent, label : int32 arrays (n_active, width), out
        The entry that each kept history extends, and the label that it adds.
    """
    n_active, width = live.size, codes.shape[1]
    n_labels = local.shape[1]
    new_code = np.empty(width * n_labels, np.int64)
    new_score = np.empty(width * n_labels)
    new_parent = np.empty(width * n_labels, np.int32)
    tail = np.empty(width, np.int64)
    order = np.empty(width, np.int64)
    kept = np.empty(width, np.int64)
    for s in range(n_active):
        m = live[s]
        for e in range(m):
            tail[e] = codes[s, e] % tails
        if m <= _FEW:
            for e in range(m):
                at = e
                while at > 0 and tail[order[at - 1]] > tail[e]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = e
        else:
            order[:m] = np.argsort(tail[:m], kind="mergesort")
        # Entries with the same tail are now neighbours: find the best of them for every next label.
        n_new = 0
        begin = 0
        while begin < m:
            stop = begin + 1
            while stop < m and tail[order[stop]] == tail[order[begin]]:
                stop += 1
            for y in range(n_labels):
                best = -np.inf
                where = -1
                for k in range(begin, stop):
                    value = score[s, order[k]] + local[first[s] + order[k], y]
                    if value > best:
                        best = value
                        where = order[k]
                if where >= 0:
                    new_code[n_new] = tail[order[begin]] * base + y
                    new_score[n_new] = best
                    new_parent[n_new] = where
                    n_new += 1
            begin = stop
        # Keep the best `width` of them by insertion; ties go to the lower history.
        n_kept = 0
        if n_new <= width:
            for c in range(n_new):
                kept[c] = c
            n_kept = n_new
        else:
            for c in range(n_new):
                if n_kept == width and new_score[c] <= new_score[kept[width - 1]]:
                    continue
                at = min(n_kept, width - 1)
                while at > 0 and new_score[kept[at - 1]] < new_score[c]:
                    kept[at] = kept[at - 1]
                    at -= 1
                kept[at] = c
                n_kept = min(n_kept + 1, width)
        for e in range(n_kept):
            codes[s, e] = new_code[kept[e]]
            score[s, e] = new_score[kept[e]]
            parent[s, e] = new_parent[kept[e]]
            label[s, e] = new_code[kept[e]] % base
        live[s] = n_kept


@njit(nogil=True, cache=True)
def backtrack_histories(
    live: Ints,
    score: Floats,
    starts: Ints,
    lengths: Ints,
    parent: SmallInts,
    label: SmallInts,
    sequence_begin: Ints,
    labels: Ints,
    best: Floats,
) -> None:
    """Follow the best final history of every sequence back to its beginning.

    Parameters
    ----------
    live, score : number of histories kept in each sequence, and their scores
    starts : int64 array (longest + 1,)
        First row of each position in ``parent`` and ``label``.
    lengths : int64 array (n_sequences,)
        Number of steps of each sequence.
    parent, label : int32 arrays (n_rows, width)
    sequence_begin : int64 array (n_sequences,)
        First step of each sequence in ``labels``.
    labels : int64 array, out
    best : float64 array (n_sequences,), out
        Best score; ``-inf`` if no history is left.
    """
    for s in range(live.size):
        best[s] = -np.inf
        entry = -1
        for e in range(live[s]):
            if score[s, e] > best[s]:
                best[s] = score[s, e]
                entry = e
        if entry < 0:
            continue
        for t in range(lengths[s] - 1, -1, -1):
            row = starts[t] + s
            labels[sequence_begin[s] + t] = label[row, entry]
            entry = parent[row, entry]
