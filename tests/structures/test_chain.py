"""Chains: scores equal inner products of weights and joint features, for every kind of weight."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab.data import Sequences
from seqlab.inference import path_scores
from seqlab.structures import BoundStructure, FunctionSource, KernelSource, miss_costs
from seqlab.structures.chain import BoundChain, ChainStructure, FeaturePattern, previous_codes
from seqlab.structures.chain.pattern import emit
from seqlab.utils.linalg import matmul

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


def scores_of(bound, w, source=None):
    source = bound.source(w) if source is None else source
    return bound.scores(source, bound.block(0, len(bound.X)))


def features_by_definition(structure, X, codes):
    """Return the sum of phi(x, y) over all sequences, computed from the definition."""
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
                index = place(state, f, codes[t], "state")
                if index is not None:
                    phi[index] += dense[t, f]
                if edge is not None and t > first:
                    index = place(edge, f, codes[t - 1] * L + codes[t], "edge")
                    if index is not None:
                        phi[index] += dense[t, f]
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
def test_score_equals_weights_times_joint_features(options):
    X, codes, random = example()
    structure = ChainStructure.from_data(X, codes, 3, **options)
    bound = structure.bind(X)
    w = random.normal(size=structure.n_params)
    other = random.integers(0, 3, X.n_steps)
    for labels in (codes, other):
        phi = bound.joint_features(labels)
        np.testing.assert_allclose(
            np.asarray(phi.sum(axis=0)).ravel(), features_by_definition(structure, X, labels)
        )
        np.testing.assert_allclose(phi @ w, path_scores(scores_of(bound, w), labels))
        np.testing.assert_allclose(bound.inner_products(labels, w), phi @ w)
        np.testing.assert_allclose(
            bound.squared_norms(labels), np.square(phi.toarray()).sum(axis=1)
        )
        weights = random.random(3)
        np.testing.assert_allclose(bound.total_features(labels, weights), phi.T @ weights)


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: "-".join(k for k, v in o.items() if v) or "none"
)
def test_expected_features_are_the_mean_over_all_labelings(options):
    X, codes, random = example(lengths=(3, 1, 2))
    structure = ChainStructure.from_data(X, codes, 3, **options)
    w = random.normal(size=structure.n_params)
    bound = structure.bind(X)
    found = bound.expected_features(w).parts.sum(axis=0)
    generic = BoundStructure.expected_features(bound, w).parts.sum(axis=0)
    expected = np.zeros(structure.n_params)
    for i in range(len(X)):
        one = structure.bind(X[[i]])
        every = list(itertools.product(range(3), repeat=one.X.n_steps))
        values = np.array([path_scores(scores_of(one, w), np.array(y))[0] for y in every])
        p = np.exp(values - np.logaddexp.reduce(values))
        for probability, y in zip(p, every, strict=True):
            phi = one.joint_features(np.array(y))
            expected += probability * np.asarray(phi.todense()).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(generic, expected, atol=1e-12)


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


def test_loss_and_previous_codes():
    X, codes, _ = example()
    bound = ChainStructure.from_data(X, codes, 3).bind(X)
    wrong = codes.copy()
    wrong[[0, 4]] = (codes[[0, 4]] + 1) % 3
    assert bound.loss(codes, wrong).tolist() == [1.0, 0.0, 1.0]
    costs = miss_costs(codes, 3)
    assert costs.sum() == 2 * X.n_steps
    assert (costs[np.arange(X.n_steps), codes] == 0).all()
    assert previous_codes(np.array([4, 5, 6]), np.array([0, 2, 2, 3])).tolist() == [-1, 4, -1]


def test_loss_augmented_argmax_by_enumeration():
    X, codes, random = example()
    bound = ChainStructure.from_data(X, codes, 3, all_transitions=True).bind(X)
    w = random.normal(size=bound.n_params)
    for i in range(len(X)):
        one = ChainStructure.from_data(X, codes, 3, all_transitions=True).bind(X[[i]])
        gold = codes[X.offsets[i] : X.offsets[i + 1]]
        scores = scores_of(one, w)
        every = np.array(list(itertools.product(range(3), repeat=gold.size)))
        values = [path_scores(scores, y)[0] + (y != gold).sum() for y in every]
        found = one.loss_augmented_argmax(scores, gold)
        np.testing.assert_array_equal(found, every[np.argmax(values)])


def test_scores_from_functions_and_kernel_coefficients_equal_those_from_weights():
    X, codes, random = example()
    bound = ChainStructure.from_data(X, codes, 3, all_states=True).bind(X)
    w = random.normal(size=bound.n_params)
    weights, expected = bound.structure.weights(w), scores_of(bound, w)
    rest = (weights.transitions, weights.start, weights.end)
    function = FunctionSource(3, lambda block: block.matrix[block.steps] @ weights.coef.T, *rest)
    # A linear kernel: coefficients ``a`` with X' a = coef'.
    dense = X.matrix.toarray()
    coefficients = np.linalg.lstsq(dense.T, weights.coef.T, rcond=None)[0]
    kernel = KernelSource(coefficients, lambda block: dense[block.steps] @ dense.T, *rest)
    for source in (function, kernel):
        found = scores_of(bound, w, source)
        np.testing.assert_allclose(found.unary, expected.unary, atol=1e-9)
        np.testing.assert_array_equal(found.pairwise, expected.pairwise)
        np.testing.assert_array_equal(found.start, expected.start)


def test_products_are_bitwise_identical_for_any_split_of_the_rows():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(50, 300)), random.normal(size=(300, 7))
    whole = matmul(a, b)
    np.testing.assert_allclose(whole, a @ b, atol=1e-12)
    for cut in (1, 7, 32):
        parts = [matmul(a[:cut].copy(), b), matmul(a[cut:].copy(), b)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_blocks_cover_all_sequences_with_bounded_memory():
    X, codes, _ = example(lengths=(5, 4, 3, 9, 1))
    bound = BoundChain(ChainStructure.from_data(X, codes, 3), X)
    blocks = list(bound.blocks(max_doubles=30))
    assert [block.first for block in blocks[1:]] == [block.last for block in blocks[:-1]]
    assert (blocks[0].first, blocks[-1].last) == (0, 5)
    assert len(blocks) > 1
