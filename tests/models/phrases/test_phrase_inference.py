"""PhraseInference: costs, tuning, constraints and classifiers."""

from __future__ import annotations

import os
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import Perceptron, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

import seqlab
from phrase_data import quick_model
from seqlab import PhraseInference
from seqlab.data import (
    InputError,
    NoLegalLabelingError,
    NumericalError,
    PhraseSet,
    open_close_mask,
)
from seqlab.datasets import fetch_ptb_sample
from seqlab.features.brackets import BracketFeatures
from seqlab.inference import (
    ChainScores,
    CountLimit,
    Covered,
    LengthLimit,
    Mask,
    PhraseCosts,
    Requires,
    TypeOrder,
    best_phrases,
    viterbi,
)
from seqlab.metrics import span_f1

COSTS = ("weighted", "map", "threshold", "product", "log_odds")


class Fixed(ClassifierMixin, BaseEstimator):
    """A classifier whose posteriors are the columns of X, in the order of the sorted classes."""

    def __init__(self, value=None):
        self.value = value

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, : self.classes_.size].argmax(axis=1)]

    def predict_proba(self, X):
        proba = np.array(X[:, : self.classes_.size], dtype=float)
        if self.value is not None:
            proba[3, 1] = self.value
        return proba


@pytest.mark.parametrize("cost", COSTS)
def test_every_cost_finds_most_phrases(typed, cost):
    X, y = typed
    model = quick_model(cost=cost, min_probability=0.2 if cost == "product" else 0.0).fit(
        X[:30], y[:30]
    )
    assert model.types_ == ["LOC", "PER"]
    assert model.open_classes_.tolist() == ["O-LOC", "O-PER", "nOi", "nOo"]
    assert model.close_classes_.tolist() == ["C-LOC", "C-PER", "nCi", "nCo"]
    found = model.predict_phrases(X[30:])
    assert all(isinstance(phrases, PhraseSet) for phrases in found)
    right = sum(len(a & b) for a, b in zip(found, y[30:], strict=True))
    f1 = 2 * right / (sum(map(len, found)) + sum(map(len, y[30:])))
    assert f1 > 0.5
    assert model.score(X[30:], y[30:]) == pytest.approx(f1)
    assert (model.tuning_ is None) == (cost in ("map", "product"))


def test_bracket_features_in_a_pipeline():
    sentences = [
        [("the", "DT"), ("cat", "NN"), ("sat", "VBD")],
        [("a", "DT"), ("big", "JJ"), ("dog", "NN"), ("saw", "VBD"), ("the", "DT"), ("cat", "NN")],
        [("dogs", "NNS"), ("sat", "VBD")],
    ] * 4
    tags = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP", "I-NP", "O", "B-NP", "I-NP"], ["B-NP", "O"]] * 4
    model = Pipeline([("features", BracketFeatures()), ("phrases", quick_model(cost="weighted"))])
    model.fit(sentences, tags)
    assert model["phrases"].steps_ == "decisions"
    assert [p.tolist() for p in model.predict(sentences)] == tags
    tagger = seqlab.Tagger(BracketFeatures(columns=["pos"]), quick_model()).fit(sentences, tags)
    assert tagger.predict([[("one", "DT"), ("bird", "NN")]])[0].tolist() == ["B-NP", "I-NP"]
    assert tagger.score(sentences, tags) == 1.0


def test_map_is_viterbi_over_the_posteriors(single):
    X, y = single
    model = quick_model().fit(X, y)
    proba = model.decision_proba(X)
    legal = open_close_mask()
    mask = Mask(transitions=legal.transitions, start=legal.start, end=legal.end)
    for opened, closed, phrases in zip(*proba, model.predict(X), strict=True):
        unary = np.full((2 * len(opened), 6), -np.inf)
        unary[0::2, :3], unary[1::2, 3:] = np.log(opened), np.log(closed)
        best = viterbi(ChainScores(unary, np.zeros((6, 6))), mask=mask).labels
        names = np.array(["O", "nOi", "nOo", "C", "nCi", "nCo"])[best]
        assert phrases.to_open_close() == names.tolist()


