"""The proximal quasi-Newton solver: its model, and its solutions against other solvers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from objectives import Logistic, last, quadratic
from seqlab.data import NumericalError
from seqlab.optim import Preconditioner, lbfgs, owlqn, proximal
from seqlab.optim._model_kernels import separable_decrease
from seqlab.optim.quadratic_model import LENGTH, QuadraticModel


def random_preconditioner(random, n, n_block):
    """A preconditioner with a block of weights, and the same as a dense matrix."""
    diagonal = random.uniform(0.5, 2.0, n)
    indices = np.sort(random.permutation(n)[:n_block])
    root = random.normal(size=(n_block, n_block))
    block = root @ root.T + 0.1 * np.eye(n_block)
    dense = np.diag(diagonal)
    dense[np.ix_(indices, indices)] = block
    return Preconditioner(diagonal, [(indices, block)]), dense


def filled_model(random, n=12, memory=4, n_pairs=6, *, is_replaced=False, n_block=0, n_still=0):
    """A model that has seen pairs of a quadratic function; the dense matrix of the same BFGS updates.

    The first ``n_still`` weights do not move.
    """
    root = random.normal(size=(n, n))
    A = root @ root.T + np.eye(n)
    preconditioner, dense = random_preconditioner(random, n, n_block)
    first = random_preconditioner(random, n, 5)[0] if is_replaced else preconditioner
    model = QuadraticModel(first, memory)
    points = [random.normal(size=n) * (np.arange(n) >= n_still) for _ in range(n_pairs + 1)]
    pairs = [(b - a, A @ (b - a)) for a, b in pairwise(points)]
    for a, b in pairwise(points):
        assert model.update(a, b, A @ a, A @ b)
    if is_replaced:
        model.replace_preconditioner(preconditioner)
    return model, bfgs_matrix(dense, pairs[-memory:])


def bfgs_matrix(dense, pairs):
    """The matrix of BFGS updates that start from a multiple of ``dense``."""
    B = dense
    if pairs:
        step, change = pairs[-1]
        largest = (change @ np.linalg.solve(dense, change)) / (step @ change)
        smallest = (step @ change) / (step @ dense @ step)
        B = dense * largest ** (1 - LENGTH) * smallest**LENGTH
    for s, y in pairs:
        B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (y @ s)
    return B


def model_value(B, gradient, w, c1, d):
    return gradient @ d + 0.5 * d @ B @ d + c1 @ (np.abs(w + d) - np.abs(w))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by_sweeps", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("n_block", [0, 1, 6, 12])
@pytest.mark.parametrize(("n_pairs", "n_still"), [(0, 0), (2, 0), (6, 0), (6, 6)])
def test_the_step_minimises_the_model_with_its_penalty(
    seed, by_sweeps, is_replaced, n_block, n_pairs, n_still, monkeypatch
):
    monkeypatch.setattr("seqlab.optim.quadratic_model.FEW", 11)  # as if there were many weights
    random = np.random.default_rng(seed)
    model, B = filled_model(
        random, is_replaced=is_replaced, n_block=n_block, n_pairs=n_pairs, n_still=n_still
    )
    w = random.normal(size=12) * (random.random(12) < 0.6)
    gradient, c1 = random.normal(size=12), np.full(12, 0.4)
    if by_sweeps:
        monkeypatch.setattr("seqlab.optim.quadratic_model.MAX_STEPS", 0)
        monkeypatch.setattr("seqlab.optim.quadratic_model.MAX_SWEEPS", 10_000)
        monkeypatch.setattr("seqlab.optim.quadratic_model.SWEEP_TOL", 1e-15)
    direction = np.empty(12)
    decrease = model.minimise(w, gradient, c1, direction)
    assert decrease == pytest.approx(-model_value(B, gradient, w, c1, direction), rel=1e-6)
    active = (w != 0) | (np.abs(gradient) > c1)
    assert (direction[~active] == 0).all()
    # Optimality conditions of the active weights.
    slope, after = gradient + B @ direction, w + direction
    moved, at_zero = active & (after != 0), active & (after == 0)
    np.testing.assert_allclose(slope[moved], -c1[moved] * np.sign(after[moved]), atol=1e-6)
    assert (np.abs(slope[at_zero]) <= c1[at_zero] + 1e-6).all()


@pytest.mark.parametrize("by_sweeps", [False, True])
@pytest.mark.parametrize("sizes", [(12,), (5, 7), (3, 1, 4), (2, 6)])
def test_several_blocks_are_the_same_as_one_with_zeros_between_them(by_sweeps, sizes, monkeypatch):
    monkeypatch.setattr("seqlab.optim.quadratic_model.FEW", 100)
    monkeypatch.setattr(QuadraticModel, "_solve_whole", lambda *arguments, **options: None)
    if by_sweeps:
        monkeypatch.setattr("seqlab.optim.quadratic_model.MAX_STEPS", 0)
        monkeypatch.setattr("seqlab.optim.quadratic_model.MAX_SWEEPS", 10_000)
        monkeypatch.setattr("seqlab.optim.quadratic_model.SWEEP_TOL", 1e-15)
    random = np.random.default_rng(len(sizes))
    diagonal, order, first = random.uniform(0.5, 2.0, 12), random.permutation(12), 0
    blocks, dense = [], np.diag(diagonal)
    for size in sizes:
        root, chosen = random.normal(size=(size, size)), np.sort(order[first : first + size])
        blocks.append((chosen, root @ root.T + 0.1 * np.eye(size)))
        dense[np.ix_(*blocks[-1][:1] * 2)] = blocks[-1][1]
        first += size
    every = np.sort(order[:first])
    single = [(every, dense[np.ix_(every, every)])]
    steps, w = random.normal(size=(6, 12)), random.normal(size=12) * (random.random(12) < 0.6)
    gradient, c1, results = random.normal(size=12), np.full(12, 0.4), []
    for given in (blocks, single):
        preconditioner = Preconditioner(diagonal, given)
        right = random.normal(size=first)
        solved = np.zeros(12)
        solved[preconditioner.indices] = preconditioner.solve_block(right)
        np.testing.assert_allclose((dense @ solved)[preconditioner.indices], right, atol=1e-8)
        model = QuadraticModel(preconditioner, 4)
        for step in steps[:5]:
            assert model.update(w, w + step, gradient, gradient + 2.0 * dense @ step + step)
        model.replace_preconditioner(Preconditioner(diagonal, given))
        assert model.update(w, w + steps[5], gradient, gradient + dense @ steps[5])
        direction = np.empty(12)
        results.append((model.minimise(w, gradient, c1, direction), direction))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-8)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-6)


def test_a_projection_reduces_the_penalty_where_nothing_else_changes():
    """The objective depends on differences of two weights alone, of which the model knows nothing."""
    random = np.random.default_rng(5)
    root = random.normal(size=(15, 15))
    half = root @ root.T + np.eye(15)
    problem = quadratic(1)
    problem.A = np.kron(half, [[1.0, -1.0], [-1.0, 1.0]])
    problem.b = np.repeat(5.0 * random.normal(size=15), 2) * np.tile([1.0, -1.0], 15)
    problem.strong_convexity = 0.0

    def project(w, gradient, c1):
        before = c1 @ np.abs(w)
        pairs = w.reshape(-1, 2)
        lower, upper = pairs.min(axis=1), pairs.max(axis=1)
        pairs -= np.clip(0.0, lower, upper)[:, None]
        return before - c1 @ np.abs(w)

    start, options = np.full(30, 3.0), {"c1": np.full(30, 0.5), "max_iter": 500, "tol": 1e-10}
    plain = list(proximal(problem, start, **options))
    projected = list(proximal(problem, start, project=project, **options))
    assert (start == 3.0).all()
    assert projected[0].objective < plain[0].objective
    for state in projected:
        value = problem.loss_gradient(state.point)[0] + 0.5 * np.abs(state.point).sum()
        assert state.objective == pytest.approx(value, rel=1e-9)
        assert state.point.reshape(-1, 2).prod(axis=1).max() <= 0.0
    assert projected[-1].converged
    assert projected[-1].objective == pytest.approx(plain[-1].objective, rel=1e-7)


def test_rejected_pairs_leave_the_others_unchanged(monkeypatch):
    monkeypatch.setattr("seqlab.optim.quadratic_model.FEW", 11)
    random = np.random.default_rng(0)
    preconditioner, dense = random_preconditioner(random, 12, 0)
    root = random.normal(size=(12, 12))
    A, model, zero = root @ root.T + np.eye(12), QuadraticModel(preconditioner, 4), np.zeros(12)
    first, last_half = random.normal(size=12), np.arange(12) >= 6
    assert model.update(zero, first, zero, A @ first)
    for _ in range(6):  # more than the memory
        step = random.normal(size=12) * last_half
        assert not model.update(zero, step, zero, -A @ step)
    second = random.normal(size=12) * last_half
    assert model.update(zero, second, zero, A @ second)
    B = bfgs_matrix(dense, [(first, A @ first), (second, A @ second)])
    w, gradient, c1, direction = zero, random.normal(size=12), np.full(12, 0.1), np.empty(12)
    decrease = model.minimise(w, gradient, c1, direction)
    assert decrease == pytest.approx(-model_value(B, gradient, w, c1, direction), rel=1e-6)


@pytest.mark.parametrize("c1", [0.0, 0.5, 5.0, 30.0])
@pytest.mark.parametrize("preconditioner", [None, Preconditioner(np.linspace(5, 50, 10))])
def test_it_agrees_with_owlqn(c1, preconditioner):
    problem = Logistic(np.random.default_rng(2), c2=0.1)
    options = {"c1": np.full(10, c1), "max_iter": 1000, "tol": 1e-12}
    a = last(proximal(problem, np.zeros(10), preconditioner=preconditioner, **options))
    b = last(owlqn(problem, np.zeros(10), **options))
    assert a.converged
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    np.testing.assert_allclose(a.point, b.point, atol=1e-4)
    assert ((a.point == 0) == (np.abs(b.point) < 1e-6)).all()


def test_weights_without_penalty():
    problem, c1 = Logistic(np.random.default_rng(3), c2=0.1), np.zeros(10)
    c1[5:] = 8.0
    a = last(proximal(problem, np.zeros(10), c1=c1, max_iter=500, tol=1e-12))
    b = last(owlqn(problem, np.zeros(10), c1=c1, max_iter=500, tol=1e-12))
    assert (a.point[:5] != 0).all()
    np.testing.assert_allclose(a.point, b.point, atol=1e-4)


def test_any_number_of_threads_gives_the_same_bits():
    problem = quadratic(3, n=30)
    options = {"c1": np.full(30, 0.1), "max_iter": 30, "tol": 1e-12}
    points = [last(proximal(problem, np.zeros(30), n_jobs=n, **options)).point for n in (1, 2)]
    np.testing.assert_array_equal(*points)


def test_a_block_without_curvature_does_not_end_a_fit():
    problem = Logistic(np.random.default_rng(4), c2=0.1)
    options = {"c1": np.full(10, 0.5), "max_iter": 1000, "tol": 1e-10}
    wrong = Preconditioner(np.ones(10), [(np.arange(9), 1e-40 * np.eye(9))])
    with np.errstate(over="ignore", invalid="ignore"):
        a = last(proximal(problem, np.zeros(10), preconditioner=wrong, **options))
    b = last(owlqn(problem, np.zeros(10), **options))
    assert a.converged
    assert a.objective == pytest.approx(b.objective, rel=1e-9)


def test_a_starting_point_that_is_not_finite_is_an_error():
    problem = quadratic(0)
    with pytest.raises(NumericalError):
        next(proximal(problem, np.full(30, np.nan), c1=np.ones(30), max_iter=5, tol=1e-3))


class FlatCurvature:
    """Claims that there is nearly no curvature in any direction, but only if it is asked to check."""

    is_even = False
    is_reliable = True
    slow = None

    def renew(self, n_done, w, gradient):
        return None

    def check(self, w):
        return Preconditioner(np.full(w.size, 1e-6))

    def rough_decrement(self, gradient):
        return 0.0

    def slow_decrement(self, gradient):
        return None if self.slow is None else 0.5 * gradient @ (gradient / self.slow)


@pytest.mark.parametrize("solver", [lbfgs, owlqn, proximal])
def test_a_point_is_rejected_if_the_diagonal_model_predicts_a_decrease(solver):
    """The diagonal given here claims nearly no curvature, so that the solver continues."""
    problem = quadratic(1)
    problem.strong_convexity = 0.0  # no certain bound
    options = {"max_iter": 150, "tol": 1e-3}
    if solver is not lbfgs:
        options["c1"] = np.zeros(30)
    curvature = FlatCurvature()
    unchecked = list(solver(problem, np.zeros(30), **options))
    checked = list(solver(problem, np.zeros(30), curvature=curvature, **options))
    assert unchecked[-1].converged
    assert len(checked) > len(unchecked)
    assert not any(state.converged for state in checked[:-1])
    assert checked[-1].objective < unchecked[-1].objective


@pytest.mark.parametrize("solver", [lbfgs, proximal])
def test_a_point_does_not_count_as_converged_if_slow_directions_predict_a_decrease(solver):
    problem = quadratic(1)
    problem.strong_convexity = 0.0
    options = {"max_iter": 150, "tol": 1e-3}
    if solver is proximal:
        options["c1"] = np.zeros(30)
    slow = FlatCurvature()
    slow.slow, slow.check = np.full(30, 1e-3), lambda w: None
    without = list(solver(problem, np.zeros(30), **options))
    cautious = list(solver(problem, np.zeros(30), curvature=slow, **options))
    assert without[-1].converged
    assert cautious[-1].converged
    assert len(cautious) > len(without)
    gradient = problem.loss_gradient(cautious[-1].point)[1]
    assert 0.5 * gradient @ gradient / 1e-3 <= 1e-3 * abs(cautious[-1].objective)


def test_a_point_does_not_count_as_converged_if_a_rough_model_predicts_a_decrease():
    problem = quadratic(1)
    problem.strong_convexity = 0.0
    options = {"max_iter": 150, "tol": 1e-3}
    rough = FlatCurvature()
    rough.check = lambda w: None
    rough.rough_decrement = lambda gradient: 0.5 * gradient @ gradient / 1e-3
    without = list(lbfgs(problem, np.zeros(30), **options))
    cautious = list(lbfgs(problem, np.zeros(30), curvature=rough, **options))
    assert cautious[-1].converged
    assert len(cautious) > len(without)
    gradient = problem.loss_gradient(cautious[-1].point)[1]
    assert rough.rough_decrement(gradient) <= 1e-3 * abs(cautious[-1].objective)


def test_separable_decrease_equals_a_numerical_minimum():
    random = np.random.default_rng(3)
    w, gradient = random.normal(size=12), random.normal(size=12)
    w[:4] = 0.0
    c1, curvature = random.uniform(0, 1, 12), random.uniform(0.5, 2, 12)
    steps = np.linspace(-6, 6, 200_001)[:, None]
    model = gradient * steps + 0.5 * curvature * steps**2 + c1 * (np.abs(w + steps) - np.abs(w))
    found = separable_decrease(w, gradient, c1, curvature)
    assert found == pytest.approx(-model.min(axis=0).sum(), rel=1e-4)  # accuracy of the grid
