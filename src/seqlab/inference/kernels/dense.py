"""Small dense loops that the chain kernels share: exponentials and vector-matrix products.

The inner loops run over labels, along a contiguous axis and without a reduction (*axpy* form), so that the
compiler vectorises them without reassociating sums: the results are the same on every machine, and ``-inf``
and NaN keep their meaning. Rows are padded with zeros to a multiple of `WIDTH_MULTIPLE`, so that no scalar
remainder is left and four rows can be combined per load and store.

These functions are called from other numba kernels only.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import Floats
from seqlab.simd.exponential import exp_nonpositive

WIDTH_MULTIPLE = 4  # also the number of rows that the loops combine per load and store


@njit(nogil=True, cache=True)
def padded_width(n_labels: int) -> int:
    """Smallest multiple of `WIDTH_MULTIPLE` that holds ``n_labels``."""
    return (n_labels + WIDTH_MULTIPLE - 1) // WIDTH_MULTIPLE * WIDTH_MULTIPLE


@njit(nogil=True, cache=True, fastmath={"contract"})
def vector_matrix(vector: Floats, matrix: Floats, out: Floats) -> None:
    """``out[j] = sum_i vector[i] * matrix[i, j]`` for padded, zero-filled arguments."""
    width = out.shape[0]
    for j in range(width):
        out[j] = 0.0
    for i in range(0, width, WIDTH_MULTIPLE):
        a, b, c, d = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        for j in range(width):
            out[j] = (
                ((out[j] + a * matrix[i, j]) + b * matrix[i + 1, j]) + c * matrix[i + 2, j]
            ) + d * matrix[i + 3, j]


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_outer_products(left: Floats, right: Floats, n_rows: int, scale: float, out: Floats) -> None:
    """``out[i, j] += scale * sum_t left[t, i] * right[t + 1, j]`` for ``t < n_rows - 1``."""
    width = out.shape[0]
    t = 0
    while t + WIDTH_MULTIPLE < n_rows:
        for i in range(width):
            a, b = scale * left[t, i], scale * left[t + 1, i]
            c, d = scale * left[t + 2, i], scale * left[t + 3, i]
            for j in range(width):
                out[i, j] = (
                    ((out[i, j] + a * right[t + 1, j]) + b * right[t + 2, j]) + c * right[t + 3, j]
                ) + d * right[t + 4, j]
        t += WIDTH_MULTIPLE
    while t + 1 < n_rows:
        for i in range(width):
            a = scale * left[t, i]
            for j in range(width):
                out[i, j] += a * right[t + 1, j]
        t += 1


@njit(nogil=True, cache=True)
def finite_bounds(row: Floats) -> tuple[float, float]:
    """Largest and smallest entry above ``-inf``; ``(0, 0)`` if there is none."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    e, f, g, h = np.inf, np.inf, np.inf, np.inf
    whole = row.shape[0] // WIDTH_MULTIPLE * WIDTH_MULTIPLE
    for j in range(0, whole, WIDTH_MULTIPLE):  # four independent series of comparisons
        p, q, r, s = row[j], row[j + 1], row[j + 2], row[j + 3]
        a, b, c, d = max(a, p), max(b, q), max(c, r), max(d, s)
        e, f, g, h = _lower(e, p), _lower(f, q), _lower(g, r), _lower(h, s)
    for j in range(whole, row.shape[0]):
        a, e = max(a, row[j]), _lower(e, row[j])
    high, low = max(max(a, b), max(c, d)), min(min(e, f), min(g, h))
    if high == -np.inf:
        return 0.0, 0.0
    return high, low


@njit(nogil=True, cache=True, inline="always")
def _lower(low: float, value: float) -> float:
    return value if (value < low and value > -np.inf) else low


@njit(nogil=True, cache=True, inline="always")
def exp_shifted(row: Floats, shift: float, out: Floats) -> None:
    """``out[j] = exp(row[j] - shift)``; no entry may be above ``shift``. The padding is not changed."""
    for j in range(row.shape[0]):
        out[j] = exp_nonpositive(row[j] - shift)


@njit(nogil=True, cache=True)
def exp_matrix(matrix: Floats, out: Floats, out_transposed: Floats) -> tuple[float, float]:
    """``out = exp(matrix - shift)`` and its transpose; returns the shift and the finite range."""
    high, low = finite_bounds(matrix.ravel())
    for i in range(matrix.shape[0]):
        exp_shifted(matrix[i], high, out[i])
        for j in range(matrix.shape[1]):
            out_transposed[j, i] = out[i, j]
    return high, high - low


@njit(nogil=True, cache=True, inline="always")
def longest(offsets: NDArray[np.int64], first: int, last: int) -> int:
    """Length of the longest sequence of a block."""
    n = 0
    for i in range(first, last):
        n = max(n, offsets[i + 1] - offsets[i])
    return n


@njit(nogil=True, cache=True)
def count_invalid(flat: Floats) -> int:
    """Number of entries that are NaN or ``+inf``."""
    bad = 0
    for k in range(flat.size):
        bad += 0 if flat[k] < np.inf else 1
    return bad
