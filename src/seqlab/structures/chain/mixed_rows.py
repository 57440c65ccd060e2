"""MixedRows: training data converted for one feature pattern.

The content of the feature matrix and of the pattern, in the layout that training passes read fastest. Columns
that are mostly nonzero, such as embeddings, stay a dense matrix. Of the others, each step has a list of row
indices for its dense features (those with weights for many labels) and a list of single weights for the
rest. See `_kernels.mixed_rows` for measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import padded_width
from seqlab.simd.aligned import aligned_zeros
from seqlab.structures.chain._kernels import mixed_rows as kernels
from seqlab.structures.chain._kernels.dense_matrix import add_labelled, count_in_rows
from seqlab.structures.chain.columns import csr_blocks, sum_squares
from seqlab.structures.chain.features import ChainFeatures
from seqlab.structures.chain.pattern import FeaturePattern
from seqlab.utils.threads import run_blocks

Floats = NDArray[np.float64]
# A feature with weights for at least this share of the labels gets a dense row. A dense row costs width
# additions in vectors, a pair one addition and some latency: on text they are equal at about a quarter.
DENSE_SHARE = 0.25
MIN_DENSE = 2
N_PARTS = 2  # parts of the steps that threads convert in parallel


class RowArrays(NamedTuple):
    """Lists of the features of each step: arguments of the kernels, in their order."""

    dense_ptr: NDArray[np.uint32]
    dense_row: NDArray[np.uint32]
    dense_value: Floats
    pair_ptr: NDArray[np.uint32]
    pair_weight: NDArray[np.uint32]
    pair_column: NDArray[np.uint16]
    pair_value: Floats


class MatrixColumns(NamedTuple):
    """Columns that are mostly nonzero: column ``k`` has row ``k`` of the table of dense rows."""

    matrix: Floats  # (n_steps, n_matrix)
    factors: Floats  # (n_matrix,), of the sums that are added to the rows


class MixedRows:
    """Steps of the training data, split into a dense matrix, dense features and single weights.

    Parameters
    ----------
    features : ChainFeatures
        Of the data. An array that is mostly nonzero is used as it is, without a copy.
    pattern : FeaturePattern
        Over labels.

    Attributes
    ----------
    width : int
        Number of labels, padded for vector loops.
    arrays : RowArrays
    columns : MatrixColumns or None
        None without a matrix, for which numba compiles kernels without matrix products.
    is_unit : bool
        Whether every value of the lists is 1.
    n_entries : int
        Number of entries of the lists and of the matrix.
    n_matrix : int
        Number of columns of the dense matrix.
    """

    def __init__(
        self, features: ChainFeatures, pattern: FeaturePattern, *, n_jobs: int | None = None
    ) -> None:
        X, n_labels = features.X.matrix, pattern.n_columns
        starts, columns = pattern.explicit()
        counts = np.diff(starts)
        only_ones, in_matrix = features.has_only_ones, features.matrix_columns
        plan, row, self.n_dense = _feature_plan(counts, starts, min_dense(n_labels), in_matrix)
        self.n_labels = n_labels
        self.n_weights = pattern.n_weights
        self.width = int(padded_width(n_labels))
        self.n_jobs = n_jobs
        self._cuts = np.linspace(0, X.shape[0], N_PARTS + 1).astype(np.int64)
        matrix = _take_columns(X, in_matrix)
        self.n_matrix = matrix.shape[1]
        self.columns = MatrixColumns(matrix, np.ones(self.n_matrix)) if self.n_matrix else None
        self.is_unit = only_ones or _lists_have_only_ones(X, in_matrix)
        self.arrays = self._split(X, plan, columns, in_matrix)
        self.n_entries = matrix.size + self.arrays.dense_row.size + self.arrays.pair_weight.size
        # Weight dense_param[k], of a dense feature, is stored at rows.ravel()[dense_place[k]].
        is_dense = row >= 0
        self.dense_param = np.flatnonzero(np.repeat(is_dense, counts))
        row_of_weight = np.repeat(row[is_dense], counts[is_dense])
        self.dense_place = row_of_weight * self.width + columns[self.dense_param]

    def _split(
        self,
        X: Any,
        plan: NDArray[np.int64],
        columns: NDArray[np.int32],
        in_matrix: NDArray[np.bool_],
    ) -> RowArrays:
        n_rows = X.shape[0]
        n_dense, n_pairs = np.zeros((2, n_rows), dtype=np.int64)
        if not in_matrix.all():

            def count(first: int, last: int) -> None:
                if sp.issparse(X):
                    entries = X.indptr, X.indices
                    kernels.count_split(*entries, plan, first, last, n_dense, n_pairs)
                    return
                is_dense = plan < 0
                count_in_rows(X, is_dense.astype(np.int64), first, last, n_dense)
                n_pairs_of = np.where(is_dense, 0, plan & 0xFFFF)
                count_in_rows(X, n_pairs_of, first, last, n_pairs)

            self._run_parts(count)
        dense_ptr, pair_ptr = _pointers(n_dense), _pointers(n_pairs)
        unit = self.is_unit
        arrays = RowArrays(
            dense_ptr,
            np.empty(dense_ptr[-1], dtype=np.uint32),
            np.empty(0 if unit else dense_ptr[-1]),
            pair_ptr,
            np.empty(pair_ptr[-1], dtype=np.uint32),
            np.empty(pair_ptr[-1], dtype=np.uint16),
            np.empty(0 if unit else pair_ptr[-1]),
        )
        if not in_matrix.all():

            def fill(first: int, last: int) -> None:
                for base, part, a, b in csr_blocks(X, first, last):
                    here = arrays._replace(dense_ptr=dense_ptr[base:], pair_ptr=pair_ptr[base:])
                    entries = part.indptr, part.indices, part.data
                    kernels.fill_split(*entries, plan, columns, a, b, here)

            self._run_parts(fill)
        return arrays

    def _run_parts(self, function: Callable[[int, int], Any]) -> list[Any]:
        """Return ``function(first, last)`` for fixed parts of the steps, computed by threads."""
        cuts = self._cuts.tolist()
        return run_blocks(lambda i: function(cuts[i], cuts[i + 1]), N_PARTS, self.n_jobs)

    def new_rows(self) -> Floats:
        """Return zeros for the dense features, shape (n_dense, width)."""
        return aligned_zeros((self.n_dense, self.width))

    def spread(self, weights: Floats, rows: Floats) -> None:
        """Copy the weights of dense features to their rows; entries without a weight stay unchanged."""
        rows.reshape(-1)[self.dense_place] = weights[self.dense_param]

    def row_squares(self) -> Floats:
        """Return the sum of the squares of the feature of each dense row, shape (n_dense,)."""
        arrays, sums = self.arrays, np.zeros(self.n_dense)
        if self.columns is not None:
            matrix = self.columns.matrix
            sums[: self.n_matrix] = sum_squares(matrix, np.ones(matrix.shape[0]))
        kernels.add_row_squares(arrays.dense_row, arrays.dense_value, sums)
        return sums

    def observed(self, codes: NDArray[np.int64], step_weights: Floats) -> Floats:
        """Return the sum of the features of all steps with their labels, shape (n_weights,)."""

        def add(first: int, last: int) -> Floats:
            rows, weights = self.new_rows(), np.zeros(self.n_weights)
            kernels.add_gold(self.arrays, codes, step_weights, first, last, rows, weights)
            if self.columns is not None:
                by_label = np.zeros((self.n_labels, self.n_matrix))
                add_labelled(self.columns.matrix, codes, step_weights, first, last, by_label)
                rows[: self.n_matrix, : self.n_labels] = by_label.T
            weights[self.dense_param] = rows.reshape(-1)[self.dense_place]
            return weights

        total, *others = self._run_parts(add)
        for part in others:
            total += part
        return total


def min_dense(n_labels: int) -> float:
    """Return the number of labels at or above which a feature gets a dense row."""
    return max(float(MIN_DENSE), DENSE_SHARE * n_labels)


def _feature_plan(
    counts: NDArray[Any], starts: NDArray[Any], min_dense: float, in_matrix: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return how each feature is stored, as one number per feature, its dense row, and the number of rows.

    The number is ``-1 - row`` for a dense feature, else ``first weight << 16 | number of weights``, which is
    0 for a column of the matrix. The first rows are those of the matrix; a feature without a row has -1.
    """
    is_dense = ~in_matrix & (counts >= min_dense)
    order = np.concatenate([np.flatnonzero(in_matrix), np.flatnonzero(is_dense)])
    row = np.full(counts.size, -1, dtype=np.int64)
    row[order] = np.arange(order.size)
    plan = starts[:-1].astype(np.int64) << 16 | counts
    plan[in_matrix] = 0
    plan[is_dense] = -1 - row[is_dense]
    return plan, row, order.size


def _take_columns(X: Any, chosen: NDArray[np.bool_]) -> Floats:
    """Return the chosen columns as a dense matrix; X itself if it is dense and all are chosen."""
    if not sp.issparse(X):
        return X if chosen.all() else np.ascontiguousarray(X[:, chosen])
    if not chosen.any():
        return np.empty((0, 0))
    return np.ascontiguousarray(X[:, np.flatnonzero(chosen)].toarray())


def _lists_have_only_ones(X: Any, in_matrix: NDArray[np.bool_]) -> bool:
    """Return whether every entry of the columns that are not in the matrix is 1, if X has other entries."""
    if in_matrix.all():
        return True
    if not in_matrix.any():
        return False
    return all(
        bool(np.all(in_matrix[part.indices] | (part.data == 1.0)))
        for _, part, _, _ in csr_blocks(X, 0, X.shape[0])
    )


def _pointers(counts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the start of the entries of each row, and the end of the last row."""
    pointers = np.zeros(counts.size + 1, dtype=np.uint32)
    np.cumsum(counts, out=pointers[1:])
    return pointers
