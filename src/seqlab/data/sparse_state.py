"""Sparse matrices in the state of an estimator, as plain arrays.

Model files compress sparse matrices, which for the weights of a large model takes longer than all the rest of
saving, and gains little: weights are noise to a compressor. Plain arrays are written as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError

_KINDS: dict[str, Any] = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def pack_sparse(state: dict[str, Any]) -> dict[str, Any]:
    """The state with arrays, under ``"<name>:<format>"``, for every CSR or CSC matrix.

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
    """What `pack_sparse` was given; an `InputError` where arrays do not make a matrix.

    Indices are checked, since compiled kernels will follow them.
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
                raise TypeError("it needs numbers, and integers for their places")
            matrix = _KINDS[kind](parts, shape=tuple(value["shape"]))
            matrix.check_format(full_check=True)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{plain} is no sparse matrix: {error}") from None
        unpacked[plain] = matrix
    return unpacked
