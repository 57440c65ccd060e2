"""Chains: scores are inner products of weights and joint features, for every kind of parameter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab.data import Sequences
from seqlab.inference import expected_transitions, pair_marginals, path_scores
from seqlab.structures import ChainMarginals, ChainStructure
from seqlab.structures.chain import previous_codes
from seqlab.structures.pattern import FeaturePattern, emit

OPTIONS = [
    {
        "all_states": all_states,
        "all_transitions": all_transitions,
        "boundary": boundary,
        "edge_features": edges,
    }
    for all_states, all_transitions, boundary, edges in itertools.product([False, True], repeat=4)
]


def example(seed=0, lengths=(3, 1, 4), n_features=4, n_labels=3):
    random = np.random.default_rng(seed)
    n = sum(lengths)
    matrix = random.normal(size=(n, n_features)) * (random.random((n, n_features)) < 0.5)
    X = Sequences(sp.csr_matrix(matrix), np.concatenate([[0], np.cumsum(lengths)]))
    return X, random.integers(0, n_labels, n), random


def brute_features(structure, X, codes):
    """phi(x, y) of all sequences together, from the definition."""
    L, dense = structure.n_labels, X.matrix.toarray()
    phi = np.zeros(structure.n_params)
    state, edge = structure.state, structure.edge

    def place(pattern, feature, column, part):
        starts, columns = pattern.explicit()
        found = np.flatnonzero(columns[starts[feature] : starts[feature + 1]] == column)
        return structure.slices[part].start + starts[feature] + found[0] if found.size else None

    for first, last in itertools.pairwise(X.offsets):
        for t in range(first, last):
            for f in range(X.n_features):
                where = place(state, f, codes[t], "state")
                if where is not None:
                    phi[where] += dense[t, f]
                if edge is not None and t > first:
                    where = place(edge, f, codes[t - 1] * L + codes[t], "edge")
                    if where is not None:
                        phi[where] += dense[t, f]
            if t > first:
                number = structure.transition_index[codes[t - 1], codes[t]]
                if number >= 0:
                    phi[structure.slices["transitions"].start + number] += 1
        if structure.boundary:
            phi[structure.slices["start"].start + codes[first]] += 1
            phi[structure.slices["end"].start + codes[last - 1]] += 1
    return phi


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: "-".join(k for k, v in o.items() if v) or "none"
)
def test_score_is_weights_times_joint_features(options):
    X, codes, random = example()
    structure = ChainStructure.from_data(X, codes, 3, **options)
    w = random.normal(size=structure.n_params)
    other = random.integers(0, 3, X.n_steps)
    for labels in (codes, other):
        phi = structure.joint_features(X, labels)
        np.testing.assert_allclose(
            np.asarray(phi.sum(axis=0)).ravel(), brute_features(structure, X, labels)
        )
        np.testing.assert_allclose(phi @ w, path_scores(structure.scores(w, X), labels))
        weights = random.random(3)
        np.testing.assert_allclose(structure.total_features(X, labels, weights), phi.T @ weights)


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: "-".join(k for k, v in o.items() if v) or "none"
)
def test_expected_features_are_the_mean_over_all_labelings(options):
    X, codes, random = example(lengths=(3, 1, 2))
    structure = ChainStructure.from_data(X, codes, 3, **options)
    w = random.normal(size=structure.n_params)
    scores = structure.scores(w, X)
    total = np.zeros(structure.n_params)
    if structure.edge is None:
        counts = expected_transitions(scores)
        marginals = ChainMarginals(counts.node, counts.transitions, None)
    else:
        pair = pair_marginals(scores)
        marginals = ChainMarginals(pair.node, pair.pair.sum(axis=0), pair.pair)
    structure.add_expected_features(X, marginals, 0, len(X), total)
    expected = np.zeros(structure.n_params)
    for i in range(len(X)):
        one = X[[i]]
        every = list(itertools.product(range(3), repeat=one.n_steps))
        values = np.array([path_scores(structure.scores(w, one), np.array(y))[0] for y in every])
        p = np.exp(values - np.logaddexp.reduce(values))
        for probability, y in zip(p, every, strict=True):
            phi = structure.joint_features(one, np.array(y))
            expected += probability * np.asarray(phi.todense()).ravel()
    np.testing.assert_allclose(total, expected, atol=1e-12)


def test_only_observed_pairs_have_weights():
    X = Sequences(
        sp.csr_matrix(np.array([[1.0, 0, 2], [0, 1, 1], [1, 0, 0], [1, 0, 0]])), [0, 2, 4]
    )
    codes = np.array([0, 1, 0, 0])
    structure = ChainStructure.from_data(X, codes, 2, boundary=False)
    coef = structure.weights(np.arange(1.0, structure.n_params + 1)).coef
    assert coef.toarray().tolist() == [[1, 0, 3], [0, 2, 4]]
    assert (structure.transition_index >= 0).tolist() == [[True, True], [False, False]]
    frequent = ChainStructure.from_data(X, codes, 2, boundary=False, min_freq=2)
    assert frequent.state.n_weights == 1
    assert frequent.n_params == 1  # neither transition was seen twice
    full = ChainStructure.from_data(X, codes, 2, all_states=True, all_transitions=True)
    assert full.n_params == 6 + 4 + 4


@pytest.mark.parametrize("seed", range(5))
def test_emit_and_scatter_are_transposes_on_any_pattern(seed):
    X, codes, random = example(seed, lengths=(5, 4), n_features=6)
    for pattern in (FeaturePattern.observed(X.matrix, codes, 3), FeaturePattern(6, 3)):
        weights = random.normal(size=pattern.n_weights)
        matrix = pattern.matrix(weights)
        dense = matrix.toarray() if sp.issparse(matrix) else matrix
        unary = emit(X.matrix, matrix, 2, 9)
        np.testing.assert_allclose(unary, X.matrix[2:9] @ dense.T, atol=1e-12)
        residual = random.normal(size=(7, 3))
        out = np.zeros(pattern.n_weights)
        pattern.scatter(X.matrix, residual, 2, 9, out)
        assert (residual * unary).sum() == pytest.approx(out @ weights)


def test_loss_and_previous():
    X, codes, _ = example()
    structure = ChainStructure.from_data(X, codes, 3)
    wrong = codes.copy()
    wrong[[0, 4]] = (codes[[0, 4]] + 1) % 3
    assert structure.loss(codes, wrong, X).tolist() == [1.0, 0.0, 1.0]
    unary = structure.loss_unary(codes)
    assert unary.sum() == 2 * X.n_steps
    assert (unary[np.arange(X.n_steps), codes] == 0).all()
    assert previous_codes(np.array([4, 5, 6]), np.array([0, 2, 2, 3])).tolist() == [-1, 4, -1]
