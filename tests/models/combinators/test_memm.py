"""MEMM: histories, exact and beam decoding, the best threshold, invalid input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from lookup import Lookup
from seqlab import MEMM, IndependentLabeler
from seqlab.data import InputError, NoLegalLabelingError, NumericalError
from seqlab.inference import ChainScores, Mask, beam
from seqlab.inference.history_beam import history_beam, history_codes
from seqlab.metrics import min_error_threshold


def data(seed=0, n_sequences=30, n_labels=3):
    random = np.random.default_rng(seed)
    X, y = [], []
    for n in random.integers(2, 8, n_sequences):
        labels = np.repeat(random.integers(0, n_labels, n), 2)[:n]
        X.append(random.normal(size=(n, 4)) + np.eye(n_labels, 4)[labels])
        y.append([f"l{label}" for label in labels])
    return X, y


def extended(x, histories, n_labels, conjunctions=()):
    """Append one-hot previous labels to the features: the textbook version, row by row."""
    wide = []
    for row, history in zip(x, histories, strict=True):
        marks = []
        for label in history:  # latest first, None before the first step
            mark = np.zeros(n_labels + 1)
            mark[n_labels if label is None else label] = 1
            marks.append(mark)
        both = [1.0 if history == other else 0.0 for other in conjunctions]
        wide.append(np.concatenate([row, *marks, both]))
    return np.array(wide)


def before(labels, t, k):
    return tuple(labels[t - lag] if t >= lag else None for lag in range(1, k + 1))


@pytest.mark.parametrize("classifier", [LogisticRegression(), GaussianNB()], ids=["lr", "nb"])
@pytest.mark.parametrize(
    ("history", "conjunction"), [(1, False), (2, False), (2, True), (3, False)]
)
def test_the_model_agrees_with_the_definition(classifier, history, conjunction):
    """It equals a classifier on extended rows, its probabilities sum to 1, and `predict` finds the best."""
    X, y = data(n_sequences=12)
    if isinstance(classifier, LogisticRegression):
        classifier.set_params(tol=1e-10, max_iter=5000)
    model = MEMM(classifier, history=history, conjunction=conjunction).fit(X, y)
    code = {label: i for i, label in enumerate(model.classes_)}
    gold = [[code[label] for label in labels] for labels in y]
    contexts = [before(labels, t, history) for labels in gold for t in range(len(labels))]
    both = []
    if conjunction:  # in the order of the model's columns: the latest label is the last digit
        both = sorted(set(contexts), key=lambda h: [3 if s is None else s for s in h[::-1]])
    rows = extended(np.concatenate(X), contexts, 3, both)
    reference = type(classifier)(**classifier.get_params()).fit(rows, np.concatenate(gold))
    x = np.random.default_rng(0).normal(size=(4, 4))
    values = {}
    for labels in itertools.product(range(3), repeat=4):
        local = reference.predict_proba(
            extended(x, [before(labels, t, history) for t in range(4)], 3, both)
        )
        values[labels] = np.prod(np.maximum(local, 1e-12)[np.arange(4), list(labels)])
    assert sum(values.values()) == pytest.approx(1.0)
    every = [[f"l{s}" for s in labels] for labels in values]
    found = np.exp(model.sequence_log_proba([x] * len(every), every))
    np.testing.assert_allclose(found, list(values.values()), rtol=1e-4, atol=1e-8)
    assert found.sum() == pytest.approx(1.0)
    best = max(values, key=values.get)
    assert model.predict([x])[0].tolist() == [f"l{s}" for s in best]


@pytest.mark.parametrize("n_steps", [1, 2, 5])
@pytest.mark.parametrize("options", [{}, {"transitions": "models"}, {"history": 2}, {"history": 3}])
def test_probabilities_sum_to_one(options, n_steps):
    X, y = data(5)
    model = MEMM(**options).fit(X, y)
    every = [list(labels) for labels in itertools.product(model.classes_, repeat=n_steps)]
    x = np.random.default_rng(1).normal(size=(n_steps, 4))
    log_proba = model.sequence_log_proba([x] * len(every), every)
    assert np.exp(log_proba).sum() == pytest.approx(1.0)
    assert model.predict([x])[0].tolist() == every[int(np.argmax(log_proba))]
    if model.history == 1:
        proba = np.zeros((n_steps, 3))
        for labels, p in zip(itertools.product(range(3), repeat=n_steps), log_proba, strict=True):
            proba[np.arange(n_steps), list(labels)] += np.exp(p)
        np.testing.assert_allclose(model.predict_proba([x])[0], proba, atol=1e-9)


@pytest.mark.parametrize("classifier", [None, GaussianNB(), DecisionTreeClassifier(max_depth=3)])
def test_no_history_is_the_classifier(classifier):
    X, y = data()
    model = MEMM(classifier, history=0).fit(X, y)
    alone = IndependentLabeler(classifier).fit(X, y)
    for p, q in zip(model.predict_proba(X), alone.predict_proba(X), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-11)
    assert np.array_equal(np.concatenate(model.predict(X)), np.concatenate(alone.predict(X)))
    assert MEMM(history=0, decoding="beam").fit(X, y).score(X, y) == IndependentLabeler().fit(
        X, y
    ).score(X, y)


@pytest.mark.parametrize("transitions", ["feature", "models"])
def test_fast_softmax_scores_equal_the_classifier(transitions):
    class Other(LogisticRegression):  # same numbers, but not recognised as a softmax
        pass

    X, y = data()
    for options in ({"history": 1}, {"history": 2, "conjunction": True}):
        fast = MEMM(LogisticRegression(), transitions=transitions, **options).fit(X, y)
        slow = MEMM(Other(), transitions=transitions, **options).fit(X, y)
        for p, q in zip(fast.local_proba(X, y), slow.local_proba(X, y), strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-12)
        assert np.array_equal(np.concatenate(fast.predict(X)), np.concatenate(slow.predict(X)))
        sparse = MEMM(Other(), transitions=transitions, **options).fit(
            [sp.csr_matrix(x) for x in X], y
        )
        for p, q in zip(fast.local_proba(X), sparse.local_proba(X), strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-3, atol=1e-4)  # the solver's path differs
    binary = [[label if label == "l0" else "l1" for label in labels] for labels in y]
    fast, slow = (MEMM(c, history=2).fit(X, binary) for c in (LogisticRegression(), Other()))
    for p, q in zip(fast.local_proba(X), slow.local_proba(X), strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-9)


def random_problem(seed, n_labels, history, lengths):
    """Return random scores of every step, history and label, in the form that the beam needs."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    table = random.normal(size=(offsets[-1], (n_labels + 1) ** history, n_labels))
    return (lambda steps, histories: table[steps, histories]), offsets, table


