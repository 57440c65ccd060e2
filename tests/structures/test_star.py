"""The interface between learners and structures, tested on a second structure by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from seqlab.data import Sequences
from seqlab.learning import Likelihood, PenalisedObjective, Perceptron, run_fit
from seqlab.optim import lbfgs
from seqlab.structures import miss_costs
from structures.star import StarStructure

N_LABELS = 3


def problem(seed=0, n_samples=6, sizes=(1, 2, 4)):
    random = np.random.default_rng(seed)
    lengths = random.choice(sizes, n_samples)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = Sequences(random.normal(size=(offsets[-1], 2)), offsets)
    bound = StarStructure(2, N_LABELS).bind(X)
    w = random.normal(size=bound.n_params)
    return bound, random.integers(0, N_LABELS, offsets[-1]), w, random


def labelings(bound, i):
    """Return every labeling of a sample, and its features."""
    n_positions = int(bound.X.offsets[i + 1] - bound.X.offsets[i])
    every = np.array(list(itertools.product(range(N_LABELS), repeat=n_positions)))
    sample = np.array([i])
    return every, np.vstack([bound.joint_features(y, sample).toarray() for y in every])


def test_argmax_and_loss_augmented_argmax_by_enumeration():
    bound, codes, w, _ = problem()
    source = bound.source(w)
    for i in range(len(bound.X)):
        block = bound.block(i, i + 1)
        scores, gold = bound.scores(source, block), codes[block.steps]
        every, features = labelings(bound, i)
        values = features @ w
        np.testing.assert_array_equal(bound.argmax(scores), every[np.argmax(values)])
        losses = (every != gold).sum(axis=1)
        best = every[np.argmax(values + losses)]
        np.testing.assert_array_equal(bound.loss_augmented_argmax(scores, gold), best)
        assert miss_costs(gold, N_LABELS)[np.arange(gold.size), best].sum() == (best != gold).sum()


@pytest.mark.parametrize("known", [False, True], ids=["all labels", "partly known labels"])
def test_expected_features_by_enumeration(known):
    bound, _, w, random = problem(1)
    weights = random.random(len(bound.X))
    allowed = random.random((bound.X.n_steps, N_LABELS)) < 0.6 if known else None
    if known:
        allowed[np.arange(bound.X.n_steps), random.integers(0, N_LABELS, bound.X.n_steps)] = True
    partial = bound.partial_labels(np.full(bound.X.n_steps, -2), allowed) if known else None
    found = bound.expected_features(w, weights, partial=partial)
    total = np.zeros(bound.n_params)
    for i in range(len(bound.X)):
        every, features = labelings(bound, i)
        values = features @ w
        log_z = np.logaddexp.reduce(values)
        total += weights[i] * np.exp(values - log_z) @ features
        if known:
            steps = allowed[bound.block(i, i + 1).steps]
            agree = steps[np.arange(len(steps)), every].all(axis=1)
            log_known = np.logaddexp.reduce(values[agree])
            total -= weights[i] * np.exp(values[agree] - log_known) @ features[agree]
            log_z -= log_known
        assert found.log_z[i] == pytest.approx(log_z)
    np.testing.assert_allclose(found.parts.sum(axis=0), total, atol=1e-12)


def test_features_norms_and_inner_products():
    bound, codes, w, random = problem(2)
    features = bound.joint_features(codes).toarray()
    weights = random.random(len(bound.X))
    np.testing.assert_allclose(bound.squared_norms(codes), (features**2).sum(axis=1))
    np.testing.assert_allclose(bound.inner_products(codes, w), features @ w)
    np.testing.assert_allclose(bound.total_features(codes, weights), weights @ features)


def test_the_likelihood_learner_fits_a_star():
    bound, codes, w, _ = problem(3, n_samples=40)
    objective = PenalisedObjective(Likelihood(bound, codes, np.ones(len(bound.X))), 0.1)
    step, (_, gradient) = 1e-5, objective.loss_gradient(w)
    for k in range(0, w.size, 4):
        shift = np.eye(w.size)[k] * step
        high, low = objective.loss_gradient(w + shift)[0], objective.loss_gradient(w - shift)[0]
        assert gradient[k] == pytest.approx((high - low) / (2 * step), rel=1e-6, abs=1e-8)
    solver = lbfgs(objective, np.zeros(w.size), max_iter=200, tol=1e-10)
    result = run_fit(solver, title="star", max_iter=200, first_iteration=0)
    assert result.state.converged
    assert np.abs(objective.loss_gradient(result.state.point)[1]).max() < 1e-3


@pytest.mark.parametrize("learner", ["likelihood", "perceptron"])
def test_learners_recover_the_labels_of_a_star(learner):
    bound, _, w, _ = problem(4, n_samples=60)
    codes = np.concatenate([bound.argmax(bound.scores(bound.source(w), b)) for b in bound.blocks()])
    weights = np.ones(len(bound.X))
    if learner == "likelihood":
        objective = PenalisedObjective(Likelihood(bound, codes, weights), 1e-3)
        *_, state = lbfgs(objective, np.zeros(w.size), max_iter=500, tol=1e-8)
        found = state.point
    else:
        perceptron = Perceptron(bound, codes, weights, random=np.random.RandomState(0))
        result = run_fit(perceptron.states(), title="star", max_iter=200)
        assert result.state.converged  # the data are separable
        found = perceptron.online.current()
    source = bound.source(found)
    predicted = np.concatenate([bound.argmax(bound.scores(source, b)) for b in bound.blocks()])
    assert bound.loss(codes, predicted).sum() == 0
