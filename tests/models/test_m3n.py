"""M3N: kernels, memory limit, merged steps, bad input, and the generalisation bound."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel

import oracle
import seqlab
from margin_data import make_chains, primal_objective
from seqlab import M3N
from seqlab.data import InputError
from seqlab.inference import ChainScores


@pytest.fixture
def data():
    X, y = make_chains(seed=4, n=10, longest=5)
    return X, [np.array(list("abc"))[labels] for labels in y]


def codes(y):
    return [np.searchsorted(list("abc"), labels) for labels in y]


def fit(X, y, **options):
    return M3N(**{"C": 0.5, "tol": 1e-7, "random_state": 0, **options}).fit(X, y)


def test_linear_model_has_weights_and_a_certified_objective(data):
    X, y = data
    model = fit(X, y)
    w = np.concatenate(
        [model.coef_.T.ravel(), model.transitions_.ravel(), model.start_, model.end_]
    )
    exact = primal_objective(w, X, codes(y), 3, 0.5)
    assert model.objective_ == pytest.approx(exact)
    assert model.squared_norm_ == pytest.approx(w @ w)
    gap = np.array(model.history_["gap"])
    difference = np.array(model.history_["objective"]) - np.array(model.history_["dual"])
    np.testing.assert_allclose(gap, difference)
    assert (gap >= 0).all()
    assert model.converged_
    assert gap[-1] <= 1e-7 * model.objective_
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("solver", ["smo", "bcfw"])
@pytest.mark.parametrize("edge_features", [False, True])
def test_kernels_give_the_same_model_in_every_form(data, solver, edge_features):
    """A linear kernel equals the weights; "poly" equals a callable and a precomputed kernel."""
    X, y = data
    options = {"solver": solver, "edge_features": edge_features}
    reference = fit(X, y, **options)
    linear = fit(X, y, kernel=lambda a, b: a @ b.T, **options)
    assert linear.objective_ == pytest.approx(reference.objective_, rel=1e-6)
    for p, q in zip(reference.decision_function(X), linear.decision_function(X), strict=True):
        np.testing.assert_allclose(p, q, atol=5e-3)
    cubic = fit(X, y, kernel="poly", normalize=False, gamma=0.2, **options)
    called = fit(X, y, kernel=lambda a, b: polynomial_kernel(a, b, 3, gamma=0.2), **options)
    stacked = np.concatenate(X)
    gram = [polynomial_kernel(x, stacked, 3, gamma=0.2) for x in X]
    given = fit(gram, y, kernel="precomputed", **options)
    for other, inputs in ((called, X), (given, gram)):
        assert other.objective_ == pytest.approx(cubic.objective_, rel=1e-6)
        for p, q in zip(cubic.predict(X), other.predict(inputs), strict=True):
            assert np.array_equal(p, q)
    assert not hasattr(cubic, "coef_")


def test_kernel_scores_follow_from_the_support_steps(data):
    X, y = data
    model = fit(X, y, kernel="rbf", gamma=0.4)
    x = X[4]
    distances = ((x[:, None, :] - model.support_steps_[None]) ** 2).sum(axis=2)
    unary = np.exp(-0.4 * distances) @ model.dual_coef_
    scores = ChainScores(unary, model.transitions_, model.start_, model.end_)
    np.testing.assert_allclose(model.decision_function([x])[0], oracle.max_marginals(scores))
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-12)


def test_normalised_linear_model_equals_unit_rows(data):
    X, y = data
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in X]
    a, b = fit(X, y, normalize=True), fit(unit, y)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-4)
    for p, q in zip(a.decision_function(X), b.decision_function(unit), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-3)


def test_rows_on_demand_give_the_same_model():
    X, y = make_chains(seed=0, n=150, longest=5)
    whole = M3N(kernel="rbf", C=0.5, tol=1e-6, random_state=0).fit(X, y)
    n = sum(map(len, X))
    part = M3N(kernel="rbf", C=0.5, tol=1e-6, random_state=0, cache_size=8e-6 * n * 280).fit(X, y)
    assert part.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    for p, q in zip(whole.predict(X), part.predict(X), strict=True):
        assert np.array_equal(p, q)
    with pytest.raises(InputError, match="cache_size"):
        M3N(kernel="rbf", cache_size=8e-6 * n * 20).fit(X, y)


def test_equal_steps_are_merged():
    random = np.random.default_rng(0)
    inputs = random.integers(0, 2, size=(60, 3)).astype(float)  # at most eight different steps
    X = [inputs[i : i + 4] for i in range(0, 60, 4)]
    y = [np.where(x[:, 0] != x[:, 1], "odd", "even") for x in X]
    model = M3N(kernel="poly", degree=2, C=10, random_state=0).fit(X, y)
    assert model.support_steps_.shape[0] <= 8
    assert model.score(X, y) == 1.0
    linear = M3N(C=10, random_state=0).fit(X, y)
    assert linear.score(X, y) < 0.9  # not linearly separable


def test_sample_weight_of_zero_removes_a_sequence(data):
    X, y = data
    weights = np.ones(len(X))
    weights[3] = 0.0
    a = fit(X, y, kernel="rbf").fit(X, y, sample_weight=weights)
    rest = [i for i in range(len(X)) if i != 3]
    b = fit([X[i] for i in rest], [y[i] for i in rest], kernel="rbf", gamma=a.gamma_)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)


def test_class_weight_raises_the_cost_of_missing_a_class(data):
    X, y = data
    plain, weighted = fit(X, y, C=1.0), fit(X, y, C=1.0, class_weight={"b": 5.0})
    gold = np.concatenate(y)
    found = [np.concatenate(model.predict(X)) for model in (plain, weighted)]
    recall = [(labels[gold == "b"] == "b").mean() for labels in found]
    assert recall[1] > recall[0]
    costs = [np.where(np.array(labels) == "b", 5.0, 1.0)[:, None] * np.ones(3) for labels in y]
    w = np.concatenate(
        [weighted.coef_.T.ravel(), weighted.transitions_.ravel(), weighted.start_, weighted.end_]
    )
    total = 0.5 * w @ w
    for x, labels, cost in zip(X, codes(y), costs, strict=True):
        total += primal_objective(w, [x], [labels], 3, 1.0, costs=cost) - 0.5 * w @ w
    assert weighted.objective_ == pytest.approx(total)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_saved_models_predict_the_same(data, tmp_path, kernel):
    X, y = data
    model = fit(X, y, kernel=kernel)
    seqlab.save(model, tmp_path / "model.seqlab")
    loaded = seqlab.load(tmp_path / "model.seqlab")
    for p, q in zip(model.decision_function(X), loaded.decision_function(X), strict=True):
        assert np.array_equal(p, q)


def test_bad_input_raises_errors(data):
    X, y = data
    for bad in ({"C": 0}, {"C": -1.0}, {"degree": 0}, {"gamma": 0.0}, {"kernel": "cubic"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            M3N(**bad).fit(X, y)
    with pytest.raises(InputError, match=r"X has 30 steps but 3 columns"):
        M3N(kernel="precomputed").fit([x[:, :3] for x in X], y)
    n = sum(map(len, X))
    gram = [x @ np.concatenate(X).T for x in X]
    model = M3N(kernel="precomputed", max_iter=5, tol=1.0).fit(gram, y)
    with pytest.raises(ValueError, match=f"all {n} training steps, but X has {n - 1} columns"):
        model.predict([one[:, :-1] for one in gram])
    with pytest.raises(InputError, match="not symmetric"):
        M3N(kernel="precomputed").fit([one + np.arange(n) for one in gram], y)
    with pytest.raises(InputError, match="nan"):
        M3N(kernel=lambda a, b: np.full((len(a), len(b)), np.nan)).fit(X, y)
    calls = []

    def breaks_later(a, b):
        calls.append(len(a))
        return a @ b.T if len(calls) < 10 else np.full((len(a), len(b)), np.inf)

    broken = M3N(kernel=breaks_later, max_iter=2, tol=1.0).fit(X, y)
    calls.extend([0] * 10)
    with pytest.raises(InputError, match="kernel values must be finite"):
        broken.predict(X)
    with pytest.raises(InputError, match="class_weight has 'z'"):
        M3N(class_weight={"z": 2.0}).fit(X, y)


def test_margin_loss_equals_its_definition(data):
    """A labeling can win if its raised score reaches every other labeling's lowered score."""
    X, y = data
    model = fit(X, y, C=0.1)
    for gamma in (0.0, 0.05, 0.3, 2.0):
        shares = []
        for x, gold in zip(X, codes(y), strict=True):
            unary = x @ model.coef_.T
            scores = ChainScores(unary, model.transitions_, model.start_, model.end_)
            every = [
                (value, sum(a != b for a, b in zip(labels, gold, strict=True)))
                for labels, value in oracle.legal(scores)
            ]
            lowered = max(value - gamma * k for value, k in every)
            shares.append(max(k for value, k in every if value + gamma * k >= lowered) / len(gold))
        assert model.margin_loss(X, y, gamma) == pytest.approx(np.mean(shares))
    losses = [model.margin_loss(X, y, gamma) for gamma in (0.0, 0.1, 0.5, 1.0, 5.0)]
    assert losses == sorted(losses)
    assert losses[-1] == 1.0
    errors = [(p != t).mean() for p, t in zip(model.predict(X), y, strict=True)]
    assert losses[0] == pytest.approx(np.mean(errors))
    with pytest.raises(InputError, match="gamma must be a number of at least 0"):
        model.margin_loss(X, y, -1.0)


