"""IndependentLabeler and Tagger: properties that the conformance checks do not cover."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from seqlab import IndependentLabeler, LinearChainCRF, StructuredPerceptron, Tagger, Templates
from seqlab.data import InputError
from seqlab.datasets import make_addresses
from seqlab.metrics import span_f1_scorer


@pytest.fixture(scope="module")
def numbers():
    random = np.random.default_rng(0)
    X = [random.normal(size=(5, 3)) for _ in range(20)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def test_independent_labeler_equals_its_classifier_on_the_stacked_steps(numbers):
    X, y = numbers
    labeler = IndependentLabeler(LogisticRegression(C=0.3)).fit(X, y)
    plain = LogisticRegression(C=0.3).fit(np.concatenate(X), np.concatenate(y))
    np.testing.assert_array_equal(
        np.concatenate(labeler.predict(X)), plain.predict(np.concatenate(X))
    )
    np.testing.assert_allclose(
        np.concatenate(labeler.predict_proba(X)), plain.predict_proba(np.concatenate(X))
    )
    log_proba = plain.predict_log_proba(np.concatenate(X))
    picked = log_proba[np.arange(100), np.concatenate(y)].reshape(20, 5).sum(axis=1)
    np.testing.assert_allclose(labeler.sequence_log_proba(X, y), picked)


def test_methods_depend_on_the_classifier(numbers):
    X, y = numbers
    svm = IndependentLabeler(LinearSVC(random_state=0)).fit(X, y)
    assert not hasattr(svm, "predict_proba")
    assert not hasattr(svm, "sequence_log_proba")
    assert svm.decision_function(X)[0].shape == (5, 2)
    knn = IndependentLabeler(KNeighborsClassifier()).fit(X, y)
    assert hasattr(knn, "predict_nbest")
    with pytest.raises(InputError, match="does not support sample_weight"):
        knn.fit(X, y, sample_weight=np.ones(20))


@pytest.mark.parametrize("labels", [[0.5, 1.5], [b"a", b"b"], [True, False], [3, 7], ["a", "b"]])
def test_labels_of_any_type(numbers, labels):
    X, y = numbers
    given = [[labels[v] for v in seq] for seq in y]
    labeler = IndependentLabeler(GaussianNB()).fit(X, given)
    assert labeler.predict(X)[0].tolist()[0] in labels
    assert labeler.score(X, given) > 0.8


def test_tagger_forwards_every_sequence_method():
    X, y = make_addresses(60, random_state=0, return_X_y=True)
    tagger = Tagger(Templates.default(), LinearChainCRF(c2=0.1)).fit(X, y)
    features = tagger.features_.transform(X)
    inner = tagger.labeler_
    for name in ("predict", "predict_proba", "decision_function"):
        for a, b in zip(getattr(tagger, name)(X), getattr(inner, name)(features), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        tagger.sequence_log_proba(X, y), inner.sequence_log_proba(features, y)
    )
    assert tagger.predict_nbest(X[:1], 2)[0][0][1] == inner.predict_nbest(features[[0]], 2)[0][0][1]
    assert tagger.score(X, y) == inner.score(features, y)
    assert tagger.predict(X[:1], constraints="IOB2")[0].shape == (len(X[0]),)
    assert tagger.history_ is inner.history_
    assert tagger.converged_ is inner.converged_
    assert tagger.n_iter_ == inner.n_iter_
    assert (tagger.classes_ == inner.classes_).all()


def test_tagger_has_the_methods_of_its_labeler():
    voted = Tagger(None, StructuredPerceptron(combination="voted"))
    assert hasattr(voted, "predict_proba")
    assert not hasattr(voted, "sequence_log_proba")
    assert not hasattr(voted, "predict_nbest")
    assert hasattr(Tagger(), "sequence_log_proba")


def test_grid_search_over_the_parts():
    X, y = make_addresses(60, random_state=1, return_X_y=True)
    grid = {"labeler__c2": [0.01, 100.0], "features__min_count": [1, 2]}
    search = GridSearchCV(
        Tagger(Templates.default(), LinearChainCRF(tol=1e-2)),
        grid,
        scoring=span_f1_scorer("IOB2"),
        cv=2,
    ).fit(X, y)
    assert search.best_params_["labeler__c2"] == 0.01
    assert search.predict(X)[0].shape == (len(X[0]),)


def test_invalid_estimators_raise():
    with pytest.raises(ValueError, match="labeler"):
        Tagger(None, 3).fit([[{"a": 1}]], [["x"]])
    with pytest.raises(InputError, match="Ridge is a regressor"):
        IndependentLabeler(Ridge()).fit([np.eye(2)], [[1, 2]])


def test_templates_of_label_pairs_warn():
    with pytest.warns(UserWarning, match=r"'B01:%x\[0,0\]' asks for label pairs"):
        Tagger(Templates(["U00:%x[0,0]", "B01:%x[0,0]"])).fit([[("a",), ("b",)]], [["x", "y"]])
