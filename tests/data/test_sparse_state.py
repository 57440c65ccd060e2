"""Sparse matrices as plain arrays in the state of an estimator, as older model files hold them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab import LinearChainCRF
from seqlab.data import InputError
from seqlab.data.sparse_state import unpack_sparse


def pack(name, matrix):
    """The state of files of versions 2 and 3."""
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {f"{name}:{matrix.format}": {"shape": list(matrix.shape), **parts}}


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_matrices_are_built(kind):
    matrix = sp.random(7, 5, density=0.4, format=kind, random_state=0)
    back = unpack_sparse(pack("coef_", matrix) | {"name": "a:b", "n:1": 3})
    assert set(back) == {"coef_", "name", "n:1"}
    assert back["coef_"].format == kind
    assert (back["coef_"] != matrix).nnz == 0
    assert (back["name"], back["n:1"]) == ("a:b", 3)


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
    packed = pack("coef_", sp.csc_matrix(np.eye(2)))
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
