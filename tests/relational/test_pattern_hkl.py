"""PatternHKL: conjunctions of mined patterns in one labeler."""

import signal
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import seqlab
from seqlab import PatternHKL, RelationalBoostedCRF, StructuredSVM, SubsequenceKernel
from seqlab.data import SymbolicSequences
from seqlab.relational.patterns import BitColumns


def make_use(n=8, n_steps=25, seed=0):
    """Return steps with one object each; the label says whether it is the object of the step before."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        objects = random.integers(0, 4, size=n_steps)
        X.append([[f"use({'abcd'[k]})"] for k in objects])
        same = np.concatenate([[False], objects[1:] == objects[:-1]])
        y.append(np.where(same, "again", "new").tolist())
    return X, y


def test_a_shared_variable_solves_what_constants_cannot_say_shortly(tmp_path):
    X, y = make_use()
    model = PatternHKL(window=(1, 0), modes=["use(?)"], C=1.0).fit(X[:6], y[:6])
    assert model.score(X[6:], y[6:]) == 1.0
    texts = [str(pattern) for pattern in model.patterns_]
    assert "use(A)[t-1] & use(A)[t]" in texts
    assert "use(A)[t-1] & use(A)[t]" in model.describe(4)
    seqlab.save(model, tmp_path / "model")
    again = seqlab.load(tmp_path / "model")
    assert again.patterns_ == model.patterns_
    for a, b in zip(again.decision_function(X), model.decision_function(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("text", ["use({})", "{}"])
def test_variables_stand_for_objects_that_training_does_not_show(text, tmp_path):
    X, y = make_use()
    X = [[[text.format(step[0][4])] for step in steps] for steps in X]
    mode = "use(?)" if "use" in text else "on(?)"
    model = PatternHKL(window=(1, 0), modes=[mode], C=10.0).fit(X, y)
    new = [[[text.format(name)] for name in "qqz"], [[text.format("z")]] * 2]
    expected = [["new", "again", "new"], ["new", "again"]]
    assert [labels.tolist() for labels in model.predict(new)] == expected
    atoms = SymbolicSequences.from_steps(new)
    assert [labels.tolist() for labels in model.predict(atoms)] == expected
    seqlab.save(model, tmp_path / "model")
    again = seqlab.load(tmp_path / "model")
    assert [labels.tolist() for labels in again.predict(new)] == expected


def test_predictions_do_not_depend_on_the_blocks_of_sequences():
    X, y = make_use()
    model = PatternHKL(window=(1, 1), C=1.0).fit(X, y)
    together = model.decision_function(X)
    for one, expected in zip(X, together, strict=True):
        np.testing.assert_allclose(model.decision_function([one])[0], expected)


@pytest.mark.parametrize("window", [(1,), (1, -1), ("a", 0), (1, True), 2, (600, 600)])
@pytest.mark.parametrize("make", [PatternHKL, RelationalBoostedCRF, SubsequenceKernel])
def test_one_rule_for_windows(make, window):
    X, y = make_use(2)
    model = make(window=window)
    if isinstance(model, SubsequenceKernel):
        model = StructuredSVM(kernel=model)
    with pytest.raises(ValueError, match=r"window.*must be|window has more than 1000 steps"):
        model.fit(X, y)


def test_an_unfitted_model_has_no_patterns():
    with pytest.raises(NotFittedError):
        _ = PatternHKL().patterns_


@pytest.mark.parametrize(
    "options",
    [{"min_support": 1.0}, {"min_support": 51}, {"modes": ["use(?)"], "max_variables": 0}],
)
def test_warns_if_no_pattern_is_frequent(options):
    X, y = make_use(2)
    with pytest.warns(UserWarning, match="no pattern .* of 50 steps"):
        model = PatternHKL(**options).fit(X, y)
    assert model.patterns_ == []


def make_dense(n_columns):
    """Return sequences with thousands of pairs of literals."""
    random = np.random.default_rng(0)
    X = [(random.random((30, n_columns)) < 0.3).astype(float) for _ in range(2)]
    return X, [np.where(x[:, 0] > 0, "a", "b") for x in X]


def test_mining_counts_for_the_time_limit_and_shows_progress(capsys):
    X, y = make_dense(150)
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match=r"max_seconds .* before all frequent patterns"):
        model = PatternHKL(max_patterns=5000, max_seconds=0.2, verbose=True).fit(X, y)
    assert time.process_time() - began < 3.0
    assert model.n_iter_ == 1
    assert model.history_["seconds"][0] >= 0.2
    assert "literal(s)" in capsys.readouterr().err


def test_an_interrupt_takes_effect_while_patterns_are_mined(monkeypatch):
    X, y = make_dense(20)
    model = PatternHKL(max_patterns=5000)
    n_counted = []

    def count(self, bits):
        n_counted.append(1)
        if len(n_counted) == 100:
            signal.raise_signal(signal.SIGINT)
        return 5

    monkeypatch.setattr(BitColumns, "count", count)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(n_counted) == 100
