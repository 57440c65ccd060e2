"""Cholesky factorisation with a fixed order of summation.

LAPACK splits its sums by the number of threads of BLAS, so its last bits depend on the machine.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from seqlab.utils.linalg import Vector, axpy, dot


@njit(nogil=True, cache=True)
def factorise(matrix: Vector) -> bool:
    """Replace a symmetric matrix by its lower triangular factor; return whether it is positive definite.

    The upper half is neither read nor changed.
    """
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i):
            row[j] = (row[j] - dot(row[:j], matrix[j, :j])) / matrix[j, j]
        pivot = row[i] - dot(row[:i], row[:i])
        if not pivot > 0.0 or not math.isfinite(pivot):
            return False
        row[i] = math.sqrt(pivot)
    return True


@njit(nogil=True, cache=True)
def solve_cholesky(lower: Vector, right: Vector) -> Vector:
    """Return the solution of ``lower @ lower.T @ x = right``; the upper half of ``lower`` is not read."""
    n = lower.shape[0]
    x = right.copy()
    for i in range(n):
        x[i] = (x[i] - dot(lower[i, :i], x[:i])) / lower[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= lower[i, i]
        axpy(-x[i], lower[i, :i], x[:i])
    return x


@njit(nogil=True, cache=True)
def solve_cholesky_rows(lower: Vector, rows: Vector) -> Vector:
    """Return the solutions of ``lower @ lower.T @ x = row`` for each row."""
    out = np.empty_like(rows)
    for i in range(rows.shape[0]):
        out[i] = solve_cholesky(lower, rows[i])
    return out
