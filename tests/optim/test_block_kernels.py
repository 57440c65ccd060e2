"""Kernels of one dense block against NumPy."""

import numpy as np
import pytest

from seqlab.optim._block_kernels import correct_signs, factorise_part, gram_of_part


def problem(n, seed=0):
    """A positive definite block and some rows."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(n, n + 3))
    return root @ root.T, random.normal(size=(n, 5))


def empty_factor(n):
    return np.empty(n * n), np.full(n + 1, -1, dtype=np.int64)


@pytest.mark.parametrize(
    "signs", [[0] * 7, [1, 0, -1, 0, 0, 0, 1], [1] * 7, [0, 0, 0, 1, 1, -1, 1]]
)
def test_the_factor_and_the_gram_matrix_of_a_part(signs):
    block, rows = problem(7)
    factor, members = empty_factor(7)
    lower = factorise_part(block, np.array(signs, dtype=np.int8), factor, members)
    chosen = np.flatnonzero(signs)
    part = block[np.ix_(chosen, chosen)]
    np.testing.assert_array_equal(members[: chosen.size], chosen)
    np.testing.assert_allclose(np.tril(lower) @ np.tril(lower).T, part, rtol=1e-12, atol=1e-12)
    expected = rows[chosen].T @ np.linalg.solve(part, rows[chosen])
    np.testing.assert_allclose(gram_of_part(lower, members, rows), expected, rtol=1e-9, atol=1e-12)


def test_the_factor_is_computed_again_only_if_the_part_changes():
    block, _ = problem(4)
    kept = empty_factor(4)
    signs = np.array([1, 0, 1, 1], dtype=np.int8)
    first = factorise_part(block, signs, *kept).copy()
    np.testing.assert_array_equal(factorise_part(np.full((4, 4), np.nan), -signs, *kept), first)
    for other in ([1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 1]):
        part = np.flatnonzero(other)
        lower = np.tril(factorise_part(block, np.array(other, dtype=np.int8), *kept))
        np.testing.assert_allclose(lower @ lower.T, block[np.ix_(part, part)], rtol=1e-12)


def test_a_part_that_is_not_positive_definite_has_no_factor():
    block, _ = problem(3)
    block[1, 1] = -1.0
    kept, direction = empty_factor(3), np.zeros(3)
    signs = np.array([1, 1, 1], dtype=np.int8)
    for _ in range(2):  # the second time it is the kept one
        assert factorise_part(block, signs, *kept).size == 0
    assert factorise_part(block, np.array([1, 0, 1], dtype=np.int8), *kept).shape == (2, 2)
    arrays = np.ones(3), np.ones(3), np.zeros(3), 1.0, np.ones(3, dtype=bool)
    assert not correct_signs(block, *arrays, 8, signs, *kept, direction)
    assert not direction.any()