def test_bound_has_the_terms_of_the_theorem():
    """One feature of length 1, two labels: all terms can be written down."""
    x = np.array([[1.0, 0.0]])
    model = M3N(random_state=0).fit([x, x[:, ::-1]], [["a"], ["b"]])
    X, y = [np.repeat(x, 4, axis=0)] * 5, [["a"] * 4] * 5
    bound = model.margin_bound(X, y, 0.5, delta=0.1, constant=2.0)
    assert 0.0 <= bound.margin_loss <= 1.0
    # Both steps of an edge and the pair of labels: squared length 3; every inner step has two edges.
    logs = np.log(5) + np.log(4) + np.log(2) + np.log(2)
    inner = 3.0 * model.squared_norm_ * 2**2 / 0.5**2 * logs
    expected = np.sqrt(2.0 / 5 * (inner + np.log(1 / 0.1)))
    assert bound.complexity == pytest.approx(expected)
    for options, message in [
        ({"gamma": 0.0}, "gamma must be a positive number"),
        ({"gamma": 1e-300}, "too small"),
        ({"gamma": 0.5, "delta": 100}, "probability below 1"),
        ({"gamma": 0.5, "constant": -1}, "constant must be a positive number"),
    ]:
        with pytest.raises(InputError, match=message):
            model.margin_bound(X, y, **options)
