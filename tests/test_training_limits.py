"""Limits of training on every labeler that has them: time, callbacks, held-out sequences."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.conformance import LABELERS, make_data

import seqlab
from seqlab.data import Sequences
from seqlab.data.errors import InputError
from seqlab.learning import TrainingData, split_off_validation
from seqlab.models.base import fit_prepared

LIMITED = [e for e in LABELERS if "max_seconds" in e.estimator.get_params(deep=False)]
HELD_OUT = [e for e in LIMITED if hasattr(e.estimator, "validation_fraction")]
limited = pytest.mark.parametrize("entry", LIMITED, ids=lambda e: e.id)
held_out = pytest.mark.parametrize("entry", HELD_OUT, ids=lambda e: e.id)


@pytest.fixture
def data():
    return make_data()


def test_every_labeler_with_max_iter_has_the_limits():
    lacking = [
        e.id
        for e in LABELERS
        if "max_iter" in e.estimator.get_params(deep=False)
        and not {"max_seconds", "callback"} <= set(e.estimator.get_params(deep=False))
    ]
    assert lacking == []


def hide_labels(y):
    """Labels of which some are unknown, so that an HMM needs several passes."""
    return [
        [None if (i + t) % 3 == 0 else label for t, label in enumerate(labels)]
        for i, labels in enumerate(y)
    ]


@limited
def test_time_limit(entry, data):
    X, y = data
    model = clone(entry.estimator).set_params(max_seconds=1e-9)
    if isinstance(model, seqlab.HMM):
        y = hide_labels(y)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model.fit(X, y)
    assert model.n_iter_ == 1
    assert not model.converged_
    assert len(model.predict(X)) == len(X)
    with pytest.raises(ValueError, match="max_seconds"):
        clone(model).set_params(max_seconds=0).fit(X, y)


@limited
def test_callback_stops_and_is_cloned_but_not_saved(entry, data, tmp_path):
    X, y = data
    if isinstance(entry.estimator, seqlab.HMM):
        y = hide_labels(y)
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration >= 1

    model = clone(entry.estimator).set_params(callback=callback)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.n_iter_ == seen[-1].iteration == 1
    assert seen[-1].objective == model.history_["objective"][-1]
    assert clone(model).callback is callback
    seqlab.save(model, tmp_path / "model.seqlab")
    assert model.callback is callback
    restored = seqlab.load(tmp_path / "model.seqlab")
    assert restored.callback is None
    for a, b in zip(restored.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_callback_of_a_labeler_inside_others_is_not_saved(data, tmp_path):
    X, y = data
    crf = seqlab.LinearChainCRF(callback=lambda progress: None)
    tagger = seqlab.Tagger(None, seqlab.StackedSequentialLearner(crf, cv=2)).fit(X, y)
    seqlab.save(tagger, tmp_path / "model.seqlab")
    assert tagger.labeler.estimator.callback is crf.callback
    assert seqlab.load(tmp_path / "model.seqlab").labeler.estimator.callback is None


def test_pickle_and_deepcopy_keep_the_callback():
    model = seqlab.LinearChainCRF(callback=print)
    assert pickle.loads(pickle.dumps(model)).callback is print
    assert copy.deepcopy(model).callback is print


def test_error_in_a_callback_leaves_the_model_unchanged(data):
    X, y = data
    model = seqlab.LinearChainCRF().fit(X, y)
    before = model.coef_

    def callback(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        model.set_params(callback=callback).fit(X, y)
    assert model.coef_ is before


@held_out
def test_early_stopping_keeps_the_weights_of_the_best_iteration(entry, data):
    X, y = data
    model = clone(entry.estimator)
    model.set_params(validation_fraction=0.3, random_state=0, n_iter_no_change=2).fit(X, y)
    scores = model.history_["validation_score"]
    best = model.history_["iteration"].index(model.best_iteration_)
    assert model.best_validation_score_ == scores[best] == np.nanmax(scores)
    assert best == np.nanargmax(scores)
    assert model.n_iter_ <= model.best_iteration_ + 2
    again = clone(model).fit(X, y)
    for a, b in zip(again.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    # Without held-out sequences, nothing of the earlier fit is left.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(validation_fraction=None).fit(X, y)
    assert model.best_iteration_ is None
    assert "validation_score" not in model.history_


@held_out
def test_given_sequences_for_early_stopping(entry, data):
    X, y = data
    model = clone(entry.estimator).set_params(n_iter_no_change=2)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(X[:-3], y[:-3], X_val=X[-3:], y_val=y[-3:])
    assert model.best_validation_score_ == model.score(X[-3:], y[-3:])
    # Training stops at the same weights if it stops at the best iteration.
    plain = clone(model).set_params(max_iter=max(model.best_iteration_, 1), tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain.fit(X[:-3], y[:-3])
    if model.best_iteration_:
        for a, b in zip(plain.predict_proba(X), model.predict_proba(X), strict=True):
            np.testing.assert_array_equal(a, b)


def test_bad_sequences_for_early_stopping(data):
    X, y = data
    crf = seqlab.LinearChainCRF()
    with pytest.raises(InputError, match="X_val and y_val must be given together"):
        crf.fit(X, y, X_val=X)
    with pytest.raises(InputError, match=r"X_val: .*features"):
        crf.fit(X, y, X_val=[x[:, :-1] for x in X], y_val=y)
    with pytest.raises(InputError, match=r"X_val\[0\] has .* but y_val\[0\] has"):
        crf.fit(X, y, X_val=X, y_val=[labels[:-1] for labels in y])
    with pytest.raises(InputError, match="no known label"):
        crf.fit(X, y, X_val=X[:1], y_val=[[None] * len(y[0])])
    with pytest.raises(InputError, match=r"validation_fraction=0\.5 needs more sequences than 1"):
        seqlab.LinearChainCRF(validation_fraction=0.5).fit(X[:1], y[:1])


def test_unseen_and_unknown_labels_of_held_out_sequences(data):
    X, y = data
    names = [["new" if t == 0 else str(v) for t, v in enumerate(labels)] for labels in y]
    n_steps = sum(map(len, y))
    message = (
        rf"{len(y)} of {n_steps} labels of y_val do not occur in y, the first at y_val\[0\]\[0\]"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        crf = seqlab.LinearChainCRF().fit(
            X, [[str(v) for v in v_] for v_ in y], X_val=X, y_val=names
        )
    assert [w.filename for w in caught] == [__file__]
    assert crf.best_validation_score_ <= 1 - len(y) / n_steps  # unseen labels count as errors
    hidden = [[None if name == "new" else name for name in labels] for labels in names]
    known = seqlab.LinearChainCRF().fit(
        X, [[str(v) for v in v_] for v_ in y], X_val=X, y_val=hidden
    )
    assert known.best_validation_score_ > crf.best_validation_score_  # unknown ones do not count


def prepared(y, groups=None):
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in y])]).astype(np.int64)
    flat = np.concatenate(y)
    classes, codes = np.unique(flat, return_inverse=True)
    X = Sequences(np.arange(flat.size, dtype=float)[:, None], offsets)
    ones = np.ones(len(y))
    return TrainingData(X, codes, classes, None, ones, np.ones(flat.size), groups=groups)


def test_split_is_by_groups_and_keeps_every_label_in_training():
    y = [["a", "b"]] * 19 + [["a", "rare"]]
    for seed in range(20):
        random = np.random.RandomState(seed)
        training, validation = split_off_validation(prepared(y), 0.25, random)
        assert training.classes.tolist() == validation.classes.tolist() == ["a", "b", "rare"]
        assert (training.codes == 2).sum() == 1
        assert len(training.X) + len(validation.X) == 20
        assert len(validation.X) == 5
        groups = np.arange(20) // 4
        training, validation = split_off_validation(prepared(y, groups), 0.25, random)
        assert not set(training.groups) & set(validation.groups)


def test_held_out_sequences_are_not_trained_on():
    """The model is the same as one that never saw the held-out sequences, warm start included."""
    from seqlab.datasets import make_addresses

    X, y = make_addresses(300, random_state=0, return_X_y=True)
    X = seqlab.Templates.default().fit_transform(X)
    model = seqlab.LinearChainCRF(validation_fraction=0.2, random_state=3, n_iter_no_change=1000)
    model.fit(X, y)
    chosen = np.random.RandomState(3).permutation(300)[:60]
    rest = np.setdiff1d(np.arange(300), chosen)
    alone = seqlab.LinearChainCRF(max_iter=model.best_iteration_, tol=0.0)
    with pytest.warns(ConvergenceWarning):
        alone.fit(X[rest], [y[i] for i in rest])
    np.testing.assert_array_equal(model.transitions_, alone.transitions_)
    assert (model.coef_ != alone.coef_).nnz == 0


def test_meta_learners_keep_groups_together():
    y = [["a", "b"], ["b", "a"]] * 10
    data = prepared(y, np.arange(20) // 5)
    crf = fit_prepared(seqlab.LinearChainCRF(validation_fraction=0.25, random_state=0), data)
    assert crf.best_iteration_ is not None


def test_tagger_transforms_held_out_sequences():
    X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "cat"}], [{"w": "dogs"}]]
    y = [["D", "N"], ["D", "N"], ["N"]]
    tagger = seqlab.Tagger(seqlab.SequenceVectorizer(), seqlab.LinearChainCRF(c2=0.01))
    tagger.fit(X[1:], y[1:], X_val=X[:1], y_val=y[:1])
    assert "w=the" not in tagger.features_.get_feature_names_out().tolist()
    assert tagger.labeler_.best_validation_score_ == tagger.score(X[:1], y[:1])
    with pytest.raises(InputError, match="HMM does not support X_val"):
        seqlab.Tagger(None, seqlab.HMM()).fit(X, y, X_val=X, y_val=y)
