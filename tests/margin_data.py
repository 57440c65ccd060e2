"""Small max-margin problems, and slow versions of what the compiled learners compute."""

from __future__ import annotations

import itertools

import numpy as np

from seqlab.data import Sequences
from seqlab.structures.chain import ChainStructure
from seqlab.structures.margins import MarginProblem


def make_chains(seed=0, n=6, longest=4, n_labels=3, n_features=4):
    """Random chains of 1 to ``longest`` steps whose features depend weakly on the labels."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        labels = random.integers(0, n_labels, size=1 + i % longest)
        features = random.normal(size=(labels.size, n_features))
        features[np.arange(labels.size), labels] += 1.0
        X.append(features)
        y.append(labels)
    return X, y


def make_problem(X, y, n_labels, *, C=0.7, rescale_slack=False, costs=None):
    """Bind a chain with all weights to the data; return it with the problem."""
    sequences, codes = Sequences.from_list(X), np.concatenate(y)
    structure = ChainStructure.from_data(
        sequences, codes, n_labels, all_states=True, all_transitions=True
    )
    if costs is None:
        costs = np.ones((codes.size, n_labels))
    costs = np.array(costs, dtype=float)
    costs[np.arange(codes.size), codes] = 0.0
    limits = C * np.ones(len(X))
    return structure.bind(sequences), MarginProblem(codes, costs, limits, rescale_slack)


def joint_features(x, labels, n_labels):
    """Features of one labeling, in the order of the weights: states, transitions, start, end."""
    state = np.zeros((x.shape[1], n_labels))
    arcs = np.zeros((n_labels, n_labels))
    start, end = np.zeros((2, n_labels))
    for t, label in enumerate(labels):
        state[:, label] += x[t]
        if t > 0:
            arcs[labels[t - 1], label] += 1.0
    start[labels[0]] += 1.0
    end[labels[-1]] += 1.0
    return np.concatenate([state.ravel(), arcs.ravel(), start, end])


def enumerate_planes(x, gold, n_labels, *, rescale_slack=False, costs=None):
    """Loss and ``scale * psi`` of every labeling of one chain."""
    losses, planes = [], []
    for labels in itertools.product(range(n_labels), repeat=len(gold)):
        if costs is None:
            loss = float(sum(a != b for a, b in zip(labels, gold, strict=True)))
        else:
            loss = float(sum(costs[t][s] for t, s in enumerate(labels) if s != gold[t]))
        psi = joint_features(x, gold, n_labels) - joint_features(x, labels, n_labels)
        losses.append(loss)
        planes.append(psi * (loss if rescale_slack else 1.0))
    return np.array(losses), np.array(planes)


def primal_objective(w, X, y, n_labels, C, **options):
    """The primal objective by enumeration of all labelings."""
    total = 0.5 * w @ w
    for x, gold in zip(X, y, strict=True):
        losses, planes = enumerate_planes(x, gold, n_labels, **options)
        total += C * max(0.0, (losses - planes @ w).max())
    return total
