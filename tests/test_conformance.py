"""Checks that every public labeler must pass: those of scikit-learn, then our own for sequences."""

from __future__ import annotations

import inspect
import pickle
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

import seqlab
from blocks import count_parallel_tasks, use_small_blocks
from conformance import (
    EXPECTED_FAILURES,
    LABELERS,
    NOT_LABELERS,
    TIME_LIMIT,
    answers,
    make_data,
    names_of_n_jobs,
    run_in_forked_child,
    same,
    scores_of,
)
from seqlab.data import InputError, Sequences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

entries = pytest.mark.parametrize("entry", LABELERS, ids=lambda entry: entry.id)


@pytest.fixture
def data():
    return make_data()


def assert_same_answers(a, b, exact=True):
    assert a.keys() == b.keys()
    for name in a:
        if exact or name in ("predict", "nbest"):
            assert same(a[name], b[name]), name
        else:
            for p, q in zip(a[name], b[name], strict=True):
                np.testing.assert_allclose(p, q, rtol=1e-6, atol=1e-7, err_msg=name)


def test_every_public_labeler_is_registered():
    registered = {type(entry.estimator).__name__ for entry in LABELERS}
    assert registered == set(seqlab.__all__) - NOT_LABELERS


@entries
def test_scikit_learn_checks(entry):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            clone(entry.estimator),
            expected_failed_checks=EXPECTED_FAILURES,
            on_skip=None,
            on_fail=None,
        )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert len(results) >= 45


@entries
def test_signatures_of_constructor_and_fit(entry):
    for cls in {type(entry.estimator)}:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert set(positional) <= {"estimator", "classifier", "features", "labeler"}
        fit = inspect.signature(cls.fit).parameters
        assert {"X", "y", "sample_weight", "lengths"} <= set(fit)


@entries
def test_predict_before_fit_raises(entry, data):
    with pytest.raises(NotFittedError):
        clone(entry.estimator).predict(data[0])


@entries
def test_clone_pickle_and_refit_give_identical_results(entry, data):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    reference = answers(model, X)
    assert_same_answers(reference, answers(clone(model).fit(X, y), X))
    assert_same_answers(reference, answers(pickle.loads(pickle.dumps(model)), X))
    assert_same_answers(reference, answers(model.fit(X, y), X))


@entries
def test_save_and_load_give_identical_results(entry, data, tmp_path):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    seqlab.save(model, tmp_path / "model.seqlab")
    loaded = seqlab.load(tmp_path / "model.seqlab")
    assert_same_answers(answers(model, X), answers(loaded, X))
    assert loaded.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert loaded.score(X, y) == model.score(X, y)


@entries
def test_list_stacked_array_and_sequences_give_identical_results(entry, data):
    X, y = data
    lengths = [len(x) for x in X]
    stacked, flat = np.concatenate(X), np.concatenate(y)
    from_list = clone(entry.estimator).fit(X, y)
    from_stacked = clone(entry.estimator).fit(stacked, flat, lengths=lengths)
    sequences = Sequences.from_list(X)
    reference = answers(from_list, X)
    assert_same_answers(reference, answers(from_stacked, X))
    assert_same_answers(reference, answers(from_list, sequences))
    assert isinstance(from_list.predict(X), list)
    together = from_list.predict(stacked, lengths=lengths)
    assert isinstance(together, np.ndarray)
    assert np.array_equal(together, np.concatenate(reference["predict"]))
    assert from_list.score(stacked, flat, lengths=lengths) == from_list.score(X, y)


@entries
def test_generator_and_three_dimensional_input(entry, data):
    X, y = data
    model = clone(entry.estimator).fit((x for x in X), y)
    reference = clone(entry.estimator).fit(X, y)
    assert same(model.predict(x for x in X), reference.predict(X))
    equal = [x[:4] for x in X]
    assert same(reference.predict(np.stack(equal)), reference.predict(equal))


@entries
def test_sparse_and_dense_input_agree(entry, data):
    X, y = data
    sparse = [sp.csr_matrix(x) for x in X]
    a = clone(entry.estimator).fit(X, y)
    b = clone(entry.estimator).fit(sparse, y)
    assert_same_answers(answers(a, X), answers(b, sparse), exact=False)
    assert_same_answers(answers(a, X), answers(a, sparse), exact=False)


