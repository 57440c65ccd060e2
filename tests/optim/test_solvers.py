"""L-BFGS and OWL-QN against known optima, against each other and against scipy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from objectives import Logistic, Quadratic, last, quadratic
from seqlab.data import NumericalError
from seqlab.optim import BlockPreconditioner, Preconditioner, lbfgs, owlqn
from seqlab.optim.history_matrix import InverseHessian
from seqlab.optim.owlqn_solver import pseudo_gradient
from seqlab.utils.linalg import axpy, dot


class Rosenbrock:
    n_params, strong_convexity = 2, 0.0

    def loss_gradient(self, w):
        a, b = 1 - w[0], w[1] - w[0] ** 2
        return float(a * a + 100 * b * b), np.array([-2 * a - 400 * w[0] * b, 200 * b])


@pytest.mark.parametrize("seed", range(3))
def test_lbfgs_finds_the_optimum_of_a_quadratic(seed):
    problem = quadratic(seed)
    state = last(lbfgs(problem, np.zeros(30), max_iter=500, tol=1e-12))
    assert state.converged
    np.testing.assert_allclose(state.point, np.linalg.solve(problem.A, problem.b), atol=1e-5)


def test_the_certified_bound_holds_and_the_objective_never_rises():
    problem = quadratic(5)
    optimum = problem.loss_gradient(np.linalg.solve(problem.A, problem.b))[0]
    states = list(lbfgs(problem, np.ones(30), max_iter=500, tol=1e-10))
    values = [s.objective for s in states]
    assert all(a >= b - 1e-12 for a, b in pairwise(values))
    assert all(s.objective - optimum <= s.info["bound"] * (1 + 1e-9) + 1e-12 for s in states)


def test_rosenbrock_without_strong_convexity():
    state = last(lbfgs(Rosenbrock(), np.array([-1.2, 1.0]), max_iter=500, tol=1e-8))
    np.testing.assert_allclose(state.point, [1.0, 1.0], atol=1e-5)


@pytest.mark.parametrize("c2", [0.0, 0.5])
def test_lbfgs_agrees_with_scipy(c2):
    problem = Logistic(np.random.default_rng(1), c2=c2)
    ours = last(lbfgs(problem, np.zeros(10), max_iter=500, tol=1e-10))
    theirs = minimize(problem.loss_gradient, np.zeros(10), jac=True, method="BFGS", tol=1e-10)
    np.testing.assert_allclose(ours.point, theirs.x, atol=1e-4)


@pytest.mark.parametrize("c1", [0.5, 5.0, 30.0])
def test_owlqn_satisfies_the_optimality_conditions(c1):
    problem = Logistic(np.random.default_rng(2), c2=0.1)
    penalty = np.full(10, c1)
    state = last(owlqn(problem, np.zeros(10), c1=penalty, max_iter=1000, tol=1e-12))
    gradient = problem.loss_gradient(state.point)[1]
    at_zero = state.point == 0.0
    assert (np.abs(gradient[at_zero]) <= c1 + 1e-4).all()
    np.testing.assert_allclose(gradient[~at_zero], -c1 * np.sign(state.point[~at_zero]), atol=1e-3)
    assert at_zero.any() == (c1 > 10)


def test_owlqn_agrees_with_proximal_gradient():
    problem = Logistic(np.random.default_rng(3), c2=0.1)
    c1 = 4.0
    w = np.zeros(10)
    step = 1.0 / (np.linalg.norm(problem.X, 2) ** 2 / 4 + 0.2)
    for _ in range(5000):
        w = w - step * problem.loss_gradient(w)[1]
        w = np.sign(w) * np.maximum(np.abs(w) - step * c1, 0.0)
    state = last(owlqn(problem, np.zeros(10), c1=np.full(10, c1), max_iter=1000, tol=1e-12))
    np.testing.assert_allclose(state.point, w, atol=1e-4)
    assert ((state.point == 0) == (w == 0)).all()


def test_owlqn_without_penalty_equals_lbfgs():
    problem = quadratic(7)
    a = last(lbfgs(problem, np.zeros(30), max_iter=500, tol=1e-12))
    b = last(owlqn(problem, np.zeros(30), c1=np.zeros(30), max_iter=500, tol=1e-12))
    np.testing.assert_allclose(a.point, b.point, atol=1e-5)


def test_pseudo_gradient_is_the_smallest_subgradient():
    w = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    g = np.array([0.5, 0.5, 0.5, 3.0, -3.0])
    expected = [2.5, -1.5, 0.0, 1.0, -1.0]
    np.testing.assert_allclose(pseudo_gradient(w, g, np.full(5, 2.0)), expected)


def test_starting_at_the_optimum_takes_no_iteration():
    problem = Quadratic(np.eye(3), np.zeros(3))
    states = list(lbfgs(problem, np.zeros(3), max_iter=10, tol=1e-6))
    assert len(states) == 1
    assert states[0].converged


def test_an_objective_that_overflows_shortens_the_step():
    class Cliff(Quadratic):
        def loss_gradient(self, w):
            if np.abs(w).max() > 3:
                return float("nan"), np.full(w.size, np.nan)
            return super().loss_gradient(w)

    problem = Cliff(np.diag([1e-3, 1.0]), np.array([2e-3, 2.0]))
    state = last(lbfgs(problem, np.zeros(2), max_iter=200, tol=1e-10))
    np.testing.assert_allclose(state.point, [2.0, 2.0], atol=1e-3)


def test_a_non_finite_starting_point_raises():
    class Broken(Quadratic):
        def loss_gradient(self, w):
            return float("nan"), w

    with pytest.raises(NumericalError, match="starting point"):
        next(lbfgs(Broken(np.eye(2), np.ones(2)), np.zeros(2), max_iter=5, tol=1e-3))


def test_max_iter_limits_the_iterations():
    states = list(lbfgs(quadratic(0), np.zeros(30), max_iter=3, tol=1e-14))
    assert len(states) == 4
    assert not states[-1].converged


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 4095, 4096, 4097, 20_000])
def test_dot_and_axpy(n):
    random = np.random.default_rng(n)
    a, b = random.normal(size=n), random.normal(size=n)
    assert dot(a, b) == pytest.approx(float(np.sum(a * b)), rel=1e-10, abs=1e-10)
    expected = b + 0.5 * a
    axpy(0.5, a, b)
    np.testing.assert_array_equal(b, expected)


def random_preconditioner(random, n, n_block):
    """A preconditioner with a block of weights, and the same as a dense matrix."""
    diagonal, indices = random.uniform(1, 3, n), np.sort(random.permutation(n)[:n_block])
    root = random.normal(size=(n_block, n_block))
    dense = np.diag(diagonal)
    dense[np.ix_(indices, indices)] = root @ root.T + np.eye(n_block)
    return Preconditioner(diagonal, [(indices, dense[np.ix_(indices, indices)])]), dense


@pytest.mark.parametrize("n_block", [0, 1, 5, 8])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_direction_is_that_of_dense_bfgs_updates(n_block, is_replaced):
    random = np.random.default_rng(n_block)
    matrix = random.normal(size=(8, 8))
    matrix = matrix @ matrix.T + np.eye(8)
    preconditioner, dense = random_preconditioner(random, 8, n_block)
    first = random_preconditioner(random, 8, 3)[0] if is_replaced else preconditioner
    inverse_hessian = InverseHessian(8, 4, first)
    points = random.normal(size=(7, 8))
    for before, after in pairwise(points):  # more pairs than are kept
        inverse_hessian.update(before, after, matrix @ before, matrix @ after)
    if is_replaced:
        inverse_hessian.replace_preconditioner(preconditioner)
    steps = np.diff(points, axis=0)[-4:]
    change = matrix @ steps[-1]
    H = np.linalg.inv(dense) * (steps[-1] @ change) / (change @ np.linalg.solve(dense, change))
    for step in steps:
        change = matrix @ step
        left = np.eye(8) - np.outer(step, change) / (step @ change)
        H = left @ H @ left.T + np.outer(step, step) / (step @ change)
    gradient, found = random.normal(size=8), np.empty(8)
    assert inverse_hessian.descend(gradient, found) == pytest.approx(0.5 * gradient @ H @ gradient)
    np.testing.assert_allclose(found, -H @ gradient, rtol=1e-9)


def test_a_block_that_is_not_positive_definite_is_ignored():
    indices = np.array([1, 2])
    for block in ([[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]):
        assert not Preconditioner(np.ones(4), [(indices, np.array(block))]).has_block
    found = Preconditioner(np.ones(4), [(indices, np.array([[1e30, 0.5], [0.5, 1e-20]]))])
    assert found.has_block  # equilibrated: only correlations matter


def test_a_preconditioner_with_several_blocks_inverts_a_dense_matrix():
    random = np.random.default_rng(0)
    diagonal = random.uniform(1.0, 2.0, 9)
    dense, blocks = np.diag(diagonal), []
    for indices in (np.array([4, 0, 7]), np.array([2, 8])):
        root = random.normal(size=(indices.size, indices.size + 2))
        dense[np.ix_(indices, indices)] = root @ root.T
        blocks.append((indices, root @ root.T))
    indefinite = np.array([1, 3]), np.array([[1.0, 2.0], [2.0, 1.0]])  # ignored
    gradient = random.normal(size=9)

    def solve(*directions):
        copies = [(indices, block.copy()) for indices, block in [blocks[0], indefinite, blocks[1]]]
        found = BlockPreconditioner(diagonal, copies, *directions)
        assert found.has_block
        solution = gradient * found.diagonal_inverse()
        solution[found.indices] = found.solve_block(gradient[found.indices])
        return solution

    np.testing.assert_allclose(dense @ solve(*no_directions(9)), gradient, rtol=1e-12)
    directions = random.normal(size=(4, 9))
    directions[3] = directions[0] + directions[1]  # linearly dependent
    hessian = directions @ dense @ directions.T
    along = np.linalg.lstsq(hessian, directions @ gradient, rcond=None)[0]
    expected = np.linalg.solve(dense, gradient) + directions.T @ along
    found = solve(sp.csr_matrix(directions), hessian)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def no_directions(n_params):
    return sp.csr_matrix((0, n_params)), np.empty((0, 0))


def test_lbfgs_stays_in_the_subspace_of_a_projection():
    problem = quadratic(1)
    problem.A[:2], problem.A[:, :2], problem.b[:2] = 0.0, 0.0, 0.0
    problem.A[[0, 1], [0, 1]] = 1e-3  # where the optimum is zero, and convergence would be slow

    def project(vector):
        vector[:2] = 0.0

    start = np.ones(30)
    project(start)
    state = last(lbfgs(problem, start, max_iter=500, tol=1e-12, project=project))
    assert state.converged
    assert not state.point[:2].any()
    np.testing.assert_allclose(state.point, np.linalg.solve(problem.A, problem.b), atol=1e-5)


def test_lbfgs_with_the_hessian_in_blocks_needs_few_iterations():
    """A quadratic function with the exact Hessian, or its diagonal, as a preconditioner."""
    random = np.random.default_rng(1)
    n, size = 60, 20
    hessian = np.zeros((n, n))
    blocks = []
    for first in range(0, n, size):
        x = random.normal(size=(size, size)) * 10.0 ** random.uniform(-2, 2, size)
        indices = np.arange(first, first + size)
        hessian[np.ix_(indices, indices)] = x.T @ x + 0.01 * np.eye(size)
        blocks.append((indices, hessian[np.ix_(indices, indices)].copy()))
    objective = Quadratic(hessian, hessian @ random.normal(size=n))
    optimum = -0.5 * float(objective.b @ np.linalg.solve(hessian, objective.b))

    def n_iterations(preconditioner):
        options = {"max_iter": 2000, "tol": 1e-6, "preconditioner": preconditioner}
        states = list(lbfgs(objective, np.zeros(n), **options))
        assert states[-1].objective <= optimum * (1.0 - 1e-5)
        return len(states) - 1

    diagonal = np.diag(hessian).copy()
    assert n_iterations(BlockPreconditioner(diagonal, blocks, *no_directions(n))) <= 6
    assert n_iterations(Preconditioner(diagonal)) > 30
