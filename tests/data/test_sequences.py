"""Sequences: checks, indexing, blocks, and use with scikit-learn's splitters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, train_test_split
from sklearn.utils import _safe_indexing, indexable, resample, shuffle

from seqlab.data import InputError, Sequences


def make(lengths, n_features=3, sparse=False):
    matrix = np.arange(sum(lengths) * n_features, dtype=float).reshape(-1, n_features)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences(sp.csr_matrix(matrix) if sparse else matrix, offsets)


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.booleans(), st.data())
def test_indexing_equals_indexing_of_a_list(lengths, sparse, data):
    sequences = make(lengths, sparse=sparse)
    items = [dense(m) for m in sequences]
    assert [len(item) for item in items] == lengths
    key = data.draw(
        st.one_of(
            st.lists(st.integers(-len(lengths), len(lengths) - 1), min_size=0, max_size=8),
            st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)),
            st.slices(len(lengths)),
        )
    )
    if isinstance(key, list):
        key = np.array(key, dtype=bool if key and isinstance(key[0], bool) else np.int64)
    chosen = sequences[key]
    expected = [items[i] for i in np.arange(len(lengths))[key]]
    assert len(chosen) == len(expected)
    for a, b in zip(chosen, expected, strict=True):
        np.testing.assert_array_equal(dense(a), b)


@pytest.mark.parametrize("sparse", [False, True])
def test_splitters_of_scikit_learn_accept_sequences(sparse):
    sequences = make([2, 1, 3, 4, 2, 5], sparse=sparse)
    y = list("abcdef")
    train, test, y_train, y_test = train_test_split(sequences, y, test_size=2, random_state=0)
    assert isinstance(train, Sequences)
    assert (len(train), len(test), len(y_train), len(y_test)) == (4, 2, 4, 2)
    for fit, held in KFold(3).split(sequences, y):
        assert len(_safe_indexing(sequences, fit)) == 4
        assert len(_safe_indexing(sequences, held)) == 2
    assert len(list(GroupKFold(2).split(sequences, y, groups=[0, 0, 1, 1, 2, 2]))) == 2
    mixed, _ = shuffle(sequences, y, random_state=0)
    assert sorted(mixed.lengths.tolist()) == sorted(sequences.lengths.tolist())
    assert len(resample(sequences, n_samples=9, random_state=0)) == 9
    assert indexable(sequences, y)[0] is sequences


def test_one_sequence_and_locate():
    sequences = make([2, 0, 3])
    np.testing.assert_array_equal(sequences[-1], sequences[2])
    assert sequences[1].shape == (0, 3)
    assert sequences.locate(1) == (0, 1)
    assert sequences.locate(2) == (2, 0)
    assert sequences.shape == (3, 3)
    with pytest.raises(IndexError):
        sequences[3]
    with pytest.raises(IndexError):
        sequences[0, 1]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.booleans(), st.data())
def test_a_block_describes_the_same_sequences_as_a_slice(lengths, sparse, data):
    sequences = make(lengths, sparse=sparse)
    first = data.draw(st.integers(0, len(lengths)))
    last = data.draw(st.integers(first, len(lengths)))
    block, copied = sequences.block(first, last), sequences[first:last]
    assert len(block) == len(copied) == last - first
    assert block.n_steps == copied.n_steps == block.stop - block.begin
    assert block.steps == slice(block.begin, block.stop)
    np.testing.assert_array_equal(block.offsets, copied.offsets)
    np.testing.assert_array_equal(dense(block.matrix[block.steps]), dense(copied.matrix))


def test_a_block_copies_no_rows_and_cannot_be_changed():
    sequences = make([2, 1, 3])
    block = sequences.block(1, 3)
    assert block.parent is sequences
    assert block.matrix is sequences.matrix
    assert (block.begin, block.stop, block.offsets.tolist()) == (2, 6, [0, 1, 4])
    assert block.offsets is block.offsets
    assert block.offsets.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        block.offsets[0] = 1
    with pytest.raises(AttributeError):
        block.first = 0


@pytest.mark.parametrize(("first", "last"), [(-1, 1), (0, 4), (2, 1), (4, 4)])
def test_a_block_outside_the_data_is_refused(first, last):
    with pytest.raises(InputError, match=rf"block\({first}, {last}\) must satisfy .* <= 3"):
        make([2, 1, 3]).block(first, last)


def test_canonical_types_and_names():
    wide = sp.csr_matrix(np.eye(2))
    wide.indices = wide.indices.astype(np.int64)
    wide.indptr = wide.indptr.astype(np.int64)
    sequences = Sequences(wide, [0, 2], feature_names=["a", "b"])
    assert sequences.matrix.indices.dtype == sequences.matrix.indptr.dtype == np.int32
    assert Sequences(np.eye(2, dtype=int), [0, 2]).matrix.dtype == np.float64
    again = pickle.loads(pickle.dumps(sequences))
    assert again.feature_names.tolist() == ["a", "b"]
    assert again[[0]].feature_names.tolist() == ["a", "b"]
    assert "CSR" in repr(sequences)
    assert "dense" in repr(make([1]))


@pytest.mark.parametrize(
    ("matrix", "offsets", "words"),
    [
        (np.eye(2), [0, 1], "offsets must start at 0 and end at the 2 steps"),
        (np.eye(2), [1, 2], "offsets must start"),
        (np.eye(2), [0, 2, 1, 2], "must not decrease"),
        (np.zeros(3), [0, 3], "Expected 2D array"),
        (sp.coo_array(np.zeros(3)), [0, 3], "Expected 2D array"),
        ([["a"]], [0, 1], "matrix must be numbers"),
        ([[{}]], [0, 1], "matrix must be numbers"),
        (np.zeros((1, 1), dtype=complex), [0, 1], "matrix must be numbers.*complex"),
        ([[1], [1, 2]], [0, 2], "matrix must be numbers"),
        (np.eye(3), [0, 1.5, 3], r"offsets\[1\] is 1.5"),
        (np.eye(3), [0.0, 3.0], "offsets must be integers"),
        (np.eye(1), [False, True], "offsets must be integers"),
        (np.eye(3), [0, None, 3], r"offsets\[1\] is None"),
        (np.eye(3), ["0", "3"], "offsets must be integers"),
        (np.eye(3), [[0], [1, 3]], "offsets must be a list of integers"),
        (np.eye(3), 3, "offsets must start"),
        (np.eye(3), [], "offsets must start"),
    ],
)
def test_invalid_matrix_or_offsets(matrix, offsets, words):
    with pytest.raises(InputError, match=words):
        Sequences(matrix, offsets)


def invalid(form="csr", *, indices=None, indptr=None):
    """A 3 x 3 identity whose index arrays were changed without SciPy's checks."""
    matrix = sp.eye(3, format=form)
    if indices is not None:
        matrix.indices = np.array(indices)
    if indptr is not None:
        matrix.indptr = np.array(indptr)
    return matrix


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (
            sp.csr_matrix((np.ones(2), np.array([0, 99]), np.array([0, 1, 2])), shape=(2, 3)),
            r"matrix\[1\] has the column index 99, but there are 3 columns",
        ),
        (invalid(indices=[0, 1, -1]), r"matrix\[2\] has the column index -1"),
        (invalid(indices=[3, 1, 2]), r"matrix\[0\] has the column index 3"),
        (invalid(indices=[0, 2**40, 2]), r"matrix\[1\] has the column index 1099511627776"),
        (invalid("csc", indices=[0, 7, 2]), "matrix has the row index 7, but there are 3 rows"),
        (invalid("bsr", indices=[0, 7, 2]), r"matrix\[1\] has the column index 7"),
        (
            invalid(indptr=[0, 2, 1, 3]),
            "invalid CSR matrix: indptr must have 4 entries that increase",
        ),
        (invalid(indptr=[1, 1, 2, 3]), "invalid CSR"),
        (invalid(indptr=[0, 1, 2, 9]), "invalid CSR"),
        (invalid(indptr=[0, 1, 3]), "invalid CSR.*have 4 entries"),
        (invalid("csc", indptr=[0, 9, 2, 3]), "invalid CSC"),
        (invalid(indices=[0, 1]), "invalid CSR"),
    ],
)
def test_sparse_indices_out_of_range(matrix, words):
    with pytest.raises(InputError, match=words):
        Sequences(matrix, [0, matrix.shape[0]])


