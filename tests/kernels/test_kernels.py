"""Kernels, merged rows, and the kernel matrix with bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from seqlab.data import InputError
from seqlab.kernels import GramMatrix, default_gamma, make_kernel, merge_equal_rows
from seqlab.kernels.binary_rows import pack_binary


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    return random.normal(size=(7, 5)) * (random.random((7, 5)) < 0.7)


def test_values_equal_those_of_scikit_learn(rows):
    A, B = rows[:3], rows
    cases = {
        "linear": A @ B.T,
        "poly": polynomial_kernel(A, B, degree=3, gamma=0.5, coef0=2.0),
        "rbf": rbf_kernel(A, B, gamma=0.5),
    }
    for name, expected in cases.items():
        kernel = make_kernel(name, degree=3, gamma=0.5, coef0=2.0)
        np.testing.assert_allclose(kernel.bind(B).rows(A), expected, rtol=1e-12, atol=1e-14)
        sparse = kernel.bind(sp.csr_matrix(B)).rows(sp.csr_matrix(A))
        np.testing.assert_allclose(sparse, expected, rtol=1e-12, atol=1e-14)


def test_normalised_polynomial_kernel_has_a_diagonal_of_one(rows):
    found = make_kernel("poly", degree=2, normalize=True).bind(rows).rows(rows)
    np.testing.assert_allclose(np.diagonal(found), 1.0)
    raw = polynomial_kernel(rows, rows, degree=2, gamma=1.0, coef0=1.0)
    scale = np.sqrt(np.diagonal(raw))
    np.testing.assert_allclose(found, raw / np.outer(scale, scale))


def test_normalised_kernel_of_a_zero_row_without_constant_is_zero():
    kernel = make_kernel("poly", degree=2, coef0=0.0, normalize=True)
    found = kernel.bind(np.array([[0.0, 0], [3, 4]])).rows(np.array([[0.0, 0], [6, 8]]))
    np.testing.assert_allclose(found, [[0, 0], [0, 1]])


@pytest.mark.parametrize("name", ["linear", "poly", "rbf"])
def test_entries_do_not_depend_on_the_block_and_are_symmetric(name):
    rows = np.random.default_rng(1).normal(size=(40, 33))
    kernel = make_kernel(name, gamma=0.1, normalize=True)
    bound = kernel.bind(rows)
    whole = bound.rows(rows)
    assert np.array_equal(whole, whole.T)
    for first, last in [(0, 1), (3, 20), (39, 40)]:
        assert np.array_equal(bound.rows(rows[first:last]), whole[first:last])


@pytest.mark.parametrize("n_columns", [1, 63, 64, 65, 130])
def test_products_of_binary_rows_are_exactly_those_of_a_matrix_product(n_columns):
    rows = (np.random.default_rng(n_columns).random((600, n_columns)) < 0.4).astype(float)
    bound = make_kernel("linear").bind(rows)
    assert np.array_equal(bound.rows(rows[:5]), rows[:5] @ rows.T)
    assert bound.best_n_rows <= 256
    other = rows[:5] * 2.0  # not binary
    assert np.array_equal(bound.rows(other), other @ rows.T)
    assert np.array_equal(bound.rows(sp.csr_matrix(rows[:5])), rows[:5] @ rows.T)


@pytest.mark.parametrize("name", ["poly", "rbf"])
def test_kernels_of_binary_rows_equal_those_of_scikit_learn(name):
    rows = (np.random.default_rng(0).random((20, 70)) < 0.4).astype(float)
    expected = {
        "poly": polynomial_kernel(rows, degree=3, gamma=0.5, coef0=2.0),
        "rbf": rbf_kernel(rows, gamma=0.5),
    }
    kernel = make_kernel(name, degree=3, gamma=0.5, coef0=2.0)
    np.testing.assert_allclose(kernel.bind(rows).rows(rows), expected[name], rtol=1e-12)


def test_only_zeros_and_ones_are_packed():
    assert pack_binary(np.array([[0.0, 1.0], [1.0, 0.5]])) is None
    assert pack_binary(np.array([[0.0, np.nan]])) is None
    assert pack_binary(np.array([[0.0, -1.0]])) is None
    assert pack_binary(np.array([[-0.0, 1.0]])).tolist() == [[2]]
    assert pack_binary(np.zeros((3, 0))).shape == (3, 0)


def test_default_gamma_is_the_scale_of_scikit_learn(rows):
    assert default_gamma("rbf", rows) == pytest.approx(1 / (5 * rows.var()))
    assert default_gamma("rbf", sp.csr_matrix(rows)) == pytest.approx(1 / (5 * rows.var()))
    assert default_gamma("rbf", np.ones((3, 2))) == 1.0
    assert default_gamma("poly", rows) == 1.0


def test_merging_finds_equal_rows(rows):
    repeated = rows[[0, 1, 0, 2, 1, 3]]
    for matrix in (repeated, sp.csr_matrix(repeated)):
        merged = merge_equal_rows(matrix)
        assert merged.place.tolist() == [0, 1, 0, 2, 1, 3]
        found = merged.rows.toarray() if sp.issparse(merged.rows) else merged.rows
        assert np.array_equal(found, rows[:4])
    assert merge_equal_rows(np.array([[0.0], [-0.0]])).place.tolist() == [0, 0]


def test_rows_on_demand_equal_the_complete_matrix():
    inputs = np.random.default_rng(0).normal(size=(600, 3))
    kernel = make_kernel("rbf", gamma=0.3)
    complete = GramMatrix(kernel, inputs, max_bytes=8 * 600 * 600)
    assert complete.is_complete
    partial = GramMatrix(kernel, inputs, max_bytes=8 * 600 * 300)
    assert not partial.is_complete
    assert partial.stored.shape == (300, 600)
    for first in (0, 250, 300, 10, 500):
        wanted = np.arange(first, min(first + 280, 600))
        partial.load(wanted)
        assert np.array_equal(partial.stored[partial.row_of[wanted]], complete.stored[wanted])
    held = partial.row_of[partial.row_of >= 0]
    assert np.unique(held).size == held.size  # no two inputs share a row
    coefs = np.random.default_rng(1).normal(size=(600, 2))
    np.testing.assert_allclose(partial.multiply(coefs), complete.multiply(coefs), rtol=1e-10)


def test_memory_is_estimated_before_it_is_allocated():
    with pytest.raises(InputError, match=r"needs 0.32 MB, and at least 0.32 MB for single rows"):
        GramMatrix(make_kernel("linear"), np.zeros((200, 3)), max_bytes=5e4)
    inputs = sp.csr_matrix((200_000, 3))  # the matrix would take 320 GB
    with pytest.raises(InputError, match=r"needs 320,000 MB, and at least 410 MB .* cache_size"):
        GramMatrix(make_kernel("linear"), inputs, max_bytes=1e8)


def test_invalid_kernels_raise_errors(rows):
    def build(function):
        return GramMatrix(make_kernel(function), rows, max_bytes=1e6, check_symmetry=True)

    with pytest.raises(InputError, match="steps 0 and 0 is nan"):
        build(lambda a, b: np.full((len(a), len(b)), np.nan))
    with pytest.raises(InputError, match="not symmetric"):
        build(lambda a, b: a @ np.triu(np.ones((5, 5))) @ b.T)
    with pytest.raises(InputError, match="not positive semidefinite"):
        build(lambda a, b: -(a @ b.T))
    with pytest.raises(InputError, match=r"shape \(7, 2\), expected \(7, 7\)"):
        build(lambda a, b: np.zeros((len(a), 2)))
    with pytest.raises(InputError, match="values of type"):
        build(lambda a, b: np.full((len(a), len(b)), "x"))