def test_decision_proba(typed):
    X, y = typed
    model = quick_model().fit(X, y)
    opened, closed = model.decision_proba(X)
    for part in (opened, closed):
        assert [p.shape for p in part] == [(len(x), 4) for x in X]
        np.testing.assert_allclose(np.concatenate(part).sum(axis=1), 1.0)
    stacked = model.decision_proba(np.concatenate(X), lengths=[len(x) for x in X])
    assert np.array_equal(stacked.open, np.concatenate(opened))
    column = model.open_classes_.tolist().index("O-PER")
    starts = np.concatenate(
        [[t in {a for a, _, k in p if k == "PER"} for t in range(p.length)] for p in y]
    )
    assert (
        np.concatenate(opened)[starts, column].mean()
        > np.concatenate(opened)[~starts, column].mean()
    )


def test_tuning_selects_the_best_point(single):
    X, y = single
    model = quick_model(cost="threshold").fit(X, y)
    tried = model.tuning_
    assert len(tried["threshold"]) == len(tried["f1"]) >= 50
    assert tried["f1"][tried["threshold"].tolist().index(model.threshold_)] == tried["f1"].max()
    assert 0.0 < model.threshold_ < 1.0
    fixed = quick_model(cost="threshold", threshold=model.threshold_).fit(X, y)
    assert fixed.tuning_ is None
    assert fixed.predict(X) == model.predict(X)
    weighted = quick_model(cost="weighted").fit(X, y)
    best = weighted.tuning_["f1"].argmax()
    assert weighted.tuning_["f1"][best] >= tried["f1"].max() - 0.02
    assert weighted.inside_weight_ in weighted.tuning_["inside_weight"]
    same = quick_model(cost="weighted", threshold=0.0, inside_weight=1.0).fit(X, y)
    assert same.predict(X) == quick_model(cost="map").fit(X, y).predict(X)
    tuned_map = quick_model(cost="map", threshold="tune").fit(X, y)
    assert tuned_map.tuning_ is not None
    assert set(tuned_map.tuning_["inside_weight"]) == {1.0}
    only_weight = quick_model(cost="weighted", threshold=0.5).fit(X, y)
    assert only_weight.threshold_ == 0.5
    assert set(only_weight.tuning_["threshold"]) == {0.5}