@entries
def test_dicts_and_dense_input_agree(entry, data):
    X, y = data
    names = [f"f{j}" for j in range(5)]
    dicts = [[dict(zip(names, row.tolist(), strict=True)) for row in x] for x in X]
    a = clone(entry.estimator).fit(X, y)
    b = clone(entry.estimator).fit(dicts, y)
    assert_same_answers(answers(a, X), answers(b, dicts), exact=False)
    unseen = [[{"never": 1.0, **step} for step in x] for x in dicts]
    assert same(b.predict(unseen), b.predict(dicts))  # features not seen in training are ignored


@entries
def test_results_do_not_depend_on_the_number_of_threads(entry, data, monkeypatch):
    """Would fail if blocks were summed in the order in which threads finish, or shared memory."""
    X, y = data
    use_small_blocks(monkeypatch)
    counts = count_parallel_tasks(monkeypatch)
    serial = clone(entry.estimator)
    names = names_of_n_jobs(serial)
    if not names:
        assert isinstance(serial, seqlab.IndependentLabeler)
        return
    reference = answers(serial.fit(X, y), X)
    assert counts == []
    parallel = clone(serial).set_params(**dict.fromkeys(names, 2)).fit(X, y)
    assert (max(counts, default=0) > 1) == ("fit" in entry.parallel)
    counts.clear()
    assert_same_answers(reference, answers(parallel, X))
    assert (max(counts, default=0) > 1) == ("predict" in entry.parallel)


@entries
def test_sequences_are_labelled_independently(entry, data):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    together = answers(model, X)
    order = np.random.default_rng(1).permutation(len(X))
    permuted = answers(model, [X[i] for i in order])
    for name in ("predict", "predict_proba", "decision_function"):
        if name in together:
            assert same([together[name][i] for i in order], permuted[name])
            alone = [getattr(model, name)([x])[0] for x in X]
            for p, q in zip(alone, together[name], strict=True):
                if p.dtype.kind == "f":
                    np.testing.assert_allclose(p, q, rtol=1e-12, atol=1e-14)
                else:
                    assert np.array_equal(p, q)


@entries
def test_shapes_and_probabilities(entry, data):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    labels = model.predict(X)
    assert [len(p) for p in labels] == [len(x) for x in X]
    assert {str(label) for p in labels for label in p} <= {"a", "b", "c"}
    if hasattr(model, "predict_proba"):
        for p, x in zip(model.predict_proba(X), X, strict=True):
            assert p.shape == (len(x), 3)
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
            assert (p >= 0).all()
    if hasattr(model, "sequence_log_proba") and hasattr(model, "predict_nbest"):
        best = model.predict_nbest(X, 3**8)
        for one in best:
            scores = [score for _, score in one]
            assert scores == sorted(scores, reverse=True)
            np.testing.assert_allclose(np.exp(scores).sum(), 1.0, rtol=1e-9)
        np.testing.assert_allclose(
            model.sequence_log_proba(X, [one[0][0] for one in best]), [one[0][1] for one in best]
        )
        assert model.sequence_log_proba(X[:1], [["z"] * len(X[0])])[0] == -np.inf
    if hasattr(model, "history_"):
        lengths = {len(values) for values in model.history_.values()}
        assert len(lengths) == 1
        assert {"iteration", "objective", "seconds"} <= model.history_.keys()
        assert isinstance(model.converged_, bool)


@entries
def test_empty_sequences_do_not_change_other_predictions(entry, data):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    with pytest.raises(InputError, match="X is empty: at least one sequence"):
        model.predict([])
    labels = model.predict([X[0], np.zeros((0, 5)), X[1]])
    assert [len(p) for p in labels] == [len(X[0]), 0, len(X[1])]
    assert same([labels[0], labels[2]], model.predict(X[:2]))
    assert [len(p) for p in model.predict([[], []])] == [0, 0]
    if hasattr(model, "predict_nbest"):
        assert model.predict_nbest([np.zeros((0, 5))], 2)[0][0][0].size == 0
        for bad in (0, 2.5, "3", None):
            with pytest.raises(InputError, match="n must be a whole number"):
                model.predict_nbest(X, bad)
        best = [one[0][0] for one in model.predict_nbest(X, 2)]
        assert same(best, model.predict(X)) or entry.id == "IndependentLabeler-no-proba"


