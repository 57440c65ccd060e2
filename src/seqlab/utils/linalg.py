"""Linear algebra with a fixed order of summation: the same bits for any number of threads.

BLAS splits long products over its own threads, and chooses its loops by the shape of the operands, so the
last bits of its results change with both. Here every sum has a fixed order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Entries that are summed up before they are added to the total: small enough to stay in the L1 cache.
BLOCK = 4096


@njit(nogil=True, cache=True)
def dot(a: Vector, b: Vector) -> float:
    """Inner product by fixed blocks, each with eight partial sums (which LLVM keeps in a vector)."""
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
    """``y += alpha * x`` in place."""
    for i in range(x.size):
        y[i] += alpha * x[i]


def matmul(a: Vector, b: Vector) -> Vector:
    """``a @ b`` with the terms of every sum added in order: the same bits for any split of the rows of ``a``.

    Parameters
    ----------
    a : array of shape (n, k), C-contiguous
    b : array of shape (k, m), C-contiguous
    """
    out = np.zeros((a.shape[0], b.shape[1]))
    _add_product(a, b, out)
    return out


# Rows of b that are used for all rows of a before the next ones are read: with 26 labels 27 kB of b.
ROWS_OF_B = 128


@njit(nogil=True, cache=True)
def _add_product(a: Vector, b: Vector, out: Vector) -> None:
    for first in range(0, b.shape[0], ROWS_OF_B):
        last = min(first + ROWS_OF_B, b.shape[0])
        for i in range(a.shape[0]):
            row = out[i]
            for k in range(first, last):
                axpy(a[i, k], b[k], row)
