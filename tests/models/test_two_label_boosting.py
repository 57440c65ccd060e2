"""Several rounds of boosting in one call are the rounds of `Boosting`, up to rounding."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from seqlab import BoostedCRF
from seqlab.data import Sequences
from seqlab.learning.boosting import BinnedRows, Boosting, FeatureTreeGrower, TreeEnsemble
from seqlab.models import _two_label_boosting
from seqlab.models._two_label_boosting import TwoLabelBoosting
from seqlab.structures.chain import ChainStructure


def two_label_data(n_sequences=30, n_features=5):
    random = np.random.default_rng(0)
    X = [random.integers(0, 2, size=(8, n_features)).astype(float) for _ in range(n_sequences)]
    noise = [random.random(8) < 0.1 for _ in X]
    y = [((x[:, 0] != x[:, 1]) ^ flip).astype(int) for x, flip in zip(X, noise, strict=True)]
    return X, y


def run(kind, n_rounds, *, categorical=(), n_jobs=None, max_value=4.0, **options):
    """Return the learner, its states and its trees."""
    X, y = two_label_data()
    sequences = Sequences.from_list(X)
    rows = BinnedRows.from_sequences(sequences, categorical)
    newton = options.get("newton", True)
    l2 = 1.0 if newton else 0.0
    grower = FeatureTreeGrower(rows, max_leaf_nodes=6, l2=l2, max_value=max_value)
    bound = ChainStructure.without_weights(sequences.n_features, 2).bind(sequences, n_jobs=n_jobs)
    weights = np.random.default_rng(1).random(len(X)) + 0.5
    if kind is TwoLabelBoosting:
        options["max_iter"] = n_rounds
    learner = kind(bound, grower, np.concatenate(y), weights, **options)
    states = []
    for state in islice(learner.states(), n_rounds):
        states.append(state)
        if state.converged:  # learners may go on
            break
    done = learner.first_rounds(states[-1].point)
    trees = TreeEnsemble.from_rounds(done, rows.bins, 2, has_pairs=True)
    return learner, states, trees


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 0.3},
        {"learning_rate": 0.3, "n_jobs": 2},
        {"learning_rate": 30.0},  # steps are halved
        {"learning_rate": 1.0, "newton": False},
        {"learning_rate": 0.3, "tol": 0.01},  # converges
        {"learning_rate": 0.5, "categorical": (0, 2)},
        {"learning_rate": 1e9, "max_value": np.inf},  # scores that need log space
    ],
)
def test_rounds_are_those_of_the_general_learner(options):
    _, states, trees = run(TwoLabelBoosting, 37, **options)
    _, wanted, wanted_trees = run(Boosting, 37, **options)
    # Compiled on its own or into another function, the exponential may differ in its last bit.
    np.testing.assert_allclose(
        [state.objective for state in states], [state.objective for state in wanted], rtol=1e-12
    )
    assert [state.info for state in states] == [state.info for state in wanted]
    assert [state.point for state in states] == [state.point for state in wanted]
    assert [state.converged for state in states] == [state.converged for state in wanted]
    for name in TreeEnsemble._ARRAYS:
        found, expected = getattr(trees, name), getattr(wanted_trees, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert trees.n_trees == 2 * states[-1].point


@pytest.mark.parametrize("kind", [Boosting, TwoLabelBoosting])
def test_training_ends_if_trees_change_nothing(kind):
    learner, states, _ = run(kind, 37, learning_rate=0.5, max_value=1e-300)
    assert len(states) == 1
    assert states[0].converged
    assert not learner.scores.node.any() or np.abs(learner.scores.node).max() < 1e-290


def test_scores_out_of_range_continue_round_by_round():
    learner, _, _ = run(TwoLabelBoosting, 5, learning_rate=1e9, max_value=np.inf)
    assert learner.rounds  # of the general learner
    learner, _, _ = run(TwoLabelBoosting, 5, learning_rate=0.3)
    assert not learner.rounds


@pytest.mark.parametrize("n_rounds", [1, 15, 16, 17, 32])
def test_any_number_of_rounds(n_rounds):
    X, y = two_label_data()
    model = BoostedCRF(max_iter=n_rounds, tol=0.0).fit(X, y)
    longer = BoostedCRF(max_iter=40, tol=0.0).fit(X, y)
    n_nodes = model.trees_.feature.size
    assert model.n_iter_ == n_rounds
    assert model.trees_.n_trees == 2 * n_rounds
    np.testing.assert_array_equal(model.trees_.value, longer.trees_.value[:n_nodes])
    assert model.history_["objective"] == longer.history_["objective"][:n_rounds]


def test_training_stops_within_a_call():
    X, y = two_label_data()
    model = BoostedCRF(max_iter=30, tol=0.0, callback=lambda progress: progress.iteration == 5)
    assert model.fit(X, y).trees_.n_trees == 2 * 5
    stopped = BoostedCRF(max_iter=60, tol=0.0, validation_fraction=0.3, random_state=0).fit(X, y)
    assert stopped.trees_.n_trees == 2 * stopped.best_iteration_
    assert stopped.best_iteration_ < stopped.n_iter_


def test_long_data_have_a_call_per_round(monkeypatch):
    X, y = two_label_data()
    sizes = []

    def counted(*arguments):
        sizes.append(arguments[-1].size)
        return run_rounds(*arguments)

    run_rounds = _two_label_boosting.run_rounds
    monkeypatch.setattr(_two_label_boosting, "run_rounds", counted)
    BoostedCRF(max_iter=20, tol=0.0).fit(X, y)
    assert sizes == [16, 4]
    monkeypatch.setattr(_two_label_boosting, "STEPS_PER_CALL", 100)  # fewer than the data have
    sizes.clear()
    BoostedCRF(max_iter=3, tol=0.0).fit(X, y)
    assert sizes == [1, 1, 1]
