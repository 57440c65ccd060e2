"""The small loops of the chain kernels against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seqlab.inference.kernels.dense import (
    add_outer_products,
    count_invalid,
    exp_matrix,
    exp_shifted,
    finite_bounds,
    padded_width,
    vector_matrix,
)


def test_exponential_is_exact_to_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([-700 * rng.random(20_000), -rng.random(20_000), [0.0, -1e-300, -699.9]])
    out = np.empty_like(x)
    exp_shifted(x, 0.0, out)
    truth = np.exp(x.astype(np.longdouble))
    assert float(np.max(np.abs(out / truth - 1))) < 2.3e-16


def test_exponential_at_the_edges():
    x = np.array([0.0, -np.inf, np.nan, -1e4])
    out = np.empty_like(x)
    exp_shifted(x, 0.0, out)
    assert np.array_equal(out, [1.0, 0.0, np.nan, 0.0], equal_nan=True)


@pytest.mark.parametrize("n_labels", [1, 3, 4, 5, 22])
def test_padded_products(n_labels):
    rng = np.random.default_rng(n_labels)
    width = padded_width(n_labels)
    assert width % 4 == 0
    assert n_labels <= width < n_labels + 4
    vector, matrix = np.zeros(width), np.zeros((width, width))
    vector[:n_labels] = rng.random(n_labels)
    matrix[:n_labels, :n_labels] = rng.random((n_labels, n_labels))
    out = np.full(width, 7.0)
    vector_matrix(vector, matrix, out)
    assert_allclose(out, vector @ matrix, rtol=1e-14)
    for n_rows in (1, 2, 5, 6, 11):
        left, right = rng.random((n_rows, width)), rng.random((n_rows, width))
        total = np.ones((width, width))
        add_outer_products(left, right, n_rows, 2.0, total)
        assert_allclose(total, 1.0 + 2.0 * left[:-1].T @ right[1:], rtol=1e-13)


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_finite_bounds(n):
    row = np.random.default_rng(n).normal(size=n) - 5
    assert finite_bounds(row) == (row.max(), row.min())
    row[n // 2] = -np.inf
    finite = row[np.isfinite(row)]
    assert finite_bounds(row) == ((finite.max(), finite.min()) if finite.size else (0.0, 0.0))


def test_exp_matrix_returns_shift_and_range():
    matrix = np.array([[1.0, -np.inf], [3.0, -2.0]])
    out, transposed = np.zeros((4, 4)), np.zeros((4, 4))
    assert exp_matrix(matrix, out, transposed) == (3.0, 5.0)
    assert_allclose(out[:2, :2], np.exp(matrix - 3.0), rtol=1e-15)
    assert np.array_equal(transposed, out.T)


def test_count_invalid():
    assert count_invalid(np.array([1.0, -np.inf, np.nan, np.inf])) == 2
