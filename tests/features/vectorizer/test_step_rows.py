"""Rows of the vectorizer: compared with SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlab.features.vectorizer._step_rows import (
    EncodedSteps,
    assemble,
    encode_bags,
    select_columns,
)

rows = st.lists(
    st.lists(st.tuples(st.integers(-1, 9), st.sampled_from([1.0, -2.5, 0.0, 3.0])), max_size=9),
    max_size=6,
)


def encode(rows, weighted):
    pairs = [pair for row in rows for pair in row]
    columns = np.array([column for column, _ in pairs], dtype=np.int32)
    weights = np.array([weight for _, weight in pairs]) if weighted else None
    return EncodedSteps(columns, weights, np.array([len(row) for row in rows], dtype=np.int32))


def by_scipy(rows, weighted, n_features):
    """The same matrix, summed and sorted by SciPy."""
    stored = [[pair for pair in row if pair[0] >= 0] for row in rows]
    data = [weight if weighted else 1.0 for row in stored for _, weight in row]
    indices = [column for row in stored for column, _ in row]
    indptr = np.cumsum([0, *map(len, stored)])
    matrix = sp.csr_matrix((np.array(data), indices, indptr), shape=(len(rows), n_features))
    matrix.sum_duplicates()
    return matrix


def assert_same(ours, theirs):
    assert ours.shape == theirs.shape
    assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert ours.indices.tolist() == theirs.indices.tolist()
    assert ours.data.tolist() == theirs.data.tolist()


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(rows, st.booleans()), max_size=3))
def test_agrees_with_scipy(parts):
    ours = assemble([encode(*part) for part in parts], 10)
    together = [by_scipy(*part, 10) for part in parts]
    assert_same(ours, sp.vstack(together, format="csr") if parts else sp.csr_matrix((0, 10)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 47, 48, 49, 64, 500, 5000])
def test_rows_of_any_length(size, weighted):
    rng = np.random.default_rng(size)
    for spread in (size, 10 * size, 2**31 - 1):  # with and without repetition
        columns = rng.integers(-1, spread, (3, size)).tolist()
        weights = (rng.integers(-9, 9, (3, size)) / 4).tolist()  # sums are exact in any order
        some = [list(zip(*pair, strict=True)) for pair in zip(columns, weights, strict=True)]
        some.insert(1, [])
        assert_same(
            assemble([encode(some, weighted)], 2**31 - 1), by_scipy(some, weighted, 2**31 - 1)
        )


def test_select_columns():
    matrix = sp.csr_matrix(np.array([[1.0, 2, 0, 3], [0, 0, 4, 0]]))
    kept = select_columns(matrix, np.array([True, False, False, True]))
    assert kept.toarray().tolist() == [[1, 3], [0, 0]]


def test_block_size_and_empty_bags_do_not_change_the_result():
    seen = []

    def columns_of(bags, n, out):
        seen.append((len(bags), n))
        assert all(bags)
        out[:] = [int(name) for bag in bags for name in bag]

    steps = [["7"] * (i % 3) for i in range(3000)]
    encoded = encode_bags(steps, columns_of)
    assert encoded.sizes.tolist() == [i % 3 for i in range(3000)]
    assert encoded.columns.tolist() == [7] * 3000
    assert len(seen) > 1
    assert sum(n for _, n in seen) == 3000
