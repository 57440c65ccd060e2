"""Readable version of phrase inference: enumerate every set of disjoint phrases and add up its cost."""

from __future__ import annotations

import numpy as np


def phrase_sets(n_steps, n_types, begin=0):
    """Every set of disjoint typed phrases, each a tuple of (start, stop, type)."""
    yield ()
    for start in range(begin, n_steps):
        for stop in range(start + 1, n_steps + 1):
            for type_ in range(n_types):
                for rest in phrase_sets(n_steps, n_types, stop):
                    yield ((start, stop, type_), *rest)


def set_cost(kind, opened, closed, phrases, threshold, n_types, inside_weight=1.0):
    """The cost of a set, decision by decision, from the definition."""
    n_steps = len(opened)
    if kind != "map":
        total = 0.0
        for start, stop, k in phrases:
            p = opened[start][k] * closed[stop - 1][k]
            total += threshold[k] + (-p if kind == "product" else -np.log(p / (1 - p)))
        return total
    inside, outside = n_types, n_types + 1
    decisions = [[outside, outside] for _ in range(n_steps)]
    for start, stop, k in phrases:
        decisions[start:stop] = [[inside, inside] for _ in range(start, stop)]
        decisions[start][0] = k
        decisions[stop - 1][1] = k
    total = sum(threshold[k] for _, _, k in phrases)
    for t, (a, b) in enumerate(decisions):
        total -= (1.0 if a < n_types else inside_weight) * np.log(opened[t][a])
        total -= (1.0 if b < n_types else inside_weight) * np.log(closed[t][b])
    return total


def found(result):
    return tuple(zip(*(part.tolist() for part in result.phrases), strict=True))


def random_posteriors(rng, n_steps, n_types):
    return (rng.dirichlet(np.full(n_types + 2, 0.7), size=n_steps) for _ in range(2))
