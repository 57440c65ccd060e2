"""Sequences: the internal form, its indexing and its way through scikit-learn's splitters."""

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
def test_indexing_is_that_of_the_list(lengths, sparse, data):
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
def test_splitters_of_scikit_learn_take_it_as_it_is(sparse):
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
        (np.eye(2), [0, 1], "offsets must run from 0 to the 2 steps"),
        (np.eye(2), [1, 2], "offsets must run"),
        (np.eye(2), [0, 2, 1, 2], "must not decrease"),
        (np.zeros(3), [0, 3], "Expected 2D array"),
    ],
)
def test_bad_parts(matrix, offsets, words):
    with pytest.raises(InputError, match=words):
        Sequences(matrix, offsets)


def test_wrong_number_of_names():
    with pytest.raises(InputError, match="feature_names has 1 entries"):
        Sequences(np.eye(2), [0, 2], feature_names=["a"])
