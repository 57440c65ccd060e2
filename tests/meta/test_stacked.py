"""Stacked sequential learning: the properties stated in the papers, and edge cases."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from conformance import LABELERS
from seqlab import (
    MEMM,
    IndependentLabeler,
    LinearChainCRF,
    StackedSequentialLearner,
    StructuredPerceptron,
    Tagger,
)
from seqlab.data import InputError, Sequences
from seqlab.datasets import make_partition_sequences, swap_steps
from seqlab.features import LineFeatures
from seqlab.inspection import top_features
from seqlab.meta._stacking_features import log_odds, margins
from seqlab.metrics import token_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Counting(ClassifierMixin, BaseEstimator):
    """Gaussian naive Bayes that records the shape of the data of each fit."""

    calls: list[tuple[int, int]] = []

    def fit(self, X, y, sample_weight=None):
        type(self).calls.append(X.shape)
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


class Watching(Counting):
    """Records which values of the first column, the origin of a row, occur in both fit and prediction."""

    overlaps: list[set[float]] = []

    def fit(self, X, y, sample_weight=None):
        self.known_ = set(X[:, 0])
        return super().fit(X, y)

    def predict_proba(self, X):
        type(self).overlaps.append(self.known_ & set(X[:, 0]))
        return super().predict_proba(X)


class Oracle(ClassifierMixin, BaseEstimator):
    """Predicts the last column of narrow data; on wider data it is a logistic regression without it."""

    def __init__(self, width=4):
        self.width = width

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.inner_ = None
        if X.shape[1] > self.width:  # without the column that holds the label
            self.inner_ = LogisticRegression().fit(np.delete(X, self.width - 1, axis=1), y)
        return self

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def predict_proba(self, X):
        if self.inner_ is not None:
            return self.inner_.predict_proba(np.delete(X, self.width - 1, axis=1))
        return np.eye(self.classes_.size)[X[:, -1].astype(int)]


@pytest.fixture(autouse=True)
def _clear_records():
    Counting.calls.clear()
    Watching.overlaps.clear()


def random_sequences(n_labels=3, n_sequences=12, seed=0):
    random = np.random.default_rng(seed)
    y = [np.sort(random.integers(0, n_labels, size=6 + i % 4)) for i in range(n_sequences)]
    y[0][:n_labels] = np.arange(n_labels)  # every label occurs
    X = [np.eye(n_labels)[labels] + random.normal(size=(labels.size, n_labels)) for labels in y]
    return X, y


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


# ----- C5 of the specification


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


def test_invalid_groups_raise():
    X, y = random_sequences(2)
    groups = np.arange(12) // 4
    learner = StackedSequentialLearner(GaussianNB())
    with pytest.raises(InputError, match="needs at least 5 groups, but there are 3"):
        learner.fit(X, y, groups=groups)
    with pytest.raises(InputError, match=r"groups has shape \(3,\) but X has 12 sequences"):
        learner.fit(X, y, groups=[1, 2, 3])
    with pytest.raises(InputError, match="groups must all be of one type"):
        learner.fit(X, y, groups=[None, *range(11)])
    learner.set_params(levels=2, cv=3)
    with pytest.raises(InputError, match="cv=3 with levels=2 needs at least 5 groups"):
        learner.fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("cv", "n_folds"), [(LeaveOneGroupOut(), 3), (GroupKFold(2), 2), (LeaveOneOut(), 12)]
)
def test_splitters_of_scikit_learn(cv, n_folds):
    X, y = random_sequences(2)
    groups = None if isinstance(cv, LeaveOneOut) else np.arange(12) // 4
    StackedSequentialLearner(Counting(), cv=cv).fit(X, y, groups=groups)
    assert len(Counting.calls) == n_folds + 2


@pytest.mark.parametrize("cv", [StratifiedKFold(3), LeaveOneGroupOut(), GroupKFold(3)])
def test_splitters_that_need_labels_groups_or_more_sequences_raise(cv):
    X, y = random_sequences(2)
    with pytest.raises(InputError, match="cannot split 12 sequences into folds"):
        StackedSequentialLearner(GaussianNB(), cv=cv).fit(X, y)
    with pytest.raises(InputError, match="cannot split 1 sequences into folds"):
        StackedSequentialLearner(GaussianNB(), cv=LeaveOneOut()).fit(X[:1], y[:1])


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC(random_state=0), LinearChainCRF()])
def test_class_missing_from_the_training_part_of_a_fold(estimator):
    """The label 2 occurs in one sequence only: the learner that predicts it has not seen the label."""
    X, y = random_sequences(2)
    y[0] = np.array([0, 1, 2, 2, 2, 2])
    X = [np.column_stack([x, labels == 2]) + 0.01 for x, labels in zip(X, y, strict=True)]
    learner = StackedSequentialLearner(estimator, cv=KFold(4), window=(1, 1)).fit(X, y)
    assert learner.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(learner.scale_).all()
    assert [len(p) for p in learner.predict(X)] == [len(x) for x in X]


def test_only_one_class_in_the_training_part_of_a_fold():
    X, y = random_sequences(2, n_sequences=4)
    y = [np.zeros(len(labels), dtype=int) for labels in y]
    y[0][3:] = 1
    X[0][3:] += 2.0
    learner = StackedSequentialLearner(Counting(), cv=KFold(4), window=(1, 1)).fit(X, y)
    assert len(Counting.calls) == 3 + 2  # the fold without the label 1 has nothing to learn
    assert learner.predict(X)[0].shape == (6,)


def test_label_missing_from_one_half():
    X, y = random_sequences(2)
    y[0] = np.full(6, 2)
    for seed in range(4):
        learner = StackedSequentialLearner(
            GaussianNB(), cv="two_halves", window=(1, 1), random_state=seed
        ).fit(X, y)
        for p in learner.predict_proba(X):
            assert p.shape[1] == 3
            np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert all(table.shape[1] == 3 for table in learner.decision_function(X))


def test_a_single_sequence_is_cut_into_pieces():
    X, y = random_sequences(2)
    one, labels = np.concatenate(X), np.concatenate(y)
    learner = StackedSequentialLearner(Counting(), cv=4, window=(1, 1), random_state=0)
    learner.fit(one, labels, sample_weight=[2.0])
    assert len(Counting.calls) == 4 + 2
    assert learner.predict(one).shape == labels.shape
    assert same(learner.predict([one]), [learner.predict(one)])
    nested = clone(learner).set_params(levels=2, cv=2).fit(one, labels, groups=["a day"])
    assert len(Counting.calls) == (4 + 2) + 3 * (2 + 2) + 1
    assert nested.predict(one).shape == labels.shape


def test_bad_parameters_and_data_raise():
    X, y = random_sequences(2, n_sequences=3)
    with pytest.raises(InputError, match="cv=5 needs at least 5 sequences, but there are 3"):
        StackedSequentialLearner(GaussianNB()).fit(X, y)
    with pytest.raises(InputError, match="must have each sequence in exactly one test part"):
        StackedSequentialLearner(GaussianNB(), cv=ShuffleSplit(2, test_size=1)).fit(X, y)
    for window in [(1,), (1, -1), (0.5, 1), ("a", 1), 5, "ab"]:
        with pytest.raises(
            InputError, match="window must be the numbers of steps before and after"
        ):
            StackedSequentialLearner(Counting(), cv=3, window=window).fit(X, y)
    assert not Counting.calls  # the error comes before any fit
    with pytest.raises(InputError, match="levels=2 needs at least 7 sequences, but there are 3"):
        StackedSequentialLearner(GaussianNB(), levels=2).fit(X, y)
    with pytest.raises(InputError, match=r"needs at least 2 groups.*give more data$"):
        StackedSequentialLearner(GaussianNB(), cv="two_halves").fit(X, y, groups=[0, 0, 0])
    with pytest.raises(InputError, match="is an empty window"):
        StackedSequentialLearner(GaussianNB(), cv=3, window=(0, 0), include_self=False).fit(X, y)
    with pytest.raises(InputError, match="Ridge is a regressor"):
        StackedSequentialLearner(Ridge(), cv=3).fit(X, y)
    for bad in ({"cv": 1}, {"levels": 0}, {"clip": 0.0}, {"estimator": "crf"}, {"cv": "halves"}):
        with pytest.raises(ValueError, match="parameter of StackedSequentialLearner"):
            StackedSequentialLearner(**bad).fit(X, y)
    fitted = StackedSequentialLearner(GaussianNB(), cv=3).fit(X, y)
    with pytest.raises(InputError, match="should have 2 names"):
        fitted.get_feature_names_out(["a"])
    assert fitted.get_feature_names_out(["a", "b"])[:3].tolist() == ["a", "b", "1?"]


# ----- input formats, determinism, parallelism


def test_sparse_features_stay_sparse():
    X, y = random_sequences(3)
    seen = []

    class RecordingSparsity(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(sp.issparse(X))
            return super().fit(X, y, sample_weight)

    sparse = [sp.csr_matrix(x) for x in X]
    options = {"cv": 3, "random_state": 0}
    a = StackedSequentialLearner(RecordingSparsity(tol=1e-8), **options).fit(sparse, y)
    assert all(seen)
    assert len(seen) == 5
    b = StackedSequentialLearner(LogisticRegression(tol=1e-8), **options).fit(X, y)
    np.testing.assert_allclose(
        np.concatenate(a.predict_proba(sparse)), np.concatenate(b.predict_proba(X)), atol=1e-5
    )


def test_string_attributes_and_feature_names():
    X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]]] * 4
    y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]] * 4
    learner = StackedSequentialLearner(
        LogisticRegression(), cv=4, window=(1, 0), random_state=0
    ).fit(X, y)
    assert learner.predict([[["w=the"], ["w=dog"]]])[0].tolist() == ["DET", "NOUN"]
    assert learner.get_feature_names_out().tolist() == [
        "w=the", "w=dog", "w=barks", "w=dogs", "w=bark",
        "DET?", "NOUN?", "VERB?", "DET?[-1]", "NOUN?[-1]", "VERB?[-1]", "__BOS__[-1]",
    ]  # fmt: skip
    assert np.isfinite(learner.sequence_log_proba(X, y)).all()


def test_log_probabilities_of_stacked_and_partly_known_labels():
    X, y = random_sequences(2)
    learner = StackedSequentialLearner(LinearChainCRF(c2=0.5), cv=3, random_state=0).fit(X, y)
    lengths, flat = [len(x) for x in X], np.concatenate(y)
    expected = learner.sequence_log_proba(X, y)
    np.testing.assert_allclose(
        learner.sequence_log_proba(np.concatenate(X), flat, lengths=lengths), expected
    )
    unknown = [[None, *labels[1:]] for labels in y]
    loose = learner.sequence_log_proba(X, unknown)
    assert (loose >= expected).all()
    stacked = [label for labels in unknown for label in labels]
    np.testing.assert_allclose(
        learner.sequence_log_proba(np.concatenate(X), stacked, lengths=lengths), loose
    )
    best = learner.predict(
        X, constraints=[[labels[0], *[None] * (len(labels) - 1)] for labels in y]
    )
    assert all(p[0] == labels[0] for p, labels in zip(best, y, strict=True))


def test_top_features_have_names():
    X = [["Hi,", "see you", "--", "Ada"], ["Hello", "", "bye", "--", "Bob"]] * 4
    y = [["text", "text", "sig", "sig"], ["text", "text", "text", "sig", "sig"]] * 4
    lines = LineFeatures(features="basic")
    stacked = StackedSequentialLearner(LogisticRegression(), cv=4, window=(1, 1), random_state=0)
    tagger = Tagger(lines, stacked).fit(X, y)
    (best,) = top_features(tagger, 5, labels=["text"])
    assert "text?" in [feature for feature, _ in best.positive]
    alone = clone(stacked).fit(lines.fit_transform(X), y)
    (same_best,) = top_features(alone, 5, labels=["text"])
    assert [w for _, w in same_best.positive] == [w for _, w in best.positive]
    assert "text?" in [feature for feature, _ in same_best.positive]
    words = clone(stacked).fit([[[line] for line in x] for x in X], y)
    (by_word,) = top_features(words, 20, labels=["text"])
    assert {"text?", "text?[-1]"} & {feature for feature, _ in by_word.positive}


def test_any_number_of_jobs_gives_the_same_bits():
    X, y = random_sequences(2)
    serial = StackedSequentialLearner(LogisticRegression(), cv=3, random_state=0).fit(X, y)
    with parallel_config(n_jobs=2):
        parallel = StackedSequentialLearner(LogisticRegression(), cv=3, random_state=0).fit(X, y)
    assert same(serial.predict_proba(X), parallel.predict_proba(X))


@pytest.mark.parametrize("estimator", [StructuredPerceptron(), SGDClassifier(loss="log_loss")])
@pytest.mark.parametrize("options", [{}, {"window": None}, {"levels": 2}, {"cv": "two_halves"}])
def test_learners_without_a_seed_get_one_from_random_state(estimator, options):
    X, y = random_sequences(2, n_sequences=20)

    def scores(seed, n_jobs=None):
        settings = {"cv": 3, "n_jobs": n_jobs, "random_state": seed, **options}
        return StackedSequentialLearner(estimator, **settings).fit(X, y).decision_function(X)

    assert same(scores(0), scores(0, n_jobs=2))
    assert not same(scores(0), scores(1))
    assert estimator.random_state is None
    own = clone(estimator).set_params(random_state=7)
    learner = StackedSequentialLearner(own, cv=3, random_state=0).fit(X, y)
    inner = getattr(learner.labeler_, "estimator", learner.labeler_)
    assert inner.random_state == 7


def test_data_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X, y = random_sequences(2)
    frames = [pandas.DataFrame(x, columns=["a", "b"]) for x in X]
    learner = StackedSequentialLearner(GaussianNB(), cv=3, random_state=0).fit(frames, y)
    assert learner.get_feature_names_out()[:3].tolist() == ["a", "b", "1?"]
    # Without a warning that names are missing, which would be an error here.
    assert learner.score(frames, y) == token_accuracy(y, learner.predict(frames))


def test_fits_run_at_the_same_time():
    """Two fits that wait for each other finish only if they run in parallel."""
    import threading

    barrier = threading.Barrier(2, timeout=20)

    class Waiting(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            if X.shape[0] < n_steps:  # the folds, not the learner fitted on all data
                barrier.wait()
            return super().fit(X, y, sample_weight)

    X, y = random_sequences(2)
    n_steps = sum(map(len, y))
    StackedSequentialLearner(Waiting(), cv=2, n_jobs=2, random_state=0).fit(X, y)
    assert barrier.broken is False


def test_random_state_determines_the_folds():
    X, y = random_sequences(2, n_sequences=20)

    def scale(seed):
        learner = StackedSequentialLearner(GaussianNB(), cv=3, levels=2, random_state=seed)
        return learner.fit(X, y).scale_

    assert np.array_equal(scale(0), scale(0))
    assert not np.array_equal(scale(0), scale(1))


def test_levels_are_nested_stacking():
    X, y = random_sequences(2, n_sequences=20)
    two = StackedSequentialLearner(GaussianNB(), cv=KFold(3), levels=2, window=(1, 1)).fit(X, y)
    below = StackedSequentialLearner(GaussianNB(), cv=KFold(3), window=(1, 1))
    data = two._read_training(X, y, None, None)
    scores, base = two._cross_validate(data, below)
    assert same(base.predict_proba(X), two.base_.predict_proba(X))
    extended = two._extend(data.X, scores)
    by_hand = IndependentLabeler(GaussianNB()).fit(extended, y)
    assert np.array_equal(two.labeler_.estimator_.theta_, by_hand.estimator_.theta_)


def test_weights_per_step_and_per_sequence():
    X, y = random_sequences(2)
    learner = StackedSequentialLearner(LogisticRegression(), cv=KFold(3), window=(1, 1))
    per_sequence = np.linspace(0.5, 2, len(X))
    per_step = [np.full(len(x), w) for x, w in zip(X, per_sequence, strict=True)]
    a = learner.fit(X, y, sample_weight=per_sequence).predict_proba(X)
    b = learner.fit(X, y, sample_weight=per_step).predict_proba(X)
    assert same(a, b)
    per_step[0][0] = 50.0
    assert not same(a, learner.fit(X, y, sample_weight=per_step).predict_proba(X))


# ----- accuracy


@pytest.fixture(scope="module")
def partition():
    data = make_partition_sequences(160, signal=0.25, random_state=0)
    return data.data[:100], data.target[:100], data.data[100:], data.target[100:]


def test_stacking_helps_on_long_runs(partition):
    X, y, X_test, y_test = partition
    plain = IndependentLabeler(LogisticRegression()).fit(X, y).score(X_test, y_test)
    found = {}
    for window in [(1, 1), (5, 5), (15, 15)]:
        learner = StackedSequentialLearner(LogisticRegression(), window=window, random_state=0)
        found[window] = learner.fit(X, y).score(X_test, y_test)
    assert plain < found[1, 1] < found[5, 5] < found[15, 15]
    assert 1 - found[15, 15] < 0.5 * (1 - plain)


@pytest.mark.parametrize("seed", range(6))
def test_memm_suffers_from_label_bias_and_swap_noise_helps(seed):
    """Label bias makes an MEMM worse than independent labels on long runs; swap noise reduces it.

    This holds for weak features and frequent false bursts; with stronger features it depends on the seed.
    """
    data = make_partition_sequences(160, signal=0.18, burst_rate=0.9, random_state=seed)
    X, y, X_test, y_test = data.data[:100], data.target[:100], data.data[100:], data.target[100:]

    def error(labeler, X, y):
        return 1 - labeler.fit(X, y).score(X_test, y_test)

    noisy = swap_steps(X, y, probability=0.1, random_state=0)
    independent = error(IndependentLabeler(LogisticRegression(tol=1e-10)), X, y)
    memm = error(MEMM(LogisticRegression()), X, y)
    assert memm > independent
    assert error(MEMM(LogisticRegression()), noisy.X, noisy.y) < 0.9 * memm
    # Swapping steps does not change what an independent labeler learns.
    undisturbed = error(IndependentLabeler(LogisticRegression(tol=1e-10)), noisy.X, noisy.y)
    assert undisturbed == pytest.approx(independent, abs=1e-12)


def test_crf_is_better_than_independent_labels(partition):
    X, y, X_test, y_test = partition
    independent = IndependentLabeler(LogisticRegression()).fit(X, y)
    crf = LinearChainCRF(c2=0.5).fit(X, y)
    assert 1 - crf.score(X_test, y_test) < 0.7 * (1 - independent.score(X_test, y_test))


def test_stacked_crf_and_perceptron_on_long_runs(partition):
    X, y, X_test, y_test = (part[:40] for part in partition)
    for base in (LinearChainCRF(c2=0.5), StructuredPerceptron(random_state=0)):
        alone = clone(base).fit(X, y).predict(X_test)
        stacked = StackedSequentialLearner(base, random_state=0).fit(X, y).predict(X_test)
        # At most 1 % worse: the chain already uses what the window adds.
        assert token_accuracy(y_test, stacked) > token_accuracy(y_test, alone) - 0.01
