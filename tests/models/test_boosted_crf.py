"""BoostedCRF: nonlinear data, peers, enumeration, early stopping, importances, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeRegressor

import oracle
from blocks import use_small_blocks
from seqlab import BoostedCRF, LinearChainCRF, ModelFileError, StructuredPerceptron, load, save
from seqlab.data import InputError
from seqlab.learning.boosting import FeatureTreeGrower, TreeEnsemble


def make_xor(n_sequences=60, seed=0):
    """Return observations of four bits; the label is the exclusive or of two of them."""
    random = np.random.default_rng(seed)
    X = [random.integers(0, 2, size=(random.integers(1, 8), 4)) for _ in range(n_sequences)]
    return X, [(x[:, 0] ^ x[:, 2]).tolist() for x in X]


def make_chains(n_sequences=30, n_labels=3, seed=0):
    """Return noisy observations of labels whose transitions depend on an observed switch."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        labels = [int(random.integers(n_labels))]
        switch = random.integers(0, 2, size=6)
        for t in range(1, 6):
            labels.append((labels[-1] + 1 + switch[t]) % n_labels)
        noisy = np.where(random.random(6) < 0.7, labels, random.integers(0, n_labels, 6))
        X.append(np.column_stack([np.eye(n_labels)[noisy], switch, random.normal(size=6)]))
        y.append(labels)
    return X, y


def test_trees_learn_exclusive_or_and_linear_models_cannot():
    X, y = make_xor()
    test, gold = make_xor(seed=1)
    for order in (0, 1):
        model = BoostedCRF(max_leaf_nodes=4, order=order).fit(X, y)
        assert model.score(test, gold) == 1.0
        assert model.feature_importances_[[0, 2]].sum() > 0.95
    assert StructuredPerceptron(random_state=0).fit(X, y).score(test, gold) < 0.75
    assert LinearChainCRF().fit(X, y).score(test, gold) < 0.75


