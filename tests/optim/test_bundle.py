"""Cutting planes: the interior-point solver and the bundle, against generic solvers and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from seqlab.optim import Bundle
from seqlab.optim.interior_point import factor_gram, solve_planes


def make_planes(seed, n=14, n_features=5, n_groups=3, spread=0.0):
    """Random planes of groups; the first plane of each group is zero. Lengths spread over decades."""
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.uniform(0.0, spread, size=n)
    rows = random.normal(size=(n, n_features)) * scale[:, None]
    loss = random.uniform(0.5, 2.0, size=n) * scale**0.5
    rows[:n_groups], loss[:n_groups] = 0.0, 0.0
    return rows, loss, np.arange(n) % n_groups, random.uniform(0.2, 1.0, size=n_groups)


def primal_value(w, rows, loss, group, limits):
    heights = loss - rows @ w
    slack = [heights[group == g].max() for g in range(limits.size)]
    return 0.5 * w @ w + limits @ slack


@pytest.mark.parametrize("seed", range(4))
def test_optimum_equals_a_generic_solver(seed):
    rows, loss, group, limits = make_planes(seed)
    alpha = np.where(np.arange(loss.size) < limits.size, limits[group], 0.0)
    start = alpha.copy()
    solve_planes(factor_gram(rows @ rows.T), loss, group, limits, alpha, 1e-10, 80)
    result = minimize(
        lambda a: 0.5 * np.sum((rows.T @ a) ** 2) - loss @ a,
        start,
        jac=lambda a: rows @ (rows.T @ a) - loss,
        bounds=[(0, None)] * loss.size,
        constraints=[
            {"type": "eq", "fun": lambda a, g=g: a[group == g].sum() - limits[g]} for g in range(3)
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    dual = loss @ alpha - 0.5 * np.sum((rows.T @ alpha) ** 2)
    assert dual == pytest.approx(-result.fun, rel=1e-7)


@pytest.mark.parametrize("spread", [0.0, 3.0, 6.0])
def test_planes_of_very_different_length_are_solved_to_a_certified_gap(spread):
    for seed in range(3):
        rows, loss, group, limits = make_planes(seed, 60, 8, 2, spread)
        alpha = np.where(np.arange(loss.size) < limits.size, limits[group], 0.0)
        solve_planes(factor_gram(rows @ rows.T), loss, group, limits, alpha, 1e-6, 80)
        assert (alpha >= 0.0).all()
        np.testing.assert_allclose(np.bincount(group, alpha), limits, rtol=1e-12)
        w = rows.T @ alpha
        dual = loss @ alpha - 0.5 * w @ w
        primal = primal_value(w, rows, loss, group, limits)
        assert primal - dual + 1e-12 * primal >= 0.0
        assert primal - dual <= 1e-3 * primal


def test_factor_has_the_rank_of_the_gram_matrix():
    random = np.random.default_rng(0)
    rows = random.normal(size=(9, 4)) * 10.0 ** np.arange(9)[:, None]
    rows[3] = 0.0
    factor = factor_gram(rows @ rows.T)
    assert factor.shape == (9, 4)
    scale = np.sqrt((rows**2).sum(axis=1))
    np.testing.assert_allclose(
        factor @ factor.T, rows @ rows.T, atol=1e-9 * np.outer(scale, scale).max()
    )
    np.testing.assert_allclose((factor**2).sum(axis=1), scale**2, rtol=1e-10)


def test_the_dual_of_a_bundle_rises_to_the_optimum_and_known_planes_are_not_stored_twice():
    rows, loss, group, limits = make_planes(1)
    bundle = Bundle(3, 5, limits)
    last = 0.0
    for k in range(3, loss.size):
        bundle.add(int(group[k]), rows[k], float(loss[k]))
        assert bundle.solve(1e-9) == 1
        assert bundle.dual >= last
        last = bundle.dual
        bundle.add(int(group[k]), rows[k].copy(), float(loss[k]))
        assert bundle.solve(1e-9) == 0
    assert bundle.dual == pytest.approx(primal_value(bundle.w, rows, loss, group, limits), rel=1e-6)


def test_samples_without_weight_have_no_part_in_the_solution():
    rows, loss, group, limits = make_planes(2)
    limits[1] = 0.0
    bundle = Bundle(3, 5, limits)
    for k in range(3, loss.size):
        bundle.add(int(group[k]), rows[k], float(loss[k]))
    bundle.solve(1e-9)
    kept = group != 1
    others = Bundle(2, 5, limits[[0, 2]])
    for k in np.flatnonzero(kept)[2:]:
        others.add(int(group[k] // 2), rows[k], float(loss[k]))
    others.solve(1e-9)
    assert bundle.dual == pytest.approx(others.dual, rel=1e-7)
