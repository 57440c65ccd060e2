"""Directions through the blocks of several labels, against sums over all labelings; and what they are for."""

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

import seqlab.structures.chain.block_directions as block_directions
from seqlab import LinearChainCRF
from seqlab.structures.chain.block_directions import BlockDirections, constant_sum

N_LABELS = 3


def chain(*, boundary=True, is_sparse=False, is_complete=False):
    """A chain bound to random data with a constant column, and random weights.

    Unless ``is_complete``, some transitions do not occur, and some features not with all labels.
    """
    random = np.random.default_rng(0)
    X, y = [], []
    for length in random.integers(1, 5, 25):
        labels = [int(random.integers(N_LABELS))]
        while len(labels) < length:
            choices = [0, 1, 2] if is_complete or labels[-1] != 1 else [1, 2]
            labels.append(int(random.choice(choices)))
        x = random.uniform(0.5, 1.5, size=(length, 4))
        x[:, 0] = 2.0
        if not is_complete:
            x[np.equal(labels, 2), 1] = 0.0
            x[np.not_equal(labels, 1), 2] = 0.0
        X.append(sp.csr_matrix(x) if is_sparse else x)
        y.append(np.array(labels))
    model = LinearChainCRF(boundary=boundary)
    data = model._read_training(X, y, None, None)
    bound = model._bind(data)
    assert bound.structure.has_transition.all() == is_complete
    return bound, 0.5 * random.normal(size=bound.n_params)


def changes_at_steps(bound, i, labels):
    """What each direction adds to the score of a labeling of sequence ``i``, step by step.

    Shape (n_steps, n_directions): two directions per label, then one per feature that lacks some labels.
    """
    structure, X = bound.structure, bound.X
    matrix = X.matrix.toarray() if X.is_sparse else X.matrix
    matrix = matrix[X.offsets[i] : X.offsets[i + 1]]
    starts, of_weights = structure.state.explicit()
    sets = [of_weights[a:b].tolist() for a, b in pairwise(starts)]
    shifted = [f for f, seen in enumerate(sets) if 1 < len(seen) < N_LABELS]
    factors, has = constant_sum(X.matrix), structure.has_transition
    out = np.zeros((len(labels), 2 * N_LABELS + len(shifted)))
    for t, label in enumerate(labels):
        sums = sum(matrix[t, f] * factors[f] for f in range(4) if label in sets[f])
        is_last = t == len(labels) - 1
        before = structure.boundary if t == 0 else has[labels[t - 1], label]
        after = structure.boundary if is_last else has[label, labels[t + 1]]
        out[t, label], out[t, N_LABELS + label] = sums - before, sums - after
        for k, feature in enumerate(shifted):
            out[t, 2 * N_LABELS + k] = matrix[t, feature] * (label in sets[feature])
    return out


def labelings(bound, i):
    return list(product(range(N_LABELS), repeat=int(bound.X.lengths[i])))


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("is_complete", [False, True])
def test_directions_change_scores_as_said(boundary, is_complete):
    bound, _ = chain(boundary=boundary, is_complete=is_complete)
    directions = BlockDirections(bound.structure, bound.X).directions
    assert directions.shape[0] == 2 * N_LABELS + (0 if is_complete else 1)
    for i in range(5):
        for labels in labelings(bound, i):
            features = bound.joint_features(np.array(labels), np.array([i])).toarray()[0]
            expected = changes_at_steps(bound, i, labels).sum(axis=0)
            np.testing.assert_allclose(directions @ features, expected, atol=1e-12)


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_hessian_is_the_covariance_at_each_step(boundary, is_complete, is_sparse, is_weighted):
    bound, w = chain(boundary=boundary, is_sparse=is_sparse, is_complete=is_complete)
    weights = np.random.default_rng(1).uniform(0.0, 3.0, 25) if is_weighted else None
    found = BlockDirections(bound.structure, bound.X).hessian(w, weights)
    expected = np.zeros_like(found)
    for i in range(len(bound.X)):
        every = labelings(bound, i)
        features = [bound.joint_features(np.array(y), np.array([i])).toarray()[0] for y in every]
        scores = np.array(features) @ w
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        changes = np.array([changes_at_steps(bound, i, y) for y in every])
        for t in range(changes.shape[1]):
            mean = probabilities @ changes[:, t]
            second = (changes[:, t].T * probabilities) @ changes[:, t]
            weight = 1.0 if weights is None else weights[i]
            expected += weight * (second - np.outer(mean, mean))
    n, pair = expected.shape[0], 2 * N_LABELS
    is_modelled = np.eye(n, dtype=bool)  # labels and features count as independent
    is_modelled[:pair, :pair] |= np.tile(np.eye(N_LABELS, dtype=bool), (2, 2))
    np.testing.assert_allclose(found, np.where(is_modelled, expected, 0.0), rtol=1e-9, atol=1e-9)


