"""SequentialOutputCode: codes, decoding, cascades, ties, and what independent columns cannot learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from seqlab import (
    BoostedCRF,
    IndependentLabeler,
    LinearChainCRF,
    SequentialOutputCode,
    StructuredPerceptron,
    load,
    save,
)
from seqlab.data import InputError, Sequences
from seqlab.datasets import make_hmm_sequences
from seqlab.meta._cascade import CascadeWindow, cascade_bits
from seqlab.meta._code_columns import predict_bits
from seqlab.meta._code_decoding import break_ties, score_labels
from seqlab.meta._code_matrix import check_code, make_code, row_distances
from seqlab.meta._packed_columns import PackedColumns
from seqlab.meta._packed_trees import PackedTreeColumns


def draw_code(code, length, n_labels, seed=0):
    return make_code(code, length, n_labels, np.random.RandomState(seed))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(0, 1000), st.sampled_from(["random", "dense"]), st.data())
def test_drawn_codes_satisfy_the_constraints(n_labels, seed, kind, data):
    least, most = int(np.ceil(np.log2(n_labels))), 2 ** (n_labels - 1) - 1
    length = data.draw(st.integers(least, min(most, 40)))
    code = draw_code(kind, length, n_labels, seed)
    assert code.shape == (n_labels, length)
    assert set(np.unique(code)) <= {0, 1}
    columns = {tuple(column) for column in code.T}
    complements = {tuple(1 - column) for column in code.T}
    assert len(columns) == length
    assert not columns & complements
    assert all(0 < column.sum() < n_labels for column in code.T)
    assert len({tuple(row) for row in code}) == n_labels


@pytest.mark.parametrize(("n_labels", "length"), [(121, 7), (121, 8), (400, 12), (2000, 13)])
def test_short_codes_for_many_labels(n_labels, length):
    code = draw_code("random", length, n_labels)  # columns drawn at random have equal rows
    assert check_code(code, length, n_labels).shape == (n_labels, length)
    assert len({tuple(column ^ column[0]) for column in code.T}) == length


def test_three_labels_have_the_three_one_against_rest_columns():
    for code in (draw_code("random", 3, 3), draw_code("exhaustive", None, 3)):
        # A column with two ones is the complement of one against the rest.
        single = {tuple(column if column.sum() == 1 else 1 - column) for column in code.T}
        assert single == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_every_column_of_an_exhaustive_code_is_different():
    code = draw_code("exhaustive", None, 6)
    assert code.shape == (6, 31)
    assert len({tuple(column) for column in code.T}) == 31
    assert not code[0].any()


def test_dense_code_words_are_farther_apart():
    plain = [row_distances(draw_code("random", 30, 20, seed)).min() for seed in range(20)]
    dense = [row_distances(draw_code("dense", 30, 20, seed)).min() for seed in range(3)]
    assert min(dense) > np.mean(plain) + 1


def test_distances_of_the_specification():
    third = np.full((1, 3), 1 / 3)
    np.testing.assert_allclose(score_labels(third, np.eye(3, dtype=np.int8), "l1"), -4 / 3)
    code = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=np.int8)
    bits = np.array([[0.2, 0.7, 0.6]])
    np.testing.assert_allclose(score_labels(bits, code, "l1"), [[-1.3, -1.1, -2.1, -1.5]])
    np.testing.assert_allclose(score_labels(code * 1.0, code, "l1").diagonal(), 0.0)


@pytest.mark.parametrize("decoding", ["l1", "hamming", "likelihood"])
def test_decoding_equals_its_definition(decoding):
    random = np.random.RandomState(1)
    code, bits = draw_code("random", 9, 7), random.rand(20, 9)
    bits[0, :3] = 0.5, 0.0, 1.0
    found = score_labels(bits, code, decoding)
    for t in range(20):
        for j in range(7):
            if decoding == "likelihood":
                per_bit = np.where(code[j] == 1, bits[t], 1 - bits[t])
                wanted = np.log(np.maximum(per_bit, 1e-6)).sum()
            else:
                rounded = np.where(bits[t] == 0.5, 0.5, np.round(bits[t]))
                wanted = -np.abs((bits[t] if decoding == "l1" else rounded) - code[j]).sum()
            assert found[t, j] == pytest.approx(wanted)
    exact = score_labels(code.astype(float), code, decoding)
    assert (exact.argmax(axis=1) == np.arange(7)).all()  # a code word is decoded to its label


def test_ties_are_broken_at_random_but_not_by_the_other_steps():
    scores = np.zeros((3000, 3))
    scores[:, 2] = -1.0
    positions = np.arange(3000)

    def choose(scores, positions, seed):
        noisy = break_ties(scores, positions, seed)
        assert np.abs(noisy - scores).max() <= 1e-9
        return noisy.argmax(axis=1)

    chosen = choose(scores, positions, 7)
    assert set(chosen) == {0, 1}
    assert abs((chosen == 0).mean() - 0.5) < 0.05
    assert (choose(scores, positions, 7) == chosen).all()
    assert (choose(scores, positions, 8) != chosen).any()
    assert (choose(scores[1000:], positions[1000:], 7) == chosen[1000:]).all()


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rounded", [True, False])
def test_cascade_features(sparse, rounded):
    matrix = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    X = Sequences(sp.csr_matrix(matrix) if sparse else matrix, [0, 2, 3])
    found = np.array([[0.9, 0.2, 0.5], [0.3, 0.5, 0.1], [0.8, 0.6, 0.7]])
    bits = cascade_bits(found, rounded=rounded)
    wide = CascadeWindow(2, 1, 1).extend(X, bits, 2).matrix
    wide = wide.toarray() if sparse else wide
    assert wide.shape == (3, 2 + 2 * 2 * 2)
    np.testing.assert_array_equal(wide[:, :2], matrix)
    if rounded:
        # No step before; bit 1 of the step after is not known, bit 0 is 0.
        np.testing.assert_array_equal(wide[0, 2:], [0, 0, 0, 0, 0, 0, 0, 1])
        np.testing.assert_array_equal(wide[1, 2:], [0, 1, 0, 0, 1, 0, 0, 0])
    else:
        np.testing.assert_allclose(wide[0, 2:], [0, 0, 0.5, 0.5, 0, 0, 0.3, 0.7])
        np.testing.assert_allclose(wide[1, 2:], [0.2, 0.8, 0, 0, 0.9, 0.1, 0, 0])
    assert not wide[2, 2:].any()  # both neighbours are outside the sequence
    assert CascadeWindow(2, 1, 1).extend(X, bits, 0) is X


def cycle(n_sequences=60, length=12, observe_first=False, seed=0):
    """Return sequences of labels 0, 1, 2, 0, 1, ... from a random start."""
    random = np.random.RandomState(seed)
    y = [(random.randint(3) + np.arange(length)) % 3 for _ in range(n_sequences)]
    X = [np.ones((length, 1 + 3 * observe_first)) for _ in y]
    if observe_first:
        for x, labels in zip(X, y, strict=True):
            x[:, 1:] = 0.0
            x[0, 1 + labels[0]] = 1.0
    return X, y


def test_independent_columns_cannot_learn_a_cycle():
    X, y = cycle(observe_first=True)
    train, test = slice(0, 40), slice(40, 60)
    crf = LinearChainCRF(c2=0.01).fit(X[train], y[train])
    assert crf.score(X[test], y[test]) == 1.0
    X, y = cycle(n_sequences=300)  # no informative feature at all
    code = SequentialOutputCode(LinearChainCRF(c2=0.01), code="exhaustive", random_state=0)
    assert code.fit(X, y).score(X, y) == pytest.approx(1 / 3, abs=0.06)


def test_cascade_learns_the_cycle_from_one_informative_bit():
    # Label 0 is observed at every step. The second bit follows from it at the next step.
    X, y = cycle(n_sequences=40)
    for x, labels in zip(X, y, strict=True):
        x[:, 0] = labels == 0
    options = {"code": [[1, 0], [0, 1], [0, 0]], "random_state": 0}
    base = IndependentLabeler(LogisticRegression())
    independent = SequentialOutputCode(base, **options).fit(X, y)
    cascade = SequentialOutputCode(base, cascade=1, **options).fit(X, y)
    assert independent.score(X, y) < 0.75
    assert cascade.score(X, y) > 0.9


def hmm_data(n=40):
    X, y = make_hmm_sequences(
        n,
        20,
        preset="transition",
        n_labels=6,
        n_observations=6,
        ko=2,
        random_state=0,
        return_X_y=True,
    )
    return X, y


def test_cascade_of_zero_columns_is_bitwise_the_independent_code():
    X, y = hmm_data()
    perceptron = StructuredPerceptron(max_iter=3)
    models = [
        SequentialOutputCode(perceptron, code_length=8, random_state=0, **options).fit(X, y)
        for options in ({}, {"cascade": 0, "window": (2, 0)}, {"cascade": 3})
    ]
    first, second, cascade = (model.predict_proba(X) for model in models)
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    assert any((a != b).any() for a, b in zip(first, cascade, strict=True))
    # The first column is the same in a cascade.
    plain, cascaded = (models[k].estimators_[0] for k in (0, 2))
    assert (plain.coef_ != cascaded.coef_).sum() == 0
    assert models[2].estimators_[5].n_features_in_ == 6 + 3 * 2 * 2


@pytest.mark.parametrize("base", [StructuredPerceptron(max_iter=3), BoostedCRF(max_iter=2)])
def test_parameters_changed_after_fit_do_not_change_the_fitted_cascade(base, tmp_path):
    X, y = make_hmm_sequences(20, 10, n_labels=6, ko=2, random_state=0, return_X_y=True)
    model = SequentialOutputCode(base, cascade=3, code_length=10, random_state=0).fit(X, y)
    expected = np.concatenate(model.predict_proba(X))
    for window in [(2, 2), (0, 2), (20, 20), (1, 0)]:
        model.set_params(window=window, cascade_values="probabilities", cascade=1)
        np.testing.assert_array_equal(np.concatenate(model.predict_proba(X)), expected)
    save(model, tmp_path / "model.seqlab")
    loaded = load(tmp_path / "model.seqlab")
    np.testing.assert_array_equal(np.concatenate(loaded.predict_proba(X)), expected)


def test_all_sees_every_earlier_column():
    X, y = hmm_data(20)
    model = SequentialOutputCode(
        StructuredPerceptron(max_iter=2), code_length=6, cascade="all", random_state=0
    ).fit(X, y)
    assert model.cascade_ == 5
    assert [one.n_features_in_ for one in model.estimators_] == [6 + 4 * k for k in range(6)]


class Memory(BaseEstimator):
    """Predicts 1 at the steps that it has seen with 1; each step has its own feature."""

    def fit(self, X, y):
        self.n_own = 12
        self.matrix_ = X.matrix
        self.seen_ = set(X.matrix[np.concatenate(y) == 1, : self.n_own].argmax(axis=1))
        return self

    def predict(self, X):
        rows = X.matrix[:, : self.n_own].argmax(axis=1)
        return X.split(np.array([int(row in self.seen_) for row in rows]))


def test_cascade_features_of_cross_validation_are_out_of_fold():
    X = [np.eye(12)[3 * i : 3 * i + 3] for i in range(4)]
    y = [[0, 1, 2], [2, 1, 0], [1, 1, 1], [2, 0, 2]]
    options = {"code": np.eye(3), "cascade": 1, "window": (1, 0), "random_state": 0}
    inside = SequentialOutputCode(Memory(), **options).fit(X, y)
    outside = SequentialOutputCode(Memory(), cascade_cv=2, **options).fit(X, y)
    first_bit = (np.concatenate(y) == 0)[:-1] & (np.arange(11) % 3 != 2)
    np.testing.assert_array_equal(inside.estimators_[1].matrix_[1:, 12], first_bit)
    assert not outside.estimators_[1].matrix_[:, 12].any()  # no fold has seen its own test part
    assert outside.estimators_[0].seen_ == inside.estimators_[0].seen_


def test_auto_chooses_the_cascade_with_the_best_validation_score():
    X, y = hmm_data(60)
    model = SequentialOutputCode(
        StructuredPerceptron(max_iter=3),
        code_length=12,
        cascade="auto",
        cascade_candidates=(0, 2, "all"),
        random_state=0,
    ).fit(X, y)
    assert sorted(model.validation_scores_) == [0, 2, 11]
    best = max(model.validation_scores_.values())
    assert model.validation_scores_[model.cascade_] == best
    assert SequentialOutputCode(cascade=1, code_length=5).fit(X, y).validation_scores_ is None


def test_random_ties_rescue_the_binary_perceptron():
    """Single steps with one binary feature; one label in five is 1, whatever the feature is.

    With fixed ties the perceptron prefers 1, because only steps with label 1 are wrong if weights are equal.
    """
    random = np.random.RandomState(0)
    X = [np.eye(5)[[random.randint(5)]] for _ in range(400)]
    y = [[int(random.rand() < 0.2)] for _ in X]
    accuracy = {}
    for ties in ("auto", "random", "lowest"):
        base = StructuredPerceptron(order=0, ties=ties)
        model = SequentialOutputCode(base, code=[[0], [1]], random_state=0).fit(X, y)
        accuracy[ties] = model.score(X, y)
    assert accuracy["lowest"] == pytest.approx(0.2, abs=0.05)
    assert accuracy["auto"] == accuracy["random"] == pytest.approx(0.8, abs=0.05)


def test_threads_give_the_same_model():
    X, y = hmm_data(20)
    for options in ({}, {"cascade": 2, "cascade_cv": 3}):
        base = SequentialOutputCode(LinearChainCRF(), code_length=6, random_state=0, **options)
        one = base.fit(X, y).predict_proba(X)
        two = base.set_params(n_jobs=2).fit(X, y).predict_proba(X)
        assert all((a == b).all() for a, b in zip(one, two, strict=True))


def test_estimator_without_probabilities_gives_bits():
    X, y = hmm_data(20)
    base = IndependentLabeler(LinearSVC())
    scores = [
        SequentialOutputCode(base, code_length=9, decoding=decoding, random_state=0)
        .fit(X, y)
        .decision_function(X)
        for decoding in ("l1", "hamming")
    ]
    assert all((a == b).all() for a, b in zip(*scores, strict=True))
    assert all(np.abs(a - np.round(a)).max() <= 1e-9 for a in scores[0])


def test_constraints_and_temperature():
    X, y = hmm_data(20)
    model = SequentialOutputCode(code_length=10, random_state=0).fit(X, y)
    known = [[None] * 20 for _ in X]
    known[0][3] = y[0][3]
    assert model.predict(X, constraints=known)[0][3] == y[0][3]
    sharp = model.predict_proba(X[:1])[0]
    flat = model.set_params(temperature=100.0).predict_proba(X[:1])[0]
    assert (flat.argmax(axis=1) == sharp.argmax(axis=1)).all()
    assert flat.max() < sharp.max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"code_length": 2}, "between 3 and 31"),
        ({"code_length": 32}, "between 3 and 31"),
        ({"code": np.eye(5)}, "6 labels"),
        ({"code": np.eye(6) * 2}, "values 0 and 1"),
        ({"code": np.zeros((6, 4))}, "column 0 of code is constant"),
        ({"code": [[1, 0]] * 2 + [[0, 1]] * 4}, "rows 0 and 1 of code are equal"),
        ({"code": np.eye(6), "code_length": 5}, "6 columns"),
        ({"code": "exhaustive", "code_length": 7}, "31 columns"),
        ({"cascade": 2, "window": (0, 0)}, "empty"),
        ({"window": 3}, "steps before and after"),
        ({"cascade": "auto", "cascade_candidates": [1.5]}, "cascade_candidates"),
    ],
)
def test_errors(options, message):
    X, y = hmm_data(10)
    with pytest.raises(InputError, match=message):
        SequentialOutputCode(**options).fit(X, y)


def test_too_many_labels_for_an_exhaustive_code():
    with pytest.raises(InputError, match="at most 11"):
        draw_code("exhaustive", None, 12)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"cascade": 0},
        {"cascade": 2, "window": (2, 1)},
        {"cascade": 3, "cascade_values": "probabilities"},
    ],
)
@pytest.mark.parametrize(
    "base",
    [
        StructuredPerceptron(max_iter=3, temperature=4.0),
        LinearChainCRF(),
        BoostedCRF(max_iter=4, max_leaf_nodes=12),
        BoostedCRF(max_iter=2, order=0),
        BoostedCRF(max_iter=2, categorical_features=[0, 5]),
    ],
)
def test_packed_columns_equal_the_predictions_of_the_columns(base, options, sparse):
    X, y = hmm_data(20)
    X[3] = X[3][:1]  # a sequence of one step
    y[3] = y[3][:1]
    X = [sp.csr_matrix(x) for x in X] if sparse else X
    model = SequentialOutputCode(base, code_length=7, random_state=0, **options).fit(X, y)
    window = CascadeWindow.from_params(model.cascade_, model.window)
    rounded = model.cascade_values == "bits"
    sequences = Sequences.from_list(X)
    kind = PackedTreeColumns if isinstance(base, BoostedCRF) else PackedColumns
    packed = kind.from_columns(model.estimators_, window, 6)
    wanted = predict_bits(model.estimators_, window, sequences, rounded=rounded)
    np.testing.assert_allclose(
        packed.predict_bits(sequences, rounded=rounded), wanted, rtol=1e-9, atol=1e-12
    )


def test_columns_that_are_not_linear_chains_are_not_packed():
    X, y = hmm_data(20)
    window = CascadeWindow(0, 1, 1)
    for base in (
        StructuredPerceptron(combination="voted", max_iter=1),
        LinearChainCRF(edge_features=True),
    ):
        model = SequentialOutputCode(base, code_length=4, random_state=0).fit(X, y)
        assert PackedColumns.from_columns(model.estimators_, window, 6) is None
        assert 0 <= model.score(X, y) <= 1
