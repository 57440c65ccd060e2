"""The block of the Hessian of a chain for weights that are not zero, and fits that need it."""

import numpy as np
import pytest
from tests.structures.test_chain_hessian import differences, likelihood
from tests.structures.test_chain_hessian import long_runs as sensors

import seqlab.structures.chain.hessian as hessian_module
from seqlab import LinearChainCRF
from seqlab.learning import Likelihood

EVERYTHING = {"min_probability": 0.0, "max_products": 1e12}


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(hessian_module, "SHRINKAGE", 0.0)
    monkeypatch.setattr(hessian_module, "MIN_VARIANCE", 0.0)


def block_of(term, w, size=1000, **limits):
    """The chosen weights and their block."""
    return term.bound.nonzero_block(
        w, term.curvature(w), size, term.varying_weights, **(EVERYTHING | limits)
    )


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.0, 2.0]])
def test_it_is_the_derivative_of_the_gradient(exact, is_sparse, boundary, edge_features, weights):
    term, w = likelihood(
        (4, 1, 6, 3), is_sparse=is_sparse, weights=weights, boundary=boundary,
        edge_features=edge_features,
    )  # fmt: skip
    w[::3] = 0.0
    chosen, block = block_of(term, w)
    slices = term.bound.structure.slices
    is_chosen = w != 0.0
    is_chosen[slices["edge"]] = False
    is_chosen[slices["start"].start :] = True  # all boundaries
    np.testing.assert_array_equal(chosen, np.flatnonzero(is_chosen))
    expected = differences(term, w)[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(block, expected, rtol=1e-6, atol=1e-8)


def test_transitions_come_first_unless_they_fill_more_than_half_of_the_block():
    term, w = likelihood((9, 8, 7), all_states=True, all_transitions=True)
    slices = term.bound.structure.slices
    first_transition = slices["transitions"].start
    # There are 12 weights of labels, 9 transitions and 6 weights of boundaries.
    chosen, _ = block_of(term, w, 27)
    assert np.count_nonzero(chosen >= first_transition) == 9
    assert chosen.size == 21
    chosen, _ = block_of(term, w, 15 + 15)
    np.testing.assert_array_equal(chosen[-15:], np.arange(first_transition, w.size))
    importance = term.curvature(w) / term.squared_scales()
    chosen, _ = block_of(term, w, 5)
    largest = np.sort(importance[: slices["start"].start])[-5:]
    np.testing.assert_allclose(np.sort(importance[chosen]), largest)


def test_a_sample_of_the_sequences_is_enough(monkeypatch):
    term, w = likelihood((5,) * 1000, boundary=False)
    _, whole = block_of(term, w)
    monkeypatch.setattr(hessian_module, "NUMBERS_PER_PART", 2000)
    _, block = block_of(term, w, max_products=200_000)
    roots = np.sqrt(np.outer(np.diag(whole), np.diag(whole)))
    assert 0.001 < np.abs((block - whole) / roots).max() < 0.15
    np.linalg.cholesky(block)  # positive definite


def test_variances_are_at_least_a_share_of_those_of_independent_steps(monkeypatch):
    """Labels that are left out have most of the variance if almost all labels are certain."""
    term, w = likelihood((30, 40), scale=6.0)
    diagonal = term.curvature(w)
    chosen, block = block_of(term, w, min_probability=0.05)
    monkeypatch.setattr(hessian_module, "MIN_VARIANCE", 0.0)
    _, without = block_of(term, w, min_probability=0.05)
    ratios = [np.diag(one) / diagonal[chosen] for one in (without, block)]
    assert ratios[0].min() < 0.3 * (1 - 1e-9)
    np.testing.assert_allclose(ratios[1], np.maximum(ratios[0], 0.3))
    np.linalg.cholesky(block)  # positive definite


def test_features_that_are_not_in_the_sample_have_their_own_variance(monkeypatch):
    model = LinearChainCRF()
    data = model._read_training(*long_runs(), None, None)
    term = Likelihood(model._bind(data), data.codes, data.sequence_weights)
    w = np.random.default_rng(0).normal(size=term.n_params)
    monkeypatch.setattr(hessian_module, "NUMBERS_PER_PART", 1)  # one sequence
    chosen, block = block_of(term, w, max_products=1)
    is_missing = np.diag(block) == term.curvature(w)[chosen]
    assert 0 < np.count_nonzero(is_missing) < chosen.size
    assert np.count_nonzero(block[is_missing]) == np.count_nonzero(is_missing)
    np.linalg.cholesky(block)


def test_there_is_none_without_weights_or_if_all_sequences_are_too_long(monkeypatch):
    term, w = likelihood((5, 6), boundary=False)
    assert block_of(term, 0.0 * w) is None
    monkeypatch.setattr("seqlab.structures.chain.curvature_block.MAX_NUMBERS", 10)
    assert block_of(term, w) is None


def long_runs(n_sequences=60, n_words=300):
    """Two labels, each of which stays for about twenty steps, and words, their neighbours and the end."""
    random = np.random.default_rng(0)
    prefers = random.random((2, n_words)) ** 6
    prefers /= prefers.sum(axis=1, keepdims=True)
    X, y = [], []
    for n_steps in random.integers(20, 50, n_sequences):
        labels = (random.integers(2) + np.cumsum(random.random(n_steps) > 0.95)) % 2
        words = [f"w{random.choice(n_words, p=prefers[label])}" for label in labels]
        near = ["_", *words, "_"]
        X.append(
            [
                [near[t + 1], f"-{near[t]}", f"+{near[t + 2]}", f"end{min(n_steps - t, 10)}"]
                for t in range(n_steps)
            ]
        )
        y.append([str(label) for label in labels])
    return X, y


@pytest.mark.parametrize(("boundary", "share"), [(False, 0.8), (True, 0.8), ("unpenalized", 0.9)])
def test_fits_take_fewer_iterations_with_it(monkeypatch, boundary, share):
    X, y = long_runs()
    options = {"c1": 0.1, "c2": 0.001, "tol": 1e-6, "boundary": boundary, "max_iter": 2000}
    model = LinearChainCRF(**options).fit(X, y)
    monkeypatch.setattr("seqlab.learning.curvature.HESSIAN_FROM", np.inf)
    without = LinearChainCRF(**options).fit(X, y)
    assert model.converged_
    assert model.objective_ == pytest.approx(without.objective_, rel=2e-6)
    assert model.n_iter_ < share * without.n_iter_


@pytest.mark.parametrize("boundary", [False, True])
def test_it_replaces_blocks_of_labels_if_labels_last_long(monkeypatch, boundary):
    """Blocks of labels treat steps as independent."""
    X, y = sensors()
    monkeypatch.setattr("seqlab.learning.likelihood.MAX_BLOCK", 40)  # no whole Hessian
    options = {"c1": 0.1, "c2": 0.001, "tol": 1e-6, "boundary": boundary, "max_iter": 3000}
    model = LinearChainCRF(**options).fit(X, y)
    monkeypatch.setattr(Likelihood, "nonzero_block", lambda *arguments, **options: None)
    without = LinearChainCRF(**options).fit(X, y)
    assert model.converged_
    assert model.objective_ == pytest.approx(without.objective_, rel=1e-5)
    assert model.n_iter_ < 0.6 * without.n_iter_
