"""Sparse matrices as plain arrays in the state of an estimator, in model files of versions 2 and 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError

_KINDS: dict[str, Any] = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def unpack_sparse(state: dict[str, Any]) -> dict[str, Any]:
    """Build the matrices whose arrays are stored under ``"<name>:<format>"``.

    Raises an `InputError` if the arrays are not a valid matrix: compiled kernels do not check indices.

    Examples
    --------
    >>> arrays = {"data": np.ones(1), "indices": np.array([0]), "indptr": np.array([0, 0, 1])}
    >>> unpack_sparse({"coef_:csc": {"shape": [1, 2], **arrays}})["coef_"].toarray().tolist()
    [[0.0, 1.0]]
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
