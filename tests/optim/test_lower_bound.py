"""Lower bounds from several points: never above the minimum, and the same as with stored vectors."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from seqlab.optim import lbfgs
from seqlab.optim.history_matrix import InverseHessian
from seqlab.optim.lower_bound import LowerBound, maximise_on_simplex


class LogisticObjective:
    """Mean-free logistic loss plus ``mu / 2 |w|^2``; its minimum is found by scipy."""

    def __init__(self, seed, n_params=30, mu=0.2):
        random = np.random.default_rng(seed)
        self.n_params, self.strong_convexity = n_params, mu
        self.rows = random.normal(size=(60, n_params)) * 10.0 ** random.uniform(-1, 1, n_params)
        self.points = []

    def loss_gradient(self, w):
        margins = self.rows @ w - 1.0
        value = np.logaddexp(0.0, -margins).sum() + 0.5 * self.strong_convexity * w @ w
        gradient = -self.rows.T @ expit(-margins) + self.strong_convexity * w
        self.points.append((w.copy(), value, gradient.copy()))
        return value, gradient

    def minimum(self):
        options = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-12}
        start = np.zeros(self.n_params)
        found = minimize(self.loss_gradient, start, jac=True, method="L-BFGS-B", options=options)
        return found.fun


def bound_with_vectors(points, mu):
    """The best bound of convex combinations, from the vectors themselves."""
    slopes = np.array([g - mu * w for w, _, g in points])
    constants = np.array([f + 0.5 * mu * w @ w - g @ w for w, f, g in points])
    weights = maximise_on_simplex(constants, slopes @ slopes.T / mu, np.eye(len(points))[0])
    combined = weights @ slopes
    return weights @ constants - combined @ combined / (2.0 * mu)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("memory", [2, 6])
def test_bound_of_a_descent(seed, memory):
    objective = LogisticObjective(seed)
    mu, minimum = objective.strong_convexity, objective.minimum()
    history = InverseHessian(objective.n_params, memory)
    w = np.zeros(objective.n_params)
    value, gradient = objective.loss_gradient(w)
    lower = LowerBound(mu)
    lower.restart(value, w, gradient)
    points, best = [(w, value, gradient)], lower.value
    for _ in range(15):
        direction = np.empty_like(w)
        history.descend(gradient, direction)
        step = 1.0 if not history.is_empty else 0.01
        while objective.loss_gradient(w + step * direction)[0] > value:
            step *= 0.5
        w_new = w + step * direction
        value_new, gradient_new = objective.loss_gradient(w_new)
        assert history.update(w, w_new, gradient, gradient_new)
        w, value, gradient = w_new, value_new, gradient_new
        points = [(w, value, gradient), *points[:memory]]
        lower.add(value, w, gradient, history.difference_products(mu))
        best = max(best, bound_with_vectors(points, mu))
        assert lower.value <= minimum + 1e-9 * abs(minimum)
        assert lower.value == pytest.approx(best, rel=1e-7)
    single = max(f - g @ g / (2.0 * mu) for _, f, g in points)
    assert lower.value > single


def test_points_before_a_restart_do_not_count():
    objective = LogisticObjective(0)
    mu, n = objective.strong_convexity, objective.n_params
    random = np.random.default_rng(0)
    history, lower = InverseHessian(n, 6), LowerBound(mu)
    w = [0.01 * random.normal(size=n) for _ in range(6)]
    found = [objective.loss_gradient(v) for v in w]
    lower.restart(found[0][0], w[0], found[0][1])
    for k in range(1, 6):
        history.update(w[k - 1], w[k], found[k - 1][1], found[k][1])
        if k == 3:  # as if the pair had been rejected
            lower.restart(found[k][0], w[k], found[k][1])
        else:
            lower.add(found[k][0], w[k], found[k][1], history.difference_products(mu))
    assert lower._constants.size == 3
    assert lower.value <= objective.minimum()


@pytest.mark.parametrize("seed", range(20))
def test_maximum_on_the_simplex(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 9))
    rows = random.normal(size=(n, int(random.integers(1, 9))))
    rows[n // 2] = rows[0]  # equal points
    matrix, linear = rows @ rows.T, random.normal(size=n)
    start = random.dirichlet(np.ones(n))
    found = maximise_on_simplex(linear, matrix, start)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)

    def value(x):
        return linear @ x - 0.5 * x @ matrix @ x

    reference = minimize(
        lambda x: -value(x), start, jac=lambda x: matrix @ x - linear, bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert value(found) >= -reference.fun - 1e-8


def test_history_of_lbfgs_has_the_bound():
    objective = LogisticObjective(3)
    minimum = objective.minimum()
    states = list(lbfgs(objective, np.zeros(objective.n_params), max_iter=2000, tol=1e-8))
    assert states[-1].converged
    for state in states:
        assert state.objective - state.info["bound"] <= minimum + 1e-9 * abs(minimum)
