"""Products with a fixed order of summation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seqlab.utils.linalg import matmul, transposed_matmul


@pytest.mark.parametrize(
    "shape", [(5, 3, 2), (40, 7, 9), (3, 130, 4), (1, 1, 1), (0, 3, 2), (4, 0, 3)]
)
def test_products_equal_those_of_numpy(shape):
    n, k, m = shape
    random = np.random.default_rng(0)
    a, b = random.normal(size=(n, k)), random.normal(size=(k, m))
    assert_allclose(matmul(a, b), a @ b, rtol=1e-12, atol=1e-12)
    assert_allclose(matmul(np.asfortranarray(a), b), a @ b, rtol=1e-12, atol=1e-12)
    right = random.normal(size=(n, m))
    assert_allclose(transposed_matmul(a, right), a.T @ right, rtol=1e-12, atol=1e-12)


def test_products_accept_transposed_arrays():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(5, 7)), random.normal(size=(3, 7))
    np.testing.assert_allclose(matmul(a, b.T), a @ b.T)
    np.testing.assert_allclose(transposed_matmul(a.T, b.T), a @ b.T)
