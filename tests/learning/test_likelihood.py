"""The likelihood: finite differences, enumeration, convexity, weights, threads."""

from __future__ import annotations

import itertools
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from blocks import count_parallel_tasks
from seqlab.data import Sequences
from seqlab.inference import path_scores
from seqlab.learning import Likelihood, PenalisedObjective
from seqlab.learning.curvature import LikelihoodCurvature
from seqlab.learning.warm_start import WarmStart
from seqlab.optim import lbfgs
from seqlab.structures import BoundStructure
from seqlab.structures.chain import (
    BoundChain,
    ChainStructure,
    FeaturePattern,
    edge_stochastic,
    stochastic,
)
from seqlab.utils.signals import signals_at_safe_points

VARIANTS = {
    "plain": {},
    "weighted": {"weighted": True},
    "partial": {"partial": True},
    "edges": {"edges": True},
    "free boundary": {"free": True},
    "everything": {"weighted": True, "partial": True, "edges": True},
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
    weights = random.random(len(X)) if variant.get("weighted") else np.ones(len(X))
    term = Likelihood(structure.bind(X, n_jobs=n_jobs), codes, weights, allowed=allowed)
    objective = PenalisedObjective(term, c2, penalised=penalised)
    return objective, random.normal(size=structure.n_params)


class GenericChain(BoundChain):
    """A chain that uses the generic code instead of the fused passes."""

    expected_features = BoundStructure.expected_features
    observed_features = BoundStructure.observed_features
    total_features = BoundStructure.total_features


def fused_and_generic(objective, X=None, **changes):
    """Yield the objective with fused passes and without."""
    term = objective.term
    X = term.bound.X if X is None else X
    options = {"weights": term.weights, "codes": term.codes, "structure": term.bound.structure}
    options |= changes
    for kind in (BoundChain, GenericChain):
        bound = kind(options["structure"], X, n_jobs=changes.get("n_jobs"))
        allowed = None if term.partial is None else term.partial.allowed
        data = Likelihood(bound, options["codes"], options["weights"], allowed=allowed)
        penalised = objective.penalised if "structure" not in changes else None
        yield PenalisedObjective(data, objective.c2, penalised=penalised)


def loss(objective, w):
    return objective.loss_gradient(w)[0]


def gradient(objective, w):
    return objective.loss_gradient(w)[1]


def by_enumeration(objective, w):
    """Return the objective by its definition, a sum over all labelings."""
    term, X = objective.term, objective.term.bound.X
    total = 0.0
    for i in range(len(X)):
        one = term.bound.structure.bind(X[[i]])
        steps = slice(X.offsets[i], X.offsets[i + 1])
        codes = term.codes[steps]
        scores = one.scores(one.source(w), one.block(0, 1))
        every, agreeing = [], []
        for y in itertools.product(range(one.n_labels), repeat=one.X.n_steps):
            value = path_scores(scores, np.array(y))[0]
            every.append(value)
            if term.partial is None:
                agrees = np.array_equal(y, codes)
            else:
                agrees = term.partial.allowed[steps][np.arange(len(y)), list(y)].all()
            if agrees:
                agreeing.append(value)
        gain = np.logaddexp.reduce(agreeing) - np.logaddexp.reduce(every)
        total -= term.weights[i] * gain
    counted = w if objective.penalised is None else w[objective.penalised]
    return total + objective.c2 * counted @ counted


@variants
def test_value_by_enumeration(variant):
    objective, w = problem(**variant)
    assert loss(objective, w) == pytest.approx(by_enumeration(objective, w), rel=1e-12)


@variants
def test_gradient_by_central_differences(variant):
    objective, w = problem(**variant)
    found = gradient(objective, w)
    step = 1e-5
    numeric = np.empty_like(w)
    for k in range(w.size):
        shift = np.zeros_like(w)
        shift[k] = step
        numeric[k] = (loss(objective, w + shift) - loss(objective, w - shift)) / (2 * step)
    error = np.linalg.norm(found - numeric) / np.linalg.norm(numeric)
    assert error < 1e-8


def test_convex_along_segments():
    objective, w = problem(c2=0.0)
    other = np.random.default_rng(9).normal(size=w.size) * 3
    middle = loss(objective, 0.5 * (w + other))
    assert middle <= 0.5 * (loss(objective, w) + loss(objective, other))


@pytest.mark.parametrize("unit", [False, True], ids=["values", "unit values"])
@pytest.mark.parametrize("variant", ["plain", "weighted", "free boundary"])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
def test_fused_passes_give_the_same_objective(variant, n_labels, unit):
    objective, w = problem(n_labels=n_labels, lengths=(4, 1, 3, 9, 2), **VARIANTS[variant])
    X, codes = objective.term.bound.X, objective.term.codes
    if unit:
        X.matrix.data[:] = 1.0
    smaller = ChainStructure.from_data(X, codes, n_labels, boundary=False)
    for changes in ({}, {"structure": smaller}):
        fused, generic = fused_and_generic(objective, **changes)
        x = w[: fused.n_params]
        assert loss(fused, x) == pytest.approx(loss(generic, x), rel=1e-12)
        np.testing.assert_allclose(gradient(fused, x), gradient(generic, x), atol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_sequences_with_extreme_scores_are_not_skipped(weighted):
    objective, w = problem(lengths=(3, 1, 6, 2, 4, 5, 2, 3, 7, 1), weighted=weighted)
    bound = objective.term.bound
    matrix = bound.X.matrix.copy()
    # Scores of the third sequence, and with it of its group of eight.
    matrix.data[matrix.indptr[4] : matrix.indptr[10]] *= 3e3
    X = Sequences(matrix, bound.X.offsets)
    fused, generic = fused_and_generic(objective, X)
    assert 0 < fused.term.bound.passes.run(w).skipped.sum() < len(X)
    assert loss(fused, w) == pytest.approx(loss(generic, w), rel=1e-12)
    np.testing.assert_allclose(gradient(fused, w), gradient(generic, w), rtol=1e-10, atol=1e-8)


def test_curvature_of_independent_steps_is_the_diagonal_of_the_hessian():
    objective, w = problem(lengths=(1, 1, 1, 1, 1), weighted=True)
    term = objective.term
    curvature = LikelihoodCurvature(objective)
    diagonal = curvature.after_passes(w, gradient(objective, w), weak=False).diagonal
    step = 1e-4
    for name in ("state", "start", "end"):
        for k in range(*term.bound.structure.slices[name].indices(w.size)):
            shift = np.zeros_like(w)
            shift[k] = step
            high, low = gradient(objective, w + shift)[k], gradient(objective, w - shift)[k]
            assert diagonal[k] == pytest.approx((high - low) / (2 * step), rel=1e-5)


def stochastic_passes(objective, rate):
    term = objective.term
    support = term.bound.stochastic_support()
    return support.stochastic_passes(term.codes, term.weights, objective.c2, rate, term.partial)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_stochastic_step_is_a_gradient_step(monkeypatch, weight):
    """The step is relative to the mean of the sequence weights."""
    monkeypatch.setattr(stochastic, "DAMPING", 0.0)
    objective = next(
        fused_and_generic(problem(lengths=(5,), c2=0.0)[0], weights=np.array([weight]))
    )
    passes = stochastic_passes(objective, 0.1)
    zero = np.zeros(objective.n_params)
    value, first = passes.run(np.array([0]))
    assert value == pytest.approx(loss(objective, zero))
    np.testing.assert_allclose(first, -0.1 / weight * gradient(objective, zero), atol=1e-12)
    _, second = passes.run(np.array([0]))
    np.testing.assert_allclose(
        second, first - 0.1 / weight * gradient(objective, first), atol=1e-12
    )


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_stochastic_passes_converge_to_the_penalised_optimum(monkeypatch, damping):
    """The penalty is applied lazily and in three ways: none of them may change the limit."""
    monkeypatch.setattr(stochastic, "DAMPING", damping)
    objective, _ = problem(lengths=(4, 7, 5, 6), n_labels=3)
    *_, state = lbfgs(objective, np.zeros(objective.n_params), max_iter=500, tol=1e-12)
    passes = stochastic_passes(objective, 0.05)
    for _ in range(3000):
        _, mean = passes.run(np.arange(4))
    np.testing.assert_allclose(mean, state.point, atol=2e-2)
    assert loss(objective, mean) < state.objective + 1e-3


def edge_problem(monkeypatch, *, is_sparse=True, damping=0.0, **variant):
    """A problem with edge features, on a dense matrix too."""
    monkeypatch.setattr(edge_stochastic, "DAMPING", damping)
    objective, w = problem(lengths=(5, 1, 4, 3), edges=True, **variant)
    if not is_sparse:
        X = objective.term.bound.X
        dense = Sequences(X.matrix.toarray(), X.offsets)
        objective = next(fused_and_generic(objective, dense))
    return objective, w


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("partial", [True, False])
def test_a_stochastic_step_with_edge_features_is_a_gradient_step(monkeypatch, is_sparse, partial):
    objective, w = edge_problem(
        monkeypatch, is_sparse=is_sparse, partial=partial, weighted=True, c2=0.0
    )
    term = objective.term
    for sample in np.flatnonzero(term.partial.is_informative) if partial else range(4):
        passes = stochastic_passes(objective, 0.1)
        passes._w[:] = w
        weights = np.where(np.arange(4) == sample, term.weights, 0.0)
        alone = next(fused_and_generic(objective, weights=weights))
        value, after = passes.run(np.array([sample]))
        assert value == pytest.approx(loss(alone, w))
        step = 0.1 / passes._mean_weight * gradient(alone, w)
        np.testing.assert_allclose(after, w - step, atol=1e-12)


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_stochastic_passes_with_edge_features_converge_to_the_optimum(monkeypatch, damping):
    objective, _ = edge_problem(monkeypatch, damping=damping)
    *_, state = lbfgs(objective, np.zeros(objective.n_params), max_iter=500, tol=1e-12)
    passes = stochastic_passes(objective, 0.05)
    for _ in range(3000):
        _, mean = passes.run(np.arange(4))
    np.testing.assert_allclose(mean, state.point, atol=2e-2)
    assert loss(objective, mean) < state.objective + 1e-3


def test_extreme_scores_end_the_stochastic_passes_with_edge_features(monkeypatch):
    objective, _ = edge_problem(monkeypatch)
    passes = stochastic_passes(objective, 0.1)
    passes._w[:] = 1e3 * np.arange(objective.n_params)
    assert passes.run(np.arange(4))[0] == np.inf


def test_the_rate_of_the_warm_start_does_not_depend_on_the_scale_of_the_weights():
    """Regression test: the running loss was not weighted, and small weights halved the rate 30 times."""
    objective, _ = problem(lengths=np.full(300, 6), n_labels=3)
    rates = []
    for weight in (1.0, 1e-3):
        other = next(fused_and_generic(objective, weights=np.full(300, weight)))
        other.c2 = objective.c2 * weight
        support = other.term.bound.stochastic_support()
        start = WarmStart(other, other.term, support, LikelihoodCurvature(other))
        rates.append(start._choose_rate(np.arange(300))._rate)
    assert rates[0] == rates[1]


def test_the_warm_start_ends_in_time(monkeypatch):
    monkeypatch.setattr("seqlab.learning.warm_start.MAX_RATIO", np.inf)  # never good enough
    monkeypatch.setattr("seqlab.learning.warm_start.MAX_PASSES", 5)
    objective, _ = problem(lengths=np.full(30, 6), n_labels=3)
    support = objective.term.bound.stochastic_support()
    run, n_runs = stochastic.ChainStochasticPasses.run, {None: 0, 1e-9: 0}

    def count(self, order):
        n_runs[max_seconds] += 1
        return run(self, order)

    monkeypatch.setattr(stochastic.ChainStochasticPasses, "run", count)
    for max_seconds in n_runs:
        curvature = LikelihoodCurvature(objective)
        start = WarmStart(objective, objective.term, support, curvature, max_seconds)
        assert np.isfinite(start.find_start()).all()
    assert n_runs[None] - n_runs[1e-9] == 4  # one pass instead of five; others choose the rate


def test_an_interrupt_ends_the_warm_start():
    objective, _ = problem(lengths=np.full(30, 6), n_labels=3)
    passes = stochastic_passes(objective, 0.05)
    with signals_at_safe_points():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            passes.run(np.arange(30))


def test_results_are_bitwise_identical_for_any_number_of_threads(monkeypatch):
    counts = count_parallel_tasks(monkeypatch)
    lengths = np.random.default_rng(0).integers(1, 30, size=4000)
    objective, w = problem(lengths=lengths, n_labels=12)
    serial = [other.loss_gradient(w) for other in fused_and_generic(objective)]
    for a, parallel in zip(serial, fused_and_generic(objective, n_jobs=2), strict=True):
        counts.clear()
        b = parallel.loss_gradient(w)
        assert max(counts) > 2  # more blocks than threads
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])