def test_tuning_uses_out_of_fold_posteriors(single):
    """With one nearest neighbour, training posteriors are perfect, out-of-fold ones are not."""
    X, y = single
    model = PhraseInference(KNeighborsClassifier(1), cost="threshold", random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.tuning_["f1"].max() < 0.95


def test_higher_thresholds_give_fewer_phrases(single):
    X, y = single
    counts = [
        sum(
            map(
                len,
                quick_model(cost=cost, threshold=threshold, inside_weight=0.1).fit(X, y).predict(X),
            )
        )
        for cost in ("weighted", "threshold", "log_odds", "map", "product")
        for threshold in (-0.5, 0.2, 0.9)
    ]
    for a, b, c in zip(counts[0::3], counts[1::3], counts[2::3], strict=True):
        assert a >= b >= c
    assert counts[3] > counts[5]


def test_constraints_hold_and_never_reduce_the_cost(typed):
    X, y = typed[0][:25], typed[1][:25]
    model = quick_model().fit(X, y)
    free = model.predict(X)
    rules = {
        "one": (CountLimit(1), lambda p: len(p) <= 1),
        "no PER": (CountLimit(0, type="PER"), lambda p: "PER" not in p.types),
        "order": (
            TypeOrder(("PER", "LOC")),
            lambda p: [q.type for q in p] == sorted((q.type for q in p), reverse=True),
        ),
        "pair": (Requires("LOC", "PER"), lambda p: "LOC" not in p.types or "PER" in p.types),
        "short": (LengthLimit(longest=2), lambda p: all(b - a <= 2 for a, b, _ in p)),
        "covered": (Covered(), lambda p: sum(b - a for a, b, _ in p) == p.length),
    }
    proba = model.decision_proba(X)
    for name, (rule, holds) in rules.items():
        assert not all(map(holds, free)), name
        constrained = model.predict(X, constraints=[rule])
        assert all(map(holds, constrained)), name
        assert model.set_params(constraints=(rule,)).predict(X) == constrained
        assert quick_model(constraints=rule).fit(X, y).predict(X) == constrained
        model.set_params(constraints=())
        for opened, closed, a, b in zip(*proba, free, constrained, strict=True):
            if holds(a):
                assert a == b
            else:
                assert _cost(opened, closed, b) >= _cost(opened, closed, a) - 1e-9
    limited = quick_model(max_length=2).fit(X, y)
    assert limited.predict(X) == model.predict(X, constraints=LengthLimit(longest=2))


def _cost(opened, closed, phrases):
    """Return the negative log-probability of the decisions, with LOC in column 0 and PER in 1."""
    columns = np.full((phrases.length, 2), 3)
    for start, stop, type_ in phrases:
        columns[start:stop] = 2
        columns[start, 0] = columns[stop - 1, 1] = ["LOC", "PER"].index(type_)
    steps = np.arange(phrases.length)
    return -np.log(opened[steps, columns[:, 0]]).sum() - np.log(closed[steps, columns[:, 1]]).sum()


def test_the_error_names_a_sequence_with_infeasible_constraints(typed):
    X, y = typed
    model = quick_model().fit(X, y)
    with pytest.raises(NoLegalLabelingError, match=r"sequence 2 \(2 steps\)"):
        model.predict([X[0], X[1], X[2][:2]], constraints=[CountLimit(at_least=3)])
    with pytest.raises(InputError, match="names the type 'ORG'"):
        quick_model(constraints=(CountLimit(1, type="ORG"),)).fit(X, y)
    with pytest.raises(InputError, match="is not a constraint on phrases"):
        model.predict(X, constraints=["LOC"])
    with pytest.raises(InputError, match="'IOB2' is not a constraint on phrases"):
        model.predict(X, constraints="IOB2")


def test_an_example_by_hand():
    """The posteriors open (.9, .2, .6) and close (.3, .8, .7) give the phrases 0:2 and 2:3."""
    rows = np.zeros((6, 3))
    rows[0::2, 0], rows[1::2, 0] = [0.9, 0.2, 0.6], [0.3, 0.8, 0.7]
    rows[:, 1:] = (1 - rows[:, :1]) / 2
    train = np.tile(np.eye(3) + 0.1, (2, 1))
    y = [PhraseSet([(0, 2, "NP")], 3)]
    model = PhraseInference(Fixed(), cost="product", steps="decisions").fit([train], y)
    assert model.predict([rows]) == [PhraseSet([(0, 2, "NP"), (2, 3, "NP")], 3)]
    opened, closed = rows[0::2], rows[1::2]
    best = best_phrases(PhraseCosts.product(opened[:, :1], closed[:, :1]))
    assert best.cost[0] == pytest.approx(-1.14)


@pytest.mark.parametrize("value", [np.nan, -0.5, np.inf])
def test_the_error_names_the_position_of_invalid_posteriors(single, value):
    X, y = single
    model = PhraseInference(Fixed(), cost="map").fit([np.abs(x) for x in X], y)
    model.open_posteriors_.classifier.value = value
    with pytest.raises(
        NumericalError, match="Fixed gave values that are not probabilities for sequence 0 at"
    ):
        model.predict([np.abs(X[0]), np.abs(X[1])] if len(X[0]) > 3 else [np.ones((5, 5))])


def test_classifiers_without_probabilities(single):
    X, y = single
    for classifier in (LinearSVC(), Perceptron()):
        model = PhraseInference(classifier, cost="map").fit(X, y)
        assert model.score(X, y) > 0.5
        with pytest.raises(InputError, match="has no predict_proba; calibrate="):
            PhraseInference(classifier, calibrate=None).fit(X, y)

    class Silent(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return X

    with pytest.raises(InputError, match="neither predict_proba nor decision_function"):
        PhraseInference(Silent()).fit(X, y)
    with pytest.raises(InputError, match="neither predict_proba nor decision_function"):
        PhraseInference(GaussianNB(), close_classifier=Silent()).fit(X, y)
    with pytest.raises(InputError, match="regressor"):
        PhraseInference(Ridge()).fit(X, y)
    with pytest.raises(InputError, match="does not accept sample_weight"):
        PhraseInference(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(X)))


def test_two_different_classifiers(single):
    X, y = single
    model = PhraseInference(GaussianNB(), close_classifier=BernoulliNB(), cost="map").fit(X, y)
    assert isinstance(model.open_classifier_, GaussianNB)
    assert isinstance(model.close_classifier_, BernoulliNB)


def test_a_single_decision_needs_no_classifier():
    X = [np.random.default_rng(i).normal(size=(4, 2)) for i in range(5)]
    y = [PhraseSet([(t, t + 1, "w") for t in range(4)], 4)] * 5
    model = quick_model(cost="weighted").fit(X, y)
    assert model.open_classifier_ is None
    assert model.predict(X) == y


def test_sample_weights(single):
    X, y = single
    weights = np.ones(len(X))
    weights[0], weights[1] = 3.0, 0.0
    weighted = quick_model().fit(X, y, sample_weight=weights)
    repeated = quick_model().fit([X[0]] * 3 + X[2:], [y[0]] * 3 + y[2:])
    for a, b in zip(weighted.decision_proba(X).open, repeated.decision_proba(X).open, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)
    f1 = weighted.score(X, y, sample_weight=weights)
    tags = [p.to_tags() for p in y], [p.to_tags() for p in weighted.predict(X)]
    assert f1 == span_f1(*tags, sample_weight=weights)


def test_clone_pickle_save_load_and_set_params(typed, tmp_path):
    X, y = typed[0][:16], typed[1][:16]
    rules = (CountLimit(3), LengthLimit(longest=4, type="PER"), TypeOrder(("LOC", "PER")))
    rules = (*rules, Requires("PER", "LOC"), Covered((0,)))
    model = quick_model(cost="weighted", constraints=rules).fit(X, y)
    assert model.get_params()["constraints"] == rules
    assert model.get_params()["classifier__C"] == 10.0
    reference = model.predict(X)
    assert clone(model).fit(X, y).predict(X) == reference
    assert pickle.loads(pickle.dumps(model)).predict(X) == reference
    seqlab.save(model, tmp_path / "model.seqlab")
    loaded = seqlab.load(tmp_path / "model.seqlab")
    assert loaded.predict(X) == reference
    assert loaded.constraints == rules
    assert loaded.get_params().keys() == model.get_params().keys()
    changed = clone(model).set_params(cost="map", classifier__C=0.1, constraints=())
    assert changed.classifier.C == 0.1
    assert len(changed.fit(X, y).predict(X)) == len(X)


def test_model_selection(single):
    X, y = single
    for coded in (y, [list(p) for p in y], [p.to_tags() for p in y]):
        scores = cross_val_score(quick_model(), X, coded, cv=3)
        assert (scores > 0.3).all()
    grid = {"cost": ["map", "product"], "classifier__C": [0.01, 10.0]}
    search = GridSearchCV(quick_model(min_probability=0.1), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    assert len(search.predict(X)) == len(X)


def test_same_bits_for_any_number_of_jobs(typed):
    X, y = typed
    a = quick_model(cost="weighted").fit(X, y)
    with joblib.parallel_config(backend="threading"):
        b = quick_model(cost="weighted", n_jobs=2).fit(X, y)
    assert a.predict(X) == b.predict(X)
    assert (a.threshold_, a.inside_weight_) == (b.threshold_, b.inside_weight_)
    assert np.array_equal(a.tuning_["f1"], b.tuning_["f1"])


def test_a_failed_fit_leaves_the_model_unchanged(single):
    X, y = single
    model = quick_model().fit(X, y)
    before = model.predict(X)
    with pytest.raises(InputError):
        model.fit(X, [[(0, 2, "NP"), (1, 3, "NP")], *y[1:]])
    assert model.predict(X) == before


@pytest.mark.data
@pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set")
def test_a_smaller_inside_weight_helps_with_long_phrases():
    """Subject-verb phrases: tuning is better than the most probable path of decisions."""
    X, y = fetch_ptb_sample(section="01", task="sv", return_X_y=True)
    features = BracketFeatures().fit(X[:1000])
    train, test = features.transform(X[:1000]), features.transform(X[1000:1600])
    bayes = seqlab.TemperedClassifier(MultinomialNB(), temperature=8.0)
    f1 = {}
    for cost in ("map", "weighted"):
        model = PhraseInference(bayes, cost=cost, random_state=0).fit(train, y[:1000])
        f1[cost] = model.score(test, y[1000:1600])
    assert f1["weighted"] > 0.83
    assert f1["weighted"] > f1["map"] + 0.05
