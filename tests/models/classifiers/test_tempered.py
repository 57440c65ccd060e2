"""TemperedClassifier: temperature scaling, the choice of the temperature, scikit-learn contract."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.utils.estimator_checks import check_estimator

from seqlab import SNoW, TemperedClassifier, load, save
from seqlab.data import InputError


@pytest.fixture
def data():
    """Return ten copies of weak features, which make naive Bayes overconfident."""
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 900)
    weak = random.random((900, 6)) < np.where(np.arange(6) % 3 == y[:, None], 0.6, 0.35)
    return np.repeat(weak, 10, axis=1).astype(float), np.array(["a", "b", "c"])[y]


def test_it_agrees_with_the_formula(data):
    X, y = data
    inner = MultinomialNB().fit(X, y)
    model = TemperedClassifier(MultinomialNB(), temperature=2.5).fit(X, y)
    powered = inner.predict_proba(X) ** (1 / 2.5)
    expected = powered / powered.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    assert np.array_equal(model.predict(X), inner.predict(X))
    assert model.temperature_ == 2.5
    same = TemperedClassifier(MultinomialNB(), temperature=1.0).fit(X, y)
    np.testing.assert_allclose(same.predict_proba(X), inner.predict_proba(X), rtol=1e-9)


def test_auto_maximises_the_held_out_likelihood(data):
    X, y = data
    model = TemperedClassifier(BernoulliNB(), cv=3).fit(X, y)
    held = np.zeros((y.size, 3))
    for train, test in StratifiedKFold(3).split(X, y):
        held[test] = BernoulliNB().fit(X[train], y[train]).predict_log_proba(X[test])

    def loss(temperature):
        scores = held / temperature
        scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return -scores[np.arange(y.size), np.searchsorted(model.classes_, y)].sum()

    grid = [loss(t) for t in np.geomspace(0.2, 100, 400)]
    assert loss(model.temperature_) <= min(grid) + 1e-3
    assert model.temperature_ > 3  # every feature occurs ten times


def test_the_likelihood_of_new_data_improves(data):
    X, y = data
    train, test = slice(0, 600), slice(600, None)
    plain = MultinomialNB().fit(X[train], y[train])
    model = TemperedClassifier().fit(X[train], y[train])
    before, after = (log_loss(y[test], m.predict_proba(X[test])) for m in (plain, model))
    assert after < 0.8 * before
    assert after < np.log(3)  # better than uniform


def test_max_log_odds(data):
    X, y = data
    model = TemperedClassifier(MultinomialNB(), temperature=1.0, max_log_odds=3.0).fit(X, y)
    found = model.predict_log_proba(X)
    assert (found.max(axis=1) - found.min(axis=1)).max() == pytest.approx(3.0)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)


def test_posteriors_that_underflow():
    """Log-posteriors near -2000 differ after scaling, although both probabilities underflow to 0."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 5)
    y = [0, 1] * 5
    model = TemperedClassifier(MultinomialNB(alpha=1e-3), temperature=1000.0).fit(X, y)
    proba = model.predict_proba([[3000.0, 0.0], [2000.0, 0.0]])
    assert 0 < proba[0, 1] < proba[1, 1] < 0.01


class Certain(ClassifierMixin, BaseEstimator):
    """A classifier with posteriors of 0 and 1, or NaN."""

    def __init__(self, value=1.0):
        self.value = value

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.classes_[np.zeros(X.shape[0], int)]

    def predict_proba(self, X):
        out = np.zeros((X.shape[0], self.classes_.size))
        out[:, 0] = self.value
        return out


def test_zeros_and_nan_of_the_inner_classifier(data):
    X, y = data
    proba = TemperedClassifier(Certain(), temperature=2.0).fit(X, y).predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba[:, 0], 1.0)
    auto = TemperedClassifier(Certain()).fit(X, y)
    assert auto.temperature_ > 100  # overconfident
    model = TemperedClassifier(Certain(np.nan), temperature=2.0).fit(X, y)
    with pytest.raises(InputError, match="Certain gave NaN as a posterior of row 0"):
        model.predict_proba(X)


def test_rare_classes(data):
    X, y = data
    rare = np.where(np.arange(y.size) < 2, "rare", y)
    model = TemperedClassifier(BernoulliNB(), cv=3).fit(X, rare)
    assert model.temperature_ > 1
    assert list(model.classes_) == ["a", "b", "c", "rare"]
    every = TemperedClassifier(BernoulliNB()).fit(X[:3], ["x", "y", "z"])
    assert every.temperature_ == 1.0


def test_splitters(data):
    X, y = data
    folds = list(GroupKFold(3).split(X, y, np.arange(y.size) // 10))
    chosen = TemperedClassifier(BernoulliNB(), cv=folds).fit(X, y).temperature_
    assert chosen == pytest.approx(
        TemperedClassifier(BernoulliNB()).fit(X, y).temperature_, rel=0.2
    )
    # If the training part does not have a class, its held-out examples cannot be scored.
    by_class = [(np.flatnonzero(y != name), np.flatnonzero(y == name)) for name in "abc"]
    assert TemperedClassifier(BernoulliNB(), cv=by_class).fit(X, y).temperature_ == 1.0
    with_gap = TemperedClassifier(BernoulliNB(), cv=[by_class[0], *folds]).fit(X, y)
    assert with_gap.temperature_ == pytest.approx(chosen)


def test_sample_weight(data):
    X, y = data
    weight = np.random.default_rng(1).integers(0, 3, y.size).astype(float)
    model = TemperedClassifier(BernoulliNB(), temperature=2.0).fit(X, y, sample_weight=weight)
    again = np.repeat(np.arange(y.size), weight.astype(int))
    peer = TemperedClassifier(BernoulliNB(), temperature=2.0).fit(X[again], y[again])
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-6)
    with pytest.raises(InputError, match="SNoW does not accept sample_weight"):
        TemperedClassifier(SNoW()).fit(X, y, sample_weight=weight)


def test_sparse_equals_dense(data):
    X, y = data
    dense, sparse = (
        TemperedClassifier(MultinomialNB()).fit(form, y) for form in (X, sp.coo_array(X))
    )
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)))


def test_invalid_parameters(data):
    for options in (
        {"temperature": 0.0},
        {"temperature": "warm"},
        {"cv": 1},
        {"max_log_odds": 0.0},
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            TemperedClassifier(**options).fit(*data)
    with pytest.raises(ValueError, match="estimator"):
        TemperedClassifier(Perceptron()).fit(*data)


def test_a_failed_fit_leaves_the_model_unchanged(data):
    X, y = data
    model = TemperedClassifier().fit(X, y)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="Negative"):
        model.fit(-X, y)
    assert model.__dict__ == before


def test_pickle_and_file(data, tmp_path):
    X, y = data
    model = TemperedClassifier(MultinomialNB(), max_log_odds=5.0).fit(X, y)
    save(model, tmp_path / "model.seqlab")
    for other in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.seqlab")):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "inner", [MultinomialNB(), LogisticRegression()], ids=lambda e: type(e).__name__
)
def test_scikit_learn_checks(inner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(TemperedClassifier(inner), on_skip=None, on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]
    assert len(results) >= 45
