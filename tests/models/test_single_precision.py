"""Training in single precision: the same model, up to rounding."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from seqlab import LinearChainCRF, load, save
from seqlab.data import Sequences
from seqlab.datasets import make_hmm_sequences
from seqlab.models import _warm_start
from seqlab.models._fast_likelihood import FastChainLikelihood
from seqlab.models._likelihood import ChainLikelihood
from seqlab.structures import ChainStructure


def parts(n_labels, *, unit=False, n_sequences=30, mean_length=12, seed=0, **structure_options):
    """Arguments of a likelihood, and weights."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 2 * mean_length, n_sequences)
    n, n_features = int(lengths.sum()), 60
    values = np.ones((n, n_features)) if unit else random.normal(size=(n, n_features))
    X = Sequences(
        sp.csr_matrix(values * (random.random((n, n_features)) < 0.15)),
        np.concatenate([[0], np.cumsum(lengths)]),
    )
    codes = random.integers(0, n_labels, n)
    structure = ChainStructure.from_data(X, codes, n_labels, **structure_options)
    w = random.normal(size=structure.n_params)
    return (structure, X, codes, np.ones(len(X)), 0.3), w


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("unit", [False, True], ids=["values", "unit values"])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 12, 100])
def test_value_gradient_and_curvature(n_labels, unit):
    arguments, w = parts(n_labels, unit=unit)
    double, single = ChainLikelihood(*arguments), FastChainLikelihood(*arguments, single=True)
    (a, expected), (b, gradient) = double.loss_gradient(w), single.loss_gradient(w)
    assert b == pytest.approx(a, rel=1e-6)
    assert abs(b - a) < 30 * single.noise + 1e-12 * abs(a)
    assert relative(gradient, expected) < 1e-5
    assert not np.array_equal(gradient, expected)
    curvature = FastChainLikelihood(*arguments).curvature(w)
    assert relative(single.curvature(w), curvature) < 1e-5


@pytest.mark.parametrize("variant", ["weights", "costs"])
def test_weights_and_costs(variant):
    (structure, X, codes, weights, c2), w = parts(5)
    random, costs = np.random.default_rng(1), None
    if variant == "weights":
        weights = random.random(len(X))
    else:
        costs = random.normal(size=codes.size)
    arguments = (structure, X, codes, weights, c2)
    double = ChainLikelihood(*arguments, miss_cost=costs)
    single = FastChainLikelihood(*arguments, miss_cost=costs, single=True)
    (a, expected), (b, gradient) = double.loss_gradient(w), single.loss_gradient(w)
    assert b == pytest.approx(a, rel=1e-6)
    assert relative(gradient, expected) < 1e-5


def test_sequences_that_range_too_far_are_done_in_doubles(monkeypatch):
    (structure, X, *rest), w = parts(4, n_sequences=100)
    matrix, again = X.matrix.copy(), []
    for sequence, factor in ((3, 200.0), (17, 1e3)):  # too far for single precision, for both
        first, last = X.offsets[sequence : sequence + 2]
        matrix.data[matrix.indptr[first] : matrix.indptr[last]] *= factor
    arguments = (structure, Sequences(matrix, X.offsets), *rest)
    single = FastChainLikelihood(*arguments, single=True)
    in_doubles = single._again_in_doubles

    def spy(w, curvature, result):
        again.extend(np.flatnonzero(result.left_out))
        in_doubles(w, curvature, result)

    monkeypatch.setattr(single, "_again_in_doubles", spy)
    w *= 0.04  # no term of a score is too large, but their sums are
    (a, expected), (b, gradient) = (
        objective.loss_gradient(w) for objective in (ChainLikelihood(*arguments), single)
    )
    assert {3, 17} <= set(again)
    assert len(again) < len(X)
    assert single.is_single == (len(again) <= 0.1 * len(X))
    assert b == pytest.approx(a, rel=1e-6)
    assert relative(gradient, expected) < 1e-5


@pytest.mark.parametrize("size", [1e4, 1e20, 1e39])
def test_large_features_are_not_rounded_away(size):
    """Two features of opposite sign, whose scores cancel: in single precision nothing true would be left."""
    (structure, X, *rest), _ = parts(3, all_states=True)
    dense = X.matrix.toarray()
    dense[:, 0], dense[:, 1] = size, -size * (1.0 + 1e-6 * dense[:, 2])
    arguments = (structure, Sequences(sp.csr_matrix(dense), X.offsets), *rest)
    w = np.random.default_rng(0).normal(size=structure.n_params) * 0.1
    state = w[structure.slices["state"]].reshape(-1, 3)
    state[:2] = state[0] * (1.0 if size < 1e10 else 1e4 / size)
    (a, expected), (b, gradient) = (
        objective.loss_gradient(w)
        for objective in (
            ChainLikelihood(*arguments),
            FastChainLikelihood(*arguments, single=True),
        )
    )
    assert b == pytest.approx(a, rel=1e-6)
    assert relative(gradient, expected) < 1e-5


