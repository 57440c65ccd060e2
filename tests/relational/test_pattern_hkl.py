"""PatternHKL: conjunctions of mined patterns in one labeler."""

import numpy as np
import pytest

import seqlab
from seqlab import PatternHKL
from seqlab.data import SymbolicSequences
from seqlab.data.errors import InputError


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


@pytest.mark.parametrize("window", [(1,), (1, -1), ("a", 0)])
def test_bad_windows_are_named(window):
    X, y = make_use(2)
    with pytest.raises(InputError, match="window must be two whole numbers"):
        PatternHKL(window=window).fit(X, y)
