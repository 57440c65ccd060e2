"""ChainFeatures: what training needs to know about X alone, computed once.

Many chains may be trained on the same X with other labels, as the binary chains of an output code. What
depends on X alone is computed on first use and shared by all of them (see ``derived`` of `TrainingData`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.structures.chain._kernels.two_labels import sum_columns, sum_matrix
from seqlab.structures.chain.columns import (
    EntryCounts,
    choose_matrix_columns,
    count_entries,
    csr_rows,
    mean_square,
    mean_squares,
)
from seqlab.structures.chain.rotation import Rotation, find_rotation
from seqlab.structures.protocol import N_SLOTS
from seqlab.utils.threads import block_bounds, run_blocks

Floats = NDArray[np.float64]
# Largest mean square of a feature, relative to the median: a rate of stochastic passes that suits a larger
# one is too small for the others.
MAX_SCALE_RATIO = 100.0


class EntryArrays(NamedTuple):
    """The features of each step: lists of entries, or a dense matrix."""

    indptr: NDArray[np.uint32]
    indices: NDArray[np.uint32]
    data: Floats  # empty if all values are 1
    matrix: Floats  # (n_steps, n_features), or without columns


class ColumnArrays(NamedTuple):
    """The entries of `EntryArrays`, sorted by column."""

    starts: NDArray[np.uint32]
    steps: NDArray[np.uint32]
    data: Floats  # empty if all values are 1


class ChainFeatures:
    """Facts about the features of sequences, each computed on first use.

    Parameters
    ----------
    X : Sequences
        Must not change afterwards.
    """

    def __init__(self, X: Sequences) -> None:
        self.X = X
        self.offsets = np.array(X.offsets)  # writeable: kernels are compiled for one type of array

    @cached_property
    def counts(self) -> EntryCounts:
        """Numbers of values that are not zero."""
        return count_entries(self.X.matrix)

    @property
    def has_only_ones(self) -> bool:
        """Whether every feature value is 1 or 0."""
        return self.counts.only_ones

    @cached_property
    def n_entries(self) -> int:
        """Number of values that are not zero."""
        return int(self.counts.per_column.sum())

    @cached_property
    def mean_squares(self) -> Floats:
        """Mean square of the values of each column that are not zero, shape (n_features,)."""
        return mean_squares(self.X.matrix, self.counts)

    @cached_property
    def mean_square(self) -> float:
        """Mean square of all values that are not zero: 1 for text."""
        return 1.0 if self.has_only_ones else mean_square(self.X.matrix, self.counts)

    @cached_property
    def rotation(self) -> Rotation | None:
        """A rotation of the columns with large values, if there are several."""
        return None if self.has_only_ones else find_rotation(self.X.matrix, self.mean_squares)

    @property
    def is_evenly_scaled(self) -> bool:
        """Whether no feature has a mean square `MAX_SCALE_RATIO` times that of the median feature."""
        if self.has_only_ones:
            return True
        squares = self.mean_squares
        return bool(squares.max(initial=0.0) <= MAX_SCALE_RATIO * np.median(squares))

    @cached_property
    def matrix_columns(self) -> NDArray[np.bool_]:
        """Which columns are so full that a matrix product is faster than lists of their entries."""
        return choose_matrix_columns(self.X.matrix, self.counts)

    @cached_property
    def entries(self) -> EntryArrays:
        """The features of each step; a dense matrix if X is one and mostly nonzero."""
        X, nothing = self.X, np.empty(0, dtype=np.uint32)
        if not X.is_sparse and self.matrix_columns.all():
            return EntryArrays(nothing, nothing, np.empty(0), X.matrix)
        csr = csr_rows(X.matrix, 0, X.n_steps)
        data = np.empty(0) if self.has_only_ones else csr.data
        pointers, indices = csr.indptr.view(np.uint32), csr.indices.view(np.uint32)
        return EntryArrays(pointers, indices, data, np.empty((0, 0)))

    @cached_property
    def columns(self) -> ColumnArrays:
        """The entries, sorted by column."""
        rows = self.entries
        shape = self.X.matrix.shape
        ones = np.ones(rows.indices.size) if rows.data.size == 0 else rows.data
        indices, pointers = rows.indices.view(np.int32), rows.indptr.view(np.int32)
        csc = sp.csr_matrix((ones, indices, pointers), shape=shape).tocsc()
        data = np.empty(0) if rows.data.size == 0 else csc.data
        return ColumnArrays(csc.indptr.view(np.uint32), csc.indices.view(np.uint32), data)

    @cached_property
    def sums(self) -> Floats:
        """Sum of each column, shape (n_features,)."""
        return self.weighted_sums(np.ones(self.X.n_steps))

    def weighted_sums(self, values: Floats, n_jobs: int | None = None) -> Floats:
        """Return ``X.T @ values``, shape (n_features,); computed by up to ``n_jobs`` threads."""
        out = np.empty(self.X.n_features)
        if self.entries.matrix.size:
            sum_matrix(self.entries.matrix, values, out)
            return out
        columns, bounds = self.columns, self._column_bounds

        def run(part: int) -> None:
            sum_columns(columns, values, bounds[part], bounds[part + 1], out)

        run_blocks(run, len(bounds) - 1, n_jobs)
        return out

    @cached_property
    def _column_bounds(self) -> list[int]:
        """First columns of the parts that threads sum."""
        starts = self.columns.starts.astype(np.int64)
        bounds: list[int] = block_bounds(starts, max_blocks=N_SLOTS).tolist()
        return bounds

    @cached_property
    def slots(self) -> list[NDArray[np.int64]]:
        """Sequences that a thread computes together, sorted by length."""
        n_entries = max(self.entries.indices.size, self.entries.matrix.size)
        per_step = 8 + 2 * n_entries // max(self.X.n_steps, 1)
        bounds = block_bounds(self.offsets, per_step, max_blocks=N_SLOTS)
        lengths = self.X.lengths
        slots = [a + np.argsort(lengths[a:b], kind="stable") for a, b in pairwise(bounds.tolist())]
        return [slot[lengths[slot] > 0] for slot in slots]