def test_a_sample_of_sequences_estimates_the_hessian(monkeypatch):
    random = np.random.default_rng(0)
    X = [random.normal(size=(5, 4)) for _ in range(2000)]
    y = [random.integers(N_LABELS, size=5) for _ in X]
    model = LinearChainCRF()
    bound = model._bind(model._read_training(X, y, None, None))
    w = random.normal(size=bound.n_params)
    directions = BlockDirections(bound.structure, bound.X)
    sample = directions.hessian(w, None)
    monkeypatch.setattr(block_directions, "MAX_SAMPLE", 100_000)
    monkeypatch.setattr(block_directions, "SHARE", 1.0)
    every = directions.hessian(w, None)
    assert not np.array_equal(sample, every)
    np.testing.assert_allclose(np.diag(sample), np.diag(every), rtol=0.15)


def test_many_directions_are_left_out_because_their_hessian_is_dense(monkeypatch):
    bound, w = chain()
    monkeypatch.setattr(block_directions, "MAX_DIRECTIONS", 2 * N_LABELS - 1)
    found = BlockDirections(bound.structure, bound.X)
    assert found.directions.shape[0] == 1
    assert found.hessian(w, None).shape == (1, 1)
    monkeypatch.setattr(block_directions, "MAX_DIRECTIONS", 0)
    found = BlockDirections(bound.structure, bound.X)
    assert found.directions.shape[0] == found.hessian(w, None).size == 0


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_constant_is_found_whatever_the_scale_of_the_columns(is_sparse):
    random = np.random.default_rng(0)
    group = np.eye(3)[random.integers(3, size=500)]  # adds up to 1
    noise = random.normal(size=(500, 2))
    scales = np.array([1.0, 1e-6, 1e6, 1e3, 1.0])
    matrix = np.hstack([group, noise]) * scales
    found = constant_sum(sp.csr_matrix(matrix) if is_sparse else matrix)
    np.testing.assert_allclose(found * scales, [1.0, 1.0, 1.0, 0.0, 0.0], atol=2e-3)


def test_columns_of_zeros_and_overflowing_squares_are_not_used():
    matrix = np.column_stack([np.zeros(50), np.full(50, 1e200), np.full(50, 4.0)])
    np.testing.assert_allclose(constant_sum(matrix), [0.0, 0.0, 0.25], rtol=1e-3)


def binary_columns(seed):
    """Sequences of 0/1 columns, the first of which is always 1, and labels that follow each other."""
    random = np.random.default_rng(seed)
    n_labels, n_features, n_sequences = 15, [10, 40, 128][seed % 3], 500
    lengths = random.integers(1, 20, n_sequences)
    transitions, favours = (
        random.normal(size=(n_labels, n_labels)),
        random.normal(size=(n_labels, n_features)),
    )
    X, y = [], []
    for length in lengths:
        labels = [random.integers(n_labels)]
        while len(labels) < length:
            labels.append(int(np.argmax(transitions[labels[-1]] + random.gumbel(size=n_labels))))
        x = (random.random((length, n_features)) < 0.1 * np.exp(favours[labels])).astype(float)
        x[:, 0] = 1.0
        X.append(x)
        y.append(np.array(labels))
    return X, y


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_constant_columns_do_not_feign_convergence(seed, boundary):
    """Fits ended 0.2 to 0.3 % above the optimum: transitions, and means over labels, had not converged."""
    X, y = binary_columns(seed)
    model = LinearChainCRF(c2=0.01, tol=1e-3, boundary=boundary).fit(X, y)
    tight = LinearChainCRF(c2=0.01, tol=1e-6, boundary=boundary, max_iter=3000).fit(X, y)
    assert model.converged_
    assert tight.converged_
    assert model.objective_ <= tight.objective_ * (1.0 + 1e-3)
    assert model.n_iter_ <= 30


def chains_with_forbidden_transitions(seed):
    """Sequences of 0/1 columns, and labels half of whose transitions never occur."""
    random = np.random.default_rng(seed)
    n_labels, n_features = 30, 6
    transitions = 2.0 * random.normal(size=(n_labels, n_labels))
    transitions[random.random(transitions.shape) < 0.5] = -30.0
    favours = random.normal(size=(n_labels, n_features))
    X, y = [], []
    for _ in range(400):
        labels = [int(random.integers(n_labels))]
        for _ in range(int(random.integers(0, 15))):
            labels.append(int(np.argmax(transitions[labels[-1]] + random.gumbel(size=n_labels))))
        chances = np.minimum(0.15 * np.exp(favours[labels]), 1.0)
        X.append((random.random(chances.shape) < chances).astype(float))
        y.append(np.array(labels))
    return X, y


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("c2", [1e-4, 1e-2])
def test_missing_transitions_do_not_feign_convergence(seed, c2):
    X, y = chains_with_forbidden_transitions(seed)
    options = {"c2": c2, "all_states": True}
    model = LinearChainCRF(tol=1e-3, **options).fit(X, y)
    tight = LinearChainCRF(tol=1e-6, max_iter=3000, **options).fit(X, y)
    assert model.converged_
    assert tight.converged_
    assert model.objective_ <= tight.objective_ * (1.0 + 1e-3)
    assert model.n_iter_ <= 50
