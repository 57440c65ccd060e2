"""Kernels of `Conjunctions`: the products of the entries of a CSR row."""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.features._kernels import Floats, Ints


@njit(cache=True, nogil=True)
def count_products(indptr: Ints, size: int) -> int:
    """Number of products of 2 to ``size`` entries of the same CSR row, over all rows."""
    total = 0
    for row in range(indptr.size - 1):
        n = indptr[row + 1] - indptr[row]
        choices = n
        for k in range(2, size + 1):
            choices = choices * (n - k + 1) // k
            total += max(choices, 0)
            if choices <= 0:
                break
    return total


@njit(cache=True, nogil=True)
def fill_products(
    indptr: Ints, indices: Ints, data: Floats, size: int, codes: Ints, steps: Ints, values: Floats
) -> None:
    """List the products of 2 to ``size`` entries of the same CSR row.

    Parameters
    ----------
    indptr, indices, data : CSR arrays
    codes : int32 array of shape (size, n_products), zero
        Set to the columns of each product plus one, ascending; unused places stay 0.
    steps, values : arrays of shape (n_products,)
    """
    at = 0
    pick = np.empty(size, np.int64)
    for row in range(indptr.size - 1):
        begin, n = indptr[row], indptr[row + 1] - indptr[row]
        for k in range(2, min(size, n) + 1):
            for j in range(k):
                pick[j] = j
            while True:
                value = 1.0
                for j in range(k):
                    codes[j, at] = indices[begin + pick[j]] + 1
                    value *= data[begin + pick[j]]
                steps[at] = row
                values[at] = value
                at += 1
                # Next combination in lexicographic order.
                j = k - 1
                while j >= 0 and pick[j] == n - k + j:
                    j -= 1
                if j < 0:
                    break
                pick[j] += 1
                for i in range(j + 1, k):
                    pick[i] = pick[i - 1] + 1
