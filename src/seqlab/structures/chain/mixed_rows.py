"""MixedRows: training data converted for one feature pattern.

The content of the CSR matrix and of the pattern, in the layout that training passes read fastest: each step
has a list of row indices for its dense features (those with weights for many labels) and a list of single
weights for the others. See `_kernels.mixed_rows` for measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import padded_width
from seqlab.structures.chain._kernels import mixed_rows as kernels
from seqlab.structures.chain.pattern import FeaturePattern
from seqlab.utils.threads import run_blocks

Floats = NDArray[np.float64]
# A feature with weights for at least this share of the labels gets a dense row. A dense row costs width
# additions in vectors, a pair one addition and some latency: on text they are equal at about a quarter.
DENSE_SHARE = 0.25
MIN_DENSE = 2
N_PARTS = 2  # parts of the steps that threads convert in parallel


class RowArrays(NamedTuple):
    """Arguments of the kernels, in their order."""

    dense_ptr: NDArray[np.uint32]
    dense_row: NDArray[np.uint32]
    dense_value: Floats
    pair_ptr: NDArray[np.uint32]
    pair_weight: NDArray[np.uint32]
    pair_column: NDArray[np.uint16]
    pair_value: Floats


class MixedRows:
    """Steps of the training data, split into dense features and single weights.

    Parameters
    ----------
    X : CSR matrix of shape (n_steps, n_features)
    pattern : FeaturePattern
        Over labels.

    Attributes
    ----------
    width : int
        Number of labels, padded for vector loops.
    arrays : RowArrays
    is_unit : bool
        Whether every value of the data is 1.
    """

    def __init__(
        self, X: sp.csr_matrix, pattern: FeaturePattern, *, n_jobs: int | None = None
    ) -> None:
        n_labels = pattern.n_columns
        starts, columns = pattern.explicit()
        counts = np.diff(starts)
        plan, self.n_dense = kernels.feature_plan(counts, starts, min_dense(n_labels))
        self.n_labels = n_labels
        self.n_weights = pattern.n_weights
        self.width = int(padded_width(n_labels))
        self.n_jobs = n_jobs
        self._cuts = np.linspace(0, X.shape[0], N_PARTS + 1).astype(np.int64)
        self.arrays = self._split(X, plan, columns)
        # Weight dense_param[k], of a dense feature, is stored at rows.ravel()[dense_place[k]].
        is_dense = plan < 0
        self.dense_param = np.flatnonzero(np.repeat(is_dense, counts))
        row_of_weight = np.repeat(-1 - plan[is_dense], counts[is_dense])
        self.dense_place = row_of_weight * self.width + columns[self.dense_param]

    def _split(
        self, X: sp.csr_matrix, plan: NDArray[np.int64], columns: NDArray[np.int32]
    ) -> RowArrays:
        n_rows = X.shape[0]
        n_dense, n_pairs = np.zeros((2, n_rows), dtype=np.int64)

        def count(first: int, last: int) -> None:
            kernels.count_split(X.indptr, X.indices, plan, first, last, n_dense, n_pairs)

        self._run_parts(count)
        dense_ptr, pair_ptr = _pointers(n_dense), _pointers(n_pairs)
        unit = X.nnz == 0 or bool(X.data.min() == 1.0 and X.data.max() == 1.0)
        self.is_unit = unit
        arrays = RowArrays(
            dense_ptr,
            np.empty(dense_ptr[-1], dtype=np.uint32),
            np.empty(0 if unit else dense_ptr[-1]),
            pair_ptr,
            np.empty(pair_ptr[-1], dtype=np.uint32),
            np.empty(pair_ptr[-1], dtype=np.uint16),
            np.empty(0 if unit else pair_ptr[-1]),
        )

        def fill(first: int, last: int) -> None:
            kernels.fill_split(X.indptr, X.indices, X.data, plan, columns, first, last, arrays)

        self._run_parts(fill)
        return arrays

    def _run_parts(self, function: Callable[[int, int], Any]) -> list[Any]:
        """Return ``function(first, last)`` for fixed parts of the steps, computed by threads."""
        cuts = self._cuts.tolist()
        return run_blocks(lambda i: function(cuts[i], cuts[i + 1]), N_PARTS, self.n_jobs)

    def new_rows(self) -> Floats:
        """Return zeros for the dense features, shape (n_dense, width)."""
        return np.zeros((self.n_dense, self.width))

    def spread(self, weights: Floats, rows: Floats) -> None:
        """Copy the weights of dense features to their rows; entries without a weight stay unchanged."""
        rows.reshape(-1)[self.dense_place] = weights[self.dense_param]

    def observed(self, codes: NDArray[np.int64], step_weights: Floats) -> Floats:
        """Return the sum of the features of all steps with their labels, shape (n_weights,)."""

        def add(first: int, last: int) -> Floats:
            rows, weights = self.new_rows(), np.zeros(self.n_weights)
            kernels.add_gold(self.arrays, codes, step_weights, first, last, rows, weights)
            weights[self.dense_param] = rows.reshape(-1)[self.dense_place]
            return weights

        total, *others = self._run_parts(add)
        for part in others:
            total += part
        return total


def min_dense(n_labels: int) -> float:
    """Return the number of labels at or above which a feature gets a dense row."""
    return max(float(MIN_DENSE), DENSE_SHARE * n_labels)


def _pointers(counts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the start of the entries of each row, and the end of the last row."""
    pointers = np.zeros(counts.size + 1, dtype=np.uint32)
    np.cumsum(counts, out=pointers[1:])
    return pointers
