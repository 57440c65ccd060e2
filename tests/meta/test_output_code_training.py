"""SequentialOutputCode: interrupts, progress, weights, parameters that cannot work."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from seqlab import LinearChainCRF, SequentialOutputCode, StructuredPerceptron, load, save
from seqlab.data import InputError
from seqlab.datasets import make_hmm_sequences
from seqlab.meta import _code_columns


def small_data():
    return make_hmm_sequences(12, 6, n_labels=5, ko=2, random_state=0, return_X_y=True)


class SlowPerceptron(StructuredPerceptron):
    """Takes a moment to fit, and counts its fits."""

    n_fits = 0

    def _learn(self, data):
        time.sleep(0.03)
        type(self).n_fits += 1
        return super()._learn(data)


def send_interrupt(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_does_not_wait_for_all_columns(n_jobs):
    X, y = small_data()
    SlowPerceptron.n_fits = 0
    code = SequentialOutputCode(SlowPerceptron(max_iter=1), code_length=15, n_jobs=n_jobs)
    send_interrupt(0.1)
    with pytest.raises(KeyboardInterrupt):
        code.fit(X, y)
    assert 0 < SlowPerceptron.n_fits < 15
    assert not hasattr(code, "estimators_")


def test_a_handler_that_ignores_the_interrupt_lets_training_finish():
    X, y = small_data()
    code = SequentialOutputCode(
        SlowPerceptron(max_iter=1, random_state=0), code_length=12, n_jobs=2, random_state=0
    )
    expected = code.fit(X, y).predict_proba(X)
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        send_interrupt(0.05)
        found = code.fit(X, y).predict_proba(X)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
    np.testing.assert_array_equal(np.vstack(found), np.vstack(expected))


def test_more_columns_than_tasks(monkeypatch):
    X, y = small_data()
    code = SequentialOutputCode(LinearChainCRF(), code_length=11, random_state=0)
    expected = np.vstack(code.fit(X, y).predict_proba(X))
    for n_tasks in (1, 4):
        monkeypatch.setattr(_code_columns, "MAX_TASKS", n_tasks)
        for n_jobs in (1, 2):
            found = code.set_params(n_jobs=n_jobs).fit(X, y).predict_proba(X)
            np.testing.assert_array_equal(np.vstack(found), expected)


@pytest.mark.parametrize("options", [{}, {"cascade": 2}, {"cascade": "auto"}])
def test_progress_is_shown_column_by_column(options, capsys):
    X, y = small_data()
    base = StructuredPerceptron(max_iter=1)
    SequentialOutputCode(base, code_length=6, verbose=1, **options).fit(X, y)
    shown = capsys.readouterr().err
    assert "Columns" in shown
    assert "6 of 6" in shown
    assert "Parallel" not in shown


def test_columns_do_not_share_random_states():
    """A column with a generator of its own is cloned: the same for any number of threads."""
    X, y = small_data()
    base = StructuredPerceptron(max_iter=2, random_state=np.random.RandomState(0))
    code = SequentialOutputCode(base, code_length=8, random_state=0)
    expected = np.vstack(code.fit(X, y).predict_proba(X))
    np.testing.assert_array_equal(np.vstack(code.fit(X, y).predict_proba(X)), expected)
    found = code.set_params(n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(np.vstack(found), expected)


def test_invalid_parameters_of_the_labeler_are_an_error():
    X, y = small_data()
    with pytest.raises(ValueError, match="max_iter"):
        SequentialOutputCode(StructuredPerceptron(max_iter=-1), code_length=4).fit(X, y)


def test_auto_holds_out_sequences_with_a_weight():
    X, y = small_data()
    weights = np.zeros(12)
    weights[:2] = 1.0
    code = SequentialOutputCode(cascade="auto", cascade_candidates=(0, 1), random_state=0)
    code.fit(X, y, sample_weight=weights)
    assert set(code.validation_scores_) == {0, 1}
    with pytest.raises(InputError, match="two sequences with a positive weight"):
        code.fit(X, y, sample_weight=np.eye(12)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cascade": "auto", "cascade_candidates": ()}, "at least one of cascade_candidates"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_parameters_that_cannot_work(options, message):
    X, y = small_data()
    with pytest.raises(InputError, match=message):
        SequentialOutputCode(code_length=4, **options).fit(X, y)


def test_one_label_with_a_given_code(tmp_path):
    X = [np.eye(2), np.ones((1, 2))]
    code = SequentialOutputCode(code=[[0, 1]]).fit(X, [["a", "a"], ["a"]])
    save(code, tmp_path / "code.seqlab")
    for model in (code, load(tmp_path / "code.seqlab")):
        assert [one.tolist() for one in model.predict(X)] == [["a", "a"], ["a"]]
