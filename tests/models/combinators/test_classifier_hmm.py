"""ClassifierHMM: an example by hand, agreement with the definition, structural zeros, invalid input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lookup import Lookup
from random_chains import random_chain
from seqlab import ClassifierHMM, ProjectionMarkovModel
from seqlab.data import (
    InputError,
    NoLegalLabelingError,
    NumericalError,
    Phrase,
    open_close_to_phrases,
    phrases_to_open_close,
)
from seqlab.data.open_close import CLOSE_DECISIONS, DECISIONS, OPEN_DECISIONS
from seqlab.inference import Mask
from seqlab.models._posteriors import MIN_POSTERIOR
from seqlab.models.combinators._propagation import propagate_prior

HAND = [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]  # posteriors of the three steps


def model_of(start, transitions, posteriors, **options):
    """Return a ClassifierHMM with a given chain and given posteriors."""
    n_labels = len(start)
    X = [np.zeros((2, 1)) for _ in range(n_labels)]
    y = [[i, (i + 1) % n_labels] for i in range(n_labels)]
    model = ClassifierHMM(Lookup(posteriors), **options).fit(X, y)
    model.start_ = np.array(start, dtype=float)
    model.transitions_ = np.array(transitions, dtype=float)
    return model


def rows(n, first=0):
    return [np.arange(first, first + n, dtype=float)[:, None]]


def by_definition(start, transitions, posteriors, labels, divide=True):
    """Return the value of one labeling as a product of its factors."""
    start, transitions = np.array(start), np.array(transitions)
    prior, value = start, 1.0
    for t, s in enumerate(labels):
        if t > 0:
            prior = prior @ transitions
        value *= (start[s] if t == 0 else transitions[labels[t - 1], s]) * posteriors[t][s]
        if divide:
            value /= prior[s]
    return value


def test_hand_example():
    model = model_of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], HAND)
    assert model.predict(rows(3))[0].tolist() == [1, 1, 1]
    best = model.predict_nbest(rows(3), 2)[0]
    assert [labels.tolist() for labels, _ in best] == [[1, 1, 1], [0, 0, 0]]
    np.testing.assert_allclose(
        np.exp([score for _, score in best]), [0.287871, 0.241678], rtol=2e-6
    )
    assert np.exp(model.decision_function(rows(3))[0]).max() == pytest.approx(0.287871, rel=2e-6)
    prior = np.exp(propagate_prior(model.start_, model.transitions_, 3).at(np.arange(3)))
    np.testing.assert_allclose(prior, [[0.5, 0.5], [0.55, 0.45], [0.585, 0.415]])


def test_hand_example_without_division():
    model = model_of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], HAND, divide_by_prior=False)
    best = model.predict_nbest(rows(3), 2)[0]
    assert [labels.tolist() for labels, _ in best] == [[0, 0, 0], [1, 1, 1]]
    np.testing.assert_allclose(np.exp([score for _, score in best]), [0.03888, 0.02688], rtol=1e-9)


def test_division_by_the_marginal_frequencies():
    model = model_of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], HAND, divide_by_prior="marginal")
    model.marginal_ = np.array([0.75, 0.25])
    plain = model_of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], HAND, divide_by_prior=False)
    ours = {tuple(labels): v for labels, v in model.predict_nbest(rows(3), 8)[0]}
    for labels, value in plain.predict_nbest(rows(3), 8)[0]:
        expected = value - np.log(model.marginal_)[labels].sum()
        assert ours[tuple(labels)] == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 5), st.booleans())
def test_every_labeling_has_the_value_of_the_definition(seed, n_labels, n_steps, divide):
    random = np.random.default_rng(seed)
    start, transitions = random_chain(random, n_labels)
    posteriors = random.dirichlet(np.ones(n_labels), n_steps)
    model = model_of(start, transitions, posteriors, divide_by_prior=divide)
    found = {tuple(y): np.exp(v) for y, v in model.predict_nbest(rows(n_steps), 3**5)[0]}
    values = {}
    for labels in itertools.product(range(n_labels), repeat=n_steps):
        path = start[labels[0]] * np.prod(
            [transitions[a, b] for a, b in itertools.pairwise(labels)]
        )
        if path > 0:  # all others are forbidden
            values[labels] = by_definition(start, transitions, posteriors, labels, divide)
    assert found.keys() == values.keys()
    for labels, value in values.items():
        assert found[labels] == pytest.approx(value, rel=1e-9)
    marginals = np.zeros((n_steps, n_labels))
    for labels, value in values.items():
        marginals[np.arange(n_steps), list(labels)] += value
    proba = model.predict_proba(rows(n_steps))[0]
    np.testing.assert_allclose(proba, marginals / sum(values.values()), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 6))
def test_posteriors_equal_to_the_prior_leave_the_chain_alone(seed, n_labels, n_steps):
    random = np.random.default_rng(seed)
    start, transitions = random_chain(random, n_labels, zeros=False)
    prior = [start]
    for _ in range(n_steps - 1):
        prior.append(prior[-1] @ transitions)
    model = model_of(start, transitions, prior)

    def path(y):
        return start[y[0]] * np.prod([transitions[a, b] for a, b in itertools.pairwise(y)])

    best = max(map(path, itertools.product(range(n_labels), repeat=n_steps)))
    (labels,) = model.predict(rows(n_steps))
    assert path(labels) == pytest.approx(best, rel=1e-12)  # paths may tie
    assert model.predict_nbest(rows(n_steps), 1)[0][0][1] == pytest.approx(np.log(best))


def test_smoothed_counts():
    X = [np.zeros((3, 1)), np.zeros((2, 1))]
    y = [["a", "a", "b"], ["b", "a"]]
    table = [[0.5, 0.5]]
    plain = ClassifierHMM(Lookup(table), smoothing=0, constraints=None).fit(X, y)
    assert plain.start_.tolist() == [0.5, 0.5]
    assert plain.transitions_.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    smooth = ClassifierHMM(Lookup(table), smoothing=1, constraints=None).fit(X, y)
    np.testing.assert_allclose(smooth.transitions_, [[0.5, 0.5], [2 / 3, 1 / 3]])
    seen = ClassifierHMM(Lookup(table), smoothing=1, constraints="seen").fit(X, y)
    assert seen.transitions_.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    weighted = ClassifierHMM(LogisticRegression(), smoothing=0)
    weighted.fit([np.eye(3), np.eye(3)[:2]], y, sample_weight=[1, 3])
    assert weighted.start_.tolist() == [0.25, 0.75]


def test_a_label_that_occurs_only_at_the_end():
    """Frequent labels follow it, and a label with one example is rarely predicted."""
    table = [[0.5, 0.3, 0.2]]
    X, y = [np.zeros((4, 1)), np.zeros((2, 1))], [["a", "a", "b", "a"], ["b", "z"]]
    plain = ClassifierHMM(Lookup(table), smoothing=0, constraints=None).fit(X, y)
    np.testing.assert_allclose(plain.transitions_[2], [3 / 6, 2 / 6, 1 / 6])
    smooth = ClassifierHMM(Lookup(table), smoothing=1, constraints=None).fit(X, y)
    np.testing.assert_allclose(smooth.transitions_[2], [4 / 9, 3 / 9, 2 / 9])
    X, y = data()
    X_rare, y_rare = [*X, X[0][:1]], [*y, ["rare"]]
    for divide in ("propagated", "marginal"):
        # Calibration gives the label with one example a few percent at every step.
        model = ClassifierHMM(RidgeClassifier(), divide_by_prior=divide).fit(X_rare, y_rare)
        found = np.concatenate(model.predict(X))
        assert (found == "rare").mean() < 0.02
        assert model.score(X, y) > 0.6


def test_auto_forbids_transitions_that_chance_would_show():
    random = np.random.default_rng(0)
    y = [["a", "b", "c"] * 20] * 2
    X = [random.normal(size=(60, 2)) for _ in y]
    few = ClassifierHMM().fit([x[:6] for x in X], [labels[:6] for labels in y])
    assert (few.transitions_ > 0).all()  # too few data to decide
    many = ClassifierHMM().fit(X, y)
    assert ((many.transitions_ > 0) == np.roll(np.eye(3, dtype=bool), 1, axis=1)).all()
    assert (many.start_ > 0).all()  # two sequences are too few first labels
    assert (ClassifierHMM(constraints=None).fit(X, y).transitions_ > 0).all()


@pytest.mark.parametrize("model", [ClassifierHMM(), ProjectionMarkovModel()], ids=repr)
def test_the_scale_of_sample_weights_does_not_decide_structural_zeros(model):
    random = np.random.default_rng(0)
    y = [["a", "b", "c"] * 20] * 2
    X = [random.normal(size=(60, 2)) for _ in y]

    def is_allowed(n_steps, weight):
        cut_X, cut_y = [x[:n_steps] for x in X], [labels[:n_steps] for labels in y]
        model.fit(cut_X, cut_y, sample_weight=[weight, weight])
        return model.may_follow_ if hasattr(model, "may_follow_") else model.transitions_ > 0

    for weight in (0.01, 1.0, 100.0):
        assert is_allowed(6, weight).all()
        assert (is_allowed(60, weight) == np.roll(np.eye(3, dtype=bool), 1, axis=1)).all()


def open_close_data(random, n_sequences, n_tokens=6):
    """Return sequences of decisions and posteriors that favour the true ones; X holds row numbers."""
    y, table = [], []
    for _ in range(n_sequences):
        phrases, at = [], 0
        while at < n_tokens:
            length = int(random.integers(1, 4))
            if random.random() < 0.5 and at + length <= n_tokens:
                phrases.append((at, at + length, "NP"))
            at += length
        y.append(phrases_to_open_close(phrases, n_tokens))
        for decision in y[-1]:
            row = random.dirichlet(np.full(len(DECISIONS), 0.5))
            row[DECISIONS.index(decision)] += 0.5
            table.append(row / row.sum())
    X = [np.arange(2.0 * n_tokens)[:, None] + 2 * n_tokens * i for i in range(n_sequences)]
    return X, y, table


@pytest.mark.parametrize("n_sequences", [2, 30])
def test_open_close_decisions_need_no_settings(n_sequences):
    X, y, table = open_close_data(np.random.default_rng(3), n_sequences)
    model = ClassifierHMM(Lookup(table, DECISIONS)).fit(X, y)
    prior = propagate_prior(model.start_, model.transitions_, 12).at(np.arange(12))
    wrong = [CLOSE_DECISIONS, OPEN_DECISIONS]
    for t in range(12):
        for j, label in enumerate(model.classes_):
            if label in wrong[t % 2]:
                assert prior[t, j] == -np.inf  # probability exactly 0
    for labels, proba in zip(model.predict(X), model.predict_proba(X), strict=True):
        open_close_to_phrases(labels.tolist())  # raises an error if a path is not legal
        assert np.isfinite(proba).all()
    assert model.score(X, y) > 0.5
    opens, closes = model.classifier_
    assert set(opens.classes_) <= set(OPEN_DECISIONS)
    assert set(closes.classes_) <= set(CLOSE_DECISIONS)
    best = model.predict_nbest(X[:1], 5)[0]
    assert all(isinstance(p, Phrase) for labels, _ in best for p in open_close_to_phrases(labels))


def test_labels_named_like_open_close_decisions():
    X = [np.eye(4)] * 3
    model = ClassifierHMM().fit(X, [["O", "nOo", "O", "C"]] * 3)
    assert (model.transitions_ > 0).all()


def test_tag_schemes_and_masks_as_constraints():
    X, y = [np.eye(4)] * 3, [["B", "I", "O", "B"]] * 3
    model = ClassifierHMM(constraints="IOB2").fit(X, y)
    assert model.classes_.tolist() == ["B", "I", "O"]
    assert model.transitions_[2, 1] == 0
    assert model.start_[1] == 0
    mask = Mask(transitions=np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1]]))
    masked = ClassifierHMM(constraints=mask).fit(X, y)
    assert (masked.transitions_ == 0).sum() == 2
    with pytest.raises(InputError, match=r"y\[0\]\[1\] is 'I', which cannot follow 'B'"):
        ClassifierHMM(constraints=Mask(transitions=~np.eye(3, k=1, dtype=bool))).fit(X, y)
    with pytest.raises(InputError, match=r"mask\.steps"):
        ClassifierHMM(constraints=Mask(steps=np.ones((12, 3), dtype=bool))).fit(X, y)
    with pytest.raises(InputError, match="IOB3"):
        ClassifierHMM(constraints="IOB3").fit(X, y)


def test_the_error_names_a_sequence_without_a_legal_path():
    X = [np.eye(3)] * 4
    model = ClassifierHMM(constraints="seen").fit(X, [["a", "b", "c"]] * 3 + [["a", "b", "c"]])
    assert (model.predict(X)[0] == ["a", "b", "c"]).all()
    known = [[None, None, None], ["b", None, None]]
    with pytest.raises(NoLegalLabelingError, match="sequence 1"):
        model.predict(X[:2], constraints=known)


def test_constraints_of_prediction():
    model = model_of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], HAND)
    assert model.predict(rows(3), constraints=[[0, None, None]])[0][0] == 0


def data(n_sequences=30, seed=0):
    random = np.random.default_rng(seed)
    X, y = [], []
    for n in random.integers(3, 9, n_sequences):
        labels = np.repeat(random.integers(0, 3, n), 2)[:n]
        X.append(random.normal(size=(n, 4)) + 1.2 * np.eye(3, 4)[labels])
        y.append(np.array(["x", "y", "z"])[labels].tolist())
    return X, y


def test_runs_of_labels_improve_on_the_classifier():
    X, y = data(200)
    model = ClassifierHMM().fit(X[:150], y[:150])
    alone = np.mean(model.classifier_.predict(np.concatenate(X[150:])) == np.concatenate(y[150:]))
    assert model.score(X[150:], y[150:]) > alone + 0.01


@pytest.mark.parametrize(
    "classifier",
    [
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        RidgeClassifier(),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_classifier(classifier):
    X, y = data()
    assert ClassifierHMM(classifier).fit(X, y).score(X, y) > 0.6


def test_nested_parameters_in_a_grid_search():
    X, y = data()
    search = GridSearchCV(
        ClassifierHMM(LogisticRegression()),
        {"classifier__C": [1e-4, 1.0]},
        cv=2,
    ).fit(X, y)
    assert search.best_params_["classifier__C"] == 1.0
    assert search.best_estimator_.classifier_.C == 1.0


def test_calibration():
    X, y = data(40)
    for calibrate in ("auto", "sigmoid", "isotonic"):
        model = ClassifierHMM(RidgeClassifier(), calibrate=calibrate).fit(X, y)
        assert type(model.classifier_).__name__ == "CalibratedClassifierCV"
        assert model.score(X, y) > 0.6
    own = ClassifierHMM(LogisticRegression()).fit(X, y)
    assert isinstance(own.classifier_, LogisticRegression)
    wrapped = ClassifierHMM(LogisticRegression(), calibrate="sigmoid").fit(X, y)
    assert type(wrapped.classifier_).__name__ == "CalibratedClassifierCV"
    # A label with one example, and a single sequence: scikit-learn has no five-fold split.
    one = ClassifierHMM(RidgeClassifier()).fit(
        np.concatenate(X[:3]), [*np.concatenate(y[:3])[:-1], "w"]
    )
    assert one.classes_.tolist() == ["w", "x", "y", "z"]
    assert np.isfinite(one.predict_proba(np.concatenate(X[:3]))).all()
    with pytest.raises(InputError, match="too few to calibrate"):
        ClassifierHMM(RidgeClassifier()).fit([np.eye(2)], [["a", "b"]])


def test_classifiers_without_probabilities_raise_errors():
    X, y = data()
    with pytest.raises(
        InputError, match="RidgeClassifier has no predict_proba; calibrate='sigmoid'"
    ):
        ClassifierHMM(RidgeClassifier(), calibrate=None).fit(X, y)

    class Mute(NearestCentroid):
        predict_proba = decision_function = property()

    with pytest.raises(InputError, match="Mute has neither predict_proba nor decision_function"):
        ClassifierHMM(Mute()).fit(X, y)
    with pytest.raises(InputError, match="LinearRegression is a regressor"):
        ClassifierHMM(LinearRegression()).fit(X, y)


def test_the_error_names_sequence_and_position_of_invalid_posteriors():
    for bad in (np.nan, np.inf, -0.5):
        table = np.full((6, 2), 0.5)
        table[4, 1] = bad
        X = [np.array([[0.0], [1]]), np.array([[2.0], [3], [4], [5]])]
        model = ClassifierHMM(Lookup(table)).fit(X, [["a", "b"], ["a", "b", "a", "b"]])
        with pytest.raises(NumericalError, match=r"Lookup .* sequence 1 at position 2: 0\.5"):
            model.predict(X)
        assert len(model.predict(X[:1])[0]) == 2


def test_a_wrong_number_of_columns():
    model = ClassifierHMM(Lookup([[0.2, 0.3, 0.5]])).fit(rows(2), [["a", "b"]])
    with pytest.raises(InputError, match=r"shape \(1, 3\)"):
        model.predict(rows(1))


def test_zeros_are_raised_to_the_floor_and_rows_of_zeros_are_uniform():
    model = model_of([0.5, 0.5], np.full((2, 2), 0.5), [[1.0, 0.0], [0.0, 0.0]])
    scores = {tuple(y): v for y, v in model.predict_nbest(rows(2), 4)[0]}
    assert scores[1, 0] - scores[0, 0] == pytest.approx(np.log(MIN_POSTERIOR), rel=1e-6)
    assert scores[0, 1] == pytest.approx(scores[0, 0])


def test_sample_weight_needs_a_classifier_that_accepts_it():
    X, y = data()
    with pytest.raises(InputError, match="Lookup does not accept sample_weight"):
        ClassifierHMM(Lookup()).fit(X, y, sample_weight=np.ones(len(X)))


def test_the_error_names_a_classifier_that_fails():
    X, y = data()
    with pytest.raises(InputError, match=r"LogisticRegression could not be fitted to the .* steps"):
        ClassifierHMM(LogisticRegression(solver="no such solver")).fit(X, y)


def test_columns_may_come_in_any_order():
    class Reversed(LogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)
            self.order_ = np.argsort(self.classes_)[::-1]
            return self

        def predict_proba(self, X):
            return super().predict_proba(X)[:, self.order_]

        def __getattribute__(self, name):
            value = super().__getattribute__(name)
            return value[::-1] if name == "classes_" and "order_" in self.__dict__ else value

    X, y = data()
    plain = ClassifierHMM(LogisticRegression()).fit(X, y)
    other = ClassifierHMM(Reversed()).fit(X, y)
    for p, q in zip(plain.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_allclose(p, q)


def test_sparse_input_and_labels_that_are_numbers():
    X, y = data()
    numbers = [[0.5 if label == "x" else 2.25 for label in labels] for labels in y]
    model = ClassifierHMM().fit([sp.csr_matrix(x) for x in X], numbers)
    assert set(np.concatenate(model.predict(X))) == {0.5, 2.25}