@entries
def test_sample_weights(entry, data):
    X, y = data
    if entry.weight_is_repetition:
        weights = np.ones(len(X))
        weights[0], weights[1] = 2.0, 0.0
        weighted = clone(entry.estimator)
        if "all_transitions" in weighted.get_params():
            # A sequence of weight 0 still decides which parameters exist.
            weighted.set_params(all_states=True, all_transitions=True)
        repeated = clone(weighted).fit([X[0], X[0], *X[2:]], [y[0], y[0], *y[2:]])
        unweighted = clone(weighted).fit(X, y)
        weighted.fit(X, y, sample_weight=weights)
        found, expected, other = (scores_of(m, X) for m in (weighted, repeated, unweighted))
        for p, q in zip(found, expected, strict=True):
            np.testing.assert_allclose(p, q, atol=2e-4)
        assert max(abs(p - q).max() for p, q in zip(found, other, strict=True)) > 1e-3
    for bad, words in [
        (np.ones(3), "sample_weight has shape"),
        (-np.ones(len(X)), r"sample_weight\[0\]"),
        (np.zeros(len(X)), "zero everywhere"),
    ]:
        with pytest.raises(InputError, match=words):
            clone(entry.estimator).fit(X, y, sample_weight=bad)


@entries
def test_inputs_are_not_modified(entry, data):
    X, y = data
    before = [x.copy() for x in X]
    labels = [list(labels) for labels in y]
    answers(clone(entry.estimator).fit(X, y), X)
    assert same(before, X)
    assert labels == y


@entries
def test_errors_name_sequence_and_position(entry, data):
    X, y = data
    model = clone(entry.estimator)
    with pytest.raises(InputError, match=r"X\[3\] has 7 steps but y\[3\] has 6 labels"):
        model.fit(X, [*y[:3], y[3][:-1], *y[4:]])
    with pytest.raises(InputError, match="X has 12 sequences but y has 11"):
        model.fit(X, y[:-1])
    for value in (np.nan, np.inf):
        broken = [x.copy() for x in X]
        broken[2][1, 4] = value
        with pytest.raises(InputError, match=r"X\[2\]"):
            model.fit(broken, y)
    with pytest.raises(InputError, match=r"(?i)empty|no sequence|0 sequences"):
        model.fit([], [])
    with pytest.raises(InputError, match=r"X\[1\] is empty"):
        model.fit([X[0], np.zeros((0, 5)), X[2]], [y[0], [], y[2]])
    with pytest.raises(InputError, match="Templates"):
        model.fit([[("the", "DT"), ("dog", "NN")]], [["a", "b"]])
    with pytest.raises(InputError, match=r"X\[4\]"):
        model.fit([*X[:4], X[4][:, :3], *X[5:]], y)
    with pytest.raises(InputError, match="lengths sum to"):
        model.fit(np.concatenate(X), np.concatenate(y), lengths=[3, 4])
    with pytest.raises(InputError, match="y is None"):
        model.fit(X, None)
    fitted = clone(entry.estimator).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        fitted.predict([x[:, :4] for x in X])


@entries
def test_unseen_labels_count_as_errors_in_score(entry, data):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    strange = [["unseen"] * len(labels) for labels in y]
    assert model.score(X, strange) == 0.0
    mixed = [y[0], *strange[1:]]
    steps = sum(len(labels) for labels in y)
    right = (model.predict(X[:1])[0] == np.array(y[0])).sum()
    assert model.score(X, mixed) == pytest.approx(right / steps)


@entries
def test_one_class_only(entry, data):
    X, y = data
    constant = [["a"] * len(labels) for labels in y]
    # Whether one class is enough depends on the classifier.
    if entry.id.startswith("Independent") or entry.id == "StackedSequentialLearner-classifier":
        with pytest.raises(InputError, match="one class"):
            clone(entry.estimator).fit(X, constant)
    else:
        model = clone(entry.estimator).fit(X, constant)
        assert all((p == "a").all() for p in model.predict(X))


