"""The Cholesky factorisation against numpy."""

import numpy as np
import pytest

from seqlab.utils.cholesky import factorise, solve_cholesky, solve_lower


@pytest.mark.parametrize("n", [0, 1, 2, 17, 60])
def test_factor_and_solutions(n):
    random = np.random.default_rng(n)
    root = random.normal(size=(n, n + 2))
    matrix = root @ root.T
    lower = np.tril(matrix) + np.triu(np.full((n, n), np.nan), 1)  # the upper half is not read
    assert factorise(lower)
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-12)
    rows = random.normal(size=(3, n))
    expected = np.linalg.solve(matrix, rows.T).T
    solved = rows.T.copy()
    solve_lower(lower, solved)
    np.testing.assert_allclose(np.tril(lower) @ solved, rows.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(solve_cholesky(lower, rows[0]), expected[0], rtol=1e-6)


@pytest.mark.parametrize("bad", [[[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[np.nan]], [[np.inf]]])
def test_a_matrix_that_is_not_positive_definite(bad):
    assert not factorise(np.array(bad))
