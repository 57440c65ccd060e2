"""FeaturePattern: which (feature, column) pairs have a weight.

A column is a label, or a pair of labels for observation-conditioned transitions. The pattern is
either complete, an (n_features, n_columns) matrix of weights, or limited to the pairs seen in
training, as in CRFsuite: on text this is a tenth or less of all pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.structures.chain._kernels import pattern as kernels
from seqlab.structures.chain._kernels.dense_matrix import add_labelled, count_pairs
from seqlab.utils.linalg import matmul, transposed_matmul

Floats = NDArray[np.float64]
# Mark pairs in a bit set up to this number of columns; beyond, it would take more memory than the data.
MAX_BITS = 512


class FeaturePattern:
    """Layout of the weights of one kind of feature.

    Parameters
    ----------
    n_features, n_columns : int
        Shape of the weight matrix.
    starts, columns : int32 arrays or None
        Pairs that have a weight, feature by feature; None for all pairs.
    """

    def __init__(
        self,
        n_features: int,
        n_columns: int,
        starts: NDArray[np.int32] | None = None,
        columns: NDArray[np.int32] | None = None,
    ) -> None:
        self.n_features = n_features
        self.n_columns = n_columns
        if columns is not None and columns.size == n_features * n_columns:
            starts = columns = None
        self.starts = starts
        self.columns = columns

    @classmethod
    def observed(
        cls,
        X: Any,
        codes: NDArray[np.int64],
        n_columns: int,
        *,
        rows: NDArray[np.int64] | None = None,
        min_count: float = 0,
    ) -> FeaturePattern:
        """Return the pairs seen in rows of X with the given column codes (negative codes are skipped).

        X is CSR or dense; ``rows`` are those that ``codes`` belong to, all if not given.
        """
        rows = np.arange(X.shape[0]) if rows is None else rows
        if not sp.issparse(X):
            counts = np.zeros((n_columns, X.shape[1]), dtype=np.int32)
            count_pairs(X, rows, codes, counts)
            features, columns = np.nonzero(max(min_count, 1) <= counts.T)
            starts = np.searchsorted(features, np.arange(X.shape[1] + 1)).astype(np.int32)
            return cls(X.shape[1], n_columns, starts, columns.astype(np.int32))
        arrays, n_features = (X.indptr, X.indices, X.data, rows, codes), X.shape[1]
        if min_count <= 1 and n_columns <= MAX_BITS:
            seen = np.zeros(n_features * ((n_columns + 63) // 64), dtype=np.uint64)
            starts = np.empty(n_features + 1, dtype=np.int32)
            columns = kernels.seen_pairs(*arrays, seen, starts)
        else:
            starts, columns = kernels.observed_pairs(*arrays, n_features, n_columns, min_count)
        return cls(n_features, n_columns, starts, columns)

    @classmethod
    def with_value_sums(
        cls,
        X: Any,
        codes: NDArray[np.int64],
        n_columns: int,
        *,
        rows: NDArray[np.int64] | None = None,
        min_sum: float = 0.0,
        all_columns: bool = False,
    ) -> FeaturePattern:
        """Return the pairs whose values sum to at least ``min_sum``, as CRFsuite chooses them.

        Stored zeros count as occurrences, so that a pair with the values 0 and 0 has a weight if
        ``min_sum`` is 0; zeros of a dense X do not. Negative codes are skipped. With ``all_columns`` a
        feature that occurs in X counts as seen with every column: the sum of a pair that does not occur
        is 0.
        """
        rows = np.arange(X.shape[0]) if rows is None else rows
        rows, codes = rows[codes >= 0], codes[codes >= 0]
        chosen = sp.csr_matrix(X[rows])
        pairs = chosen.indices.astype(np.int64) * n_columns
        pairs += np.repeat(codes, np.diff(chosen.indptr))
        if all_columns:
            sums = np.bincount(pairs, chosen.data, X.shape[1] * n_columns)
            occurs = np.zeros(X.shape[1], dtype=bool)
            occurs[X.indices if sp.issparse(X) else np.nonzero(X)[1]] = True
            found = np.flatnonzero((sums >= min_sum) & np.repeat(occurs, n_columns))
        else:
            found, pair_of_entry = np.unique(pairs, return_inverse=True)
            sums = np.bincount(pair_of_entry, chosen.data, found.size)
            found = found[sums >= min_sum]
        counts = np.bincount(found // n_columns, minlength=X.shape[1])
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return cls(X.shape[1], n_columns, starts, (found % n_columns).astype(np.int32))

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        n_features = state_checks.check_int(self.n_features, "n_features", 0, 2**31)
        n_columns = state_checks.check_int(self.n_columns, "n_columns", 1, 2**31)
        if self.columns is None:
            state_checks.require(self.starts is None, "starts")
            return
        columns = state_checks.check_array(
            self.columns, "columns", (None,), "i", low=0, high=n_columns, dtype=np.int32
        )
        starts = state_checks.check_array(
            self.starts, "starts", (n_features + 1,), "i", dtype=np.int32
        )
        state_checks.require(starts[0] == 0 and starts[-1] == columns.size, "starts")
        state_checks.require((np.diff(starts) >= 0).all(), "starts")

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        if self.columns is None:
            return self.n_features * self.n_columns
        return int(self.columns.size)

    def explicit(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return ``starts`` and ``columns`` as arrays, even if every pair has a weight."""
        if self.starts is not None and self.columns is not None:
            return self.starts, self.columns
        starts = np.arange(self.n_features + 1, dtype=np.int32) * np.int32(self.n_columns)
        return starts, np.tile(np.arange(self.n_columns, dtype=np.int32), self.n_features)

    def matrix(self, weights: Floats) -> Any:
        """Return the weights as a matrix of shape (n_columns, n_features) that shares their memory.

        Sparse (CSC) if the pattern is limited, else a dense Fortran-ordered array.
        """
        if self.columns is None:
            return weights.reshape(self.n_features, self.n_columns).T
        shape = (self.n_columns, self.n_features)
        return sp.csc_matrix((weights, self.columns, self.starts), shape=shape, copy=False)

    def scatter(self, X: Any, residual: Floats, first: int, last: int, out: Floats) -> None:
        """Add ``X[first:last]' residual`` to ``out``, for the weights of the pattern; X is CSR or dense."""
        if not sp.issparse(X):
            sums = transposed_matmul(X[first:last], residual)
            out += sums.ravel() if self.columns is None else sums.ravel()[self._places()]
        elif self.columns is None:
            rows = out.reshape(self.n_features, self.n_columns)
            kernels.scatter_rows(X.indptr, X.indices, X.data, residual, first, last, rows)
        else:
            kernels.scatter(
                X.indptr, X.indices, X.data, self.starts, self.columns, residual, first, last, out
            )

    def _places(self) -> NDArray[np.int64]:
        """Return the place of each weight in the flat matrix of all pairs."""
        starts, columns = self.explicit()
        feature = np.repeat(np.arange(self.n_features), np.diff(starts))
        return feature * self.n_columns + columns

    def add_observed(
        self, X: Any, codes: NDArray[np.int64], step_weights: Floats, out: Floats
    ) -> None:
        """Add the sum of the features of all rows, each with its column, to ``out``; X is CSR or dense."""
        if not sp.issparse(X):
            sums = np.zeros((self.n_columns, self.n_features))
            add_labelled(X, codes, step_weights, 0, X.shape[0], sums)
            out += sums.T.ravel()[self._places()]
            return
        starts, columns = self.explicit()
        kernels.add_observed(X.indptr, X.indices, X.data, starts, columns, codes, step_weights, out)

    def weight_index(self, X: sp.csr_matrix, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each stored entry of X, the index of its weight for the row's column (-1: none)."""
        if self.columns is None:
            column = np.repeat(codes, np.diff(X.indptr))
            index = X.indices.astype(np.int64) * self.n_columns + column
            return np.where(column >= 0, index, -1)
        out = np.empty(X.nnz, dtype=np.int64)
        kernels.weight_indices(X.indptr, X.indices, self.starts, self.columns, codes, out)
        return out


def emit(X: Any, coef: Any, first: int, last: int) -> Floats:
    """Return ``X[first:last] @ coef.T``, the scores of these rows, shape (last - first, n_columns).

    X is CSR or dense; ``coef`` is (n_columns, n_features): CSC, or a dense array if X is dense.
    """
    if not sp.issparse(X):
        return matmul(X[first:last], np.ascontiguousarray(coef.T, dtype=np.float64))
    out = np.empty((last - first, coef.shape[0]))
    if sp.issparse(coef):
        coef = coef if coef.format == "csc" else coef.tocsc()
        kernels.emit(
            X.indptr, X.indices, X.data, coef.indptr, coef.indices, coef.data, first, last, out
        )
    else:
        rows = np.ascontiguousarray(coef.T, dtype=np.float64)
        kernels.emit_rows(X.indptr, X.indices, X.data, rows, first, last, out)
    return out