def test_sparse_indices_out_of_range_in_other_formats():
    coo = sp.eye(3, format="coo")
    coo.col[1] = -4
    lil = sp.eye(3, format="lil")
    lil.rows[1] = [8]
    for matrix, index in ((coo, -4), (lil, 8)):
        with pytest.raises(InputError, match=rf"matrix\[1\] has the column index {index}"):
            Sequences(matrix, [0, 3])


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_every_sparse_format(form):
    given_ = np.arange(8.0).reshape(4, 2) % 3
    for kind in (sp.csr_matrix, sp.csr_array):
        sequences = Sequences(kind(given_).asformat(form), [0, 1, 4])
        np.testing.assert_array_equal(dense(sequences.matrix), given_)
    assert Sequences(sp.csr_matrix((0, 3)).asformat(form), [0]).shape == (0, 3)


def test_repeated_entries_are_summed_on_a_copy():
    twice = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), [1, 0, 1], [0, 3, 3]), shape=(2, 2))
    parts = [part.copy() for part in (twice.data, twice.indices, twice.indptr)]
    sequences = Sequences(twice, [0, 2])
    assert sequences.matrix.nnz == 2
    np.testing.assert_array_equal(dense(sequences.matrix), [[2, 5], [0, 0]])
    for part, before in zip((twice.data, twice.indices, twice.indptr), parts, strict=True):
        np.testing.assert_array_equal(part, before)
    twice.has_canonical_format = True  # a flag left over from other data
    assert Sequences(twice, [0, 2]).matrix.nnz == 2