def test_weight_two_equals_a_repeated_sequence():
    objective, w = problem()
    X, codes = objective.term.bound.X, objective.term.codes
    weighted = next(fused_and_generic(objective, weights=np.array([2.0, 1.0, 0.0])))
    labels = np.concatenate([codes[:4], codes[:4], codes[4:5]])
    repeated = next(fused_and_generic(objective, X[[0, 0, 1]], codes=labels, weights=np.ones(3)))
    assert loss(weighted, w) == pytest.approx(loss(repeated, w))
    np.testing.assert_allclose(gradient(weighted, w), gradient(repeated, w), atol=1e-12)


def test_terms_of_parts_of_the_data_add_up():
    """So other machines can compute parts of the sum."""
    objective, w = problem(lengths=(4, 1, 3, 9, 2), weighted=True)
    term = objective.term
    X, offsets, values = term.bound.X, term.bound.X.offsets, []
    for some in (np.arange(2), np.arange(2, 5)):
        bound = term.bound.structure.bind(X[some])
        codes = term.codes[offsets[some[0]] : offsets[some[-1] + 1]]
        values.append(Likelihood(bound, codes, term.weights[some]).evaluate(w))
    whole = term.evaluate(w)
    assert sum(value.loss for value in values) == pytest.approx(whole.loss, rel=1e-12)
    parts = np.vstack([value.parts for value in values])
    np.testing.assert_allclose(parts.sum(axis=0), whole.parts.sum(axis=0), atol=1e-12)
    observed = sum(value.observed for value in values)
    np.testing.assert_allclose(observed, whole.observed, atol=1e-12)


def test_an_evaluation_builds_no_matrix_of_weights(monkeypatch):
    """Evaluations once built a CSC matrix that nobody used: a sixth of a small fit."""
    objective, w = problem()

    def fail(self, weights):
        raise AssertionError("a matrix of weights was built")

    monkeypatch.setattr(FeaturePattern, "matrix", fail)
    assert np.isfinite(loss(objective, w))
