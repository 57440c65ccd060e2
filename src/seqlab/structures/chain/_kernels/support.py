"""Sparse marginals of chains: the edges that have positive mass, as linked lists.

Every step has a list of edges ``(previous label, label)`` with a mass; the masses of a step sum to the limit
of its chain. The edges of a first step have only a label, stored as the pair ``(0, label)``. Most edges of a
max-margin solution have mass 0, so the lists are short, and a search over the edges with mass is much
faster than Viterbi over all labels.

``lists`` is the tuple (head, next, pair, mass, free): ``head[t]`` is the first edge of step ``t``, ``next``
the following one (-1 at the end), and ``free[0]`` the first unused slot, ``free[1]`` their number.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def start_at_gold(offsets, codes, limits, n_labels, lists):
    """Put all mass on the gold labelings; link the other slots to a list of unused ones."""
    head, following, pair, mass, free = lists
    n_steps = codes.size
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            before = codes[t - 1] if t > offsets[i] else 0
            head[t], following[t] = t, -1
            pair[t], mass[t] = before * n_labels + codes[t], limits[i]
    link_free(following, n_steps, free)


@njit(nogil=True, cache=True)
def link_free(following, first, free):
    """Add the slots from ``first`` on to the list of unused slots."""
    for k in range(following.size - 1, first - 1, -1):
        following[k] = free[0]
        free[0] = k
        free[1] += 1


@njit(nogil=True, cache=True)
def find_edge(t, wanted, lists):
    """Return the slot of an edge of step ``t``; -1 if it has no mass."""
    head, following, pair, _, _ = lists
    k = head[t]
    while k >= 0 and pair[k] != wanted:
        k = following[k]
    return k


@njit(nogil=True, cache=True)
def add_mass(t, wanted, amount, lists):
    """Add mass to an edge of step ``t``."""
    head, following, pair, mass, free = lists
    k = find_edge(t, wanted, lists)
    if k >= 0:
        mass[k] += amount
        return
    k = free[0]
    free[0], free[1] = following[k], free[1] - 1
    following[k], head[t] = head[t], k
    pair[k], mass[k] = wanted, amount


@njit(nogil=True, cache=True)
def remove_mass(t, wanted, amount, smallest, lists):
    """Remove mass from an edge of step ``t``; the edge too, if less than ``smallest`` is left."""
    head, following, pair, mass, free = lists
    before, k = -1, head[t]
    while pair[k] != wanted:
        before, k = k, following[k]
    mass[k] -= amount
    if mass[k] < smallest:
        if before < 0:
            head[t] = following[k]
        else:
            following[before] = following[k]
        following[k], free[0], free[1] = free[0], k, free[1] + 1


@njit(nogil=True, cache=True)
def lowest_labeling(
    t0, n_steps, n_labels, unary, pairwise3, stride, start, end, lists, table, back, labels
):
    """Write the labeling of lowest score whose edges all have mass into ``labels``; return its score.

    Returns ``inf`` if no such labeling exists, which only rounding can cause.
    """
    head, following, pair, _, _ = lists
    for t in range(n_steps):
        for s in range(n_labels):
            table[t, s] = np.inf
        k = head[t0 + t]
        while k >= 0:
            i, j = pair[k] // n_labels, pair[k] % n_labels
            if t == 0:
                value = start[j] + unary[0, j]
            else:
                value = table[t - 1, i] + pairwise3[t * stride, i, j] + unary[t, j]
            if t == n_steps - 1:
                value += end[j]
            if value < table[t, j]:
                table[t, j], back[t, j] = value, i
            k = following[k]
    last = n_steps - 1
    label = 0
    for s in range(n_labels):
        if table[last, s] < table[last, label]:
            label = s
    lowest = table[last, label]
    if lowest < np.inf:
        for t in range(last, -1, -1):
            labels[t] = label
            label = back[t, label]
    return lowest


@njit(nogil=True, cache=True)
def expected_score(t0, n_steps, n_labels, unary, pairwise3, stride, start, end, lists):
    """Return the sum of mass times score over the edges of a chain."""
    head, following, pair, mass, _ = lists
    total = 0.0
    for t in range(n_steps):
        k = head[t0 + t]
        while k >= 0:
            i, j = pair[k] // n_labels, pair[k] % n_labels
            value = unary[t, j]
            value += start[j] if t == 0 else pairwise3[t * stride, i, j]
            if t == n_steps - 1:
                value += end[j]
            total += mass[k] * value
            k = following[k]
    return total


@njit(nogil=True, cache=True)
def smallest_mass(t0, n_steps, n_labels, labels, other, lists):
    """Return the smallest mass of an edge of ``labels`` that ``other`` does not have."""
    mass = lists[3]
    smallest = np.inf
    for t in range(n_steps):
        before = labels[t - 1] if t > 0 else 0
        differs = labels[t] != other[t] or (t > 0 and before != other[t - 1])
        if differs:
            k = find_edge(t0 + t, before * n_labels + labels[t], lists)
            smallest = min(smallest, mass[k])
    return smallest


@njit(nogil=True, cache=True)
def move_mass(t0, n_steps, n_labels, to, source, amount, smallest, lists):
    """Move mass from the labeling ``source`` to the labeling ``to``."""
    for t in range(n_steps):
        i, j = (source[t - 1], to[t - 1]) if t > 0 else (np.int64(0), np.int64(0))
        if source[t] != to[t] or i != j:
            add_mass(t0 + t, j * n_labels + to[t], amount, lists)
            remove_mass(t0 + t, i * n_labels + source[t], amount, smallest, lists)
