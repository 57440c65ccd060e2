"""Linear algebra with a fixed order of summation: results are bitwise identical for any number of threads.

The results of BLAS depend, in the last bits, on its number of threads and on the shapes of the operands. Here
every sum has a fixed order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.simd.dense_products import add_product, add_transposed_product
from seqlab.simd.vectors import N_SUMS, sum_of_products

Vector = NDArray[np.float64]

# Entries per block; the sum of a block is added to the total. Small enough to stay in the L1 cache.
BLOCK = 4096
WIDTH_MULTIPLE = 4  # the columns of a product are padded to a multiple of this


@njit(nogil=True, cache=True)
def dot(a: Vector, b: Vector) -> float:
    """Return the inner product, in fixed blocks of `N_SUMS` partial sums."""
    total = 0.0
    n = a.size
    for begin in range(0, n, BLOCK):
        stop = min(begin + BLOCK, n)
        n_whole = (stop - begin) // N_SUMS
        block = sum_of_products(a, b, begin, n_whole)
        for i in range(begin + n_whole * N_SUMS, stop):
            block += a[i] * b[i]
        total += block
    return total


@njit(nogil=True, cache=True)
def axpy(alpha: float, x: Vector, y: Vector) -> None:
    """Add ``alpha * x`` to ``y`` in place."""
    for i in range(x.size):
        y[i] += alpha * x[i]


@njit(nogil=True, cache=True)
def multiply(matrix: Vector, x: Vector) -> Vector:
    """Return the product of a matrix, of shape (n, k), and a vector."""
    out = np.empty(matrix.shape[0])
    for i in range(out.size):
        out[i] = dot(matrix[i], x)
    return out


def matmul(a: Vector, b: Vector) -> Vector:
    """Return ``a @ b``, bitwise identical for any split of the rows of ``a``.

    Parameters
    ----------
    a : array of shape (n, k)
    b : array of shape (k, m)
    """
    a, padded = np.ascontiguousarray(a), _pad_columns(b)
    out = np.zeros((a.shape[0], padded.shape[1]))
    if a.shape[1]:
        add_product(a, np.arange(a.shape[0]), a.shape[0], padded, out)
    return np.ascontiguousarray(out[:, : b.shape[1]])


def transposed_matmul(a: Vector, b: Vector) -> Vector:
    """Return ``a.T @ b``, summed over the rows in order.

    Parameters
    ----------
    a : array of shape (n, k)
    b : array of shape (n, m)
    """
    a, padded = np.ascontiguousarray(a), _pad_columns(b)
    out = np.zeros((a.shape[1], padded.shape[1]))
    ones = np.ones(a.shape[1])
    if a.shape[1]:
        add_transposed_product(a, np.arange(a.shape[0]), a.shape[0], padded, ones, out)
    return np.ascontiguousarray(out[:, : b.shape[1]])


def _pad_columns(b: Vector) -> Vector:
    """Return ``b`` with as many columns of zeros as vector registers need; itself if it needs none."""
    n_missing = -b.shape[1] % WIDTH_MULTIPLE
    b = np.ascontiguousarray(b)  # np.pad would keep the order of a transposed array
    return np.pad(b, ((0, 0), (0, n_missing))) if n_missing else b
