"""Quadratic functions with an L1 penalty: the search for signs against the conditions of an optimum."""

import numpy as np
import pytest

from seqlab.optim._sign_search import search_signs
from seqlab.optim.block_problem import BlockProblem
from seqlab.optim.preconditioner import Preconditioner, factorise_block
from seqlab.optim.quadratic_model import QuadraticModel


def problem(n, log_condition, seed):
    random = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(random.normal(size=(n, n)))
    matrix = (vectors * 10 ** random.uniform(-log_condition, 0, n)) @ vectors.T
    w = random.normal(size=n) * (random.random(n) < 0.6)
    penalties = np.where(random.random(n) < 0.1, 0.0, 0.1)
    return (matrix + matrix.T) / 2, 0.3 * random.normal(size=n), w, penalties


def violation(matrix, slopes, w, c1, scale, direction):
    """The largest entry of the smallest subgradient."""
    gradient, after = slopes + scale * matrix @ direction, w + direction
    at_zero = np.maximum(np.abs(gradient) - c1, 0.0)
    return np.where(after == 0.0, at_zero, np.abs(gradient + c1 * np.sign(after)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "log_condition"), [(1, 0), (5, 1), (40, 3), (80, 7)])
def test_it_ends_at_the_minimum(n, log_condition, seed):
    matrix, slopes, w, c1 = problem(n, log_condition, seed)
    is_active = np.random.default_rng(seed).random(n) < 0.9
    direction = np.zeros(n)
    assert search_signs(matrix, slopes, w, c1, 2.0, is_active, 1000, 0.0, direction)
    found = violation(matrix, slopes, w, c1, 2.0, direction)
    assert found[is_active].max(initial=0.0) < 1e-8
    assert (direction[~is_active] == 0.0).all()


def test_every_step_decreases_the_function():
    matrix, slopes, w, c1 = problem(60, 5, 0)
    values = []
    for n_solves in range(1, 40):
        direction = np.zeros(60)
        search_signs(matrix, slopes, w, c1, 1.0, np.ones(60, bool), n_solves, 0.0, direction)
        quadratic = slopes @ direction + 0.5 * direction @ matrix @ direction
        values.append(quadratic + c1 @ np.abs(w + direction))
    assert values[-1] < values[0] - 1.0
    assert (np.diff(values) <= 1e-12).all()


def test_a_matrix_that_is_not_definite_is_noticed():
    matrix = np.diag([1.0, -1.0])
    found = search_signs(
        matrix, np.ones(2), np.ones(2), np.ones(2), 1.0, np.ones(2, bool), 9, 0.0, np.zeros(2)
    )
    assert not found


@pytest.mark.parametrize("n_pairs", [0, 1, 5])
def test_a_model_whose_block_holds_all_weights_has_the_same_minimum(monkeypatch, n_pairs):
    monkeypatch.setattr("seqlab.optim.quadratic_model.SEARCH_TOL", 0.0)
    matrix, slopes, w, c1 = problem(12, 2, 3)
    random = np.random.default_rng(1)
    preconditioner = Preconditioner(np.diag(matrix).copy(), [(np.arange(12), matrix * 1.0)])
    model = QuadraticModel(preconditioner, 4)
    for _ in range(n_pairs):
        step = random.normal(size=12)
        model.update(w, w + step, slopes, slopes + 1.7 * matrix @ step + 0.1 * step)
    whole, parts = np.empty(12), np.empty(12)
    decrease = model.minimise(w, slopes, c1, whole)
    monkeypatch.setattr(QuadraticModel, "_solve_whole", lambda *arguments, **options: None)
    assert model.minimise(w, slopes, c1, parts) == pytest.approx(decrease, rel=1e-8)
    np.testing.assert_allclose(whole, parts, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_block", [30, 40])
def test_an_exact_decrease_of_an_ill_conditioned_block_is_that_of_the_minimum(n_block):
    matrix, slopes, w, c1 = problem(40, 6, 2)
    matrix[n_block:] *= np.eye(40)[n_block:]  # the other weights are not in the block
    matrix[:, n_block:] *= np.eye(40)[:, n_block:]
    block = matrix[:n_block, :n_block].copy()
    preconditioner = Preconditioner(np.diag(matrix).copy(), [(np.arange(n_block), block)])
    model, direction = QuadraticModel(preconditioner, 4), np.empty(40)
    rough = model.minimise(w, slopes, c1, direction)
    exact = model.minimise(w, slopes, c1, direction, exact=True)
    expected, is_active = np.zeros(40), (w != 0.0) | (np.abs(slopes) > c1)
    assert search_signs(matrix, slopes, w, c1, 1.0, is_active, 1000, 0.0, expected)
    least = slopes @ expected + 0.5 * expected @ matrix @ expected
    least += c1 @ (np.abs(w + expected) - np.abs(w))
    assert exact == pytest.approx(-least, rel=0.02)
    assert rough < 2 * exact


@pytest.mark.parametrize("max_corrections", [0, 1, 8])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "log_condition"), [(1, 0), (5, 1), (40, 2)])
def test_a_block_finds_its_minimum_again_and_again(
    n, log_condition, seed, max_corrections, monkeypatch
):
    monkeypatch.setattr("seqlab.optim.block_problem.MAX_CORRECTIONS", max_corrections)
    matrix, slopes, w, c1 = problem(n, log_condition, seed)
    part = BlockProblem(factorise_block(np.arange(n), matrix.copy(), keep=True))
    random, direction = np.random.default_rng(seed), np.zeros(n)
    for scale in (1.0, 1.0, 0.4):
        is_active = (w != 0.0) | (np.abs(slopes) > c1)
        direction[~is_active] = 0.0
        signs = part.minimise(slopes, w, c1, scale, is_active, direction, max_solves=1000)
        np.testing.assert_array_equal(signs, np.sign(w + direction) * is_active)
        assert not direction[~is_active].any()
        found = violation(matrix, slopes, w, c1, scale, direction)
        assert found[is_active].max(initial=0.0) < 1e-6
        slopes = slopes + 0.1 * random.normal(size=n)