def test_canonical_input_is_not_copied():
    unsorted = sp.csr_matrix((np.ones(2), np.array([1, 0], np.int32), [0, 2]), shape=(1, 2))
    for matrix in (sp.eye(3, format="csr"), unsorted):
        sequences = Sequences(matrix, [0, matrix.shape[0]])
        assert np.shares_memory(sequences.matrix.data, matrix.data)
        assert np.shares_memory(sequences.matrix.indices, matrix.indices)


def test_parts_of_sequences_are_canonical():
    for sequences in (make([2, 0, 3]), make([2, 0, 3], sparse=True)):
        part = sequences[[2, 0, 2]]
        again = Sequences(part.matrix, part.offsets)
        assert type(again.matrix) is type(part.matrix)
        assert part.offsets.dtype == np.int64
        assert not part.offsets.flags.writeable
        if part.is_sparse:
            assert part.matrix.indices.dtype == part.matrix.indptr.dtype == np.int32
        else:
            assert part.matrix.flags.c_contiguous


def test_from_list():
    a, b = np.arange(4.0).reshape(2, 2), np.array([[9.0, 8.0]])
    forms = [[a, b], [a.tolist(), b.tolist()], [a, sp.csr_matrix(b)], (m for m in (a, b))]
    for items in forms:
        sequences = Sequences.from_list(items)
        assert sequences.offsets.tolist() == [0, 2, 3]
        np.testing.assert_array_equal(dense(sequences.matrix), np.vstack([a, b]))
    assert Sequences.from_list([a, np.zeros((0, 2))]).lengths.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "items is empty: at least one sequence"),
        ([np.eye(2), np.eye(3)], r"items\[1\] has 3 features but items\[0\] has 2"),
        ([np.eye(2), sp.eye(3, format="csr")], r"items\[1\] has 3 features"),
        ([np.eye(2), [1, 2]], r"got 1D array instead: items\[1\] must be steps x features"),
        ([[[1, 2], [3]]], r"items\[0\] must be numbers, steps x features"),
        ([np.eye(2), [{"w": "a"}]], r"items\[1\]"),
        ([[["w=a"]]], r"items\[0\] must be numbers"),
        ([np.eye(3), invalid(indices=[0, 5, 1])], r"items\[1\]\[1\] has the column index 5"),
    ],
)
def test_from_list_names_the_item(items, words):
    with pytest.raises(InputError, match=words):
        Sequences.from_list(items)


def test_wrong_number_of_names():
    with pytest.raises(InputError, match="feature_names has 1 entries"):
        Sequences(np.eye(2), [0, 2], feature_names=["a"])
