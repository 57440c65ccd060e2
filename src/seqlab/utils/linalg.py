"""Linear algebra with a fixed order of summation: results are bitwise identical for any number of threads.

The results of BLAS depend, in the last bits, on its number of threads and on the shapes of the operands. Here
every sum has a fixed order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Entries per block; the sum of a block is added to the total. Small enough to stay in the L1 cache.
BLOCK = 4096


@njit(nogil=True, cache=True)
def dot(a: Vector, b: Vector) -> float:
    """Return the inner product, in fixed blocks of eight partial sums (which LLVM keeps in a vector)."""
    total = 0.0
    n = a.size
    for begin in range(0, n, BLOCK):
        stop = min(begin + BLOCK, n)
        whole = begin + (stop - begin) // 8 * 8
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for i in range(begin, whole, 8):
            s0 += a[i] * b[i]
            s1 += a[i + 1] * b[i + 1]
            s2 += a[i + 2] * b[i + 2]
            s3 += a[i + 3] * b[i + 3]
            s4 += a[i + 4] * b[i + 4]
            s5 += a[i + 5] * b[i + 5]
            s6 += a[i + 6] * b[i + 6]
            s7 += a[i + 7] * b[i + 7]
        block = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
        for i in range(whole, stop):
            block += a[i] * b[i]
        total += block
    return total


@njit(nogil=True, cache=True)
def axpy(alpha: float, x: Vector, y: Vector) -> None:
    """Add ``alpha * x`` to ``y`` in place."""
    for i in range(x.size):
        y[i] += alpha * x[i]


def matmul(a: Vector, b: Vector) -> Vector:
    """Return ``a @ b``, bitwise identical for any split of the rows of ``a``.

    Parameters
    ----------
    a : array of shape (n, k), C-contiguous
    b : array of shape (k, m), C-contiguous
    """
    out = np.zeros((a.shape[0], b.shape[1]))
    _add_product(a, b, out)
    return out


# Rows of b used for all rows of a before the next ones are read: 27 kB for 26 labels, less than an L1 cache.
ROWS_OF_B = 128


@njit(nogil=True, cache=True)
def _add_product(a: Vector, b: Vector, out: Vector) -> None:
    for first in range(0, b.shape[0], ROWS_OF_B):
        last = min(first + ROWS_OF_B, b.shape[0])
        for i in range(a.shape[0]):
            row = out[i]
            for k in range(first, last):
                axpy(a[i, k], b[k], row)
