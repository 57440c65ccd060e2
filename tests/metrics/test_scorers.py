"""Scorers in scikit-learn's model selection."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from seqlab.data import InputError
from seqlab.metrics import (
    macro_recall,
    macro_recall_scorer,
    sequence_accuracy,
    sequence_accuracy_scorer,
    span_f1,
    span_f1_scorer,
    token_accuracy,
    token_accuracy_scorer,
)


class Echo(BaseEstimator):
    """Predicts each token itself, or a constant."""

    def __init__(self, constant=None):
        self.constant = constant

    def fit(self, X, y, sample_weight=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return [np.array([self.constant or token for token in tokens]) for tokens in X]


Y = [["B-X", "I-X", "O"], ["O", "B-Y"], ["B-X"], ["O", "O", "B-Y", "I-Y"]] * 3
X = [["B-X", "O", "O"], ["O", "B-Y"], ["B-X"], ["O", "B-Y", "B-Y", "I-Y"]] * 3
PAIRS = [
    (token_accuracy_scorer(), token_accuracy),
    (macro_recall_scorer(), macro_recall),
    (sequence_accuracy_scorer(), sequence_accuracy),
    (span_f1_scorer("IOB2"), span_f1),
]


@pytest.mark.parametrize(("scorer", "metric"), PAIRS)
def test_scores_equal_the_metric(scorer, metric):
    model = Echo().fit(X, Y)
    assert scorer(model, X, Y) == pytest.approx(metric(Y, model.predict(X)))
    scores = cross_val_score(model, X, Y, scoring=scorer, cv=3)
    np.testing.assert_allclose(scores, [metric(Y[:4], X[:4])] * 3)


@pytest.mark.parametrize(("scorer", "metric"), PAIRS)
def test_pickle_copy_and_clone_keep_the_scorer(scorer, metric):
    model = Echo().fit(X, Y)
    for other in (
        pickle.loads(pickle.dumps(scorer)),
        copy.deepcopy(scorer),
        sklearn.clone(scorer, safe=False),
    ):
        assert other(model, X, Y) == scorer(model, X, Y)
        assert repr(other) == repr(scorer)


def test_grid_search_and_several_scores():
    search = GridSearchCV(
        Echo(), {"constant": ["O", None]}, scoring=span_f1_scorer(average="macro"), cv=3
    )
    assert sklearn.clone(search).fit(X, Y).best_params_ == {"constant": None}
    scoring = {"f1": span_f1_scorer(), "token": token_accuracy_scorer()}
    assert {"test_f1", "test_token"} <= set(cross_validate(Echo(), X, Y, scoring=scoring, cv=2))


def test_parameters_reach_the_metric():
    y, echoed = [["O", "I-X"]], [["O", "I-X"]]
    model = Echo().fit(echoed, y)
    assert span_f1_scorer("IOB2")(model, echoed, y) == 1.0
    assert span_f1_scorer("IOB2", strict=True)(model, echoed, y) == 0.0
    assert "ignore=O" in repr(macro_recall_scorer(ignore="O"))
    assert token_accuracy_scorer(ignore="O")(model, [["I-X", "O"]], y) == 0.0


def test_weights_through_metadata_routing():
    weight = np.array([3.0, 1.0, 1.0, 0.0] * 3)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = span_f1_scorer().set_score_request(sample_weight=True)
        model = Echo().set_fit_request(sample_weight=False)
        scores = cross_val_score(
            model, X, Y, scoring=scorer, cv=3, params={"sample_weight": weight}
        )
    expected = span_f1(Y[:4], X[:4], sample_weight=weight[:4])
    assert expected != pytest.approx(span_f1(Y[:4], X[:4]))
    np.testing.assert_allclose(scores, [expected] * 3)


def test_invalid_parameters_are_an_error_at_once():
    with pytest.raises(InputError, match="did you mean 'IOB2'"):
        span_f1_scorer("BIO")
    with pytest.raises(InputError, match="average must be one of"):
        span_f1_scorer(average=None)


def test_import_loads_no_large_packages():
    code = (
        "import sys, seqlab.metrics;"
        "heavy = {'numba', 'sklearn', 'pandas', 'scipy.stats'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
