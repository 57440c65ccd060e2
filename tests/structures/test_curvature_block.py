"""The dense block of the Hessian of a chain against sums over labelings and finite differences."""

import numpy as np
import pytest
import scipy.sparse as sp

import seqlab.structures.chain.curvature_block as curvature_block
from seqlab import LinearChainCRF
from seqlab.inference import pair_marginals
from seqlab.learning import Likelihood


def likelihood(lengths, *, n_labels=3, is_sparse=False, weights=None, seed=0, edge_features=False):
    """A likelihood of random data, and random weights."""
    random = np.random.default_rng(seed)
    X = [random.normal(size=(n, 4)) * (random.random((n, 4)) < 0.7) for n in lengths]
    y = [random.integers(n_labels, size=n) for n in lengths]
    y[0][0], y[-1][-1] = 0, n_labels - 1
    if is_sparse:
        X = [sp.csr_matrix(x) for x in X]
    model = LinearChainCRF(all_states=True, all_transitions=True, edge_features=edge_features)
    data = model._read_training(X, y, weights, None)
    bound = model._bind(data)
    return Likelihood(bound, data.codes, data.sequence_weights), 0.5 * random.normal(
        size=bound.n_params
    )


def explicit_block(term, w, chosen):
    """The covariances of the features of single steps, summed label pair by label pair."""
    bound, structure = term.bound, term.bound.structure
    X, n_labels = bound.X, bound.n_labels
    scores = bound.scores(bound.source(w), X.block(0, len(X)))
    found = pair_marginals(scores)
    matrix = X.matrix.toarray() if sp.issparse(X.matrix) else X.matrix
    starts, labels = structure.state.explicit()
    feature = np.repeat(np.arange(matrix.shape[1]), np.diff(starts))
    out = np.zeros((bound.n_params, bound.n_params))
    weight = np.repeat(term.weights, X.lengths)
    is_first = np.zeros(X.n_steps, dtype=bool)
    is_first[X.offsets[:-1]] = True
    transition = np.full((n_labels, n_labels), -1)
    transition[structure.has_transition] = np.arange(structure.has_transition.sum())
    for t in range(X.n_steps):
        features, probabilities = [], []
        for b in range(n_labels):
            for a in range(1 if is_first[t] else n_labels):
                vector = np.zeros(bound.n_params)
                on = labels == b
                vector[structure.slices["state"]][on] = matrix[t, feature[on]]
                if not is_first[t]:
                    vector[structure.slices["transitions"]][transition[a, b]] = 1.0
                features.append(vector)
                probabilities.append(found.node[t, b] if is_first[t] else found.pair[t, a, b])
        features, probabilities = np.array(features), np.array(probabilities)
        mean = probabilities @ features
        out += weight[t] * ((features.T * probabilities) @ features - np.outer(mean, mean))
    return out[np.ix_(chosen, chosen)]


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(curvature_block, "SHRINKAGE", 0.0)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.5, 2.0]])
def test_the_block_holds_the_covariances_of_steps(exact, is_sparse, weights):
    term, w = likelihood((4, 1, 6, 3), is_sparse=is_sparse, weights=weights)
    diagonal = term.curvature(w)
    chosen, block = term.bound.curvature_block(w, diagonal, 1000, term.varying_weights)
    expected = explicit_block(term, w, chosen)
    n_states = np.count_nonzero(chosen < term.bound.structure.slices["transitions"].start)
    assert n_states == 12
    assert chosen.size > n_states
    np.testing.assert_allclose(block, expected, rtol=1e-9, atol=1e-12)


def test_a_precise_block_is_not_shrunk(monkeypatch):
    term, w = likelihood((4, 1, 6, 3))
    diagonal = term.curvature(w)
    chosen, block = term.bound.curvature_block(w, diagonal, 1000, precise=True)
    np.testing.assert_allclose(block, explicit_block(term, w, chosen), rtol=1e-9, atol=1e-12)
    # A small sample, of one sequence, cannot be precise.
    monkeypatch.setattr(curvature_block, "MIN_STEPS", 1)
    monkeypatch.setattr(curvature_block, "MAX_STEPS", 1)
    sampled = [term.bound.curvature_block(w, diagonal, 1000, precise=is_on)[1] for is_on in (0, 1)]
    np.testing.assert_array_equal(*sampled)


