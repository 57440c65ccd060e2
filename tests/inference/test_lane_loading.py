"""Scores into lanes: transposition, bounds and exponentials, in both precisions."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from seqlab.inference.kernels.dense import exp_shifted
from seqlab.inference.kernels.lane_loading import bound_lanes, exp_lanes, turn_over
from seqlab.inference.kernels.vectors import LANES, matrix_times_lanes

precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@njit
def run_turn_over(unary, out, bounds, lengths, t):
    turn_over(unary, out, bounds, lengths, t, unary.shape[1])


@njit
def run_bounds(x, out):
    bound_lanes(x, out, x.shape[0])


@njit
def run_exp(x, shift, out):
    exp_lanes(x, shift, out, x.shape[0])


@njit
def run_product(matrix, x, out):
    matrix_times_lanes(matrix, x, out, x.shape[0])


def exponentials(x):
    x = x.reshape(-1, LANES)
    out = np.empty_like(x)
    run_exp(x, np.zeros((1, LANES), dtype=x.dtype), out)
    return out.ravel()


@precisions
@pytest.mark.parametrize("width", [4, 8, 12, 100])
def test_rows_become_columns(width, dtype):
    unary = np.random.default_rng(0).normal(size=(30, width)).astype(dtype)
    out = np.empty((width, LANES), dtype=dtype)
    run_turn_over(unary, out, np.arange(0, 32, 4), np.array([4, 2, 3, 0, 1, 9, 3, 2]), 2)
    np.testing.assert_array_equal(out, unary[[2, 29, 10, 29, 29, 22, 26, 29]].T)


@precisions
def test_bounds_do_not_see_the_padding(dtype):
    x = np.random.default_rng(0).normal(size=(12, LANES)).astype(dtype)
    found = np.empty((2, LANES), dtype=dtype)
    expected = x[:10].max(axis=0), x[:10].min(axis=0)
    x[10:] = -np.inf
    run_bounds(x, found)
    np.testing.assert_array_equal(found, expected)


def test_exponentials_have_the_bits_of_the_scalar_ones():
    x = np.concatenate([-np.logspace(-20, 2.9, 9998), [0.0, -np.inf]])
    expected = np.empty_like(x)
    exp_shifted(x, 0.0, expected)
    np.testing.assert_array_equal(exponentials(x), expected)


def test_single_exponentials_to_two_units_in_the_last_place():
    x = np.concatenate([-np.linspace(0, 87, 100_000 - 2), [-87.5, -np.inf]]).astype(np.float32)
    found, expected = exponentials(x), np.exp(x.astype(np.float64))
    large = x >= -87.0
    assert np.abs(found[large] / expected[large] - 1.0).max() < 2 * 2.0**-23
    assert not found[~large].any()
    assert np.isnan(exponentials(np.full(LANES, np.nan, dtype=np.float32))).all()


@precisions
@pytest.mark.parametrize("n", [4, 8, 12, 24])
def test_matrix_times_lanes(n, dtype):
    random = np.random.default_rng(n)
    matrix, x = random.random((n, n)).astype(dtype), random.random((n, LANES)).astype(dtype)
    out = np.empty_like(x)
    run_product(matrix, x, out)
    np.testing.assert_allclose(out, matrix @ x, rtol=1e-5 if dtype is np.float32 else 1e-13)
