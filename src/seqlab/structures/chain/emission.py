"""EmissionTable: a table of weights for scoring many steps.

The counterpart of `MixedRows` for data that are read once: the weights of the features that occur, in the
order in which they are needed. Building the table takes about half as long as scoring, and a little for every
feature of the model; scoring from the matrix of weights itself takes twice as long as from the table.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import padded_width
from seqlab.structures.chain._kernels import emission as kernels

Floats = NDArray[np.float64]
# A feature with weights for at least this share of the labels gets a dense row. Less than in training, in
# which lists of weights are cheaper because `MixedRows` stores them with the data.
DENSE_SHARE = 0.125
MAX_LABELS = 1 << 16  # a line stores a column in 16 bits


class EmissionTable:
    """Weights of the features that occur in X, arranged for scoring its rows.

    Parameters
    ----------
    coef : CSC matrix of shape (n_labels, n_features)
        With at most `MAX_LABELS` labels.
    X : CSR matrix of shape (n_steps, n_features)
    """

    def __init__(self, coef: sp.csc_matrix, X: sp.csr_matrix) -> None:
        self.n_labels, n_features = coef.shape
        self._X = X
        # Lines are in order of first use: those of rare features are close to lines that are read at
        # the same time, and features that do not occur take no memory.
        self._numbered = np.empty(X.nnz, dtype=np.int32)
        numbers = np.zeros(n_features, dtype=np.int32)
        features = np.empty(min(X.nnz, n_features), dtype=np.int32)
        n_lines = kernels.number_features(X.indices[: X.nnz], numbers, features, self._numbered)
        self._columns, self._weights = coef.indices, coef.data
        min_dense = max(kernels.IN_LINE + 1, int(DENSE_SHARE * self.n_labels))
        first, count = np.empty(n_lines, dtype=np.int64), np.empty(n_lines, dtype=np.int32)
        n_dense = kernels.find_weights(features[:n_lines], coef.indptr, min_dense, first, count)
        self._rows = np.zeros((n_dense, padded_width(self.n_labels)))
        self._lines = _aligned(n_lines, 1 + kernels.IN_LINE)
        self._values = self._lines.view(np.float64)
        kernels.fill_lines(
            first, count, self._columns, self._weights, min_dense,
            self._rows, self._lines, self._values,
        )  # fmt: skip

    def emit(self, first: int, last: int) -> Floats:
        """Return the scores of rows ``first:last``, shape (last - first, n_labels)."""
        out = np.empty((last - first, self.n_labels))
        kernels.emit_lines(
            self._X.indptr, self._numbered, self._X.data, self._lines, self._values,
            self._columns, self._weights, self._rows, first, last, out,
        )  # fmt: skip
        return out


def _aligned(n_rows: int, n_columns: int) -> NDArray[np.int64]:
    """Return an uninitialised array whose memory is aligned to cache lines."""
    line = 64 // 8
    raw = np.empty(n_rows * n_columns + line, dtype=np.int64)
    begin = -(raw.ctypes.data // 8) % line
    return raw[begin : begin + n_rows * n_columns].reshape(n_rows, n_columns)
