"""Features as bins: the form in which trees are grown.

The values of each feature are divided into at most 255 bins. Bins are numbered over all features, and a row
stores the numbers of its bins except those of the value 0: one number per active feature if X is sparse and
binary. Steps with equal bins are merged into one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.learning.boosting._kernels.unique_rows import find_unique_rows, list_rows

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]

MAX_BINS = 255
_NO_VALUES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of all features.

    Attributes
    ----------
    begin : int32 array of shape (n_features + 1,)
        Feature ``f`` has the bins ``begin[f]`` to ``begin[f + 1] - 1``, in the order of their values.
    default : int32 array of shape (n_features,)
        The bin of the value 0, which rows do not store.
    upper : array of shape (n_bins,)
        Largest value of each bin; the category itself for a categorical feature.
    is_categorical : boolean array of shape (n_features,)
    """

    begin: Ints32
    default: Ints32
    upper: Floats
    is_categorical: NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.default.size)

    def threshold(self, feature: int, n_left: int) -> float:
        """Return the largest value that goes left if the first ``n_left`` bins do."""
        return float(self.upper[self.begin[feature] + n_left - 1])


@dataclass(frozen=True, slots=True)
class BinnedRows:
    """The distinct rows of a matrix.

    Attributes
    ----------
    bins : Bins
    row_of_step : int32 array of shape (n_steps,)
    indptr, entries : int32 arrays
        The bins of row ``i``, without default bins, are ``entries[indptr[i]:indptr[i + 1]]``.
    list_begin, listed_rows : int32 arrays
        The rows of bin ``b``, if it is not a default bin, are ``listed_rows[list_begin[b]:list_begin[b +
        1]]``.
    """

    bins: Bins
    row_of_step: Ints32
    indptr: Ints32
    entries: Ints32
    list_begin: Ints32
    listed_rows: Ints32

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return int(self.indptr.size - 1)

    @classmethod
    def from_sequences(
        cls, X: Sequences, categorical: Sequence[int] = (), *, merge: bool = True
    ) -> BinnedRows:
        """Divide the features into bins and merge equal rows.

        Parameters
        ----------
        X : Sequences
        categorical : sequence of int
            Indices of the features whose values are categories: whole numbers from 0 to 254.
        merge : bool, default=True
            Whether equal rows are merged; the trees are the same either way.
        """
        matrix = sp.csr_matrix(X.matrix)
        bins, entries, is_default = _assign_bins(matrix, categorical, X)
        indptr = matrix.indptr.astype(np.int32)
        if is_default is not None:
            keep = ~is_default
            counts = np.concatenate([[0], np.cumsum(keep)])
            indptr, entries = counts[indptr].astype(np.int32), entries[keep]
        row_of_step = np.arange(X.n_steps, dtype=np.int32)
        if merge:
            row_of_step, first = find_unique_rows(indptr, entries, _NO_VALUES)
            indptr, entries = take_rows(first, indptr, entries)
        lists = list_rows(indptr, entries, bins.begin[-1])
        return cls(bins, row_of_step, indptr, entries, *lists)


def take_rows(rows: Ints32, indptr: Ints32, *arrays: NDArray[Any]) -> Any:
    """Return the chosen rows of a CSR matrix: its ``indptr`` and arrays with one value per entry."""
    sizes = np.diff(indptr)[rows]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(begin[-1]) + np.repeat(indptr[rows] - begin[:-1], sizes)
    return begin.astype(np.int32), *(array[places] for array in arrays)


def unique_rows(indptr: Ints32, indices: Ints32, data: Floats) -> tuple[Ints32, Ints32]:
    """Number the distinct rows of a CSR matrix; returns the row of each step and first occurrences."""
    return find_unique_rows(indptr, indices, np.ascontiguousarray(data).view(np.int64))