def score_of(table, offset, labels, n_labels, history):
    codes = history_codes(np.array(labels), np.array([0, len(labels)]), n_labels, history)
    steps = offset + np.arange(len(labels))
    return table[steps, codes, list(labels)].sum()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_full_beam_is_exact(seed, n_labels, history, lengths, masked):
    local, offsets, table = random_problem(seed, n_labels, history, lengths)
    mask = None
    if masked:
        random = np.random.default_rng(seed)
        mask = Mask(
            steps=random.random((offsets[-1], n_labels)) < 0.8,
            transitions=random.random((n_labels, n_labels)) < 0.8,
            start=random.random(n_labels) < 0.8,
            end=random.random(n_labels) < 0.8,
        )

    def legal(labels, a):
        return mask is None or (
            mask.start[labels[0]]
            and mask.end[labels[-1]]
            and all(mask.steps[a + t, s] for t, s in enumerate(labels))
            and all(mask.transitions[i, j] for i, j in itertools.pairwise(labels))
        )

    expected = []
    for a, b in itertools.pairwise(offsets.tolist()):
        every = itertools.product(range(n_labels), repeat=b - a)
        scored = [
            (score_of(table, a, y, n_labels, history), y) for y in every if a == b or legal(y, a)
        ]
        expected.append(max(scored, default=None))
    if None in expected:
        with pytest.raises(NoLegalLabelingError, match=f"sequence {expected.index(None)}"):
            history_beam(local, offsets, n_labels, history, n_labels**history, mask=mask)
        return
    found = history_beam(local, offsets, n_labels, history, n_labels**history + 3, mask=mask)
    np.testing.assert_allclose(found.score, [value for value, _ in expected], atol=1e-12)
    assert found.labels.tolist() == [s for _, labels in expected for s in labels]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4), st.booleans())
