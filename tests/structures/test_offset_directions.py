"""Directions in which features and transitions of a label cancel, and convergence with constant columns."""

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab import LinearChainCRF
from seqlab.inference import marginals
from seqlab.learning import Likelihood
from seqlab.structures.chain.offset_directions import OffsetDirections, constant_sum

N_LABELS = 3


def likelihood(*, boundary, constant=True, is_sparse=False, **options):
    """A likelihood of random data whose last column is constant, and random weights."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(random.integers(1, 7), 4)) for _ in range(30)]
    for x in X:
        x[:, -1] = 2.0 if constant else random.uniform(1.5, 2.5, len(x))
    y = [random.integers(N_LABELS, size=len(x)) for x in X]
    X = [sp.csr_matrix(x) for x in X] if is_sparse else X
    model = LinearChainCRF(
        boundary=boundary, **({"all_states": True, "all_transitions": True} | options)
    )
    data = model._read_training(X, y, None, None)
    bound = model._bind(data)
    return Likelihood(bound, data.codes, data.sequence_weights), random.normal(size=bound.n_params)


def stored_variances(term, w):
    """``p (1 - p)`` of all labels and steps, and the first step of each sequence."""
    bound = term.bound
    node = marginals(bound.scores(bound.source(w), bound.X.block(0, len(bound.X)))).node
    return np.array(bound.X.offsets[:-1]), (node * (1.0 - node)).T.astype(np.float32)


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


def test_with_boundary_weights_a_constant_cancels_exactly():
    term, w = likelihood(boundary=True)
    directions = OffsetDirections(term.bound.structure, term.bound.X).directions.toarray()
    before = term.evaluate(w)
    for direction in directions:
        # The ridge makes the sum of the features slightly smaller than 1.
        moved = term.evaluate(w + direction)
        assert moved.loss - (w + direction) @ moved.observed == pytest.approx(
            before.loss - w @ before.observed, rel=1e-3
        )


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_hessian_among_the_directions(boundary, constant, is_sparse):
    """Explicit sums over steps, with the changes of scores taken from joint features."""
    term, w = likelihood(boundary=boundary, constant=constant, is_sparse=is_sparse)
    bound, X = term.bound, term.bound.X
    first_place, variances = stored_variances(term, w)
    offsets = OffsetDirections(bound.structure, X)
    found = offsets.hessian(first_place, variances)
    matrix = X.matrix.toarray() if is_sparse else X.matrix
    change = matrix @ constant_sum(X.matrix) - 1.0
    into, out_of = change.copy(), change.copy()
    if not boundary:
        into[X.offsets[:-1]] += 1.0
        out_of[X.offsets[1:] - 1] += 1.0
    for label in range(N_LABELS):
        pair = [label, N_LABELS + label]
        both = np.array([into, out_of])
        expected = (both * variances[label]) @ both.T
        np.testing.assert_allclose(found[np.ix_(pair, pair)], expected, rtol=1e-5, atol=1e-7)
    others = np.ones((N_LABELS, N_LABELS)) - np.eye(N_LABELS)
    assert not found[np.tile(others, (2, 2)).astype(bool)].any()
    # A direction with one label at a time changes the score of a constant labeling by the same sum.
    for label in range(N_LABELS):
        features = bound.joint_features(np.full(X.n_steps, label)).sum(axis=0)
        changes = offsets.directions @ np.asarray(features).ravel()
        assert changes[label] == pytest.approx(into.sum(), abs=1e-8)
        assert changes[N_LABELS + label] == pytest.approx(out_of.sum(), abs=1e-8)


def test_a_sample_of_sequences_estimates_the_hessian(monkeypatch):
    term, w = likelihood(boundary=False, constant=False)
    offsets, stored = (
        OffsetDirections(term.bound.structure, term.bound.X),
        stored_variances(term, w),
    )
    every = offsets.hessian(*stored)
    monkeypatch.setattr("seqlab.structures.chain.offset_directions.MAX_STEPS", 40)
    sample = offsets.hessian(*stored)
    assert not np.array_equal(sample, every)
    np.testing.assert_allclose(np.diag(sample), np.diag(every), rtol=0.7)


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
