"""PhraseInference: codings in and out, costs, tuning, constraints, and what is refused."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

import seqlab
from seqlab import PhraseInference
from seqlab.data import (
    SCHEMES,
    InputError,
    NoLegalLabelingError,
    NumericalError,
    Phrase,
    PhraseSet,
    Sequences,
    open_close_mask,
    phrases_to_open_close,
    phrases_to_tags,
    tags_to_phrases,
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


def make_data(types=("NP",), n_sequences=40, seed=0, noise=0.6):
    """Noisy features of the decisions of random phrase sets: 6 + n_types columns per token."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        length = int(rng.integers(3, 12))
        phrases, t = [], 0
        while t < length:
            stop = min(length, t + int(rng.integers(1, 4)))
            if rng.random() < 0.6:
                phrases.append(Phrase(t, stop, types[rng.integers(len(types))]))
            t = stop
        features = rng.normal(scale=noise, size=(length, 4 + len(types)))
        for start, stop, type_ in phrases:
            features[start, 0] += 1.5
            features[stop - 1, 1] += 1.5
            features[start:stop, 2] += 1.5
            features[start:stop, 4 + types.index(type_)] += 1.5
        X.append(features)
        y.append(PhraseSet(phrases, length))
    return X, y


@pytest.fixture(scope="module")
def typed():
    return make_data(("LOC", "PER"))


@pytest.fixture(scope="module")
def single():
    return make_data()


def quick(**options):
    options = {"cost": "map", "random_state": 0, **options}
    return PhraseInference(LogisticRegression(C=10.0, max_iter=500), **options)


def two_rows_per_token(X):
    """Open and close rows with columns of their own."""
    out = []
    for x in X:
        rows = np.zeros((2 * len(x), 2 * x.shape[1]))
        rows[0::2, : x.shape[1]] = x
        rows[1::2, x.shape[1] :] = x
        out.append(rows)
    return out


class Fixed(ClassifierMixin, BaseEstimator):
    """Probabilities that are given: the columns of X, in the order of the sorted classes."""

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
def test_finds_most_phrases_whatever_the_cost(typed, cost):
    X, y = typed
    model = quick(cost=cost, min_probability=0.2 if cost == "product" else 0.0).fit(X[:30], y[:30])
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


def test_every_coding_in_gives_the_same_model(single):
    X, y = single
    plain = [[tuple(phrase) for phrase in phrases] for phrases in y]
    shuffled = [phrases[::-1] for phrases in plain]
    reference = quick(output="phrases").fit(X, y)
    sets = reference.predict(X)
    codings = {
        "tuples": plain,
        "unsorted": shuffled,
        "arrays of tags": [np.array(p.to_tags()) for p in y],
        **{scheme: [p.to_tags(scheme) for p in y] for scheme in SCHEMES if scheme != "IO"},
    }
    for name, coded in codings.items():
        scheme = name if name in SCHEMES else "IOB2"
        model = quick(scheme=scheme, output="phrases").fit(X, coded)
        assert model.predict(X) == sets, name
        assert model.score(X, coded) == reference.score(X, y)
    decisions = quick(output="phrases").fit(X, [p.to_open_close() for p in y])
    untyped = [PhraseSet([(a, b) for a, b, _ in p], p.length) for p in sets]
    assert decisions.types_ == [None]
    assert decisions.predict(X) == untyped
    assert decisions.score(X, [p.to_open_close() for p in y]) == reference.score(X, y)
    # A model of one type also scores decisions, which name none.
    assert reference.score(X, [p.to_open_close() for p in y]) == reference.score(X, y)


def test_every_coding_out(single):
    X, y = single
    tags = [p.to_tags() for p in y]
    sets = quick().fit(X, y).predict(X)
    assert isinstance(sets[0], PhraseSet)
    for output in ("auto", *SCHEMES):
        try:
            expected = [p.to_tags("IOB2" if output == "auto" else output) for p in sets]
        except InputError:  # touching phrases of one type, which IO cannot write
            assert output == "IO"
            continue
        model = quick(output=output).fit(X, tags)
        predicted = model.predict(X)
        assert [p.tolist() for p in predicted] == expected
        assert {label for p in expected for label in p} <= set(model.classes_.tolist())
    touching = next(i for i, p in enumerate(sets) if any(a.stop == b.start for a, b in pairwise(p)))
    with pytest.raises(InputError, match=f"sequence {touching}: .* IO would merge them"):
        quick(output="IO").fit(X, tags).predict(X)
    decided = quick(output="open_close").fit(X, tags).predict(X)
    assert [p.tolist() for p in decided] == [p.to_open_close() for p in sets]
    same = quick().fit(X, [p.to_open_close() for p in y]).predict(X)
    assert [p.tolist() for p in same] == [p.tolist() for p in decided]


