"""The two matrix types that the kernels accept: C-contiguous float64 arrays and CSR with int32 indices.

Compiled kernels do not check indices, so sparse matrices are checked here, once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError

# A C-contiguous float64 array or a CSR matrix with int32 indices; type checkers cannot express this.
Matrix: TypeAlias = Any


def to_canonical(matrix: Any, place: str = "matrix") -> Matrix:
    """Convert to a C-contiguous float64 array or a CSR matrix with int32 indices.

    Parameters
    ----------
    matrix : array, nested list or sparse matrix
    place : str
        Name of the matrix in error messages.
    """
    if sp.issparse(matrix):
        csr = to_checked_csr(matrix, place)
        if csr.indices.dtype != np.int32:
            if csr.nnz > np.iinfo(np.int32).max or csr.shape[1] > np.iinfo(np.int32).max:
                raise InputError(
                    f"a sparse matrix with {csr.nnz} entries is too large for CSR int32"
                )
            csr.indices = csr.indices.astype(np.int32)
            csr.indptr = csr.indptr.astype(np.int32)
        return csr
    try:
        array = np.asarray(matrix)
        if array.dtype.kind not in "biufO":
            raise InputError(f"{place} must be numbers, steps x features, got dtype {array.dtype}")
        dense = np.asarray(array, dtype=np.float64, order="C")
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{place} must be numbers, steps x features: {error}") from None
    _check_two_dimensions(dense.ndim, place)
    return dense


def to_checked_csr(matrix: Any, place: str) -> Matrix:
    """Convert a sparse matrix to CSR float64 with valid indices, none of them repeated in a row.

    Indices are checked first, because SciPy's conversions do not check them either. The input is
    never modified, and it is not copied if it already has this form. Linear in the number of stored
    entries.

    Parameters
    ----------
    matrix : sparse matrix or array
    place : str
        Name of the matrix in error messages.
    """
    _check_two_dimensions(matrix.ndim, place)
    _check_indices(matrix, place)
    csr = sp.csr_matrix(matrix, dtype=np.float64)
    if matrix.format not in ("csr", "csc", "bsr", "coo"):
        _check_indices(csr, place)
    if not csr.has_canonical_format:  # unsorted or repeated indices
        summed = csr.copy()
        summed.sum_duplicates()
        if summed.nnz < csr.nnz:
            return summed
    return csr


def _check_two_dimensions(ndim: int, place: str) -> None:
    if ndim != 2:
        raise InputError(
            f"Expected 2D array, got {ndim}D array instead: {place} must be steps x features"
        )


def _check_indices(matrix: Any, place: str) -> None:
    """Raise an error if an index is out of range (for formats that have index arrays)."""
    if matrix.format == "coo":
        for axis, indices in zip(("row", "column"), (matrix.row, matrix.col), strict=True):
            size = matrix.shape[0 if axis == "row" else 1]
            at = _find_out_of_range(indices, size)
            if at is not None:
                where = place if axis == "row" else f"{place}[{matrix.row[at]}]"
                raise _index_error(where, axis, indices[at], size)
        return
    if matrix.format not in ("csr", "csc", "bsr"):
        return
    rows, columns = getattr(matrix, "blocksize", (1, 1))
    n_rows, n_columns = matrix.shape[0] // rows, matrix.shape[1] // columns
    by_column = matrix.format == "csc"
    major, minor = (n_columns, n_rows) if by_column else (n_rows, n_columns)
    indptr, indices = matrix.indptr, matrix.indices
    if (
        indptr.shape != (major + 1,)
        or indptr[0] != 0
        or indptr[-1] > min(len(indices), len(matrix.data))
        or np.any(indptr[1:] < indptr[:-1])
    ):
        raise InputError(
            f"{place} is an invalid {matrix.format.upper()} matrix: indptr must have {major + 1} "
            "entries that increase from 0 to the number of stored entries"
        )
    stored = indices[: indptr[-1]]
    at = _find_out_of_range(stored, minor)
    if at is None:
        return
    if by_column:
        raise _index_error(place, "row", stored[at], minor)
    row = int(np.searchsorted(indptr, at, side="right") - 1) * rows
    raise _index_error(f"{place}[{row}]", "column", stored[at] * columns, matrix.shape[1])


def _find_out_of_range(indices: NDArray[Any], size: int) -> int | None:
    if indices.size == 0 or (indices.min() >= 0 and indices.max() < size):
        return None
    return int(np.argmax((indices < 0) | (indices >= size)))


def _index_error(place: str, axis: str, index: int, size: int) -> InputError:
    return InputError(f"{place} has the {axis} index {index}, but there are {size} {axis}s")
