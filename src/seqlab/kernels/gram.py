"""GramMatrix: the kernel matrix of the training inputs, with bounded memory.

If the whole matrix fits into the limit, it is computed once. Otherwise as many rows as fit are kept, and
rows that are not among them are computed on demand; they replace the rows that were not used for the
longest time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.kernels.functions import BLOCK_ROWS, Kernel
from seqlab.utils.linalg import matmul
from seqlab.utils.signals import check_signals

Floats = NDArray[np.float64]
# Relative difference of k(a, b) and k(b, a) above which a kernel counts as not symmetric, and share of the
# largest eigenvalue below which a negative one is rounding error.
ASYMMETRY = 1e-6


class GramMatrix:
    """The matrix ``k(x_i, x_j)`` of training inputs.

    Parameters
    ----------
    kernel : Kernel
    inputs : array or CSR matrix of shape (n_inputs, n_features)
        The distinct inputs.
    max_bytes : float
        Memory limit of the stored rows.
    check_symmetry : bool
        Whether the kernel might not be symmetric (a user's function or matrix).

    Attributes
    ----------
    n_inputs : int
    is_complete : bool
        Whether all rows are stored.
    row_of : int64 array of shape (n_inputs,)
        Row of `stored` that holds each input; -1 if it is not stored.
    stored : array of shape (n_stored, n_inputs)
    """

    def __init__(
        self, kernel: Kernel, inputs: Any, *, max_bytes: float, check_symmetry: bool = False
    ) -> None:
        self.n_inputs = n = int(inputs.shape[0])
        self._inputs = inputs
        self._bound = kernel.bind(inputs)
        self._n_rows = int(getattr(self._bound, "best_n_rows", BLOCK_ROWS))
        self.is_complete = 8.0 * n * n <= max_bytes
        n_stored = n if self.is_complete else int(max_bytes // (8 * max(n, 1)))
        if n_stored < min(n, BLOCK_ROWS):
            raise InputError(
                f"the kernel matrix of {n:,} distinct steps needs {_megabytes(n * n)}, and at least "
                f"{_megabytes(n * min(n, BLOCK_ROWS))} for single rows: raise cache_size"
            )
        self.stored = np.empty((n_stored, n))
        self.row_of = np.full(n, -1, dtype=np.int64)
        self._owner = np.full(n_stored, -1, dtype=np.int64)
        self._last_used = np.zeros(n_stored, dtype=np.int64)
        self._clock = 0
        if self.is_complete:
            for first in range(0, n, self._n_rows):
                check_signals()
                last = min(first + self._n_rows, n)
                self.stored[first:last] = self._compute(np.arange(first, last))
            self.row_of[:] = np.arange(n)
        if check_symmetry:
            self._check_symmetry()

    def load(self, inputs: NDArray[np.int64]) -> None:
        """Make sure that the rows of these inputs are stored (at most as many as fit)."""
        if self.is_complete:
            return
        wanted = np.unique(inputs)
        if wanted.size > self.stored.shape[0]:
            needed = _megabytes(wanted.size * self.n_inputs)
            raise InputError(
                f"a sequence with {wanted.size:,} distinct steps needs {needed} of the kernel "
                "matrix: raise cache_size"
            )
        self._clock += 1
        present = self.row_of[wanted]
        self._last_used[present[present >= 0]] = self._clock
        missing = wanted[present < 0]
        # The clock of the wanted rows is the largest, so that they are never replaced.
        oldest = np.argsort(self._last_used, kind="stable")[: missing.size]
        for first in range(0, missing.size, self._n_rows):
            check_signals()
            last = first + self._n_rows
            some, slots = missing[first:last], oldest[first:last]
            replaced = self._owner[slots]
            self.row_of[replaced[replaced >= 0]] = -1
            self.stored[slots] = self._compute(some)
            self.row_of[some], self._owner[slots] = slots, some
            self._last_used[slots] = self._clock

    def multiply(self, coefs: Floats) -> Floats:
        """Return ``K @ coefs``, shape (n_inputs, n_columns)."""
        if self.is_complete:
            return matmul(self.stored, coefs)
        out = np.empty((self.n_inputs, coefs.shape[1]))
        used = np.flatnonzero((coefs != 0.0).any(axis=1))
        weights = np.ascontiguousarray(coefs[used])
        for first in range(0, self.n_inputs, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, self.n_inputs)
            rows = self._compute(np.arange(first, last))
            out[first:last] = matmul(np.ascontiguousarray(rows[:, used]), weights)
        return out

    def _compute(self, inputs: NDArray[np.int64]) -> Floats:
        rows = self._bound.rows(self._inputs[inputs])
        if not np.isfinite(rows).all():
            i, j = np.argwhere(~np.isfinite(rows))[0]
            raise InputError(
                f"the kernel of the distinct steps {inputs[i]} and {j} is {rows[i, j]}: kernel values "
                "must be finite"
            )
        return rows

    def _check_symmetry(self) -> None:
        """Raise an error if the matrix, or its first block if it is not stored, is not of a kernel."""
        n = self.n_inputs if self.is_complete else min(self.n_inputs, BLOCK_ROWS)
        square = self.stored[:n, :n] if self.is_complete else self._compute(np.arange(n))[:, :n]
        scale = np.abs(np.diagonal(square)).max(initial=0.0)
        for first in range(0, n, BLOCK_ROWS):
            rows = slice(first, min(first + BLOCK_ROWS, n))
            difference = np.abs(square[rows] - square[:, rows].T)
            if difference.max(initial=0.0) > ASYMMETRY * max(scale, np.abs(square[rows]).max()):
                row, j = np.unravel_index(np.argmax(difference), difference.shape)
                i = first + int(row)
                raise InputError(
                    f"the kernel is not symmetric: k(a, b) = {square[i, j]:.6g} but k(b, a) = "
                    f"{square[j, i]:.6g} for the distinct steps a = {i} and b = {j}"
                )
        self._check_eigenvalues(square)

    def _check_eigenvalues(self, square: Floats) -> None:
        """Raise an error if the matrix of some inputs is not positive semidefinite."""
        if (np.diagonal(square) < 0.0).any():
            i = int(np.argmax(np.diagonal(square) < 0.0))
            raise InputError(
                f"the kernel is not positive semidefinite: k(a, a) = {square[i, i]:.6g} for the distinct "
                f"step {i}"
            )
        some = np.unique(np.linspace(0, len(square) - 1, BLOCK_ROWS).astype(np.int64))
        values = np.linalg.eigvalsh(square[np.ix_(some, some)])
        if values[0] < -ASYMMETRY * values[-1]:
            raise InputError(
                f"the kernel is not positive semidefinite: the matrix of {some.size} distinct steps has the "
                f"eigenvalues {values[0]:.3g} to {values[-1]:.3g}"
            )


def _megabytes(n_entries: int) -> str:
    """Return the memory of so many numbers as text."""
    size = 8e-6 * n_entries
    return f"{size:,.0f} MB" if size >= 10.0 else f"{size:.2g} MB"
