"""ProjectionMarkovModel: its distribution, its projections, invalid input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

import seqlab
from lookup import Lookup
from seqlab import MEMM, ProjectionMarkovModel
from seqlab.data import InputError, NumericalError, open_close_to_phrases, phrases_to_open_close
from seqlab.data.open_close import DECISIONS
from seqlab.inference import Mask


def data(seed=0, n_sequences=25, n_labels=3):
    random = np.random.default_rng(seed)
    X, y = [], []
    for n in random.integers(2, 8, n_sequences):
        labels = np.repeat(random.integers(0, n_labels, n), 2)[:n]
        X.append(random.normal(size=(n, 4)) + 1.2 * np.eye(n_labels, 4)[labels])
        y.append([f"l{label}" for label in labels])
    return X, y


def by_definition(model, classifier, X, y, x, labels, smoothing, local):
    """Return the probability of one labeling, with one classifier per projection (cached in ``local``)."""
    value = 1.0
    for t, label in enumerate(labels):
        before = labels[t - 1] if t else None
        chosen = [
            (row, now)
            for sequence, gold in zip(X, y, strict=True)
            for k, (row, now) in enumerate(zip(sequence, gold, strict=True))
            if (gold[k - 1] if k else None) == before
        ]
        seen = sorted({now for _, now in chosen})
        missing = sorted(set(model.classes_.tolist()) - set(seen))
        mass = smoothing if missing else 0.0
        if label in missing:
            value *= mass / len(missing)
            continue
        value *= 1 - mass
        if len(seen) > 1:
            if before not in local:
                rows, gold = zip(*chosen, strict=True)
                local[before] = clone(classifier).fit(rows, gold)
            value *= local[before].predict_proba(x[[t]])[0, seen.index(label)]
    return value


def test_the_model_agrees_with_the_definition():
    X, y = data(n_sequences=6)
    y[0] = ["l0", *y[0][1:]]
    classifier = LogisticRegression(C=2.0)
    model = ProjectionMarkovModel(classifier, smoothing=0.05, constraints=None).fit(X, y)
    x = X[0][:3] if len(X[0]) >= 3 else X[1][:3]
    every = [list(labels) for labels in itertools.product(model.classes_, repeat=3)]
    found = np.exp(model.sequence_log_proba([x] * len(every), every))
    local = {}
    expected = [by_definition(model, classifier, X, y, x, labels, 0.05, local) for labels in every]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
    assert model.predict([x])[0].tolist() == every[int(np.argmax(expected))]


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.sampled_from([None, "auto", "seen"]),
    st.sampled_from([0.0, 1e-3, 0.2]),
)
def test_probabilities_sum_to_one_over_all_labelings(seed, n_steps, constraints, smoothing):
    X, y = data(seed, n_sequences=8)
    model = ProjectionMarkovModel(GaussianNB(), constraints=constraints, smoothing=smoothing)
    model.fit(X, y)
    x = np.random.default_rng(seed).normal(size=(n_steps, 4))
    n_labels = model.classes_.size
    every = list(itertools.product(model.classes_, repeat=n_steps))
    # The product of local probabilities, before normalisation over labelings.
    sequences, _ = model._read([x])
    scores = model._block_scores(sequences.block(0, 1), model._prepare_scoring(sequences))
    total = np.logaddexp.reduce(
        [
            scores.unary[0, y[0]]
            + sum(scores.pairwise[t, y[t - 1], y[t]] for t in range(1, n_steps))
            for y in itertools.product(range(n_labels), repeat=n_steps)
        ]
    )
    assert total == pytest.approx(0.0, abs=1e-9)
    log_proba = model.sequence_log_proba([x] * len(every), [list(labels) for labels in every])
    assert np.exp(log_proba).sum() == pytest.approx(1.0)
    proba = np.zeros((n_steps, n_labels))
    for labels, p in zip(
        itertools.product(range(n_labels), repeat=n_steps), log_proba, strict=True
    ):
        proba[np.arange(n_steps), list(labels)] += np.exp(p)
    np.testing.assert_allclose(model.predict_proba([x])[0], proba, atol=1e-9)
    (best, score), *_ = model.predict_nbest([x], 3)[0]
    assert score == pytest.approx(log_proba.max())
    assert best.tolist() == list(every[int(np.argmax(log_proba))])


def test_the_only_label_of_a_projection_has_one_minus_smoothing():
    X = [np.eye(3)] * 2
    model = ProjectionMarkovModel(smoothing=0.01).fit(X, [["a", "b", "a"], ["a", "c", "a"]])
    assert [each is not None for each in model.classifiers_] == [True, False, False, False]
    after_b = model.projections_.proba(1, np.eye(3)[:1], np.array([0]), np.array([0, 1]))[0]
    np.testing.assert_allclose(after_b, [0.99, 0.005, 0.005])
    after_a = model.projections_.proba(0, np.eye(3)[:1], np.array([0]), np.array([0, 1]))[0]
    assert after_a[0] == pytest.approx(0.01)  # a after a: never seen
    assert after_a.sum() == pytest.approx(1.0)
    sure = ProjectionMarkovModel(smoothing=0).fit(X, [["a", "b", "a"], ["a", "c", "a"]])
    assert sure.sequence_log_proba([np.eye(3)], [["a", "b", "b"]])[0] == -np.inf


def test_a_label_that_occurs_only_at_the_end():
    X = [np.eye(3)[:2]] * 4
    model = ProjectionMarkovModel().fit(X, [["a", "z"], ["a", "z"], ["b", "z"], ["b", "a"]])
    after_z = model.projections_.fixed[2]
    np.testing.assert_allclose(after_z, np.array([4, 3, 4]) / 11)  # frequencies, each plus one
    assert len(model.predict([np.eye(3)])[0]) == 3


@pytest.mark.parametrize("n_sequences", [3, 40])
def test_open_close_needs_four_classifiers(n_sequences):
    random = np.random.default_rng(1)
    y, table = [], []
    for _ in range(n_sequences):
        cut = sorted(random.choice(7, 4, replace=False).tolist())
        cut[2] = cut[1] if random.random() < 0.5 else cut[2]  # one phrase right after the other
        phrases = [(cut[0], cut[1], "NP"), (cut[2], cut[3], "NP")]
        y.append(phrases_to_open_close(phrases, 7))
        for decision in y[-1]:
            row = np.full(len(DECISIONS), 0.1)
            row[DECISIONS.index(decision)] += random.random()
            table.append(row)
    X = [np.arange(14.0)[:, None] + 14 * i for i in range(n_sequences)]
    model = ProjectionMarkovModel(Lookup(table, DECISIONS)).fit(X, y)
    fitted = dict(zip([*model.classes_, "first"], model.classifiers_, strict=True))
    assert fitted["nOo"] is None
    assert fitted["nCi"] is None
    if n_sequences > 3:
        assert all(fitted[label] is not None for label in ("O", "nOi", "C", "nCo"))
        assert fitted["O"].classes_.tolist() == ["C", "nCi"]
    for labels in model.predict(X):
        open_close_to_phrases(labels.tolist())
    every = model.predict_nbest(X[:1], 10**6)[0]
    assert np.exp([score for _, score in every]).sum() == pytest.approx(1.0)
    assert model.score(X, y) > 0.8


def test_mask_as_constraints():
    X, y = data()
    legal = np.ones((3, 3), dtype=bool)
    model = ProjectionMarkovModel(constraints=Mask(transitions=legal)).fit(X, y)
    assert np.isfinite(model.sequence_log_proba([X[0][:2]], [["l0", "l1"]]))[0]
    legal[0, 1] = False
    with pytest.raises(InputError, match="'l1', which cannot follow 'l0'"):
        ProjectionMarkovModel(constraints=Mask(transitions=legal)).fit(X, y)


def test_it_equals_an_memm_with_one_model_per_label():
    X, y = data()
    pmm = ProjectionMarkovModel(constraints=None, smoothing=0.01).fit(X, y)
    memm = MEMM(transitions="models", smoothing=0.01).fit(X, y)
    for p, q in zip(pmm.predict_proba(X), memm.predict_proba(X), strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-12)


def test_any_number_of_jobs_and_model_files(tmp_path):
    X, y = data()
    one = ProjectionMarkovModel().fit(X, y)
    two = ProjectionMarkovModel(n_jobs=2).fit(X, y)
    assert sum(classifier is not None for classifier in two.classifiers_) > 1  # several fits
    assert np.array_equal(
        np.concatenate(one.predict_proba(X)), np.concatenate(two.predict_proba(X))
    )
    mask = Mask(transitions=np.ones((3, 3), dtype=bool))
    saved = ProjectionMarkovModel(RidgeClassifier(), constraints=mask).fit(X, y)
    seqlab.save(saved, tmp_path / "pmm.seqlab")
    loaded = seqlab.load(tmp_path / "pmm.seqlab")
    assert np.array_equal(
        np.concatenate(saved.predict_proba(X)), np.concatenate(loaded.predict_proba(X))
    )


def test_nested_parameters_in_a_grid_search():
    X, y = data()
    grid = {"classifier__C": [1e-4, 1.0]}
    search = GridSearchCV(ProjectionMarkovModel(LogisticRegression()), grid, cv=2).fit(X, y)
    assert search.best_params_["classifier__C"] == 1.0


def test_errors_name_invalid_posteriors_and_failing_projections():
    table = np.full((6, 2), 0.5)
    table[4] = np.nan
    X = [np.array([[0.0], [1]]), np.array([[2.0], [3], [4], [5]])]
    y = [["a", "b"], ["a", "a", "b", "b"]]
    model = ProjectionMarkovModel(Lookup(table)).fit(X, y)
    with pytest.raises(NumericalError, match="sequence 1 at position 2: nan"):
        model.predict(X)

    class Picky(DummyClassifier):
        def fit(self, X, y):
            if "l1" in y:
                raise ValueError("no l1, please")
            return super().fit(X, y)

    with pytest.raises(InputError, match=r"Picky could not be fitted .* after 'l0': no l1, please"):
        ProjectionMarkovModel(Picky()).fit(
            [np.eye(3)] * 2, [["l0", "l0", "l1"], ["l0", "l2", "l2"]]
        )
    with pytest.raises(InputError, match="no predict_proba"):
        ProjectionMarkovModel(RidgeClassifier(), calibrate=None).fit(X, y)
    with pytest.raises(InputError, match="Lookup does not accept sample_weight"):
        ProjectionMarkovModel(Lookup(table)).fit(X, y, sample_weight=[1, 2])


def test_a_failed_fit_keeps_the_earlier_model():
    X, y = data()
    model = ProjectionMarkovModel().fit(X, y)
    before = model.predict(X)
    model.set_params(classifier=RidgeClassifier(), calibrate=None)
    with pytest.raises(InputError):
        model.fit(X, y)
    assert all((p == q).all() for p, q in zip(before, model.predict(X), strict=True))
