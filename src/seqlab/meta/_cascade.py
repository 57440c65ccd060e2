"""Cascade features: the predicted bits of earlier columns at neighbouring steps.

Column k of c-SECOC(h) sees, besides the features of X, the bits of columns k-1, ..., k-h that were predicted
for the steps around a step, but not for the step itself. A bit has two features: the probability that it is
1, and that it is 0. Predicted bits are rounded by default, so that one of the two features is 1 and is the
only one that is stored: sparse binary features stay sparse and binary. Both are 0 outside the sequence, and
if the probability of a rounded bit is 1/2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Steps of a window: every one of them has features of its own.
MAX_STEPS = 10_000
# Probabilities that are as near to 1/2 are not rounded to a bit: the difference may be a rounding error.
TIE_WIDTH = 1e-9
# Probabilities are multiples of 1 / PRECISION, so that trees do not split between two results of rounding.
PRECISION = 1e9


class CascadeWindow(NamedTuple):
    """Which predicted bits a column sees.

    Attributes
    ----------
    n_columns : int
        Number of earlier columns, h.
    before, after : int
        Number of steps before and after.
    """

    n_columns: int
    before: int
    after: int

    @classmethod
    def from_params(cls, n_columns: int, window: Any) -> CascadeWindow:
        """Return the window of the parameter ``window``, after checking it."""
        try:
            before, after = (int(side) for side in window)
            is_whole = (before, after) == tuple(window)
        except (TypeError, ValueError):
            is_whole = False
        if not is_whole or before < 0 or after < 0 or before + after > MAX_STEPS:
            raise InputError(
                f"window must be the numbers of steps before and after, as in (1, 1), together at most "
                f"{MAX_STEPS:,}; got {window!r}"
            )
        if before == after == 0 and n_columns > 0:
            raise InputError(
                "window=(0, 0) is empty: use cascade=0 for columns without cascade features"
            )
        return cls(n_columns, before, after)

    def n_seen(self, column: int) -> int:
        """Return the number of earlier columns that a column sees."""
        return min(self.n_columns, column)

    def extend(self, X: Sequences, bits: Floats, column: int) -> Sequences:
        """Return X with the features of one column.

        Parameters
        ----------
        X : Sequences
        bits : array of shape (n_steps, at least ``column``)
            From `cascade_bits`; NaN if a bit is not known.
        column : int
        """
        n_seen = self.n_seen(column)
        if n_seen == 0:
            return X
        # The latest column first: its features have the same place for all columns.
        seen = np.ascontiguousarray(bits[:, column - n_seen : column][:, ::-1])
        shape = X.n_steps, X.n_features + 2 * n_seen * (self.before + self.after)
        if not X.is_sparse:
            wide = np.empty(shape)
            wide[:, : X.n_features] = X.matrix
            _fill_dense(seen, X.offsets, self.before, self.after, wide[:, X.n_features :])
            return Sequences.from_checked(wide, X.offsets)
        matrix = X.matrix
        indptr, indices, data = _append_sparse(
            matrix.indptr, matrix.indices, matrix.data, X.n_features, seen, X.offsets,
            self.before, self.after,
        )  # fmt: skip
        out = sp.csr_matrix(shape, dtype=np.float64)
        out.data, out.indices, out.indptr = data, indices, indptr
        out.has_sorted_indices = out.has_canonical_format = True
        return Sequences.from_checked(out, X.offsets)


def cascade_bits(probabilities: Floats, *, rounded: bool) -> Floats:
    """Return bits as the cascade features of later columns use them; NaN for a bit that is not known."""
    if not rounded:
        return np.rint(probabilities * PRECISION) / PRECISION
    is_tie = np.abs(probabilities - 0.5) <= TIE_WIDTH
    return np.where(is_tie, np.nan, (probabilities > 0.5).astype(np.float64))


@njit(nogil=True, cache=True)
def _append_sparse(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: Floats,
    n_features: int,
    bits: Floats,
    offsets: Ints,
    before: int,
    after: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return the CSR arrays of a matrix with the cascade features appended to its rows."""
    n_steps, n_seen = bits.shape
    new_indptr = np.zeros(n_steps + 1, dtype=np.int32)
    new_indices, new_data = indices[:0].copy(), data[:0].copy()
    for fill in (False, True):  # count the entries, then write them
        if fill:
            new_indices = np.empty(new_indptr[n_steps], dtype=np.int32)
            new_data = np.empty(new_indptr[n_steps])
        place = 0
        for i in range(offsets.size - 1):
            first, last = offsets[i], offsets[i + 1]
            for t in range(first, last):
                n_own = indptr[t + 1] - indptr[t]
                if fill:
                    new_indices[place : place + n_own] = indices[indptr[t] : indptr[t + 1]]
                    new_data[place : place + n_own] = data[indptr[t] : indptr[t + 1]]
                place += n_own
                column = n_features - 2
                for c in range(n_seen):
                    for shift in range(-before, after + 1):
                        if shift == 0:
                            continue
                        column += 2
                        u = t + shift
                        if u < first or u >= last or np.isnan(bits[u, c]):
                            continue
                        p = bits[u, c]
                        for k, value in ((0, p), (1, 1.0 - p)):
                            if value > 0.0:
                                if fill:
                                    new_indices[place] = column + k
                                    new_data[place] = value
                                place += 1
                new_indptr[t + 1] = place
    return new_indptr, new_indices, new_data


@njit(nogil=True, cache=True)
def _fill_dense(bits: Floats, offsets: Ints, before: int, after: int, out: Floats) -> None:
    """Write the cascade features into ``out`` (n_steps, 2 * n_seen * (before + after))."""
    n_seen = bits.shape[1]
    out[:] = 0.0
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1]
        for t in range(first, last):
            column = 0
            for c in range(n_seen):
                for shift in range(-before, after + 1):
                    if shift == 0:
                        continue
                    u = t + shift
                    if first <= u < last and not np.isnan(bits[u, c]):
                        out[t, column] = bits[u, c]
                        out[t, column + 1] = 1.0 - bits[u, c]
                    column += 2