def test_a_narrow_beam_keeps_the_best_prefixes(seed, n_labels, width, wide_history):
    """Against a beam of dicts: history -> (score, labels), sorted and cut."""
    history = 2 if wide_history else 1
    local, offsets, table = random_problem(seed, n_labels, history, [6, 3])
    found = history_beam(local, offsets, n_labels, history, width)
    for i, (a, b) in enumerate(itertools.pairwise(offsets.tolist())):
        live = {(): (0.0, ())}
        for t in range(b - a):
            grown = {}
            for value, labels in live.values():
                code = history_codes(
                    np.array([*labels, 0]), np.array([0, t + 1]), n_labels, history
                )
                for s in range(n_labels):
                    total, path = value + table[a + t, code[-1], s], (*labels, s)
                    old = grown.get(path[-history:])
                    if old is None or total > old[0]:
                        grown[path[-history:]] = (total, path)
            best = sorted(grown.items(), key=lambda item: -item[1][0])[:width]
            live = dict(best)
        value, labels = max(live.values())
        assert found.score[i] == pytest.approx(value)
        assert found.labels[a:b].tolist() == list(labels)


def test_a_history_of_one_label_equals_the_chain_beam():
    local, offsets, table = random_problem(7, 6, 1, [9, 1, 14])
    pairwise = table[:, :6]
    unary = np.zeros((offsets[-1], 6))
    unary[offsets[:-1]] = table[offsets[:-1], 6]
    for width in (1, 2, 4):
        ours = history_beam(local, offsets, 6, 1, width)
        theirs = beam(ChainScores(unary, pairwise, offsets=offsets), width)
        np.testing.assert_allclose(ours.score, theirs.score)
        assert ours.labels.tolist() == theirs.labels.tolist()


def test_many_histories_and_chunks(monkeypatch):
    local, offsets, _ = random_problem(3, 6, 3, [40, 5, 5, 30, 0, 7])
    whole = history_beam(local, offsets, 6, 3, 60)
    monkeypatch.setattr("seqlab.inference.history_beam.CHUNK", 1)
    pieces = history_beam(local, offsets, 6, 3, 60)
    assert whole.labels.tolist() == pieces.labels.tolist()
    exact = history_beam(local, offsets, 6, 3, 216)
    assert (exact.score >= whole.score - 1e-12).all()


def test_exact_and_beam_decoding():
    X, y = data()
    chain = MEMM().fit(X, y)
    wide = MEMM(decoding="beam", beam_width=3).fit(X, y)
    assert np.array_equal(np.concatenate(chain.predict(X)), np.concatenate(wide.predict(X)))
    full = MEMM(history=2, decoding="viterbi").fit(X, y)
    beam9 = MEMM(history=2, decoding="beam", beam_width=9).fit(X, y)
    assert np.array_equal(np.concatenate(full.predict(X)), np.concatenate(beam9.predict(X)))
    narrow = MEMM(history=2, decoding="beam", beam_width=1).fit(X, y)
    best, greedy = full.predict(X), narrow.predict(X)
    assert (full.sequence_log_proba(X, best) >= full.sequence_log_proba(X, greedy) - 1e-9).all()
    assert not hasattr(narrow, "predict_nbest")
    assert not hasattr(full, "predict_proba")
    assert hasattr(chain, "predict_nbest")
    known = [[None] * len(labels) for labels in y]
    known[2][1] = "l2"
    for model in (chain, full):
        assert model.predict(X, constraints=known)[2][1] == "l2"


