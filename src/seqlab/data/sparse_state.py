"""Sparse matrices in the state of an estimator, stored as plain arrays.

Model files compress sparse matrices. For the weights of a large model this takes longer than the rest of
saving and saves little space. Plain arrays are not compressed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError

_KINDS: dict[str, Any] = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def pack_sparse(state: dict[str, Any]) -> dict[str, Any]:
    """Replace every CSR or CSC matrix of a state by its arrays, under ``"<name>:<format>"``.

    Examples
    --------
    >>> packed = pack_sparse({"coef_": sp.csc_matrix([[0.0, 2.0]])})
    >>> sorted(packed), packed["coef_:csc"]["data"].tolist()
    (['coef_:csc'], [2.0])
    """
    packed: dict[str, Any] = {}
    for name, value in state.items():
        if sp.issparse(value) and value.format in _KINDS:
            parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
            packed[f"{name}:{value.format}"] = {"shape": list(value.shape), **parts}
        else:
            packed[name] = value
    return packed


def unpack_sparse(state: dict[str, Any]) -> dict[str, Any]:
    """Undo `pack_sparse`; raise an `InputError` if the arrays are not a valid matrix.

    Indices are checked here because compiled kernels do not check them.
    """
    unpacked: dict[str, Any] = {}
    for name, value in state.items():
        plain, _, kind = name.partition(":")
        if kind not in _KINDS:
            unpacked[name] = value
            continue
        try:
            parts = tuple(np.asarray(value[part]) for part in ("data", "indices", "indptr"))
            if [part.dtype.kind for part in parts] != ["f", "i", "i"]:
                raise TypeError("data must be floats, indices and indptr integers")
            matrix = _KINDS[kind](parts, shape=tuple(value["shape"]))
            matrix.check_format(full_check=True)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{plain} is not a valid sparse matrix: {error}") from None
        unpacked[plain] = matrix
    return unpacked