@entries
def test_model_selection(entry, data):
    X, y = data
    model = clone(entry.estimator)
    scores = cross_val_score(model, X, y, cv=4)
    assert scores.shape == (4,)
    assert (scores > 0.3).all()
    as_is = cross_val_score(model, Sequences.from_list(X), y, cv=4)
    np.testing.assert_allclose(as_is, scores, atol=0.05)
    train, test = train_test_split(Sequences.from_list(X), random_state=0)
    assert len(train) + len(test) == len(X)
    grid = {"c2": [0.1, 1.0]} if "c2" in model.get_params() else {}
    search = GridSearchCV(model, grid, cv=KFold(3)).fit(X, y)
    assert search.predict(X)[0].shape == (4,)
    pipeline = Pipeline([("features", seqlab.SequenceVectorizer()), ("labeler", model)])
    words = [[[f"w={v:.0f}" for v in row] for row in x] for x in X]
    assert len(cross_val_score(pipeline, words, y, cv=3)) == 3


@entries
def test_lengths_in_cross_validation_raises(entry, data):
    X, y = data
    stacked, flat = np.concatenate(X), np.concatenate(y)
    with pytest.raises(InputError, match="cross-validation"):
        cross_val_score(
            clone(entry.estimator),
            stacked,
            flat,
            cv=3,
            params={"lengths": [len(x) for x in X]},
            error_score="raise",
        )


@entries
def test_metadata_routing(entry, data):
    X, y = data
    weights = np.ones(len(X))
    weights[:6] = 0.25
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(entry.estimator).set_fit_request(sample_weight=True, lengths=False)
        model.set_score_request(sample_weight=False)
        search = GridSearchCV(model, {}, cv=3).fit(X, y, sample_weight=weights)
        direct = clone(entry.estimator).fit(X, y, sample_weight=weights)
    assert same(search.predict(X), direct.predict(X))


@entries
def test_a_failed_refit_leaves_the_model_unchanged(entry, data):
    X, y = data
    model = clone(entry.estimator).fit(X, y)
    before = answers(model, X)
    wider = [np.hstack([x, x]) for x in X]
    other = [[label.upper() for label in labels] for labels in y]
    with pytest.raises(InputError):
        model.fit(wider, other[:-1])
    with pytest.raises(InputError):
        model.fit(wider, other, sample_weight=np.zeros(len(X)))
    assert_same_answers(before, answers(model, X))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(X, y) == model.fit(X, y).score(X, y)


@pytest.mark.parametrize("entry", [e for e in LABELERS if e.interruptible], ids=lambda e: e.id)
def test_interrupt_keeps_the_last_complete_iteration(entry, data, monkeypatch):
    from seqlab.learning import Monitor

    X, y = data
    record, calls = Monitor.record, []

    def interrupting(self, *args, **values):
        record(self, *args, **values)
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Monitor, "record", interrupting)
    model = clone(entry.estimator)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    fitted = getattr(model, "labeler_", model)
    assert fitted.converged_ is False
    assert fitted.n_iter_ >= 1
    assert len(model.predict(X)) == len(X)


@entries
def test_concurrent_fits_and_a_forked_child_give_identical_results(entry, data):
    X, y = data
    reference = answers(clone(entry.estimator).fit(X, y), X)
    results = [None, None]

    def fit_in_thread(i):
        results[i] = answers(clone(entry.estimator).fit(X, y), X)

    workers = [threading.Thread(target=fit_in_thread, args=(i,), daemon=True) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(TIME_LIMIT)
        assert not worker.is_alive(), f"a fit in a thread took more than {TIME_LIMIT:g} seconds"
    for result in results:
        assert_same_answers(reference, result)

    def fit_in_child():
        parallel = clone(entry.estimator)
        parallel.set_params(**dict.fromkeys(names_of_n_jobs(parallel), 2))
        assert_same_answers(reference, answers(parallel.fit(X, y), X))

    run_in_forked_child(fit_in_child, TIME_LIMIT)
