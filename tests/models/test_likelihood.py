"""The likelihood: finite differences, enumeration, convexity, weights, threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from blocks import count_parallel_tasks
from seqlab.data import Sequences
from seqlab.inference import path_scores
from seqlab.models import _stochastic
from seqlab.models._fast_likelihood import FastChainLikelihood
from seqlab.models._likelihood import ChainLikelihood
from seqlab.optim import lbfgs
from seqlab.structures import ChainStructure

VARIANTS = {
    "plain": {},
    "weighted": {"weighted": True},
    "partial": {"partial": True},
    "costs": {"costs": True},
    "edges": {"edges": True},
    "free boundary": {"free": True},
    "everything": {"weighted": True, "partial": True, "costs": True, "edges": True},
}
variants = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def problem(seed=0, n_labels=3, lengths=(4, 1, 3), c2=0.3, n_jobs=None, **variant):
    random = np.random.default_rng(seed)
    n = sum(lengths)
    matrix = random.normal(size=(n, 4)) * (random.random((n, 4)) < 0.6)
    X = Sequences(sp.csr_matrix(matrix), np.concatenate([[0], np.cumsum(lengths)]))
    codes = random.integers(0, n_labels, n)
    allowed = None
    if variant.get("partial"):
        allowed = random.random((n, n_labels)) < 0.5
        allowed[np.arange(n), codes] = True
        codes = np.where(allowed.sum(axis=1) > 1, -2, codes)
    structure = ChainStructure.from_data(
        X,
        codes,
        n_labels,
        allowed=allowed,
        all_states=True,
        edge_features=variant.get("edges", False),
    )
    penalised = None
    if variant.get("free"):
        penalised = np.ones(structure.n_params, dtype=bool)
        penalised[structure.slices["start"]] = False
    costs = np.where(codes >= 0, random.normal(size=n), 0.0) if variant.get("costs") else None
    weights = random.random(len(X)) if variant.get("weighted") else np.ones(len(X))
    objective = ChainLikelihood(
        structure, X, codes, weights, c2,
        allowed=allowed, miss_cost=costs, penalised=penalised, n_jobs=n_jobs,
    )  # fmt: skip
    return objective, random.normal(size=structure.n_params)


def by_enumeration(objective, w):
    """The objective from its definition: a sum over every labeling."""
    X, structure = objective.X, objective.structure
    total = 0.0
    for i in range(len(X)):
        one = X[[i]]
        steps = slice(X.offsets[i], X.offsets[i + 1])
        codes = objective.codes[steps]
        scores = structure.scores(w, one)
        every, agreeing = [], []
        for y in itertools.product(range(structure.n_labels), repeat=one.n_steps):
            value = path_scores(scores, np.array(y))[0]
            if objective.miss_cost is not None:
                value += objective.miss_cost[steps][np.array(y) != codes].sum()
            every.append(value)
            if objective.allowed is None:
                agrees = np.array_equal(y, codes)
            else:
                agrees = objective.allowed[steps][np.arange(len(y)), list(y)].all()
            if agrees:
                agreeing.append(value)
        gain = np.logaddexp.reduce(agreeing) - np.logaddexp.reduce(every)
        total -= objective.weights[i] * gain
    counted = w if objective.penalised is None else w[objective.penalised]
    return total + objective.c2 * counted @ counted


@variants
def test_value_by_enumeration(variant):
    objective, w = problem(**variant)
    assert objective.loss(w) == pytest.approx(by_enumeration(objective, w), rel=1e-12)


@variants
def test_gradient_by_central_differences(variant):
    objective, w = problem(**variant)
    gradient = objective.gradient(w)
    step = 1e-5
    numeric = np.empty_like(w)
    for k in range(w.size):
        shift = np.zeros_like(w)
        shift[k] = step
        numeric[k] = (objective.loss(w + shift) - objective.loss(w - shift)) / (2 * step)
    error = np.linalg.norm(gradient - numeric) / np.linalg.norm(numeric)
    assert error < 1e-8


def test_convex_along_segments():
    objective, w = problem(c2=0.0)
    other = np.random.default_rng(9).normal(size=w.size) * 3
    middle = objective.loss(0.5 * (w + other))
    assert middle <= 0.5 * (objective.loss(w) + objective.loss(other))


@pytest.mark.parametrize("unit", [False, True], ids=["values", "unit values"])
@pytest.mark.parametrize("variant", ["plain", "weighted", "costs", "free boundary"])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
def test_fast_likelihood_is_the_same_objective(variant, n_labels, unit):
    slow, w = problem(n_labels=n_labels, lengths=(4, 1, 3, 9, 2), **VARIANTS[variant])
    if unit:
        slow.X.matrix.data[:] = 1.0
    options = {"miss_cost": slow.miss_cost, "penalised": slow.penalised}
    for structure in (
        slow.structure,
        ChainStructure.from_data(slow.X, slow.codes, n_labels, boundary=False),
    ):
        parts = (structure, slow.X, slow.codes, slow.weights, 0.3)
        options["penalised"] = slow.penalised if structure is slow.structure else None
        reference, fast = ChainLikelihood(*parts, **options), FastChainLikelihood(*parts, **options)
        x = w[: structure.n_params]
        a, b = reference.loss_gradient(x), fast.loss_gradient(x)
        assert a[0] == pytest.approx(b[0], rel=1e-12)
        np.testing.assert_allclose(a[1], b[1], atol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_sequences_of_extreme_scores_are_not_left_out(weighted):
    slow, w = problem(lengths=(3, 1, 6, 2, 4, 5, 2, 3, 7, 1), weighted=weighted)
    X = slow.X.matrix.copy()
    X.data[X.indptr[4] : X.indptr[10]] *= (
        3e3  # of the third sequence, and with it its group of eight
    )
    X = Sequences(X, slow.X.offsets)
    parts = (slow.structure, X, slow.codes, slow.weights, 0.3)
    reference, fast = ChainLikelihood(*parts), FastChainLikelihood(*parts)
    assert 0 < fast._pass(w, curvature=False)[1].sum() < len(X)
    (a, expected), (b, gradient) = reference.loss_gradient(w), fast.loss_gradient(w)
    assert b == pytest.approx(a, rel=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-8)


def test_curvature_of_independent_steps_is_the_diagonal_of_the_hessian():
    slow, w = problem(lengths=(1, 1, 1, 1, 1), weighted=True)
    fast = FastChainLikelihood(slow.structure, slow.X, slow.codes, slow.weights, 0.3)
    diagonal = fast.curvature(w)
    step = 1e-4
    for name in ("state", "start", "end"):
        for k in range(*slow.structure.slices[name].indices(w.size)):
            shift = np.zeros_like(w)
            shift[k] = step
            numeric = (fast.gradient(w + shift)[k] - fast.gradient(w - shift)[k]) / (2 * step)
            assert diagonal[k] == pytest.approx(numeric, rel=1e-5)


def test_stochastic_step_is_a_gradient_step(monkeypatch):
    monkeypatch.setattr(_stochastic, "DAMPING", 0.0)
    slow, _ = problem(lengths=(5,))
    fast = FastChainLikelihood(slow.structure, slow.X, slow.codes, np.ones(1), 0.0)
    passes = _stochastic.StochasticPasses(fast, 0.1)
    zero = np.zeros(slow.structure.n_params)
    loss, first = passes.run(np.array([0]))
    assert loss == pytest.approx(fast.loss(zero))
    np.testing.assert_allclose(first, -0.1 * fast.gradient(zero), atol=1e-12)
    _, second = passes.run(np.array([0]))
    np.testing.assert_allclose(second, first - 0.1 * fast.gradient(first), atol=1e-12)


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_stochastic_passes_converge_to_the_penalised_optimum(monkeypatch, damping):
    """The penalty is applied lazily and in three ways: none may shift the point where passes come to rest."""
    monkeypatch.setattr(_stochastic, "DAMPING", damping)
    slow, _ = problem(lengths=(4, 7, 5, 6), n_labels=3)
    fast = FastChainLikelihood(slow.structure, slow.X, slow.codes, np.ones(4), 0.3)
    *_, state = lbfgs(fast, np.zeros(fast.n_params), max_iter=500, tol=1e-12)
    passes = _stochastic.StochasticPasses(fast, 0.05)
    for _ in range(3000):
        _, mean = passes.run(np.arange(4))
    np.testing.assert_allclose(mean, state.point, atol=2e-2)
    assert fast.loss(mean) < state.objective + 1e-3


def test_same_bits_for_any_number_of_threads(monkeypatch):
    counts = count_parallel_tasks(monkeypatch)
    lengths = np.random.default_rng(0).integers(1, 30, size=4000)
    slow, w = problem(lengths=lengths, n_labels=12)
    for kind in (ChainLikelihood, FastChainLikelihood):
        parts = (slow.structure, slow.X, slow.codes, slow.weights, 0.3)
        serial, parallel = kind(*parts), kind(*parts, n_jobs=2)
        a = serial.loss_gradient(w)
        counts.clear()
        b = parallel.loss_gradient(w)
        assert max(counts) > 2  # more blocks than threads
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])
        np.testing.assert_array_equal(serial.gradient(w), a[1])


def test_weight_two_is_the_sequence_twice():
    objective, w = problem()
    X, codes = objective.X, objective.codes
    weights = np.array([2.0, 1.0, 0.0])
    weighted = ChainLikelihood(objective.structure, X, codes, weights, 0.1)
    twice = X[[0, 0, 1]]
    labels = np.concatenate([codes[:4], codes[:4], codes[4:5]])
    repeated = ChainLikelihood(objective.structure, twice, labels, np.ones(3), 0.1)
    assert weighted.loss(w) == pytest.approx(repeated.loss(w))
    np.testing.assert_allclose(weighted.gradient(w), repeated.gradient(w), atol=1e-12)
