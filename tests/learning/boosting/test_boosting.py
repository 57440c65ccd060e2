"""Rounds of boosting: monotone objective, constant trees, merged rows, a beam."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from seqlab.data import Sequences
from seqlab.inference import marginals
from seqlab.learning.boosting import BinnedRows, Boosting, FeatureTreeGrower
from seqlab.structures import BeamOptions
from seqlab.structures.chain import ChainStructure


def learner(
    n_labels=3, *, seed=0, max_leaf_nodes=6, merge=True, lengths=(7, 1, 5, 9, 4), **options
):
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = Sequences(random.integers(0, 2, size=(offsets[-1], 4)).astype(float), offsets)
    noise = random.integers(0, n_labels, X.n_steps)
    related = (X.matrix[:, 0] + X.matrix[:, 1]).astype(np.int64) % n_labels
    codes = np.where(random.random(X.n_steps) < 0.6, related, noise)
    rows = BinnedRows.from_sequences(X, merge=merge)
    grower = FeatureTreeGrower(rows, max_leaf_nodes=max_leaf_nodes, l2=0.5, max_value=4.0)
    bound = ChainStructure.without_weights(4, n_labels).bind(X)
    weights = random.random(len(X)) + 0.5
    return Boosting(bound, grower, codes, weights, **options)


def states_of(boosting, max_iter=100):
    """Return the states up to the first that has converged, as the driver of all fits does."""
    states = []
    for state in islice(boosting.states(), max_iter):
        states.append(state)
        if state.converged:
            break
    return states


@pytest.mark.parametrize("n_labels", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"newton": False}, {"has_pairs": False}])
def test_the_objective_never_rises_whatever_the_learning_rate(n_labels, options):
    boosting = learner(n_labels, learning_rate=50.0, **options)
    states = list(islice(boosting.states(), 25))
    values = [boosting._total_weight * np.log(n_labels)] + [s.objective for s in states]
    assert all(b <= a + 1e-12 for a, b in pairwise(values))
    if n_labels > 1:
        assert min(s.info["step"] for s in states) < 50.0  # steps were halved
        assert values[-1] < 0.8 * values[0]


def test_constant_trees_give_the_same_marginals_everywhere():
    boosting = learner(max_leaf_nodes=1, learning_rate=1.0)
    list(islice(boosting.states(), 30))
    node = boosting.scores.node
    assert np.ptp(node, axis=1).max() == 0.0
    assert (boosting.scores.pair == 0.0).all()
    bound = boosting.bound
    scores = bound.scores(boosting.scores, bound.block(0, len(bound.X)))
    expected = np.exp(node[:, 0]) / np.exp(node[:, 0]).sum()
    np.testing.assert_allclose(marginals(scores).node, np.tile(expected, (bound.X.n_steps, 1)))
    # The best constants reproduce the weighted frequencies of the labels.
    steps = np.repeat(boosting.weights, bound.X.lengths)
    np.testing.assert_allclose(
        expected, np.bincount(boosting.codes, steps) / steps.sum(), atol=1e-3
    )


@pytest.mark.parametrize("n_labels", [2, 3])
def test_merged_rows_change_no_bit(n_labels):
    runs = []
    for merge in (True, False):
        boosting = learner(n_labels, merge=merge, learning_rate=0.5)
        values = [state.objective for state in islice(boosting.states(), 15)]
        runs.append((boosting, values))
    (merged, values), (plain, plain_values) = runs
    assert merged.grower.n_rows < plain.grower.n_rows
    assert values == plain_values
    rows = merged.scores.rows
    np.testing.assert_array_equal(merged.scores.node[:, rows], plain.scores.node)
    np.testing.assert_array_equal(merged.scores.pair[:, rows], plain.scores.pair)
    for (step, trees), (plain_step, plain_trees) in zip(merged.rounds, plain.rounds, strict=True):
        assert step == plain_step
        for a, b in zip(trees, plain_trees, strict=True):
            for name in ("feature", "place", "child", "member", "value"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_beam_needs_no_monotone_objective_but_does_not_diverge():
    boosting = learner(3, beam=BeamOptions(2), learning_rate=20.0)
    values = [state.objective for state in islice(boosting.states(), 40)]
    first = boosting._total_weight * np.log(3)
    assert values[0] <= first
    assert max(values) <= first
    assert values[-1] < 0.6 * first


def test_training_stops_at_tol():
    states = states_of(learner(tol=0.05, learning_rate=0.5))
    assert [state.converged for state in states] == [False] * (len(states) - 1) + [True]
    values = [state.objective for state in states]
    assert values[-2] - values[-1] <= 0.05 * values[-2]
    assert values[-3] - values[-2] > 0.05 * values[-3]
