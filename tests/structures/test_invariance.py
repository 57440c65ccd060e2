"""Directions in the weights of a chain that change no probability, found from all labelings."""

from itertools import product

import numpy as np
import pytest

from seqlab import LinearChainCRF
from seqlab.learning import Likelihood, PenalisedObjective
from seqlab.learning._kernels import shift_groups

N_LABELS = 3


def chain(*, boundary=True, n_features=4, **options):
    """A chain bound to random data, their codes, and random weights."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(n, n_features)) for n in (1, 2, 3, 4, 4, 3, 2)]
    y = [random.integers(N_LABELS, size=len(x)) for x in X]
    y[0][0], y[-1][-1] = 0, N_LABELS - 1
    model = LinearChainCRF(boundary=boundary, **({"all_states": True} | options))
    data = model._read_training(X, y, None, None)
    bound = model._bind(data)
    return bound, data.codes, random.normal(size=bound.n_params)


def null_space(bound):
    """A basis of the directions in which the labelings of each sequence have equal scores."""
    differences = []
    for i in range(len(bound.X)):
        labelings = product(range(N_LABELS), repeat=int(bound.X.lengths[i]))
        features = np.array(
            [
                bound.joint_features(np.array(codes), np.array([i])).toarray()[0]
                for codes in labelings
            ]
        )
        differences.append(features - features[0])
    _, values, basis = np.linalg.svd(np.concatenate(differences))
    return basis[np.count_nonzero(values > 1e-9) :]


@pytest.mark.parametrize("boundary", [False, True])
def test_all_directions_are_removed_and_nothing_else(boundary):
    bound, _, w = chain(boundary=boundary, all_transitions=True)
    basis = null_space(bound)
    # One per feature, the transitions; with boundaries start, end, and one less than labels that cancel.
    assert len(basis) == 4 + 1 + (2 + N_LABELS - 1 if boundary else 0)
    expected = w - basis.T @ (basis @ w)
    bound.remove_invariant_part(w)
    np.testing.assert_allclose(w, expected, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"all_transitions": True},
        {"all_transitions": True, "edge_features": True},
        {"all_states": False, "min_freq": 2},
    ],
)
def test_the_likelihood_does_not_change_and_the_penalty_decreases(options):
    bound, codes, w = chain(**options)
    objective = PenalisedObjective(Likelihood(bound, codes, np.ones(len(bound.X))), 0.5)
    before, norm = objective.loss_gradient(w.copy())[0], w @ w
    objective.remove_constant_part(w)
    assert w @ w < norm
    after = objective.loss_gradient(w.copy())[0]
    assert after == pytest.approx(before - 0.5 * (norm - w @ w), rel=1e-10)


def test_without_a_penalty_boundary_weights_and_transitions_stay():
    bound, codes, w = chain(all_transitions=True)
    penalised = np.ones(w.size, dtype=bool)
    for name in ("start", "end"):
        penalised[bound.structure.slices[name]] = False
    term = Likelihood(bound, codes, np.ones(len(bound.X)))
    before = w.copy()
    PenalisedObjective(term, 1.0, penalised=penalised).remove_constant_part(w)
    state = bound.structure.slices["state"]
    np.testing.assert_array_equal(w[state.stop :], before[state.stop :])
    np.testing.assert_allclose(w[state].reshape(-1, N_LABELS).sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("n_sequences", [20, 400])
def test_fitted_weights_have_no_part_in_them(n_sequences):
    random = np.random.default_rng(1)
    X = [random.normal(size=(20, 5)) for _ in range(n_sequences)]
    y = [random.integers(4, size=20) for _ in X]
    model = LinearChainCRF(c2=0.1, tol=1e-2).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(
        [model.start_.sum(), model.end_.sum(), model.transitions_.sum()], 0.0, atol=1e-10
    )


@pytest.mark.parametrize("c2", [0.0, 0.3])
@pytest.mark.parametrize("options", [{}, {"all_states": False, "min_freq": 2}])
def test_a_number_is_subtracted_where_that_reduces_the_l1_penalty(c2, options):
    bound, codes, w = chain(**options)
    objective = PenalisedObjective(Likelihood(bound, codes, np.ones(len(bound.X))), c2)
    c1 = np.full(w.size, 0.7)
    loss, gradient = objective.loss_gradient(w.copy())
    moved, slopes = w.copy(), gradient.copy()
    decrease = objective.reduce_penalty(moved, slopes, c1)
    new_loss, new_gradient = objective.loss_gradient(moved.copy())
    assert decrease > 0.01
    penalties = [0.7 * np.abs(point).sum() for point in (w, moved)]
    assert new_loss + penalties[1] == pytest.approx(loss + penalties[0] - decrease, rel=1e-12)
    np.testing.assert_allclose(slopes, new_gradient, atol=1e-10)
    # No other number is better.
    firsts, size = bound.invariant_groups()
    assert firsts.size == (4 if not options else np.count_nonzero(bound_counts(bound) == N_LABELS))
    for first in firsts:
        group = moved[first : first + size]
        others = group - np.linspace(-3, 3, 601)[:, None]
        values = (0.7 * np.abs(others) + c2 * others**2).sum(axis=1)
        assert (0.7 * np.abs(group) + c2 * group**2).sum() <= values.min() + 1e-12


@pytest.mark.parametrize("c2", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_number_is_subtracted_from_each_group(c2, seed):
    random = np.random.default_rng(seed)
    w = random.normal(size=(30, 5)) * (random.random((30, 5)) < random.random((30, 1)))
    penalties = np.repeat(random.uniform(0.1, 1.0, 30), 5)
    moved, slopes = w.ravel().copy(), np.zeros(w.size)
    firsts = np.arange(0, w.size, 5)
    decrease = shift_groups(moved, slopes, penalties, c2, firsts, 5)
    np.testing.assert_allclose(slopes, 2.0 * c2 * (moved - w.ravel()), atol=1e-12)

    def values(points):
        return (penalties[::5, None] * np.abs(points) + c2 * points**2).sum(axis=1)

    after = moved.reshape(w.shape)
    assert decrease == pytest.approx(values(w).sum() - values(after).sum())
    assert np.ptp(w - after, axis=1).max() < 1e-12
    for shift in np.linspace(-3, 3, 301):
        assert (values(after) <= values(w - shift) + 1e-12).all()


def bound_counts(bound):
    """The number of labels with a weight, of each feature."""
    return np.diff(bound.structure.state.explicit()[0])
