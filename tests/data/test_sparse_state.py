"""Sparse matrices as plain arrays in the state of an estimator."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab import LinearChainCRF
from seqlab.data import InputError
from seqlab.data.sparse_state import pack_sparse, unpack_sparse


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_round_trip(kind):
    matrix = sp.random(7, 5, density=0.4, format=kind, random_state=0)
    state = {"coef_": matrix, "name": "a:b", "n:1": 3, "dense": np.eye(2)}
    packed = pack_sparse(state)
    assert not any(sp.issparse(value) for value in packed.values())
    back = unpack_sparse(packed)
    assert set(back) == set(state)
    assert back["coef_"].format == kind
    assert (back["coef_"] != matrix).nnz == 0
    assert (back["name"], back["n:1"]) == ("a:b", 3)


def test_other_formats_are_not_changed():
    matrix = sp.coo_matrix(np.eye(2))
    assert pack_sparse({"m": matrix})["m"] is matrix


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([0, 9], np.int32)},
        {"indices": np.array([0, -1], np.int32)},
        {"indptr": np.array([0, 5, 2], np.int32)},
        {"shape": [1, 1]},
        {"shape": None},
        {"data": np.ones(1)},
        {"data": np.array(["a", "b"])},
        {"data": np.array([1j, 2j])},
        {"indices": np.array([0.0, 1.0])},
        {"shape": [2, 2**70]},
    ],
)
def test_damaged_arrays_are_an_error(change):
    packed = pack_sparse({"coef_": sp.csc_matrix(np.eye(2))})
    packed["coef_:csc"].update(change)
    with pytest.raises(InputError, match="coef_"):
        unpack_sparse(packed)
    del packed["coef_:csc"]["data"]
    with pytest.raises(InputError, match="coef_"):
        unpack_sparse(packed)


def test_copies_of_an_estimator_predict_the_same():
    X, y = [[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]]
    crf = LinearChainCRF(max_iter=5).fit(X, y)
    for other in (copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert sp.issparse(other.coef_)
        assert (other.coef_ != crf.coef_).nnz == 0
        assert [list(labels) for labels in other.predict(X)] == y
