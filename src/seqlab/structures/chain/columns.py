"""Columns of a feature matrix, dense or CSR: how many entries they have, and of which size."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.structures.chain._kernels import dense_matrix as kernels

Floats = NDArray[np.float64]
# Entries of a dense matrix that are listed at a time (3 MB).
BLOCK_ENTRIES = 1 << 18


def count_entries(matrix: Any) -> NDArray[np.int64]:
    """Return the number of stored entries of each column; of nonzero entries if the matrix is dense."""
    n_nonzero, n_ones = np.zeros((2, matrix.shape[1]), dtype=np.int64)
    if sp.issparse(matrix):
        kernels.count_indices(matrix.indices, matrix.nnz, n_nonzero)
    else:
        kernels.count_columns(matrix, 0, matrix.shape[0], n_nonzero, n_ones)
    return n_nonzero


def sum_squares(matrix: Any, step_weights: Floats) -> Floats:
    """Return the sum of the squares of each column, weighted by step."""
    with np.errstate(over="ignore"):
        if sp.issparse(matrix):
            of_entries = np.repeat(step_weights, np.diff(matrix.indptr))
            squares = matrix.data[: matrix.nnz] ** 2 * of_entries
            sums = np.bincount(matrix.indices[: matrix.nnz], squares, matrix.shape[1])
            return sums.astype(np.float64, copy=False)
        out = np.zeros(matrix.shape[1])
        kernels.weighted_squares(matrix, step_weights, out)
        return out


def mean_squares(matrix: Any) -> Floats:
    """Return the mean square of the entries of each column that are not zero; 1 for an empty column."""
    sums = sum_squares(matrix, np.ones(matrix.shape[0]))
    return np.where(sums > 0.0, sums / np.maximum(count_entries(matrix), 1), 1.0)


def mean_square(matrix: Any) -> float:
    """Return the mean square of the entries that are not zero; 1 if there are none."""
    sums = sum_squares(matrix, np.ones(matrix.shape[0]))
    n_entries = int(count_entries(matrix).sum())
    return max(float(sums.sum()) / n_entries, 1e-300) if n_entries else 1.0


def has_only_ones(matrix: Any) -> bool:
    """Return whether every entry that is not zero is 1."""
    if sp.issparse(matrix):
        return not np.any(matrix.data[: matrix.nnz] != 1.0)
    n_nonzero, n_ones = np.zeros((2, matrix.shape[1]), dtype=np.int64)
    kernels.count_columns(matrix, 0, matrix.shape[0], n_nonzero, n_ones)
    return bool(np.array_equal(n_nonzero, n_ones))


def csr_rows(matrix: Any, first: int, last: int) -> sp.csr_matrix:
    """Return the rows ``first:last`` as a CSR matrix with int32 indices."""
    if sp.issparse(matrix):
        return matrix if (first, last) == (0, matrix.shape[0]) else matrix[first:last]
    n_rows, n_columns = last - first, matrix.shape[1]
    indptr = np.zeros(n_rows + 1, dtype=np.int32)
    n = int(np.count_nonzero(matrix[first:last]))
    # One more entry, because the kernel writes an entry before it knows whether the entry counts.
    indices, data = np.empty(n + 1, dtype=np.int32), np.empty(n + 1)
    kernels.list_entries(matrix, first, last, indptr, indices, data)
    return sp.csr_matrix((data[:n], indices[:n], indptr), shape=(n_rows, n_columns))