def _assign_bins(
    matrix: sp.csr_matrix, categorical: Sequence[int], X: Sequences
) -> tuple[Bins, Ints32, NDArray[np.bool_] | None]:
    """Return the bins, the bin of each stored entry, and which entries are in default bins."""
    n_features = matrix.shape[1]
    is_categorical = np.zeros(n_features, dtype=np.bool_)
    is_categorical[list(categorical)] = True
    if not categorical and np.all(matrix.data == 1.0):
        begin = np.arange(0, 2 * n_features + 1, 2, dtype=np.int32)
        upper = np.tile([0.5, np.inf], n_features)
        bins = Bins(begin, begin[:-1].copy(), upper, is_categorical)
        return bins, (2 * matrix.indices + 1).astype(np.int32), None
    columns = matrix.tocsc()
    # Positions of the entries of each column among the entries of the CSR matrix.
    places = sp.csr_matrix((np.arange(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
    places = places.tocsc().data
    n_steps = matrix.shape[0]
    begins, defaults, uppers = [0], [], []
    entries = np.empty(matrix.nnz, dtype=np.int32)
    for f in range(n_features):
        part = slice(columns.indptr[f], columns.indptr[f + 1])
        values = columns.data[part]
        if is_categorical[f]:
            cuts = _categories(values, matrix, f, X)
            codes = np.searchsorted(cuts, values)
            zero = int(np.searchsorted(cuts, 0.0))
        else:
            cuts = _bounds(values, n_steps - values.size)
            codes = np.searchsorted(cuts, values, side="left")
            zero = int(np.searchsorted(cuts, 0.0, side="left"))
        entries[places[part]] = begins[-1] + codes
        uppers.append(cuts)
        defaults.append(begins[-1] + zero)
        begins.append(begins[-1] + cuts.size)
    bins = Bins(
        np.array(begins, dtype=np.int32),
        np.array(defaults, dtype=np.int32),
        np.concatenate(uppers),
        is_categorical,
    )
    return bins, entries, entries == bins.default[matrix.indices]


def _bounds(values: Floats, n_zeros: int) -> Floats:
    """Return the upper bounds of the bins of a feature; the last one is infinite."""
    distinct, counts = np.unique(values, return_counts=True)
    if n_zeros > 0 or distinct.size == 0:
        at = int(np.searchsorted(distinct, 0.0))
        if at < distinct.size and distinct[at] == 0.0:
            counts[at] += n_zeros
        else:
            distinct, counts = np.insert(distinct, at, 0.0), np.insert(counts, at, n_zeros)
    if distinct.size > MAX_BINS:
        # Bins with about equal numbers of steps.
        share = np.cumsum(counts) / counts.sum()
        last = np.unique(np.searchsorted(share, np.arange(1, MAX_BINS) / MAX_BINS))
        last = last[last < distinct.size - 1]
        # The middle of two numbers, without overflow.
        middle = distinct[last] / 2 + distinct[last + 1] / 2
    else:
        middle = distinct[:-1] / 2 + distinct[1:] / 2
        last = np.arange(distinct.size - 1)
    # Rounding may move the middle to the upper one of two neighbouring numbers.
    middle = np.where(middle < distinct[last + 1], middle, distinct[last])
    return np.append(middle, np.inf)


def _categories(values: Floats, matrix: sp.csr_matrix, feature: int, X: Sequences) -> Floats:
    """Return the categories of a feature: 0 and all stored values."""
    bad = (values < 0) | (values >= MAX_BINS) | (values != np.floor(values))
    if bad.any():
        column = matrix[:, [feature]].tocoo()
        step = int(column.row[np.argmax(np.isin(column.data, values[bad]))])
        sequence, position = X.locate(step)
        raise InputError(
            f"X[{sequence}][{position}] has the value {values[bad][0]:g} in the categorical feature "
            f"{feature}: categories must be whole numbers from 0 to {MAX_BINS - 1}"
        )
    return np.unique(np.append(values, 0.0))
