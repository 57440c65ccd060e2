"""The Hessian of a chain against finite differences, and fits that need it."""

import numpy as np
import pytest
import scipy.sparse as sp

import seqlab.structures.chain.hessian as hessian_module
from seqlab import LinearChainCRF
from seqlab.learning import Likelihood, LikelihoodCurvature, PenalisedObjective

EVERYTHING = {"min_probability": 0.0, "max_products": 1e12}


def likelihood(lengths, *, is_sparse=False, weights=None, scale=0.5, **options):
    """A likelihood of random data, and random weights."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(n, 4)) * (random.random((n, 4)) < 0.7) for n in lengths]
    y = [random.integers(3, size=n) for n in lengths]
    y[0][0], y[-1][-1] = 0, 2
    if is_sparse:
        X = [sp.csr_matrix(x) for x in X]
    model = LinearChainCRF(**options)
    data = model._read_training(X, y, weights, None)
    bound = model._bind(data)
    term = Likelihood(bound, data.codes, data.sequence_weights)
    return term, scale * random.normal(size=bound.n_params)


def differences(term, w, step=1e-5):
    """The Hessian by central differences of the gradient."""
    rows = []
    for k in range(w.size):
        shift = np.zeros_like(w)
        shift[k] = step
        high, low = (term.evaluate(w + sign * shift).parts.sum(axis=0) for sign in (1, -1))
        rows.append((high - low) / (2 * step))
    return np.array(rows)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("all_weights", [False, True])
@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.0, 2.0]])
def test_it_is_the_derivative_of_the_gradient(is_sparse, boundary, all_weights, weights):
    term, w = likelihood(
        (4, 1, 6, 3), is_sparse=is_sparse, weights=weights, boundary=boundary,
        all_states=all_weights, all_transitions=all_weights,
    )  # fmt: skip
    found = term.bound.hessian(w, term.varying_weights, **EVERYTHING)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, differences(term, w), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("all_weights", [False, True])
def test_it_is_the_derivative_of_the_gradient_with_edge_features(is_sparse, all_weights):
    term, w = likelihood(
        (4, 1, 6, 3), is_sparse=is_sparse, weights=[1.0, 3.0, 0.0, 2.0], edge_features=True,
        all_states=all_weights, all_transitions=all_weights,
    )  # fmt: skip
    found = term.bound.hessian(w, term.varying_weights, **EVERYTHING)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, differences(term, w), rtol=1e-6, atol=1e-8)


def test_parts_of_the_data_add_up(monkeypatch):
    term, w = likelihood((4, 1, 6, 3, 2), weights=[1.0, 2.0, 1.0, 0.5, 1.0])
    whole = term.bound.hessian(w, term.varying_weights, **EVERYTHING)
    monkeypatch.setattr(hessian_module, "NUMBERS_PER_PART", 40)
    parts = term.bound.hessian(w, term.varying_weights, **EVERYTHING)
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-14)


def test_without_improbable_labels_it_is_close_and_semidefinite():
    term, w = likelihood((30, 40), scale=1.5)
    exact = term.bound.hessian(w, None, **EVERYTHING)
    found = term.bound.hessian(w, None, min_probability=1e-3, max_products=1e12)
    assert 0.0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()
    assert np.linalg.eigvalsh(found).min() > -1e-12 * np.abs(exact).max()


def test_it_is_not_computed_if_that_takes_too_long(monkeypatch):
    term, w = likelihood((30, 40))
    assert term.bound.hessian(w, None, min_probability=0.0, max_products=100) is None
    monkeypatch.setattr(hessian_module, "MAX_NUMBERS", 10)
    assert term.bound.hessian(w, None, **EVERYTHING) is None


def long_runs(n_sequences=8, n_steps=400, n_labels=4):
    """Sequences whose labels and features stay the same for many steps, and weak evidence."""
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n_sequences):
        labels, rows, label, on = [], [], 0, np.zeros(6)
        for _ in range(n_steps):
            if random.random() < 0.03:
                label = int(random.integers(n_labels))
            if random.random() < 0.05:
                on = (random.random(6) < 0.2 + 0.1 * (np.arange(6) % n_labels == label)) * 1.0
            labels.append(label)
            rows.append([1.0, *on])
        X.append(np.array(rows))
        y.append(labels)
    return X, y


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_long_runs_take_fewer_iterations_with_it(monkeypatch, c1, boundary):
    X, y = long_runs()
    options = {"c1": c1, "c2": 0.001, "tol": 1e-6, "boundary": boundary, "max_iter": 1000}
    model = LinearChainCRF(**options).fit(X, y)
    monkeypatch.setattr("seqlab.learning.curvature.HESSIAN_FROM", np.inf)
    without = LinearChainCRF(**options).fit(X, y)
    assert model.converged_
    assert without.converged_
    assert model.objective_ == pytest.approx(without.objective_, rel=1e-5)
    assert model.n_iter_ < 0.8 * without.n_iter_


def test_it_is_used_for_few_weights_and_for_long_runs_or_long_fits_only(monkeypatch):
    X, y = long_runs(n_sequences=2)

    def term_of(labels):
        model = LinearChainCRF()
        data = model._read_training(X, labels, None, None)
        return Likelihood(model._bind(data), data.codes, data.sequence_weights)

    limits = {"max_passes": 1000, "precise": True}
    term = term_of(y)
    w = np.zeros(term.n_params)
    assert term.hessian(w, **limits) is not None
    objective = PenalisedObjective(term, 1.0)
    curvature = LikelihoodCurvature(objective)
    sizes = [curvature.renew(n, w, np.ones_like(w)).indices.size for n in (5, 635)]
    assert sizes[0] < sizes[1] == w.size
    random = np.random.default_rng(0)
    other = term_of([random.integers(4, size=len(one)) for one in y])
    w_other = np.zeros(other.n_params)
    assert other.hessian(w_other, **limits) is None
    assert other.hessian(w_other, any_labels=True, **limits) is not None
    curvature = LikelihoodCurvature(PenalisedObjective(other, 1.0))
    sizes = [curvature.renew(n, w_other, np.ones_like(w_other)).indices.size for n in (15, 635)]
    assert sizes[0] < sizes[1] == w_other.size
    monkeypatch.setattr("seqlab.learning.likelihood.MAX_BLOCK", term.n_params - 1)
    assert term.hessian(w, **limits) is None
