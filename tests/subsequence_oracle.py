"""Slow versions of the subsequence kernel: sums over all pairs of index sequences."""

from __future__ import annotations

from itertools import combinations, product


def count_matches(a, b, conjunctions=False):
    """Number of common features, or of common non-empty sets of features."""
    common = len(a & b)
    return 2**common - 1 if conjunctions else common


def kernel_by_length(s, t, max_length, decay, *, pivots=None, mark=False, conjunctions=False):
    """``K_1, ..., K_max_length`` of two lists of sets; ``pivots`` are obligatory (or marked) positions."""
    if mark:
        s = [x | {"PIVOT"} if i == pivots[0] else x for i, x in enumerate(s)]
        t = [x | {"PIVOT"} if i == pivots[1] else x for i, x in enumerate(t)]
    values = [0.0] * max_length
    for n in range(1, max_length + 1):
        for i, j in product(combinations(range(len(s)), n), combinations(range(len(t)), n)):
            if pivots is not None and not mark:
                places = [k for k in range(n) if i[k] == pivots[0] and j[k] == pivots[1]]
                if not places:
                    continue
            term = decay ** (i[-1] - i[0] + j[-1] - j[0] + 2)
            for a, b in zip(i, j, strict=True):
                term *= count_matches(s[a], t[b], conjunctions)
            values[n - 1] += term
    return values