def test_local_probabilities():
    X, y = data()
    for history in (0, 1, 2):
        model = MEMM(history=history).fit(X, y)
        local = model.local_proba(X, y)
        code = [np.searchsorted(model.classes_, labels) for labels in y]
        product = [np.log(p[np.arange(len(c)), c]).sum() for p, c in zip(local, code, strict=True)]
        np.testing.assert_allclose(model.sequence_log_proba(X, y), product, rtol=1e-9)
        predicted = model.predict(X)
        for p, q in zip(model.local_proba(X), model.local_proba(X, predicted), strict=True):
            np.testing.assert_allclose(p, q)
    assert model.sequence_log_proba(X[:1], [["?"] * len(y[0])])[0] == -np.inf
    strange = [list(labels) for labels in y]
    strange[3][1] = "?"
    with pytest.raises(InputError, match=r"y\[3\]\[1\] is not a label"):
        model.local_proba(X, strange)


def test_min_error_uses_probabilities_after_the_predicted_label():
    X, y = data(n_labels=2)
    model = MEMM().fit(X[:15], y[:15])
    found = model.min_error(X[15:], y[15:])
    positive = [p[:, 1] for p in model.local_proba(X[15:])]
    assert found == min_error_threshold(y[15:], positive, pos_label="l1")
    assert found.error <= 1 - model.score(X[15:], y[15:]) + 1e-12
    other = model.min_error(X[15:], y[15:], pos_label="l0")
    assert other.error == pytest.approx(found.error, abs=0.02)
    with pytest.raises(InputError, match="pos_label='x'"):
        model.min_error(X, y, pos_label="x")
    X, y = data()
    with pytest.raises(InputError, match="two labels, but this one has 3"):
        MEMM().fit(X, y).min_error(X, y)


def test_nested_parameters_in_a_grid_search():
    X, y = data()
    grid = {"classifier__C": [1e-4, 1.0], "history": [1, 2]}
    search = GridSearchCV(MEMM(LogisticRegression()), grid, cv=2).fit(X, y)
    assert search.best_params_["classifier__C"] == 1.0


def test_an_memm_may_copy_the_previous_label_in_long_runs():
    """It is trained on true previous labels, so it never recovers from a wrong first label."""
    random = np.random.default_rng(0)
    y = [["a"] * 20 if random.random() < 0.5 else ["b"] * 20 for _ in range(60)]
    X = [
        np.array([[label == "b"] for label in labels]) + random.normal(size=(20, 1)) for labels in y
    ]
    model = MEMM().fit(X, y)
    assert all(len(set(labels)) == 1 for labels in model.predict(X))


def test_bad_input():
    X, y = data()
    with pytest.raises(InputError, match="no predict_proba"):
        MEMM(RidgeClassifier(), calibrate=None).fit(X, y)
    assert MEMM(RidgeClassifier(), history=2).fit(X, y).score(X, y) > 0.5
    with pytest.raises(InputError, match="history of 40 labels"):
        MEMM(history=40).fit(X, y)
    with pytest.raises(InputError, match="does not accept sample_weight"):
        MEMM(Lookup()).fit(X, y, sample_weight=np.ones(len(X)))
    table = np.full((6, 2), 0.5)
    table[4] = np.nan
    X = [np.array([[0.0], [1]]), np.array([[2.0], [3], [4], [5]])]
    for options in ({}, {"history": 2}, {"history": 0}, {"transitions": "models"}):
        model = MEMM(Lookup(table), **options).fit(X, [["a", "b"], ["a", "a", "b", "b"]])
        with pytest.raises(NumericalError, match="sequence 1 at position 2: nan"):
            model.predict(X)
    with pytest.raises(InputError, match="width and history"):
        history_beam(lambda s, h: np.zeros((s.size, 2)), np.array([0, 2]), 2, 0, 1)