def test_rows_may_be_tokens_or_decisions(single):
    X, y = single
    double = two_rows_per_token(X)
    reference = quick().fit(X, y)
    tags, decisions = [p.to_tags() for p in y], [p.to_open_close() for p in y]
    for coded in (y, tags, decisions):
        model = quick(output="phrases").fit(double, coded)
        assert model.steps_ == "decisions"
        assert [len(c) for c in model.columns_] == [5, 5]
        borders = [[p[:2] for p in phrases] for phrases in model.predict(double)]
        assert borders == [[p[:2] for p in phrases] for phrases in reference.predict(X)]
        model = quick(output="phrases").fit([sp.csr_matrix(x) for x in double], coded)
        assert model.score(double, coded) == pytest.approx(reference.score(X, y), abs=0.02)
    plain = [list(phrases) for phrases in y]
    assert quick(steps="decisions").fit(double, plain).predict(double) == reference.predict(X)
    with pytest.raises(InputError, match=r"X\[1\] has 5 rows, but .* two decisions per token"):
        quick().fit(double, tags).predict([double[0], double[1][:5]])
    # Lists of phrases say nothing of the length: rows are tokens unless told otherwise.
    assert quick().fit(double, plain).steps_ == "tokens"


def test_bracket_features_in_a_pipeline():
    sentences = [
        [("the", "DT"), ("cat", "NN"), ("sat", "VBD")],
        [("a", "DT"), ("big", "JJ"), ("dog", "NN"), ("saw", "VBD"), ("the", "DT"), ("cat", "NN")],
        [("dogs", "NNS"), ("sat", "VBD")],
    ] * 4
    tags = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP", "I-NP", "O", "B-NP", "I-NP"], ["B-NP", "O"]] * 4
    model = Pipeline([("features", BracketFeatures()), ("phrases", quick(cost="weighted"))])
    model.fit(sentences, tags)
    assert model["phrases"].steps_ == "decisions"
    assert [p.tolist() for p in model.predict(sentences)] == tags
    tagger = seqlab.Tagger(BracketFeatures(columns=["pos"]), quick()).fit(sentences, tags)
    assert tagger.predict([[("one", "DT"), ("bird", "NN")]])[0].tolist() == ["B-NP", "I-NP"]
    assert tagger.score(sentences, tags) == 1.0


def test_map_is_viterbi_over_the_posteriors(single):
    X, y = single
    model = quick().fit(X, y)
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
    model = quick().fit(X, y)
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


def test_stacked_input_gives_stacked_output(single):
    X, y = single
    lengths = [len(x) for x in X]
    tags = [p.to_tags() for p in y]
    flat, matrix = [tag for one in tags for tag in one], np.concatenate(X)
    a = quick().fit(X, tags)
    b = quick().fit(matrix, flat, lengths=lengths)
    together = b.predict(matrix, lengths=lengths)
    assert isinstance(together, np.ndarray)
    assert together.tolist() == [tag for p in a.predict(X) for tag in p.tolist()]
    assert b.score(matrix, np.array(flat), lengths=lengths) == a.score(X, tags)
    one = a.predict(X[0])
    assert one.tolist() == a.predict(X[:1])[0].tolist()
    decisions = [decision for p in y for decision in p.to_open_close()]
    c = quick().fit(matrix, decisions, lengths=lengths)
    assert c.predict(matrix, lengths=lengths).size == 2 * len(matrix)
    assert [p.tolist() for p in a.predict(Sequences.from_list(X))] == [
        p.tolist() for p in a.predict(X)
    ]
    with pytest.raises(InputError, match=r"X has .* steps but y has 7 labels"):
        quick().fit(matrix, flat[:7], lengths=lengths)