def test_the_order_of_entries_does_not_matter(exact):
    term, w = likelihood((4, 1, 6, 3), is_sparse=True)
    diagonal, matrix = term.curvature(w), term.bound.X.matrix
    _, block = term.bound.curvature_block(w, diagonal, 1000)
    for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False):
        matrix.indices[a:b] = matrix.indices[a:b][::-1].copy()
        matrix.data[a:b] = matrix.data[a:b][::-1].copy()
    _, unsorted = term.bound.curvature_block(w, diagonal, 1000)
    np.testing.assert_allclose(unsorted, block, rtol=1e-12, atol=1e-14)


def test_the_block_of_independent_steps_is_the_hessian(exact):
    term, w = likelihood((1,) * 12)
    chosen, block = term.bound.curvature_block(w, term.curvature(w), 8)
    step = 1e-5
    for column, k in enumerate(chosen):
        shift = np.zeros_like(w)
        shift[k] = step
        high, low = (term.evaluate(w + sign * shift).parts.sum(axis=0) for sign in (1, -1))
        np.testing.assert_allclose(
            block[:, column], (high - low)[chosen] / (2 * step), rtol=1e-5, atol=1e-8
        )


def test_the_largest_weights_are_chosen(exact):
    term, w = likelihood((4, 1, 6, 3))
    diagonal = term.curvature(w)
    few, block = term.bound.curvature_block(w, diagonal, 5)
    every, whole = term.bound.curvature_block(w, diagonal, 1000)
    assert few.size == 5
    scales = term.squared_scales()
    importance = diagonal / scales
    assert importance[few].min() >= np.delete(importance[every], np.searchsorted(every, few)).max()
    rows = np.searchsorted(every, few)
    np.testing.assert_allclose(block, whole[np.ix_(rows, rows)], rtol=1e-12)


def test_a_sample_of_the_sequences_is_enough(monkeypatch):
    term, w = likelihood((5,) * 400, n_labels=2)
    diagonal = term.curvature(w)
    _, whole = term.bound.curvature_block(w, diagonal, 100)
    monkeypatch.setattr(curvature_block, "MIN_STEPS", 800)
    monkeypatch.setattr(curvature_block, "MAX_STEPS", 800)
    chosen, block = term.bound.curvature_block(w, diagonal, 100)
    roots = np.sqrt(np.outer(np.diag(whole), np.diag(whole)))
    assert 0.001 < np.abs((block - whole) / roots).max() < 0.15
    is_state = chosen < term.bound.structure.slices["transitions"].start
    np.testing.assert_allclose(np.diag(block)[is_state], diagonal[chosen[is_state]])
    np.linalg.cholesky(block)  # positive definite


def test_long_sequences_are_not_sampled(monkeypatch):
    """They would need too much memory; the block is then diagonal."""
    term, w = likelihood((5, 7))
    monkeypatch.setattr(curvature_block, "MAX_NUMBERS", 10)
    diagonal = term.curvature(w)
    chosen, block = term.bound.curvature_block(w, diagonal, 100)
    np.testing.assert_allclose(block, np.diag(diagonal[chosen]))


def test_with_edge_features_the_block_has_weights_of_labels_and_transitions():
    term, w = likelihood((5, 7), edge_features=True)
    chosen, block = term.bound.curvature_block(w, term.curvature(w), 1000)
    slices = term.bound.structure.slices
    for one in chosen:
        assert any(
            slices[name].start <= one < slices[name].stop for name in ("state", "transitions")
        )
    np.linalg.cholesky(block)


def test_with_the_block_nearly_collinear_frequent_features_take_fewer_iterations(monkeypatch):
    random = np.random.default_rng(0)
    X, y = [], []
    for n in random.integers(5, 20, size=80):
        labels = random.integers(3, size=n)
        rare = random.random((n, 12)) < 0.95  # almost always on
        X.append(np.hstack([np.ones((n, 2)), rare, np.eye(3)[labels] + random.normal(size=(n, 3))]))
        y.append(labels)
    options = {"c2": 0.01, "tol": 1e-5}
    model = LinearChainCRF(**options).fit(X, y)
    monkeypatch.setattr("seqlab.learning.likelihood.MAX_BLOCK", 0)
    monkeypatch.setattr("seqlab.structures.chain.label_blocks.MAX_PASSES", 0.0)
    without = LinearChainCRF(**options).fit(X, y)
    assert model.converged_
    assert without.converged_
    assert model.objective_ == pytest.approx(without.objective_, rel=1e-4)
    assert model.n_iter_ < 0.7 * without.n_iter_
