"""BoostedCRF with a beam, and training with unusual rates and weights."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab import BoostedCRF, StructuredPerceptron
from seqlab.data import InputError
from seqlab.datasets import make_hmm_sequences


def many_labels(n_labels=40):
    return make_hmm_sequences(
        30, 15, n_labels=n_labels, n_observations=n_labels, ko=4, random_state=0, return_X_y=True
    )


def small_data():
    return make_hmm_sequences(
        40, 10, n_labels=6, n_observations=6, ko=2, random_state=0, return_X_y=True
    )


@pytest.mark.parametrize("width", [3, 10])
def test_a_narrow_beam_fits_the_training_data_as_the_exact_model_does(width):
    X, y = many_labels()
    options = {"max_iter": 12, "max_leaf_nodes": 20, "learning_rate": 0.3}
    exact = BoostedCRF(**options).fit(X, y)
    model = BoostedCRF(beam_width=width, **options).fit(X, y)
    assert exact.score(X, y) > 0.97
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("keep_gold", [True, False])
@pytest.mark.parametrize("leaf_values", ["newton", "least_squares"])
def test_a_beam_of_one_learns(keep_gold, leaf_values):
    X, y = small_data()
    rate = 0.3 if leaf_values == "newton" else 2.0
    model = BoostedCRF(
        beam_width=1,
        keep_gold=keep_gold,
        leaf_values=leaf_values,
        learning_rate=rate,
        max_iter=20,
    ).fit(X, y)
    objective = model.history_["objective"]
    assert min(objective) > 0  # a negative log-likelihood
    most_frequent = (
        np.unique(np.concatenate(y), return_counts=True)[1].max() / np.concatenate(y).size
    )
    assert model.score(X, y) > most_frequent + 0.1


def test_a_rising_objective_is_not_convergence():
    X, y = many_labels()
    model = BoostedCRF(beam_width=2, keep_gold=False, max_iter=25, learning_rate=0.3).fit(X, y)
    objective = np.array(model.history_["objective"])
    assert (np.diff(objective) > 0).any()
    if model.converged_:
        assert abs(objective[-6] - objective[-1]) <= model.tol * objective[-6]


def test_a_perceptron_with_a_beam_of_one_cannot_keep_gold():
    X, y = small_data()
    with pytest.raises(InputError, match="beam_width >= 2"):
        StructuredPerceptron(beam_width=1, keep_gold=True).fit(X, y)


def test_any_learning_rate_finds_a_step():
    X, y = small_data()
    model = BoostedCRF(learning_rate=1e7, max_iter=3).fit(X, y)
    assert model.n_iter_ == 3
    objective = model.history_["objective"]
    assert objective[0] > objective[1] > objective[2]


@pytest.mark.parametrize("factor", [2.0**-33, 2.0**20])  # powers of two: no rounding
def test_least_squares_does_not_depend_on_the_scale_of_the_weights(factor):
    X, y = small_data()
    options = {"leaf_values": "least_squares", "learning_rate": 1.0, "max_iter": 5}
    plain = BoostedCRF(**options).fit(X, y)
    scaled = BoostedCRF(**options).fit(X, y, sample_weight=np.full(len(X), factor))
    np.testing.assert_array_equal(scaled.trees_.feature, plain.trees_.feature)
    np.testing.assert_array_equal(scaled.trees_.value, plain.trees_.value)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
@pytest.mark.parametrize("leaf_values", ["newton", "least_squares"])
def test_extreme_weights(factor, leaf_values):
    X, y = small_data()
    model = BoostedCRF(leaf_values=leaf_values, max_iter=2)
    model.fit(X, y, sample_weight=np.full(len(X), factor))
    assert np.isfinite(np.vstack(model.predict_proba(X))).all()
