"""Stacked sequential learning: folds, labels that are missing, features, jobs and seeds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import clone
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

from seqlab import (
    IndependentLabeler,
    LinearChainCRF,
    StackedSequentialLearner,
    StructuredPerceptron,
    Tagger,
)
from seqlab.data import InputError
from seqlab.features import LineFeatures
from seqlab.inspection import top_features
from seqlab.metrics import token_accuracy
from stacking import Counting, random_sequences, same

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
    # X and y are read once, so that iterators work.
    np.testing.assert_array_equal(learner.sequence_log_proba(iter(X), iter(y)), expected)
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
