"""SNoW: values by hand, a plain reference implementation, and the scikit-learn contract."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from seqlab import SNoW, load, save
from seqlab.data import InputError

EXPECTED_FAILURES = {
    "check_decision_proba_consistency": "the check passes negative values to estimators whose "
    "tags exclude them",
}


class Reference:
    """The same network with dicts and plain loops over dense rows."""

    def __init__(self, model, n_classes):
        self.model, self.nodes = model, [{} for _ in range(n_classes)]
        self.counts = [{} for _ in range(n_classes)]
        self.sums = [{} for _ in range(n_classes)]
        self.n_seen = 0

    def activation(self, c, row, weights=None):
        weights = (self.nodes if weights is None else weights)[c]
        return sum(weights.get(f, 0.0) * x for f, x in enumerate(row) if x)

    def train(self, row, y, new):
        m = self.model
        active = [(f, x) for f, x in enumerate(row) if x]
        if new:
            for f, _ in active:
                self.counts[y][f] = self.counts[y].get(f, 0) + 1
                if self.counts[y][f] == m.min_count:
                    self.nodes[y][f] = m.initial_weight
        omega = [self.activation(c, row) for c in range(len(self.nodes))]
        for c, node in enumerate(self.nodes):
            factor = None
            if c == y and omega[c] < m.threshold + m.margin:
                factor = m.promotion
            if c != y and omega[c] >= m.threshold - m.margin:
                factor = m.demotion
            if factor is not None:
                for f, x in active:
                    if f in node:
                        log_weight = math.log(node[f]) + x * math.log(factor)
                        node[f] = math.exp(min(max(log_weight, -30.0), 30.0))
        self.n_seen += 1
        for sums, node in zip(self.sums, self.nodes, strict=True):
            for f, weight in node.items():
                sums[f] = sums.get(f, 0.0) + weight

    def weights(self, n_features):
        out = np.zeros((n_features, len(self.nodes)))
        source = self.sums if self.model.averaged else self.nodes
        for c, node in enumerate(source):
            for f, weight in node.items():
                out[f, c] = weight / (self.n_seen if self.model.averaged else 1)
        return out


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = (random.random((120, 30)) < 0.2).astype(float)
    X[:, 29] = 1.0
    y = np.argmax(X[:, :10] @ random.normal(size=(10, 4)), axis=1)
    return sp.csr_matrix(X), np.array(["a", "b", "c", "d"])[y]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from([0.0, 1.5]),
    st.integers(1, 3),
    st.booleans(),
)
def test_it_equals_the_reference(seed, averaged, margin, min_count, binary):
    random = np.random.default_rng(seed)
    n, n_features, n_classes, passes = 25, 7, int(random.integers(1, 4)), 3
    X = (random.random((n, n_features)) < 0.5) * (
        1.0 if binary else random.random((n, n_features)) * 3
    )
    y = random.integers(0, n_classes, n)
    model = SNoW(
        averaged=averaged, margin=margin, min_count=min_count, max_iter=passes, shuffle=False,
        promotion=1.7, demotion=0.5, threshold=2.0, initial_weight=0.4,
    ).fit(X, y)  # fmt: skip
    classes = model.classes_
    reference = Reference(model, classes.size)
    for number in range(model.n_iter_):
        for row, code in zip(X, np.searchsorted(classes, y), strict=True):
            reference.train(row, code, new=number == 0)
    expected = reference.weights(n_features)
    np.testing.assert_allclose(model.weights_.toarray(), expected, rtol=1e-10)
    np.testing.assert_allclose(model.activations(X), X @ expected, rtol=1e-10)
    assert model.n_seen_ == reference.n_seen


def network(weights, threshold=4.0):
    """Return a network with given weights, shape (n_features, n_classes)."""
    n_features, n_classes = np.shape(weights)
    model = SNoW(threshold=threshold)
    model.partial_fit(np.zeros((1, n_features)), [0], classes=list(range(n_classes)))
    model.weights_ = sp.csr_matrix(weights)
    return model


def test_sigmoid_of_the_activation():
    """B4: Omega = theta gives sigma 0.5; Omega = 5, theta = 4 gives 0.731059."""
    # The second node is far above the threshold: its sigma is 1, and P = sigma / (sigma + 1).
    for activation, sigma in ((4.0, 0.5), (5.0, 0.7310585786)):
        proba = network([[activation, 1000.0]]).predict_proba([[1.0]])
        np.testing.assert_allclose(proba, [[sigma / (1 + sigma), 1 / (1 + sigma)]], rtol=1e-9)


def test_classes_far_below_the_threshold_are_still_compared():
    """In floating point, sigma is 0 for all classes, but its logarithm is finite."""
    proba = network([[2.0, 1.0, 0.0]], threshold=2000.0).predict_proba([[1.0]])
    weights = np.exp([2.0, 1.0, 0.0])
    np.testing.assert_allclose(proba, [weights / weights.sum()], rtol=1e-9)


def test_one_promotion():
    """B4: a positive mistake with two active features at 0.2 makes both 0.27."""
    model = SNoW(max_iter=1, averaged=False, margin=0.0).fit([[1.0, 0.0, 1.0]], ["yes"])
    np.testing.assert_allclose(model.weights_.toarray(), [[0.27], [0.0], [0.27]])
    assert model.weights_.nnz == 2  # the inactive feature has no link


def test_one_demotion():
    X = np.array([[10.0, 0.0], [10.0, 1.0]])
    model = SNoW(max_iter=1, averaged=False, margin=0.0, initial_weight=1.0, shuffle=False)
    weights = model.fit(X, ["a", "b"]).weights_.toarray()
    # Node a fires for its own example, then also for b and is demoted by 0.8 to the power 10.
    np.testing.assert_allclose(weights, [[0.8**10, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_thick_separator(margin):
    """An activation of 5 satisfies a threshold of 4, but not with a margin of 2."""
    model = SNoW(max_iter=1, averaged=False, margin=margin, initial_weight=5.0)
    weight = model.fit([[1.0]], ["a"]).weights_[0, 0]
    assert weight == pytest.approx(5.0 if margin == 0.0 else 5.0 * 1.35)


def test_weights_stay_positive_and_finite():
    """After thousands of contradictory and of identical examples."""
    X, y = np.ones((4000, 1)), np.arange(4000) % 2
    weights = SNoW(averaged=False, margin=3.9, threshold=4.0).fit(X, y).weights_.toarray()
    assert np.all(weights > 0)
    X = np.full((50, 2), 1e-13)
    model = SNoW(averaged=False, max_iter=100).fit(X, ["one"] * 50)
    np.testing.assert_allclose(model.weights_.toarray(), 0.2, rtol=1e-6)  # 1.35 ** 1e-13
    X = np.array([[1e6, 0.0], [1e6, 1.0], [0.0, 1.0]] * 5)
    for averaged in (False, True):
        model = SNoW(averaged=averaged, max_iter=20, random_state=0).fit(X, [0, 1, 0] * 5)
        stored = model.weights_.data
        assert np.all((stored > 0) & (stored <= math.exp(30) * (1 + 1e-12)))
        assert np.isfinite(model.predict_proba(X)).all()


def test_order_of_features_does_not_matter(data):
    X, y = data
    order = np.random.default_rng(1).permutation(X.shape[1])
    a = SNoW(random_state=0).fit(X, y)
    b = SNoW(random_state=0).fit(X[:, order], y)
    np.testing.assert_allclose(b.weights_.toarray(), a.weights_.toarray()[order], rtol=1e-9)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("min_count", [1, 3])
def test_partial_fit_in_pieces_equals_fit(data, averaged, min_count):
    X, y = data
    options = {"averaged": averaged, "min_count": min_count, "max_iter": 1, "shuffle": False}
    whole = SNoW(**options).fit(X, y)
    pieces = SNoW(**options)
    for begin, stop in [(0, 1), (1, 40), (40, 41), (41, 120)]:
        pieces.partial_fit(X[begin:stop], y[begin:stop], classes=np.unique(y))
    assert np.array_equal(whole.weights_.toarray(), pieces.weights_.toarray())
    assert np.array_equal(whole.links_.toarray(), pieces.links_.toarray())
    assert whole.n_seen_ == pieces.n_seen_


def test_fit_starts_anew_and_partial_fit_continues(data):
    X, y = data
    model = SNoW(random_state=0).fit(X, y)
    first = model.weights_.toarray()
    model.partial_fit(X[:10], y[:10])
    assert not np.array_equal(first, model.weights_.toarray())
    assert np.array_equal(first, model.fit(X, y).weights_.toarray())


def test_dense_and_sparse_forms_agree(data):
    X, y = data
    model = SNoW(random_state=0).fit(X, y)
    for form in (X.toarray(), sp.csc_matrix(X), sp.coo_array(X), sp.csr_array(X)):
        assert np.array_equal(model.predict_proba(form), model.predict_proba(X))
        again = SNoW(random_state=0).fit(form, y)
        assert np.array_equal(again.weights_.toarray(), model.weights_.toarray())
    stored_zero = X.copy()
    stored_zero.data[::7] = 0.0
    plain = stored_zero.copy()
    plain.eliminate_zeros()
    a, b = (SNoW(random_state=0).fit(form, y) for form in (stored_zero, plain))
    assert np.array_equal(a.weights_.toarray(), b.weights_.toarray())


def test_learns_among_many_irrelevant_features():
    random = np.random.default_rng(0)
    relevant = random.random((1200, 6)) < 0.1
    noise = random.random((1200, 3000)) < 0.01
    X, y = sp.csr_matrix(np.hstack([relevant, noise]).astype(float)), relevant.any(axis=1)
    model = SNoW(random_state=0, max_iter=20).fit(X[:600], y[:600])
    assert max(y[600:].mean(), 1 - y[600:].mean()) < 0.6
    assert model.score(X[600:], y[600:]) > 0.88


def test_shapes_of_decision_functions(data):
    X, y = data
    many = SNoW(random_state=0).fit(X, y)
    assert np.array_equal(many.decision_function(X), many.activations(X))
    assert np.array_equal(many.classes_[many.activations(X).argmax(axis=1)], many.predict(X))
    two = SNoW(random_state=0).fit(X, y == "a")
    difference = two.decision_function(X)
    assert difference.shape == (120,)
    assert np.array_equal(two.predict(X), difference > 0)
    one = SNoW().fit(X, ["only"] * 120)
    assert set(one.predict(X)) == {"only"}
    assert np.array_equal(one.predict_proba(X), np.ones((120, 1)))


def test_history_and_convergence(data):
    X, y = data
    model = SNoW(random_state=0, max_iter=3).fit(X, y)
    assert model.n_iter_ == 3
    assert not model.converged_
    assert set(model.history_) == {"iteration", "objective", "seconds", "n_updates"}
    easy = SNoW(max_iter=100, random_state=0).fit(np.eye(3), [0, 1, 2])
    assert easy.converged_
    assert easy.n_iter_ < 100
    assert easy.history_["n_updates"][-1] == 0


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0, 1.0], [2.0, -0.5]], [0, 1], r"X\[1, 1\] is -0.5"),
        ([[np.nan]], [0], "NaN"),
        ([[1.0], [2.0]], [0], "inconsistent"),
        ([[1.0], [2.0]], [0.5, 1.5], "Unknown label type"),
    ],
)
def test_invalid_input_leaves_the_model_unchanged(data, X, y, message):
    model = SNoW(random_state=0).fit(*data)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert model.__dict__ == before


def test_invalid_calls(data):
    X, y = data
    with pytest.raises(NotFittedError):
        SNoW().predict(X)
    with pytest.raises(InputError, match="classes must be passed"):
        SNoW().partial_fit(X, y)
    model = SNoW().fit(X, y)
    weights = model.weights_.toarray()
    with pytest.raises(InputError, match=r"y\[1\] is 'z'"):
        model.partial_fit(X[:2], ["a", "z"])
    with pytest.raises(InputError, match="not the same"):
        model.partial_fit(X, y, classes=["a", "b"])
    assert np.array_equal(weights, model.weights_.toarray())
    with pytest.raises(InputError, match=r"margin=4\.0 must be below threshold"):
        SNoW(margin=4.0).fit(X, y)
    with pytest.raises(ValueError, match="promotion"):
        SNoW(promotion=1.0).fit(X, y)


def test_scikit_learn_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            SNoW(random_state=0),
            expected_failed_checks=EXPECTED_FAILURES,
            on_skip=None,
            on_fail=None,
        )
    assert not [r["check_name"] for r in results if r["status"] == "failed"]
    assert len(results) >= 45


def test_clone_pickle_save_and_grid_search(data, tmp_path):
    X, y = data
    model = SNoW(random_state=0).fit(X, y)
    save(model, tmp_path / "snow.seqlab")
    for other in (
        clone(model).fit(X, y),
        pickle.loads(pickle.dumps(model)),
        load(tmp_path / "snow.seqlab"),
    ):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
        assert np.array_equal(
            other.partial_fit(X[:9], y[:9]).weights_.toarray(),
            clone(model).fit(X, y).partial_fit(X[:9], y[:9]).weights_.toarray(),
        )
    search = GridSearchCV(SNoW(random_state=0), {"margin": [0.0, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.4


def test_interrupt_keeps_the_last_full_pass(data, monkeypatch):
    X, y = data
    whole = SNoW(random_state=0, max_iter=2).fit(X, y)
    run_pass = SNoW._run_pass

    def interrupted(self, *arguments):
        if self.n_seen_ == 2 * y.size:
            raise KeyboardInterrupt
        return run_pass(self, *arguments)

    monkeypatch.setattr(SNoW, "_run_pass", interrupted)
    model = SNoW(random_state=0, max_iter=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert (model.n_iter_, model.converged_) == (2, False)
    assert np.array_equal(model.weights_.toarray(), whole.weights_.toarray())


def test_links_of_many_classes_stay_sparse():
    """A link exists only if the class has the feature: memory grows with links, not with F x L."""
    X, _ = make_multilabel_classification(500, 200, random_state=0)
    y = np.arange(500) % 100
    model = SNoW(random_state=0, max_iter=1).fit(X, y)
    assert model.weights_.nnz <= np.count_nonzero(X)


def test_mistakes_are_counted_before_links_are_made():
    """The first example of a class cannot be predicted; a second one like it can."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    model = SNoW(max_iter=1, shuffle=False).fit(X, ["b", "a", "b", "a"])
    # At first no node is active, and of equally active nodes the first one, a, is predicted.
    assert model.history_["objective"] == [1.0]
