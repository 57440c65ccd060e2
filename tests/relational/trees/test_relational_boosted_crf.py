"""RelationalBoostedCRF: equal to BoostedCRF without variables, and able to use variables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import seqlab
from seqlab import BoostedCRF, RelationalBoostedCRF
from seqlab.data import InputError, Sequences, SymbolicSequences
from seqlab.features import Window


def binary_data(seed=1, n_sequences=12):
    random = np.random.default_rng(seed)
    X = [(random.random((9, 4)) < 0.4).astype(float) for _ in range(n_sequences)]
    y = [((x[:, 0] * x[:, 1] + np.roll(x[:, 2], 1)) % 2).astype(int).tolist() for x in X]
    return X, y


def repeated_objects(seed=0, n_objects=8, n_sequences=25):
    """Return sequences of object use; the label says whether the object of the last step is used again."""
    objects = np.random.default_rng(seed).integers(0, n_objects, size=(n_sequences, 6))
    X = [[[f"use(object{k})"] for k in row] for row in objects]
    return X, [["new", *np.where(row[1:] == row[:-1], "again", "new")] for row in objects]


@pytest.mark.parametrize(
    "options", [{}, {"order": 0}, {"leaf_values": "least_squares", "max_leaf_nodes": 9}]
)
@pytest.mark.parametrize("window", [(0, 0), (2, 1)])
@pytest.mark.parametrize("is_binary", [True, False])
def test_without_variables_the_trees_are_those_of_boosted_crf(options, window, is_binary):
    X, y = binary_data()
    if not is_binary:
        random = np.random.default_rng(2)
        X = [x * random.normal(size=x.shape).round(1) for x in X]
    options = {"max_iter": 5, "max_leaf_nodes": 6} | options
    before, after = window
    columns = Window(before=before, after=after).fit_transform(X)
    expected = BoostedCRF(**options).fit(columns, y)
    for modes in (None, ["on(#sensor)"]):
        model = RelationalBoostedCRF(window=window, modes=modes, **options).fit(X, y)
        for name in TREE_ARRAYS:
            assert np.array_equal(getattr(model.trees_, name), getattr(expected.trees_, name)), name
        for ours, theirs in zip(
            model.predict_proba(X), expected.predict_proba(columns), strict=True
        ):
            assert np.array_equal(ours, theirs)


TREE_ARRAYS = ("feature", "threshold", "child", "value", "label_set", "label_sets", "gain")


def test_a_variable_generalises_to_constants_that_training_does_not_show():
    X, y = repeated_objects()
    options = {"window": (1, 0), "max_iter": 8, "max_leaf_nodes": 4}
    unseen = [[["use(kettle)"], ["use(kettle)"], ["use(cup)"], ["use(jar)"], ["use(jar)"]]]
    expected = ["new", "again", "new", "new", "again"]
    for model in (
        RelationalBoostedCRF(modes=["use(+-object)"], lookahead=False, **options),
        RelationalBoostedCRF(modes=["use(-object)", "use(+object)"], **options),
        RelationalBoostedCRF(**options),
    ):
        model.fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.predict(unseen)[0].tolist() == expected
        assert model.predict(SymbolicSequences.from_steps(unseen))[0].tolist() == expected
    constants = RelationalBoostedCRF(modes=["use(#object)"], **options).fit(X, y)
    assert len(constants.queries_) == 0
    assert constants.predict(unseen)[0].tolist() != expected


def test_lookahead_finds_a_pair_of_literals_at_the_root():
    X, y = repeated_objects()
    model = RelationalBoostedCRF(
        window=(1, 0), modes=["use(+-object)"], max_iter=1, max_leaf_nodes=2
    ).fit(X, y)
    # Without it, no single literal with a new variable separates the labels.
    assert model.format_trees("again").splitlines()[0] in (
        "use(A)[t] & use(A)[t-1]?",
        "use(A)[t-1] & use(A)[t]?",
    )
    names = model.get_test_names()
    importances = model.feature_importances_
    assert importances.shape == (len(names),)
    assert names[int(np.argmax(importances))].count("use(A") == 2


def test_background_knowledge_and_comparisons():
    random = np.random.default_rng(3)
    objects = random.integers(0, 6, size=(30, 5, 2))
    X = [[[f"use(o{a})", f"use(o{b})"] for a, b in row] for row in objects]
    # Objects 0, 1, 2 are hot; the label says whether a hot object is used.
    y = [["hot" if min(a, b) < 3 else "cold" for a, b in row] for row in objects]
    background = [f"temperature(o{k}, {'high' if k < 3 else 'low'})" for k in range(6)]
    background += ["temperature(oven, high)", "temperature(fridge, low)"]
    modes = ["use(-object)", "temperature(+object, #level)"]
    options = {"window": (0, 0), "max_iter": 4, "max_leaf_nodes": 4}
    model = RelationalBoostedCRF(modes=modes, background=background, **options).fit(X, y)
    assert model.score(X, y) == 1.0
    unseen = [[["use(oven)"], ["use(fridge)"], ["use(fridge)", "use(oven)"]]]
    assert model.predict(unseen)[0].tolist() == ["hot", "cold", "hot"]
    assert "temperature(A, high)" in model.format_trees("hot", rounds=1)

    pairs = [[[f"give(o{a}, o{b})"] for a, b in row] for row in objects]
    two = [["two" if a != b else "one" for a, b in row] for row in objects]
    for comparison in ("different", "same"):
        modes = ["give(-object, -object)", f"{comparison}(+object, +object)"]
        model = RelationalBoostedCRF(modes=modes, **options).fit(pairs, two)
        assert model.score(pairs, two) == 1.0
        assert model.predict([[["give(x, y)"], ["give(x, x)"]]])[0].tolist() == ["two", "one"]


def test_binary_matrices_have_literals_with_variables():
    random = np.random.default_rng(4)
    sensors = random.integers(0, 7, size=(30, 6))
    X = [np.eye(7)[row] for row in sensors]
    y = [[0, *(row[1:] == row[:-1]).astype(int)] for row in sensors]
    model = RelationalBoostedCRF(
        window=(1, 0), modes=["on(+-sensor)"], max_iter=8, max_leaf_nodes=4
    ).fit(X, y)
    assert model.score(X, y) == 1.0
    assert "on(A)[t-1] & on(A)[t]" in model.get_test_names() or (
        "on(A)[t] & on(A)[t-1]" in model.get_test_names()
    )
    names = [f"sensor {k}" for k in range(7)]
    stacked = Sequences(np.concatenate(X), np.arange(0, 181, 6), feature_names=names)
    named = RelationalBoostedCRF(modes=["on(#sensor)@0"], max_iter=1).fit(stacked, y)
    assert "on('sensor 3')[t]" in named.get_test_names()
    assert "on('sensor 3')[t-1]" not in named.get_test_names()


def test_sequences_must_have_the_columns_of_training():
    X, y = repeated_objects()
    model = RelationalBoostedCRF(max_iter=1).fit(X, y)
    steps = model.vectorizer_.transform(X)
    assert len(model.predict(steps)) == len(X)
    wide = np.hstack([steps.matrix.toarray(), np.ones((steps.n_steps, 1))])
    with pytest.raises(ValueError, match="9 features"):
        model.predict(Sequences(wide, steps.offsets))


@pytest.mark.parametrize("name", ["BoostedCRF", "RelationalBoostedCRF"])
def test_the_time_limit_holds_inside_a_round(name):
    X, _ = repeated_objects()
    y = [[step[0] for step in steps] for steps in X]  # eight labels, one for each object
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = getattr(seqlab, name)(max_seconds=1e-9).fit(X, y)
    # The time is over before the first tree: every tree is a leaf, and none of them is split.
    assert model.trees_.n_trees == model.trees_.feature.size == 8
    assert model.n_iter_ == 1
    assert not model.converged_


@pytest.mark.parametrize("name", ["feature_importances_", "previous_label_importance_"])
def test_an_unfitted_model_has_no_importances(name):
    with pytest.raises(NotFittedError):
        getattr(RelationalBoostedCRF(), name)


def check_parts(model):
    """Check the attributes in the order of `load`: parts first."""
    if model.queries_ is not None:
        model.queries_._check_state()
    model._check_state()


def test_model_files(tmp_path):
    X, y = repeated_objects(n_sequences=10)
    model = RelationalBoostedCRF(max_iter=3, max_leaf_nodes=4, background=["kind(object1, cup)"])
    model.fit(X, y)
    seqlab.save(model, tmp_path / "model.seqlab")
    restored = seqlab.load(tmp_path / "model.seqlab")
    new = [[["use(kettle)"], ["use(kettle)"]]]
    for data in (X, new):
        for a, b in zip(model.predict_proba(data), restored.predict_proba(data), strict=True):
            assert np.array_equal(a, b)
    assert restored.format_trees("again") == model.format_trees("again")
    assert list(restored.queries_) == list(model.queries_)
    assert len(model.queries_) > 0
    for damage in (
        lambda m: m.queries_.terms.__setitem__((0, 0), 1000),
        lambda m: m.queries_.terms.__setitem__((0, 0), -7),
        lambda m: m.columns_.__setitem__(0, 10_000),
        lambda m: setattr(m, "window_", (1, -1)),
        lambda m: setattr(m, "queries_", None),
    ):
        broken = seqlab.load(tmp_path / "model.seqlab")
        damage(broken)
        with pytest.raises(InputError):
            check_parts(broken)


def test_results_do_not_depend_on_the_number_of_threads():
    X, y = repeated_objects()
    options = {"max_iter": 4, "max_leaf_nodes": 6, "modes": ["use(#o)", "use(+-o)"]}
    serial = RelationalBoostedCRF(**options).fit(X, y)
    parallel = RelationalBoostedCRF(n_jobs=3, **options).fit(X, y)
    assert parallel.get_test_names() == serial.get_test_names()
    for name in TREE_ARRAYS:
        assert np.array_equal(getattr(parallel.trees_, name), getattr(serial.trees_, name))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modes": ["use(object)"]}, "must begin with #"),
        ({"modes": ["use(#object"]}, "no closing parenthesis"),
        ({"modes": ["use(#object)@-2..0"]}, r"not in the window -1..1"),
        ({"modes": ["use(#object)@now"]}, "not a range of steps"),
        ({"modes": ["use(+object)"]}, "no mode declares -object"),
        (
            {"modes": ["use(?x)", "off(+x)"]},
            "modes name off/1, which X does not have; it has use/1",
        ),
        ({"modes": []}, "modes is empty"),
        ({"modes": ["use(-x)", "same(-x, +x)"]}, "must be marked with"),
        ({"window": (1,)}, "two whole numbers"),
        ({"window": (-1, 0)}, "two whole numbers"),
        ({"background": ["kind(a"]}, r"background\[0\]"),
        ({"background": ["use(a)"]}, "in the background and in the steps"),
        ({"background": ["kind(a)"], "modes": ["kind(#)"]}, "needs a variable"),
    ],
)
def test_errors(options, message):
    X, y = repeated_objects(n_sequences=3)
    with pytest.raises(InputError, match=message):
        RelationalBoostedCRF(**options).fit(X, y)
    model = RelationalBoostedCRF(max_iter=1).fit(X, y)
    with pytest.raises(InputError, match="not a label"):
        model.format_trees("other")
