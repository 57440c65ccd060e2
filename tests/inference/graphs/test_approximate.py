"""Loopy belief propagation and the linear-programming relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.inference.graphs.enumeration import Enumerated, random_graph, random_tree

from seqlab.data.errors import InputError
from seqlab.inference import GraphInference, GraphScores, path_scores

EXACT, RELAXED = GraphInference("exact"), GraphInference("lp")


@pytest.mark.parametrize("schedule", ["residual", "sequential"])
@pytest.mark.parametrize("damping", [0.0, 0.5])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_loopy_equals_exact_on_forests(seed, forbidden, damping, schedule):
    rng = np.random.default_rng(seed)
    scores = random_tree(rng, n_nodes=12, n_labels=3, n_trees=2, forbidden=forbidden)
    loopy = GraphInference("loopy", damping=damping, tol=1e-12, schedule=schedule)
    found, expected = loopy.marginals(scores), EXACT.marginals(scores)
    assert found.converged.all()
    np.testing.assert_allclose(found.log_z, expected.log_z, atol=1e-8)
    np.testing.assert_allclose(found.node, expected.node, atol=1e-8)
    np.testing.assert_allclose(found.pair, expected.pair, atol=1e-8)
    np.testing.assert_allclose(loopy.labelings(scores).score, EXACT.labelings(scores).score)


@pytest.mark.parametrize("seed", range(5))
def test_loopy_beliefs_are_consistent_and_near_the_marginals_if_edges_are_weak(seed):
    rng = np.random.default_rng(seed)
    scores = random_graph(rng, n_nodes=6, n_labels=3, n_edges=9, simple=True)
    weak = GraphScores(scores.unary, 0.3 * scores.pairwise, scores.edges)
    found = GraphInference("loopy", tol=1e-10).marginals(weak)
    assert found.converged.all()
    assert not found.is_exact.any()
    for e, (a, b) in enumerate(weak.edges):
        np.testing.assert_allclose(found.pair[e].sum(axis=1), found.node[a], atol=1e-7)
        np.testing.assert_allclose(found.pair[e].sum(axis=0), found.node[b], atol=1e-7)
    expected = Enumerated(weak)
    np.testing.assert_allclose(found.node, expected.node, atol=0.02)
    np.testing.assert_allclose(found.log_z, expected.log_z, atol=0.02)


def test_the_derivative_of_the_bethe_value_is_the_belief():
    rng = np.random.default_rng(0)
    scores = random_graph(rng, n_nodes=5, n_labels=2, n_edges=7, simple=True)
    loopy = GraphInference("loopy", tol=1e-13, max_rounds=2000)
    found, step = loopy.marginals(scores), 1e-5
    assert found.converged.all()
    for i in range(5):
        values = []
        for sign in (1, -1):
            unary = scores.unary.copy()
            unary[i, 0] += sign * step
            values.append(loopy.marginals(scores.with_unary(unary)).log_z[0])
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(found.node[i, 0], abs=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_the_relaxation_bounds_the_best_score(seed):
    rng = np.random.default_rng(seed)
    scores = random_graph(rng, n_nodes=6, n_labels=3, n_edges=9)
    best = Enumerated(scores).scores.max()
    found = RELAXED.relaxed(scores)
    assert found.value[0] >= best - 1e-7
    value = (found.node * scores.unary).sum() + (found.pair * scores.tables).sum()
    assert value == pytest.approx(found.value[0])  # the solution has the value that it states
    np.testing.assert_allclose(found.node.sum(axis=1), 1.0, atol=1e-7)
    for e, (a, b) in enumerate(scores.edges):
        np.testing.assert_allclose(found.pair[e].sum(axis=1), found.node[a], atol=1e-7)
        np.testing.assert_allclose(found.pair[e].sum(axis=0), found.node[b], atol=1e-7)
    if found.is_integral[0]:
        assert found.value[0] == pytest.approx(best)
    labels = RELAXED.labelings(scores)
    assert path_scores(scores, labels.labels) == pytest.approx(labels.score)
    assert labels.score[0] <= best + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_the_relaxation_is_tight_on_forests_without_a_linear_program(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    scores = random_tree(rng, n_nodes=9, n_labels=3, n_trees=2)
    monkeypatch.setattr("seqlab.inference.graphs.relaxation.linprog", None)
    found = RELAXED.relaxed(scores)
    assert found.is_integral.all()
    np.testing.assert_allclose(found.value, EXACT.labelings(scores).score)


def test_a_frustrated_cycle_is_fractional():
    # Neighbours on a triangle want different labels, which two labels do not allow.
    scores = GraphScores(np.zeros((3, 2)), -np.eye(2), [[0, 1], [1, 2], [2, 0]])
    found = RELAXED.relaxed(scores)
    assert not found.is_integral[0]
    assert found.value[0] == pytest.approx(0.0)
    assert EXACT.labelings(scores).score[0] == -1.0
    np.testing.assert_allclose(found.node, 0.5)


def test_approximate_labelings_cannot_be_improved_by_a_single_change():
    rng = np.random.default_rng(4)
    scores = random_graph(rng, n_nodes=30, n_labels=3, n_edges=120, simple=True)
    found = GraphInference("loopy", max_rounds=1).labelings(scores)
    for i in range(30):
        for label in range(3):
            other = found.labels.copy()
            other[i] = label
            assert path_scores(scores, other)[0] <= found.score[0] + 1e-9


def test_settings_are_checked():
    for bad in ({"method": "magic"}, {"damping": 1.0}, {"schedule": "random"}):
        with pytest.raises(InputError):
            GraphInference(**bad)
