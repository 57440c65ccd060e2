"""Stacked sequential learning: no leakage, number of fits, and what the second learner sees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from conformance import LABELERS
from seqlab import (
    IndependentLabeler,
    LinearChainCRF,
    StackedSequentialLearner,
    Tagger,
)
from seqlab.data import Sequences
from seqlab.meta._stacking_features import log_odds, margins
from stacking import Counting, Oracle, Watching, random_sequences, same

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_no_leakage():
    """Labels of a fold do not influence the predictions for that fold."""
    X, y = random_sequences()
    learner = StackedSequentialLearner(GaussianNB(), cv=KFold(3), window=(1, 1))

    def out_of_fold(labels):
        data = learner._read_training(X, labels, None, None)
        inner = IndependentLabeler(GaussianNB())
        return learner._cross_validate(data, inner)[0].values

    before = out_of_fold(y)
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in y])])
    for k, (_, test) in enumerate(KFold(3).split(X)):
        altered = [labels.copy() for labels in y]
        for i in test:
            altered[i] = (altered[i] + 1) % 3
        after = out_of_fold(altered)
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in test])
        assert np.array_equal(before[rows], after[rows]), k
        others = np.setdiff1d(np.arange(offsets[-1]), rows)
        assert not np.array_equal(before[others], after[others])


def test_no_leakage_at_the_second_level():
    X, y = random_sequences(2)
    learner = StackedSequentialLearner(GaussianNB(), cv=2, window=(1, 1), levels=2, random_state=0)

    def out_of_fold(labels):
        data = learner._read_training(X, labels, None, None)
        return learner._cross_validate(data, learner._learners()[0])[0].values

    before, test = out_of_fold(y), next(iter(learner._folds(len(X), None)))[1]
    altered = [1 - labels if i in test else labels for i, labels in enumerate(y)]
    rows = np.concatenate([np.full(len(labels), i in test) for i, labels in enumerate(y)])
    assert np.array_equal(before[rows], out_of_fold(altered)[rows])


@pytest.mark.parametrize(
    ("options", "n_predictions"),
    # One prediction for each fold. At two levels, the stacked learners of the two folds predict, both
    # stages of each, and the three stacked learners (two folds, all data) have two folds each.
    [({}, 3), ({"cv": "two_halves"}, 1), ({"cv": 2, "levels": 2}, 2 * 2 + 3 * 2)],
)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("own_splitter", [False, True])
def test_no_learner_predicts_its_training_data(options, n_predictions, grouped, own_splitter):
    """During fit, no learner predicts sequences, or groups of them, that it was trained on."""
    X, y = random_sequences(2, n_sequences=24)
    groups = np.arange(24) // 2 if grouped else np.arange(24)
    X = [np.column_stack([np.full(len(x), group), x]) for x, group in zip(X, groups, strict=True)]
    options = {"cv": 3, **options}
    if own_splitter and options["cv"] != "two_halves":
        options["cv"] = (GroupKFold if grouped else KFold)(options["cv"])
    learner = StackedSequentialLearner(Watching(), window=(1, 1), random_state=0, **options)
    learner.fit(X, y, groups=groups if grouped else None)
    assert len(Watching.overlaps) == n_predictions
    assert not any(Watching.overlaps)
    learner.base_.predict_proba(X)
    assert Watching.overlaps[-1]  # an overlap is recorded


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), LinearChainCRF(c2=0.3), LinearSVC(random_state=0)]
)
def test_without_a_window_results_equal_those_of_the_base_learner(estimator):
    X, y = random_sequences()
    weights = np.linspace(0.5, 2.0, len(X))
    stacked = StackedSequentialLearner(estimator, window=None)
    alone = estimator if isinstance(estimator, LinearChainCRF) else IndependentLabeler(estimator)
    for options in ({}, {"sample_weight": weights}):
        stacked.fit(X, y, **options)
        alone.fit(X, y, **options)
        assert same(stacked.predict(X), alone.predict(X))
        assert same(stacked.decision_function(X), alone.decision_function(X))
        if hasattr(alone, "predict_proba"):
            assert same(stacked.predict_proba(X), alone.predict_proba(X))
            assert same([stacked.sequence_log_proba(X, y)], [alone.sequence_log_proba(X, y)])
    assert stacked.base_ is None
    assert stacked.n_opinions_ == 0


@pytest.mark.parametrize("n_folds", [2, 5])
def test_number_of_fits(n_folds):
    X, y = random_sequences()
    StackedSequentialLearner(Counting(), cv=n_folds, window=(1, 1)).fit(X, y)
    assert len(Counting.calls) == n_folds + 2
    n_steps = sum(map(len, y))
    sizes = [rows for rows, _ in Counting.calls]
    assert sizes[n_folds:] == [n_steps, n_steps]
    assert sum(sizes[:n_folds]) == (n_folds - 1) * n_steps  # each step left out once


def test_number_of_fits_of_two_levels_and_two_halves():
    X, y = random_sequences()
    learner = StackedSequentialLearner(Counting(), cv=2, window=(1, 1), levels=2)
    learner.fit(X, y)
    # Three stacked learners below (two folds, all data), then the second stage.
    assert len(Counting.calls) == 3 * (2 + 2) + 1
    Counting.calls.clear()
    learner.set_params(cv="two_halves", levels=1).fit(X, y)
    assert len(Counting.calls) == 2
    assert sum(rows for rows, _ in Counting.calls) == sum(map(len, y))


@pytest.mark.parametrize(("n_labels", "per_distance"), [(2, 1), (3, 3), (4, 4)])
@pytest.mark.parametrize("include_self", [True, False])
def test_number_of_appended_features(n_labels, per_distance, include_self):
    X, y = random_sequences(n_labels)
    learner = StackedSequentialLearner(
        Counting(), cv=2, window=(3, 2), include_self=include_self, random_state=0
    ).fit(X, y)
    n_appended = (3 + 2 + include_self) * per_distance + 3 + 2  # and the boundary indicators
    assert learner.n_opinions_ == n_appended
    assert Counting.calls[-1][1] == n_labels + n_appended
    names = learner.get_feature_names_out()
    assert len(names) == n_labels + n_appended
    assert "__BOS__[-3]" in names
    assert "1?[+2]" in names
    assert ("1?" in names) == include_self


def test_second_learner_relies_on_a_perfect_base_learner():
    """If the predictions of the first learner are correct, the second learner needs offset 0 only."""
    random = np.random.default_rng(1)
    y = [random.integers(0, 2, size=10) for _ in range(20)]
    X = [np.column_stack([random.normal(size=(10, 3)), labels]) for labels in y]
    learner = StackedSequentialLearner(Oracle(), window=(0, 0), random_state=0).fit(X, y)
    assert learner.score(X, y) == 1.0
    coef = learner.labeler_.estimator_.inner_.coef_[0]
    assert learner.n_opinions_ == 1
    assert abs(coef[-1]) > 3 * abs(coef[:-1]).max()


# ----- prediction scores


def test_log_odds_and_margins():
    p = np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(
        log_odds(p), [[np.log(0.25), np.log(4)], [np.inf, -np.inf], [0, 0]], atol=1e-15
    )
    scores = np.array([[1.0, 4.0, 2.0], [3.0, 3.0, -np.inf], [-np.inf, 0.0, -np.inf]])
    np.testing.assert_array_equal(
        margins(scores), [[-3, 2, -2], [0, 0, -np.inf], [-np.inf, np.inf, -np.inf]]
    )
    assert np.array_equal(margins(np.zeros((2, 1))), [[np.inf], [np.inf]])


def windows_by_hand(columns, offsets, before, after):
    """Return the appended columns, computed step by step."""
    rows = []
    for begin, end in pairwise(offsets):
        for t in range(begin, end):
            distances = [0, *range(-before, 0), *range(1, after + 1)]
            inside = [begin <= t + d < end for d in distances]
            values = [
                columns[t + d] if ok else np.zeros(columns.shape[1])
                for d, ok in zip(distances, inside, strict=True)
            ]
            rows.append(np.concatenate([*values, [not ok for ok in inside[1:]]]))
    return np.array(rows)


def test_the_second_learner_sees_clipped_standardised_windows():
    X, y = random_sequences(3)
    learner = StackedSequentialLearner(GaussianNB(), cv=KFold(4), window=(2, 1), clip=3.0).fit(X, y)
    sequences = Sequences.from_list(X)
    out_of_fold = np.empty((sequences.n_steps, 3))
    for train, test in KFold(4).split(X):
        model = IndependentLabeler(GaussianNB()).fit([X[i] for i in train], [y[i] for i in train])
        for i in test:
            rows = slice(sequences.offsets[i], sequences.offsets[i + 1])
            out_of_fold[rows] = np.clip(log_odds(model.predict_proba([X[i]])[0]), -3, 3)
    mean, deviation = out_of_fold.mean(axis=0), out_of_fold.std(axis=0)
    columns = (out_of_fold - mean) / deviation
    np.testing.assert_allclose(columns.std(axis=0), 1.0)
    by_hand = np.hstack([sequences.matrix, windows_by_hand(columns, sequences.offsets, 2, 1)])
    reference = GaussianNB().fit(by_hand, np.concatenate(y))
    np.testing.assert_allclose(learner.labeler_.estimator_.theta_, reference.theta_, rtol=1e-9)
    # At prediction time the scores are those of the learner fitted on all data, on the same scale.
    base = IndependentLabeler(GaussianNB()).fit(X, y)
    new = np.clip(log_odds(np.concatenate(base.predict_proba(X))), -3, 3)
    extended = windows_by_hand((new - mean) / deviation, sequences.offsets, 2, 1)
    np.testing.assert_allclose(
        np.concatenate(learner.predict_proba(X)),
        reference.predict_proba(np.hstack([sequences.matrix, extended])),
        rtol=1e-6,
        atol=1e-12,
    )


def test_clipped_log_odds_without_standardisation():
    X, y = random_sequences(2)
    learner = StackedSequentialLearner(
        GaussianNB(), cv=3, window=(0, 0), clip=2.0, standardise=False, random_state=0
    ).fit(X, y)
    assert learner.scale_.tolist() == [1.0, 0.0, 1.0]
    assert np.abs(learner.labeler_.estimator_.theta_[:, -1]).max() <= 2.0


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (LogisticRegression(), "log_odds"),
        (LinearSVC(random_state=0), "margin"),
        (LinearChainCRF(c2=0.5), "log_odds"),
        (Tagger(None, LinearChainCRF(c2=0.5)), "log_odds"),
    ],
)
def test_kind_of_prediction_scores(estimator, kind):
    X, y = random_sequences()
    learner = StackedSequentialLearner(estimator, cv=3, random_state=0).fit(X, y)
    assert learner.kind_ == kind
    assert learner.score(X, y) > 0.7
    assert hasattr(learner, "predict_proba") == (kind == "log_odds")


def test_learner_without_scores():
    from sklearn.neighbors import NearestCentroid

    class Votes(NearestCentroid):
        predict_proba = decision_function = property()  # has only `predict`

    X, y = random_sequences()
    learner = StackedSequentialLearner(Votes(), cv=3, random_state=0).fit(X, y)
    assert learner.kind_ == "vote"
    assert learner.score(X, y) > 0.5
    assert not hasattr(learner, "predict_proba")


def test_margins_do_not_depend_on_the_scale_of_the_scores():
    """A learner whose scores are 1024 times larger gives the same result."""

    class LargeScores(LinearSVC):
        def decision_function(self, X):
            return 1024 * super().decision_function(X)

    X, y = random_sequences()
    options = {"cv": 3, "random_state": 0}
    plain = StackedSequentialLearner(LinearSVC(), **options).fit(X, y)
    large = StackedSequentialLearner(LargeScores(), **options).fit(X, y)
    assert plain.kind_ == large.kind_ == "margin"
    assert large.scale_[0] == 1024 * plain.scale_[0]
    assert np.array_equal(large.scale_[1:], plain.scale_[1:])
    assert np.array_equal(large.labeler_.estimator_.coef_, plain.labeler_.estimator_.coef_)


@pytest.mark.parametrize("entry", LABELERS, ids=lambda entry: entry.id)
def test_every_labeler_can_be_stacked(entry):
    X, y = random_sequences(3)
    learner = StackedSequentialLearner(clone(entry.estimator), cv=2, window=(1, 1), random_state=0)
    learner.fit(X, y)
    labels = learner.predict(X)
    assert [len(p) for p in labels] == [len(x) for x in X]
    assert learner.score(X, y) > 0.5
    if hasattr(learner, "predict_proba"):
        for p in learner.predict_proba(X):
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)


# ----- folds
