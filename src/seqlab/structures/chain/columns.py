"""Columns of a feature matrix, dense or CSR: how many entries they have, and of which size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.simd.dense_products import add_transposed_product
from seqlab.structures.chain._kernels import dense_matrix as kernels
from seqlab.utils.linalg import WIDTH_MULTIPLE

Floats = NDArray[np.float64]
# Entries of a dense matrix that are listed at a time (1.5 MB).
BLOCK_ENTRIES = 1 << 17
# A column with at least this share of nonzero entries is in the dense matrix. On random data with 50 and 300
# columns and 2 to 60 labels both layouts took the same time at 0.3 to 0.4. Lists of entries that are not all
# 1 need 20 bytes per entry during the warm start: the lower limit for them saves memory.
MATRIX_DENSITY, MATRIX_DENSITY_OF_ONES = 0.25, 0.35
MIN_MATRIX_COLUMNS = 8  # fewer columns are not worth a matrix product
# With a smaller share of stored entries, outer products of rows are computed entry by entry. With 80 to 300
# columns this took 0.05 times the time of a matrix product at a share of 0.03, the same time at 0.25 to 0.4.
MAX_LISTED = 0.25
# Rows that are multiplied at a time, which stay in the cache.
ROWS = 128
# A value is an outlier if it is larger than the median of its column by this factor.
OUTLIER_RATIO = 30.0
# Rows from which the medians are estimated.
SAMPLE_ROWS = 300
# A column with less variance than this share of its squares counts as constant: the rest is rounding error.
MIN_CENTRED_SHARE = 1e-13
# A column has a large offset if at most the first share of its squares remains without its mean. With less
# than the second one, the rest is rounding error.
LARGE_OFFSET_SHARE, ROUNDING_SHARE = 1e-4, 1e-26


class EntryCounts(NamedTuple):
    """Number of entries of a matrix that are not zero."""

    per_column: NDArray[np.int64]  # of a CSR matrix: of the stored entries
    only_ones: bool  # whether every entry that is not zero is 1


def count_entries(matrix: Any) -> EntryCounts:
    """Count the entries of each column that are not zero; the stored entries of a CSR matrix."""
    n_nonzero, n_ones = np.zeros((2, matrix.shape[1]), dtype=np.int64)
    if sp.issparse(matrix):
        kernels.count_indices(matrix.indices, matrix.nnz, n_nonzero)
        data = matrix.data[: matrix.nnz]
        # In parts, whose comparisons need little memory.
        parts = (data[k : k + BLOCK_ENTRIES] for k in range(0, data.size, BLOCK_ENTRIES))
        return EntryCounts(n_nonzero, not any(np.any(part != 1.0) for part in parts))
    kernels.count_columns(matrix, 0, matrix.shape[0], n_nonzero, n_ones)
    return EntryCounts(n_nonzero, bool(np.array_equal(n_nonzero, n_ones)))


def choose_matrix_columns(matrix: Any, counts: EntryCounts) -> NDArray[np.bool_]:
    """Return which columns are so full that a matrix product is faster than lists of their entries."""
    n_steps, n_features = matrix.shape
    none = np.zeros(n_features, dtype=bool)
    density = MATRIX_DENSITY_OF_ONES if counts.only_ones else MATRIX_DENSITY
    chosen = counts.per_column >= max(density * n_steps, 1.0)
    if chosen.sum() < min(MIN_MATRIX_COLUMNS, n_features):
        return none
    if not sp.issparse(matrix) and 2 * chosen.sum() >= n_features:
        return ~none  # saves the copy of the chosen columns
    return chosen


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


def mean_squares(matrix: Any, counts: EntryCounts) -> Floats:
    """Return the mean square of the entries of each column that are not zero; 1 for an empty column."""
    sums = sum_squares(matrix, np.ones(matrix.shape[0]))
    return np.where(sums > 0.0, sums / np.maximum(counts.per_column, 1), 1.0)


def mean_square(matrix: Any, counts: EntryCounts) -> float:
    """Return the mean square of the entries that are not zero; 1 if there are none."""
    sums = sum_squares(matrix, np.ones(matrix.shape[0]))
    n_entries = int(counts.per_column.sum())
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


def centred_shares(matrix: Any, least: float = MIN_CENTRED_SHARE) -> Floats:
    """Return the share of the sum of squares of each column that remains if its mean is subtracted.

    Small for a column with a large offset, such as a year. 1 for an empty column, and for a constant one,
    of which at most the share ``least`` remains.
    """
    n_rows, n_columns = matrix.shape
    if n_rows == 0:
        return np.ones(n_columns)
    first = matrix[:1].toarray().ravel() if sp.issparse(matrix) else matrix[0]
    sums, squares, centred = np.zeros((3, n_columns))
    # Sums of differences from the first value: those of a constant column are exactly zero.
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(matrix):
            columns, values = matrix.indices[: matrix.nnz], matrix.data[: matrix.nnz]
            is_full = np.bincount(columns, minlength=n_columns) == n_rows
            differences = values - np.where(is_full, first, 0.0)[columns]
            squares += np.bincount(columns, values**2, n_columns)
            sums += np.bincount(columns, differences, n_columns)
            centred += np.bincount(columns, differences**2, n_columns)
        else:
            step = max(1, BLOCK_ENTRIES // (8 * max(n_columns, 1)))
            for begin in range(0, n_rows, step):
                rows = matrix[begin : begin + step]
                differences = rows - first
                squares += (rows * rows).sum(axis=0)
                sums += differences.sum(axis=0)
                centred += (differences * differences).sum(axis=0)
        shares = (centred - sums * (sums / n_rows)) / np.maximum(squares, np.finfo(np.float64).tiny)
    is_known = np.isfinite(shares) & (shares > least)
    return np.where(is_known, np.minimum(shares, 1.0), 1.0)


def has_large_offset(matrix: Any) -> NDArray[np.bool_]:
    """Return whether the mean of each column is at least a hundred times its standard deviation."""
    return centred_shares(matrix, ROUNDING_SHARE) <= LARGE_OFFSET_SHARE


def outer_products(matrix: Any, steps: NDArray[np.int64], counts: Floats) -> Floats:
    """Return the sum of the outer products of rows, times their counts."""
    n_features = matrix.shape[1]
    if sp.issparse(matrix) and matrix.nnz < MAX_LISTED * matrix.shape[0] * n_features:
        listed = np.zeros((n_features, n_features))
        entries = matrix.indptr, matrix.indices, matrix.data
        kernels.add_row_products(*entries, steps, counts, listed)
        return join_halves(listed)
    n_missing = -n_features % WIDTH_MULTIPLE
    out = np.zeros((n_features, n_features + n_missing))
    ones = np.ones(n_features)
    for first in range(0, steps.size, ROWS):
        part = matrix[steps[first : first + ROWS]]
        x = np.ascontiguousarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        counted = x * counts[first : first + ROWS, None]
        counted = np.pad(counted, ((0, 0), (0, n_missing))) if n_missing else counted
        with np.errstate(over="ignore"):
            add_transposed_product(x, np.arange(x.shape[0]), x.shape[0], counted, ones, out)
    return np.ascontiguousarray(out[:, :n_features])


def join_halves(sums: Floats) -> Floats:
    """Return a symmetric matrix, given sums for each pair of entries, in either half, and the diagonal."""
    joined: Floats = sums + sums.T
    np.fill_diagonal(joined, np.diag(sums))
    return joined


def _median_sizes(rows: sp.csr_matrix) -> Floats:
    """Return the median of the absolute stored values of each column; infinite for an empty one."""
    sizes = np.abs(rows.data)
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    ordered = sizes[np.lexsort((sizes, rows.indices))]
    middle = np.cumsum(counts) - counts + counts // 2
    medians = np.full(counts.size, np.inf)
    medians[counts > 0] = ordered[middle[counts > 0]]
    return medians


def csr_rows(matrix: Any, first: int, last: int) -> sp.csr_matrix:
    """Return the rows ``first:last`` as a CSR matrix with int32 indices."""
    if sp.issparse(matrix):
        return matrix if (first, last) == (0, matrix.shape[0]) else matrix[first:last]
    return _list_rows(matrix, first, last, *_entry_space(int(np.count_nonzero(matrix[first:last]))))


def csr_blocks(matrix: Any, first: int, last: int) -> Iterator[tuple[int, sp.csr_matrix, int, int]]:
    """Yield ``(base, part, a, b)``: rows ``a:b`` of the CSR matrix ``part`` are matrix[base + a : base + b].

    A part of a dense matrix is valid until the next one: all of them use the same memory.
    """
    if sp.issparse(matrix):
        yield 0, matrix, first, last
        return
    n_columns = max(matrix.shape[1], 1)
    size = max(BLOCK_ENTRIES // n_columns, 1)
    space = _entry_space(size * n_columns)
    for a in range(first, last, size):
        b = min(a + size, last)
        yield a, _list_rows(matrix, a, b, *space), 0, b - a


def _entry_space(n: int) -> tuple[NDArray[np.int32], Floats]:
    """Return memory for the indices and values of a number of entries.

    For one more, because the kernel writes an entry before it knows whether the entry counts.
    """
    return np.empty(n + 1, dtype=np.int32), np.empty(n + 1)


def _list_rows(
    matrix: Floats, first: int, last: int, indices: NDArray[np.int32], data: Floats
) -> sp.csr_matrix:
    """Return rows of a dense matrix as a CSR matrix in the given memory."""
    indptr = np.zeros(last - first + 1, dtype=np.int32)
    kernels.list_entries(matrix, first, last, indptr, indices, data)
    n, shape = int(indptr[-1]), (last - first, matrix.shape[1])
    return sp.csr_matrix((data[:n], indices[:n], indptr), shape=shape)