def test_long_sequence():
    random = np.random.default_rng(0)
    n = 100_000
    X = Sequences(sp.csr_matrix(random.normal(size=(n, 3))), np.array([0, n - 4000, n]))
    codes = random.integers(0, 3, n)
    structure = ChainStructure.from_data(X, codes, 3)
    w = random.normal(size=structure.n_params)
    arguments = (structure, X, codes, np.ones(2), 0.0)
    (a, expected), (b, gradient) = (
        FastChainLikelihood(*arguments, single=single).loss_gradient(w) for single in (False, True)
    )
    assert b == pytest.approx(a, rel=1e-6)
    assert relative(gradient, expected) < 1e-5


@pytest.fixture(scope="module")
def sequences():
    return make_hmm_sequences(300, n_labels=12, random_state=0, return_X_y=True)


@pytest.mark.parametrize(
    "options",
    [{}, {"solver": "lbfgs"}, {"c1": 0.5}, {"solver": "owlqn"}, {"boundary": "unpenalized"}],
    ids=str,
)
def test_ends_at_the_optimum(sequences, options):
    X, y = sequences
    exact = LinearChainCRF(c2=0.1, tol=1e-9, **options).fit(X, y)
    crf = LinearChainCRF(c2=0.1, precision="single", tol=1e-3, **options).fit(X, y)
    assert crf.converged_
    assert crf.objective_ <= 1.001 * exact.objective_
    # And as near as one asks, since the end is in double precision.
    crf = LinearChainCRF(c2=0.1, precision="single", tol=1e-9, **options).fit(X, y)
    assert crf.objective_ == pytest.approx(exact.objective_, rel=1e-8)
    same = np.concatenate(crf.predict(X)) == np.concatenate(exact.predict(X))
    assert same.mean() > 0.999


def test_what_is_reported_is_exact(sequences):
    X, y = sequences
    crf = LinearChainCRF(c2=0.1, precision="single", tol=1e-3, boundary=False).fit(X, y)
    squares = sum(np.sum(np.square(part)) for part in (crf.coef_.data, crf.transitions_))
    loss = -np.sum(crf.sequence_log_proba(X, y)) + 0.1 * squares
    assert crf.objective_ == pytest.approx(loss, rel=1e-12)
    assert crf.history_["objective"][-1] == crf.objective_
    assert len(crf.history_["objective"]) == crf.n_iter_ + 1
    assert crf.coef_.dtype == crf.transitions_.dtype == np.float64


@pytest.mark.parametrize("n_labels", [2, 100])
def test_few_and_many_labels_on_dense_features(n_labels):
    random = np.random.default_rng(0)
    directions = random.normal(size=(n_labels, 20))
    y = [random.integers(0, n_labels, 10) for _ in range(250)]
    X = [directions[labels] + random.normal(size=(10, 20)) for labels in y]
    exact = LinearChainCRF(tol=1e-7).fit(X, y)
    crf = LinearChainCRF(precision="single", tol=1e-3).fit(X, y)
    assert crf.objective_ <= 1.001 * exact.objective_


def test_same_bits_for_any_number_of_threads():
    X, y = make_hmm_sequences(1500, n_labels=20, random_state=0, return_X_y=True)
    one, two = (LinearChainCRF(precision="single", n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.objective_ == two.objective_
    assert one.history_["objective"] == two.history_["objective"]
    np.testing.assert_array_equal(one.coef_.data, two.coef_.data)
    np.testing.assert_array_equal(one.transitions_, two.transitions_)


def test_a_warm_start_that_leaves_the_range_is_done_again_in_doubles(sequences, monkeypatch):
    begin, seen = _warm_start.warm_start, []

    def fail_in_single(objective):
        seen.append(objective.is_single)
        return None if objective.is_single else begin(objective)

    monkeypatch.setattr(_warm_start, "warm_start", fail_in_single)
    monkeypatch.setattr(_warm_start, "MIN_WORK", 0)
    X, y = sequences
    crf = LinearChainCRF(precision="single").fit(X, y)
    assert seen == [True, False]
    assert crf.objective_ <= 1.001 * LinearChainCRF(tol=1e-8).fit(X, y).objective_


def test_iteration_limit_counts_both_precisions(sequences):
    X, y = sequences
    for max_iter in (1, 4):
        crf = LinearChainCRF(precision="single", solver="lbfgs", max_iter=max_iter, tol=1e-12)
        with pytest.warns(match="max_iter"):
            crf.fit(X, y)
        assert crf.n_iter_ == max_iter


def test_is_a_parameter_like_any_other(sequences, tmp_path):
    X, y = sequences[0][:20], sequences[1][:20]
    crf = clone(LinearChainCRF(precision="single")).fit(X, y)
    assert crf.precision == "single"
    save(crf, tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(crf)), load(tmp_path / "model")):
        assert other.precision == "single"
        np.testing.assert_array_equal(other.coef_.toarray(), crf.coef_.toarray())
    with pytest.raises(ValueError, match="precision"):
        LinearChainCRF(precision="half").fit(X, y)


def test_masks_of_training_and_of_prediction(sequences):
    """Partly known labels are learnt in double precision; constraints hold for either."""
    X, y = sequences[0][:40], [list(labels) for labels in sequences[1][:40]]
    for labels in y:
        labels[0] = None
    single, double = (LinearChainCRF(precision=p).fit(X, y) for p in ("single", "double"))
    np.testing.assert_array_equal(single.coef_.toarray(), double.coef_.toarray())
