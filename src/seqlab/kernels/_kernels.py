"""Compiled loops of the kernels."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Columns computed at a time, so that the powers stay in the L1 cache.
BLOCK = 512


@njit(nogil=True, cache=True)
def polynomial_in_place(
    products: Floats, degree: int, coef0: float, gamma: float, left: Floats, right: Floats
) -> None:
    """``products[i, j] = (gamma products[i, j] + coef0) ** degree * (left[i] * right[j])``, in place."""
    base = np.empty(BLOCK)
    n = products.shape[1]
    for i in range(products.shape[0]):
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            row = products[i, first : first + size]
            for j in range(size):
                base[j] = gamma * row[j] + coef0
                row[j] = base[j]
            for _ in range(degree - 1):
                for j in range(size):
                    row[j] *= base[j]
            for j in range(size):
                row[j] *= left[i] * right[first + j]
