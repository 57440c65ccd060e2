"""Weighted losses of single steps, against enumeration and finite differences."""

import itertools

import numpy as np
import pytest

from seqlab.inference import ChainScores, conditional_losses, log_partition, path_scores


def random_case(rng, n_steps, n_labels, per_step, partial):
    shape = (n_steps, n_labels, n_labels) if per_step else (n_labels, n_labels)
    scores = ChainScores(
        rng.normal(size=(n_steps, n_labels)),
        rng.normal(size=shape),
        rng.normal(size=n_labels),
        rng.normal(size=n_labels),
        np.array([0, n_steps]),
    )
    allowed = np.zeros((n_steps, n_labels), dtype=bool)
    allowed[np.arange(n_steps), rng.integers(n_labels, size=n_steps)] = True
    if partial:
        allowed |= rng.random((n_steps, n_labels)) < 0.5
    return scores, allowed, rng.uniform(0.1, 5.0, n_steps)


def enumerated_loss(scores, allowed, weights):
    """The loss by its definition: sums over all labelings."""
    n_steps, n_labels = scores.unary.shape
    labelings = np.array(list(itertools.product(range(n_labels), repeat=n_steps)))
    of_labelings = []
    for y in labelings:
        pairs = [
            (scores.pairwise[t] if scores.per_step else scores.pairwise)[y[t - 1], y[t]]
            for t in range(1, n_steps)
        ]
        of_labelings.append(
            scores.start[y[0]] + scores.end[y[-1]] + scores.unary[np.arange(n_steps), y].sum() + sum(pairs)
        )  # fmt: skip
    of_labelings = np.array(of_labelings)

    def log_z(steps):
        steps = np.array(list(steps), dtype=int)
        agrees = allowed[steps, labelings[:, steps]].all(axis=1)
        return np.logaddexp.reduce(of_labelings[agrees])

    total = 0.0
    for t, weight in enumerate(weights):
        total += weight * (log_z(range(t)) - log_z(range(t + 1)))
        total += weight * (log_z(range(t + 1, n_steps)) - log_z(range(t, n_steps)))
    return total / 2


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize(("n_steps", "n_labels"), [(1, 1), (1, 3), (2, 2), (3, 3), (4, 2)])
def test_values_and_gradients(n_steps, n_labels, per_step, partial):
    rng = np.random.default_rng(n_steps * 10 + n_labels)
    scores, allowed, weights = random_case(rng, n_steps, n_labels, per_step, partial)
    found = conditional_losses(scores, allowed, weights)
    assert found.losses[0] == pytest.approx(enumerated_loss(scores, allowed, weights), abs=1e-10)
    gradients = {"unary": found.node, "pairwise": found.pair.reshape(scores.pairwise.shape)}
    for name, gradient in gradients.items():
        values = getattr(scores, name)
        for place in np.ndindex(*values.shape):
            kept, ends = values[place], []
            for step in (1e-5, -1e-5):
                values[place] = kept + step
                ends.append(enumerated_loss(scores, allowed, weights))
            values[place] = kept
            expected = (ends[0] - ends[1]) / 2e-5
            assert gradient[place] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_equal_weights_give_the_log_likelihood():
    rng = np.random.default_rng(0)
    n_labels, offsets = 4, np.array([0, 5, 5, 6, 30])
    scores = ChainScores(
        rng.normal(size=(30, n_labels)), rng.normal(size=(n_labels, n_labels)),
        rng.normal(size=n_labels), rng.normal(size=n_labels), offsets,
    )  # fmt: skip
    codes = rng.integers(n_labels, size=30)
    allowed = np.arange(n_labels) == codes[:, None]
    found = conditional_losses(scores, allowed, np.full(30, 2.0))
    expected = 2 * (log_partition(scores) - path_scores(scores, codes))
    np.testing.assert_allclose(found.losses, expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [300.0, 1e4])
def test_extreme_scores(scale):
    """Small sums are computed in log space: the result is that of moderate scores plus their limits."""
    rng = np.random.default_rng(1)
    for per_step in (False, True):
        scores, allowed, weights = random_case(rng, 4, 3, per_step, False)
        scores.unary[:] *= scale
        scores.pairwise[:] *= scale
        found = conditional_losses(scores, allowed, weights)
        assert found.losses[0] == pytest.approx(enumerated_loss(scores, allowed, weights))
        assert np.isfinite(found.node).all()
        np.testing.assert_allclose(found.node.sum(axis=1), 0.0, atol=1e-9)


def test_reversed_chain_has_the_same_loss():
    rng = np.random.default_rng(2)
    scores, allowed, weights = random_case(rng, 6, 3, False, True)
    found = conditional_losses(scores, allowed, weights)
    turned = ChainScores(
        scores.unary[::-1].copy(), scores.pairwise.T.copy(), scores.end, scores.start, scores.offsets
    )  # fmt: skip
    again = conditional_losses(turned, allowed[::-1].copy(), weights[::-1].copy())
    np.testing.assert_allclose(again.losses, found.losses, rtol=1e-12)
    np.testing.assert_allclose(again.node[::-1], found.node, atol=1e-12)
    np.testing.assert_allclose(again.pair[0].T, found.pair[0], atol=1e-12)
