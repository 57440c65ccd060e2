"""Random Markov chains, with or without zeros."""

from __future__ import annotations

import numpy as np


def random_chain(random, n_labels, zeros=True):
    start = random.dirichlet(np.ones(n_labels))
    transitions = random.dirichlet(np.ones(n_labels), n_labels)
    if zeros:
        transitions[random.random((n_labels, n_labels)) < 0.3] = 0.0
        transitions[np.arange(n_labels), random.integers(0, n_labels, n_labels)] += 0.3
        start[random.random(n_labels) < 0.3] = 0.0
        start[random.integers(0, n_labels)] += 0.3
    return start / start.sum(), transitions / transitions.sum(axis=1, keepdims=True)