def test_trees_learn_transitions_that_depend_on_the_observation():
    X, y = make_chains(100)
    test, gold = make_chains(100, seed=1)
    boosted = BoostedCRF().fit(X, y)
    assert boosted.score(test, gold) > 0.85
    assert boosted.score(test, gold) > LinearChainCRF().fit(X, y).score(test, gold) + 0.05
    assert 0.2 < boosted.previous_label_importance_ < 0.9
    total = boosted.feature_importances_.sum() + boosted.previous_label_importance_
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_order_0_is_softmax_boosting(n_labels):
    """An independent version: trees of scikit-learn fitted to indicators minus probabilities."""
    X, y = make_chains(20, n_labels)
    stacked, labels = np.vstack(X), np.concatenate(y)
    scores = np.zeros((labels.size, n_labels))
    for _ in range(8):
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        for k in range(n_labels):
            tree = DecisionTreeRegressor(max_leaf_nodes=5, random_state=0)
            scores[:, k] += 0.8 * tree.fit(stacked, (labels == k) - p[:, k]).predict(stacked)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    model = BoostedCRF(
        order=0,
        max_leaf_nodes=5,
        leaf_values="least_squares",
        learning_rate=0.8,
        max_iter=8,
        tol=0.0,
    ).fit(X, y)
    assert set(model.history_["step"]) == {0.8}
    np.testing.assert_allclose(np.vstack(model.predict_proba(X)), expected, atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_probabilities_by_enumeration(n_labels):
    X, y = make_chains(8, n_labels)
    short = [x[:n] for x, n in zip(X, (1, 2, 3, 4, 5, 1, 2, 3), strict=True)]
    model = BoostedCRF(max_iter=10).fit(X, y)
    proba = model.predict_proba(short)
    best = model.predict(short)
    gold = [labels[: len(x)] for labels, x in zip(y, short, strict=True)]
    log_proba = model.sequence_log_proba(short, gold)
    blocks = model._run(model._read(short)[0], lambda scores, _, __: scores, None)
    i = 0
    for scores in blocks:
        assert scores.per_step
        for one in oracle.sequences_of(scores):
            np.testing.assert_allclose(proba[i], oracle.pair_marginals(one)[0], atol=1e-12)
            every = oracle.probabilities(one)
            assert tuple(best[i]) == max(every, key=lambda pair: pair[1])[0]
            assert np.exp(log_proba[i]) == pytest.approx(dict(every)[tuple(gold[i])])
            i += 1
    assert i == len(short)


def test_training_scores_equal_predicted_scores():
    """Scores that training kept in tables agree with those of the stored trees."""
    X, y = make_chains(20)
    model = BoostedCRF(max_iter=15).fit(X, y)
    objective = -model.sequence_log_proba(X, y).sum()
    assert objective == pytest.approx(model.history_["objective"][-1], rel=1e-9)


@pytest.mark.parametrize("leaf_values", ["newton", "least_squares"])
def test_the_training_likelihood_never_falls(leaf_values):
    X, y = make_chains(20)
    model = BoostedCRF(
        max_leaf_nodes=8, learning_rate=200.0, max_iter=30, leaf_values=leaf_values
    ).fit(X, y)
    assert (np.diff(model.history_["objective"]) <= 0).all()
    assert min(model.history_["step"]) < 200.0


def test_a_beam_as_wide_as_the_labels_is_exact():
    X, y = make_chains()
    exact = BoostedCRF(max_iter=10).fit(X, y)
    beam = BoostedCRF(max_iter=10, beam_width=3).fit(X, y)
    assert beam.history_["objective"] == exact.history_["objective"]
    for a, b in zip(exact.predict_proba(X), beam.predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    for a, b in zip(exact.predict(X), beam.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("predict_nbest", "decision_function", "sequence_log_proba"):
        assert hasattr(exact, name)
        assert not hasattr(beam, name)


@pytest.mark.parametrize("keep_gold", [True, False])
def test_a_narrow_beam_learns(keep_gold):
    X, y = make_chains(100, n_labels=6)
    model = BoostedCRF(max_iter=40, beam_width=3, keep_gold=keep_gold).fit(X, y)
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(np.vstack(model.predict_proba(X)).sum(axis=1), 1.0)


def test_early_stopping_keeps_the_rounds_up_to_the_best_one():
    X, y = make_chains(60)
    model = BoostedCRF(validation_fraction=0.2, max_iter=200, tol=0.0, random_state=0).fit(X, y)
    assert model.n_iter_ < 200
    assert model.trees_.n_trees == 3 * model.best_iteration_
    assert model.best_validation_score_ > 0.6


def test_categorical_features():
    random = np.random.default_rng(0)
    X = [random.integers(0, 30, size=(6, 1)) for _ in range(80)]
    odd = random.random(30) < 0.5
    y = [odd[x[:, 0]].astype(int).tolist() for x in X]
    fits = {}
    for categorical in (None, [0], [True]):
        model = BoostedCRF(max_leaf_nodes=2, max_iter=3, categorical_features=categorical, order=0)
        fits[str(categorical)] = model.fit(X, y).score(X, y)
    assert fits["[0]"] == fits["[True]"] == 1.0
    assert fits["None"] < 0.9
    # A category that was not seen in training does not fail.
    assert len(model.predict([np.array([[200], [3]])])[0]) == 2
    with pytest.raises(InputError, match="has the index 1, but X has 1 features"):
        BoostedCRF(categorical_features=[1]).fit(X, y)
    with pytest.raises(InputError, match="indices of features, or a mask"):
        BoostedCRF(categorical_features=["a"]).fit(X, y)


def test_strings_and_dicts():
    X = [["a", "b", "c"], ["b", "c"], ["a"]] * 5
    y = [["X", "Y", "X"], ["Y", "X"], ["X"]] * 5
    model = BoostedCRF(max_iter=10).fit([[{"letter": v} for v in x] for x in X], y)
    assert model.score([[{"letter": v} for v in x] for x in X], y) == 1.0


@pytest.mark.parametrize("options", [{}, {"beam_width": 2}, {"order": 0}], ids=str)
def test_threads_change_no_bit(options, monkeypatch):
    use_small_blocks(monkeypatch)
    monkeypatch.setattr("seqlab.structures.protocol.BLOCK_DOUBLES", 200)
    X, y = make_chains(40)
    a = BoostedCRF(max_iter=8, **options).fit(X, y)
    b = BoostedCRF(max_iter=8, n_jobs=2, **options).fit(X, y)
    assert a.history_["objective"] == b.history_["objective"]
    for name in ("feature", "threshold", "value", "label_sets"):
        np.testing.assert_array_equal(getattr(a.trees_, name), getattr(b.trees_, name))


def test_order_0_has_no_beam():
    X, y = make_xor(5)
    with pytest.raises(InputError, match="order 0 has no beam"):
        BoostedCRF(order=0, beam_width=2).fit(X, y)


def test_importances_before_fit():
    assert not hasattr(BoostedCRF(), "feature_importances_")
    assert not hasattr(BoostedCRF(), "previous_label_importance_")


def test_one_label_only():
    model = BoostedCRF().fit([np.eye(2)], [["a", "a"]])
    np.testing.assert_array_equal(model.predict_proba([np.eye(2)])[0], np.ones((2, 1)))


def test_a_saved_model_loads_without_trusted(tmp_path):
    X, y = make_chains()
    model = BoostedCRF(max_iter=5).fit(X, y)
    save(model, tmp_path / "model.seqlab")
    loaded = load(tmp_path / "model.seqlab")
    for a, b in zip(model.predict_proba(X), loaded.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


def damage(name, change):
    def apply(trees):
        array = getattr(trees, name).copy()
        setattr(trees, name, change(array))

    return apply


def set_first(value):
    def change(array):
        array[0] = value
        return array

    return change


DAMAGES = {
    "child outside the tree": damage("child", set_first(10_000)),
    "child before its parent": damage("child", set_first(0)),
    "unknown feature": damage("feature", set_first(10_000)),
    "negative feature": damage("feature", set_first(-7)),
    "offsets": damage("tree_offsets", set_first(3)),
    "missing node": damage("threshold", lambda array: array[:-1]),
    "label set": damage("label_set", set_first(10_000)),
    "narrow label sets": damage("label_sets", lambda array: array[:, :0]),
    "category set": damage("category_set", set_first(5)),
    "infinite value": damage("value", set_first(np.inf)),
    "type": damage("child", lambda array: array.astype(np.int64)),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES.keys())
def test_invalid_trees_in_a_file_are_an_error(change, tmp_path, monkeypatch):
    X, y = make_chains(10)
    model = BoostedCRF(max_iter=3).fit(X, y)
    change(model.trees_)
    with pytest.raises(ModelFileError):
        save(model, tmp_path / "model.seqlab")
    with monkeypatch.context() as patch:  # write the file all the same
        patch.setattr(TreeEnsemble, "_check_state", lambda self: None)
        save(model, tmp_path / "model.seqlab")
    with pytest.raises(ModelFileError):
        load(tmp_path / "model.seqlab")


def test_invalid_trees_are_an_error():
    X, y = make_chains(5)
    trees = BoostedCRF(max_iter=2).fit(X, y).trees_
    arrays = {name: getattr(trees, name) for name in TreeEnsemble._ARRAYS}
    with pytest.raises(InputError, match="not a multiple of the number of labels"):
        TreeEnsemble(4, 5, True, **arrays)._check_state()
    with pytest.raises(InputError, match="without previous labels"):
        TreeEnsemble(3, 5, False, **arrays)._check_state()


def test_trees_refuse_rows_with_other_features():
    X, y = make_chains(5)
    model = BoostedCRF(max_iter=2).fit(X, y)
    n = model.n_features_in_
    row = sp.csr_matrix(([1.0], ([0], [n])), shape=(1, n + 1))
    with pytest.raises(InputError, match=f"feature {n}, but the trees have {n} features"):
        model.trees_.add_scores(
            row.indptr, row.indices, row.data, np.zeros((3, 1)), np.zeros((3, 1, 4))
        )


@pytest.mark.parametrize("n_leaves", [10**5, 10**12])
def test_a_number_of_leaves_beyond_the_data_costs_nothing(n_leaves):
    X, y = make_chains(10)
    large, small = (BoostedCRF(max_leaf_nodes=n, max_iter=3).fit(X, y) for n in (n_leaves, 10**4))
    np.testing.assert_array_equal(large.trees_.value, small.trees_.value)


def test_interrupt_keeps_the_last_full_round(monkeypatch):
    X, y = make_chains()
    reference = BoostedCRF(max_iter=2).fit(X, y)
    model = BoostedCRF(max_iter=50)
    grown = []

    def interrupt(self, *arguments):
        grown.append(1)
        if len(grown) == 2 * 2 + 2:  # in the third round: two calls grow the trees of three labels
            raise KeyboardInterrupt
        return grow(self, *arguments)

    grow = FeatureTreeGrower.grow
    monkeypatch.setattr(FeatureTreeGrower, "grow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert not model.converged_
    np.testing.assert_array_equal(model.trees_.value, reference.trees_.value)


def test_sparse_input_with_many_columns():
    random = np.random.default_rng(0)
    X = [sp.random(5, 3000, density=0.002, random_state=i, format="csr") for i in range(40)]
    for x in X:
        x.data[:] = 1.0
    y = [random.integers(0, 2, 5).tolist() for _ in X]
    assert BoostedCRF(max_iter=20).fit(X, y).score(X, y) > 0.7