def test_dicts_and_empty_sequences(single):
    X, y = single
    dicts = [[{f"f{j}": v for j, v in enumerate(row)} for row in x.tolist()] for x in X]
    a, b = quick().fit(X, y), quick().fit(dicts, y)
    assert a.predict(X) == b.predict(dicts)
    assert a.predict([X[0], np.zeros((0, 5)), X[1]])[1] == PhraseSet([], 0)
    assert a.predict([[], []]) == [PhraseSet([], 0)] * 2


def test_tuning_stays_inside_the_training_data_and_finds_the_best_point(single):
    X, y = single
    model = quick(cost="threshold").fit(X, y)
    tried = model.tuning_
    assert len(tried["threshold"]) == len(tried["f1"]) >= 50
    assert tried["f1"][tried["threshold"].tolist().index(model.threshold_)] == tried["f1"].max()
    assert 0.0 < model.threshold_ < 1.0
    fixed = quick(cost="threshold", threshold=model.threshold_).fit(X, y)
    assert fixed.tuning_ is None
    assert fixed.predict(X) == model.predict(X)
    weighted = quick(cost="weighted").fit(X, y)
    best = weighted.tuning_["f1"].argmax()
    assert weighted.tuning_["f1"][best] >= tried["f1"].max() - 0.02
    assert weighted.inside_weight_ in weighted.tuning_["inside_weight"]
    same = quick(cost="weighted", threshold=0.0, inside_weight=1.0).fit(X, y)
    assert same.predict(X) == quick(cost="map").fit(X, y).predict(X)
    tuned_map = quick(cost="map", threshold="tune").fit(X, y)
    assert tuned_map.tuning_ is not None
    assert set(tuned_map.tuning_["inside_weight"]) == {1.0}
    only_weight = quick(cost="weighted", threshold=0.5).fit(X, y)
    assert only_weight.threshold_ == 0.5
    assert set(only_weight.tuning_["threshold"]) == {0.5}


