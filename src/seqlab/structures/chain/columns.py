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
# A value is an outlier if it is larger than the median of its column by this factor.
OUTLIER_RATIO = 30.0
# Rows from which the medians are estimated.
SAMPLE_ROWS = 300
# A column with less variance than this share of its squares counts as constant: the rest is rounding error.
MIN_CENTRED_SHARE = 1e-13


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


def typical_shares(matrix: Any) -> Floats:
    """Return the share of the sum of squares of each column that remains if its outliers are clipped.

    Clipped are values above `OUTLIER_RATIO` times the median of the absolute values that are not zero, of a
    sample of rows. 1 for a column without outliers, and for an empty one.
    """
    n_rows, n_columns = matrix.shape
    sample = matrix[:: max(1, n_rows // SAMPLE_ROWS)]
    limits = OUTLIER_RATIO * _median_sizes(csr_rows(sample, 0, sample.shape[0]))
    every, clipped = np.zeros((2, n_columns))
    with np.errstate(over="ignore"):
        if sp.issparse(matrix):
            columns, sizes = matrix.indices[: matrix.nnz], np.abs(matrix.data[: matrix.nnz])
            every += np.bincount(columns, sizes**2, n_columns)
            clipped += np.bincount(columns, np.minimum(sizes, limits[columns]) ** 2, n_columns)
        else:
            step = max(1, BLOCK_ENTRIES // (8 * max(n_columns, 1)))
            for first in range(0, n_rows, step):
                rows = np.abs(matrix[first : first + step])
                every += (rows * rows).sum(axis=0)
                clipped += (np.minimum(rows, limits) ** 2).sum(axis=0)
    has_outliers = (every > clipped) & np.isfinite(every)
    return np.divide(clipped, every, out=np.ones(n_columns), where=has_outliers)


def centred_shares(matrix: Any) -> Floats:
    """Return the share of the sum of squares of each column that remains if its mean is subtracted.

    Small for a column with a large offset, such as a year. 1 for an empty or constant column.
    """
    n_rows = matrix.shape[0]
    sums = np.asarray(matrix.sum(axis=0), dtype=np.float64).ravel()
    squares = sum_squares(matrix, np.ones(n_rows))
    with np.errstate(over="ignore", invalid="ignore"):
        shares = 1.0 - sums / np.maximum(squares, np.finfo(np.float64).tiny) * (sums / n_rows)
    is_known = np.isfinite(shares) & (shares > MIN_CENTRED_SHARE)
    return np.where(is_known, np.minimum(shares, 1.0), 1.0)


def _median_sizes(rows: sp.csr_matrix) -> Floats:
    """Return the median of the absolute stored values of each column; infinite for an empty one."""
    sizes = np.abs(rows.data)
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    ordered = sizes[np.lexsort((sizes, rows.indices))]
    middle = np.cumsum(counts) - counts + counts // 2
    medians = np.full(counts.size, np.inf)
    medians[counts > 0] = ordered[middle[counts > 0]]
    return medians


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
