"""Class weights of LinearChainCRF."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from seqlab import LinearChainCRF
from seqlab.data.errors import InputError
from seqlab.datasets import make_hmm_sequences
from seqlab.learning import PenalisedObjective


@pytest.fixture(scope="module")
def data():
    """Two labels, of which one is rare and hard to tell from the other."""
    X, y = make_hmm_sequences(60, 30, n_labels=6, n_observations=6, po=0.5, ko=2, pl=0.6, kl=2,
                              preset=None, random_state=0, return_X_y=True)  # fmt: skip
    return X, [np.where(np.asarray(labels) == 0, "rare", "other") for labels in y]


def recalls(model, X, y):
    gold, predicted = np.concatenate(y), np.concatenate(model.predict(X))
    return {label: np.mean(predicted[gold == label] == label) for label in model.classes_}


def test_weights_move_the_recall_of_a_label(data):
    X, y = data
    weights = (0.05, 1.0, 5.0, 50.0)
    found = [
        recalls(LinearChainCRF(class_weight={"rare": weight}).fit(X, y), X, y)["rare"]
        for weight in weights
    ]
    assert found == sorted(found)
    assert found[0] < found[1] < found[2]


def test_balanced_raises_macro_recall_and_keeps_accuracy_above_the_majority(data):
    X, y = data
    plain = recalls(LinearChainCRF().fit(X, y), X, y)
    model = LinearChainCRF(class_weight="balanced").fit(X, y)
    balanced = recalls(model, X, y)
    assert np.mean(list(balanced.values())) > np.mean(list(plain.values())) + 0.05
    gold = np.concatenate(y)
    by_hand = {label: gold.size / (2 * np.sum(gold == label)) for label in ("rare", "other")}
    again = LinearChainCRF(class_weight=by_hand).fit(X, y)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("weight", [None, {"rare": 1.0, "other": 1.0}])
def test_ones_are_bitwise_the_ordinary_fit(data, weight, edge_features):
    X, y = data
    plain = LinearChainCRF(edge_features=edge_features).fit(X, y)
    model = LinearChainCRF(class_weight=weight, edge_features=edge_features).fit(X, y)
    np.testing.assert_array_equal(model.transitions_, plain.transitions_)
    assert model.objective_ == plain.objective_


def test_equal_weights_scale_the_loss(data):
    X, y = data
    doubled = LinearChainCRF(c2=2.0, tol=1e-10, class_weight={"rare": 2.0, "other": 2.0}).fit(X, y)
    plain = LinearChainCRF(c2=1.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(doubled.transitions_, plain.transitions_, atol=1e-4)
    assert doubled.objective_ == pytest.approx(2 * plain.objective_, rel=1e-9)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("edge_features", [False, True])
def test_gradient_by_finite_differences(data, edge_features, partial):
    X, y = [x[:7] for x in data[0][:4]], [list(labels[:7]) for labels in data[1][:4]]
    y[0][0] = "rare"
    if partial:
        y[1][2] = None
    crf = LinearChainCRF(class_weight={"rare": 7.0, "other": 0.5}, edge_features=edge_features)
    training = crf._read_training(X, y, np.array([1.0, 2.0, 0.5, 1.0]), None)
    bound = crf._bind(training)
    objective = PenalisedObjective(crf._data_term(bound, training), 0.1)
    assert objective.strong_convexity == 0.0
    term = objective.term
    at_zero = term.evaluate(np.zeros(bound.n_params)).loss
    assert term.value_at_zero() == pytest.approx(at_zero, rel=1e-12)
    w = np.random.default_rng(0).normal(size=bound.n_params)
    error = check_grad(
        lambda v: objective.loss_gradient(v.copy())[0], lambda v: objective.loss_gradient(v.copy())[1], w
    )  # fmt: skip
    assert error < 1e-5 * np.linalg.norm(objective.loss_gradient(w)[1])


def test_sequences_of_one_step_are_weighted_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    noisy = X[:, 0] + rng.normal(size=300)
    y = np.where(noisy > 1.5, "rare", np.where(noisy > 0.0, "middle", "other"))
    crf = LinearChainCRF(
        c2=0.5, boundary="unpenalized", all_states=True, class_weight="balanced", tol=1e-12
    ).fit([row[None] for row in X], [[label] for label in y])
    reference = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-10).fit(X, y)
    probabilities = np.concatenate(crf.predict_proba([row[None] for row in X]))
    np.testing.assert_allclose(probabilities, reference.predict_proba(X), atol=1e-4)


def test_same_bits_for_any_number_of_threads(data):
    X, y = data
    one, two = (LinearChainCRF(class_weight="balanced", n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.transitions_, two.transitions_)


def test_weight_of_a_sequence_is_repetition(data):
    X, y = data[0][:10], data[1][:10]
    options = {"class_weight": {"rare": 5.0}, "tol": 1e-10}
    weighted = LinearChainCRF(**options).fit(X, y, sample_weight=[2] + [1] * 9)
    repeated = LinearChainCRF(**options).fit([*X, X[0]], [*y, y[0]])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)


def test_bad_weights(data):
    X, y = data
    with pytest.raises(InputError, match="'nobody'"):
        LinearChainCRF(class_weight={"nobody": 2.0}).fit(X, y)
    for weight in (0, -1.0, np.nan, "much"):
        with pytest.raises(InputError, match="must be a positive number"):
            LinearChainCRF(class_weight={"rare": weight}).fit(X, y)