def test_tuning_does_not_see_the_posteriors_of_the_training_fit(single):
    """With one nearest neighbour the training posteriors are perfect; held-out ones are not."""
    X, y = single
    model = PhraseInference(KNeighborsClassifier(1), cost="threshold", random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.tuning_["f1"].max() < 0.95


def test_higher_thresholds_give_fewer_phrases(single):
    X, y = single
    counts = [
        sum(map(len, quick(cost=cost, threshold=threshold, inside_weight=0.1).fit(X, y).predict(X)))
        for cost in ("weighted", "threshold", "log_odds", "map", "product")
        for threshold in (-0.5, 0.2, 0.9)
    ]
    for a, b, c in zip(counts[0::3], counts[1::3], counts[2::3], strict=True):
        assert a >= b >= c
    assert counts[3] > counts[5]


def test_constraints_are_respected_and_cost_as_little_as_possible(typed):
    X, y = typed[0][:25], typed[1][:25]
    model = quick().fit(X, y)
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
        assert quick(constraints=rule).fit(X, y).predict(X) == constrained
        model.set_params(constraints=())
        for opened, closed, a, b in zip(*proba, free, constrained, strict=True):
            if holds(a):
                assert a == b
            else:
                assert _cost(opened, closed, b) >= _cost(opened, closed, a) - 1e-9
    limited = quick(max_length=2).fit(X, y)
    assert limited.predict(X) == model.predict(X, constraints=LengthLimit(longest=2))


def _cost(opened, closed, phrases):
    """Minus the log-probability of the decisions of a set of LOC (column 0) and PER (1)."""
    columns = np.full((phrases.length, 2), 3)
    for start, stop, type_ in phrases:
        columns[start:stop] = 2
        columns[start, 0] = columns[stop - 1, 1] = ["LOC", "PER"].index(type_)
    steps = np.arange(phrases.length)
    return -np.log(opened[steps, columns[:, 0]]).sum() - np.log(closed[steps, columns[:, 1]]).sum()


def test_infeasible_constraints_name_the_sequence(typed):
    X, y = typed
    model = quick().fit(X, y)
    with pytest.raises(NoLegalLabelingError, match=r"sequence 2 \(2 steps\)"):
        model.predict([X[0], X[1], X[2][:2]], constraints=[CountLimit(at_least=3)])
    with pytest.raises(InputError, match="names the type 'ORG'"):
        quick(constraints=(CountLimit(1, type="ORG"),)).fit(X, y)
    with pytest.raises(InputError, match="is not a constraint on phrases"):
        model.predict(X, constraints=["LOC"])
    with pytest.raises(InputError, match="'IOB2' is not a constraint on phrases"):
        model.predict(X, constraints="IOB2")


def test_posteriors_that_are_given_go_straight_to_the_path():
    """The hand example: open (.9, .2, .6), close (.3, .8, .7) give the phrases 0:2 and 2:3."""
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
def test_posteriors_that_are_no_probabilities_are_named(single, value):
    X, y = single
    model = PhraseInference(Fixed(), cost="map").fit([np.abs(x) for x in X], y)
    model.open_posteriors_.classifier.value = value
    with pytest.raises(
        NumericalError, match="Fixed gave no probabilities for sequence 0 at position 3"
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
    with pytest.raises(InputError, match="takes no sample_weight"):
        PhraseInference(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(X)))


def test_two_different_classifiers(single):
    X, y = single
    model = PhraseInference(GaussianNB(), close_classifier=BernoulliNB(), cost="map").fit(X, y)
    assert isinstance(model.open_classifier_, GaussianNB)
    assert isinstance(model.close_classifier_, BernoulliNB)


def test_one_decision_only_needs_no_classifier():
    X = [np.random.default_rng(i).normal(size=(4, 2)) for i in range(5)]
    y = [PhraseSet([(t, t + 1, "w") for t in range(4)], 4)] * 5
    model = quick(cost="weighted").fit(X, y)
    assert model.open_classifier_ is None
    assert model.predict(X) == y


def test_sample_weights(single):
    X, y = single
    weights = np.ones(len(X))
    weights[0], weights[1] = 3.0, 0.0
    weighted = quick().fit(X, y, sample_weight=weights)
    repeated = quick().fit([X[0]] * 3 + X[2:], [y[0]] * 3 + y[2:])
    for a, b in zip(weighted.decision_proba(X).open, repeated.decision_proba(X).open, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)
    f1 = weighted.score(X, y, sample_weight=weights)
    tags = [p.to_tags() for p in y], [p.to_tags() for p in weighted.predict(X)]
    assert f1 == span_f1(*tags, sample_weight=weights)


def test_clone_pickle_save_load_set_params(typed, tmp_path):
    X, y = typed[0][:16], typed[1][:16]
    rules = (CountLimit(3), LengthLimit(longest=4, type="PER"), TypeOrder(("LOC", "PER")))
    rules = (*rules, Requires("PER", "LOC"), Covered((0,)))
    model = quick(cost="weighted", constraints=rules).fit(X, y)
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
        scores = cross_val_score(quick(), X, coded, cv=3)
        assert (scores > 0.3).all()
    grid = {"cost": ["map", "product"], "classifier__C": [0.01, 10.0]}
    search = GridSearchCV(quick(min_probability=0.1), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    assert len(search.predict(X)) == len(X)


def test_same_bits_for_any_number_of_jobs(typed):
    X, y = typed
    a = quick(cost="weighted").fit(X, y)
    with joblib.parallel_config(backend="threading"):
        b = quick(cost="weighted", n_jobs=2).fit(X, y)
    assert a.predict(X) == b.predict(X)
    assert (a.threshold_, a.inside_weight_) == (b.threshold_, b.inside_weight_)
    assert np.array_equal(a.tuning_["f1"], b.tuning_["f1"])


def test_a_failed_fit_leaves_the_model_as_it_was(single):
    X, y = single
    model = quick().fit(X, y)
    before = model.predict(X)
    with pytest.raises(InputError):
        model.fit(X, [[(0, 2, "NP"), (1, 3, "NP")], *y[1:]])
    assert model.predict(X) == before


def test_bad_input_is_named(single):
    X, y = single
    tags = [p.to_tags() for p in y]
    overlapping = [*y[:3], [(0, 2, "NP"), (1, 3, "NP")], *y[4:]]
    for bad, words in [
        (overlapping, r"y\[3\]: phrase 1 .* overlaps phrase 0 .* at step 1"),
        ([*y[:3], [(0, 99, "NP")], *y[4:]], r"y\[3\]: phrase 0 .* ends after the last of"),
        ([*y[:3], [(0, "x")], *y[4:]], r"y\[3\]: phrase 0 is"),
        ([*y[:3], tags[3], *y[4:]], r"y\[3\] holds labels"),
        ([*tags[:3], tags[3][:-1], *tags[4:]], r"X\[3\] has .* steps but y\[3\] has .* labels"),
        ([*tags[:3], ["X-NP"] * len(X[3]), *tags[4:]], r"y\[3\]: tag 'X-NP'"),
        (y[:-1], "X has 40 sequences but y has 39"),
        ([[] for _ in X], "no sequence of y has a phrase"),
        ([PhraseSet([], 2)] * 40, r"y\[0\] is a set of 2"),
        (None, "y is None"),
        ("NP", "y must be a list"),
        ([7] * 40, r"y\[0\] must be a list"),
        ([["nOo", "nCi"] * len(x) for x in X], r"y\[0\]: decision 'nCi' at step 0"),
        (
            [["nOo", "nCo"] * (len(x) - 1) + ["nOo", "?"] for x in X],
            r"y\[0\]: '\?' is no open/close",
        ),
    ]:
        with pytest.raises(InputError, match=words):
            quick().fit(X, bad)
    with pytest.raises(InputError, match="unknown tag scheme 'BIO'; did you mean 'IOB2'"):
        quick(scheme="BIO").fit(X, tags)
    with pytest.raises(InputError, match="unknown tag scheme 'iob2'"):
        quick(output="iob2").fit(X, tags)
    with pytest.raises(InputError, match=r"X\[2\]"):
        quick().fit([*X[:2], np.full_like(X[2], np.nan), *X[3:]], y)
    with pytest.raises(InputError, match="tuning cuts the training data by sequences"):
        quick(cost="weighted").fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="'cost' parameter"):
        quick(cost="cheap").fit(X, y)
    with pytest.raises(NotFittedError):
        quick().predict(X)
    with pytest.raises(ValueError, match="features"):
        quick().fit(X, y).predict([x[:, :3] for x in X])


def test_decisions_carry_one_type(typed):
    X, y = typed
    with pytest.raises(InputError, match="one phrase type, but there are 'LOC', 'PER'"):
        quick(output="open_close").fit(X, y)


def test_unseen_types_count_as_errors(single):
    X, y = single
    model = quick().fit(X, y)
    renamed = [PhraseSet([(a, b, "VP") for a, b, _ in p], p.length) for p in y]
    assert model.score(X, renamed) == 0.0


def test_phrase_set_is_a_value():
    a = PhraseSet([(2, 3, "VP"), (0, 1, "NP")], 4)
    assert a == PhraseSet([(0, 1, "NP"), (2, 3, "VP")], np.int64(4))
    assert a != PhraseSet([(0, 1, "NP")], 4)
    assert a != [(0, 1, "NP"), (2, 3, "VP")]
    assert len({a, PhraseSet([(0, 1, "NP"), (2, 3, "VP")], 4)}) == 1
    assert pickle.loads(pickle.dumps(a)) == a
    assert eval(repr(a)) == a
    assert a[-1] == Phrase(2, 3, "VP")
    assert a[:1] == (Phrase(0, 1, "NP"),)
    assert (0, 1, "NP") in a
    for scheme in SCHEMES:
        assert PhraseSet.from_tags(a.to_tags(scheme), scheme) == a
        assert phrases_to_tags(a, 4, scheme) == a.to_tags(scheme)
    assert list(a) == tags_to_phrases(a.to_tags())
    one = PhraseSet([(0, 2, "NP")], 3)
    assert PhraseSet.from_open_close(phrases_to_open_close(one, 3), "NP") == one
    for bad in (([(0, 2), (1, 3)], 4), ([(0, 5)], 4), ([], -1), ([], 1.5)):
        with pytest.raises(InputError):
            PhraseSet(*bad)


@pytest.mark.data
@pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set")
def test_long_phrases_want_decisions_inside_to_count_less():
    """Subject-verb phrases: what tuning gains over the most probable path of decisions."""
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
