"""Inner products of rows of zeros and ones: the number of ones that two rows have in common.

Sixty-four columns are packed into a word, so that the product of two rows takes a few operations on words.
All products are integers, which floating-point sums represent exactly: the results are the same, bit for
bit, as those of a matrix product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.simd.scalars import count_ones

Words = NDArray[np.uint64]
WORD = 64
# Columns computed at a time, so that the counts stay in the L1 cache.
BLOCK = 512


def pack_binary(matrix: NDArray[Any]) -> Words | None:
    """Return the rows of a matrix of zeros and ones, packed into words; None if it has other values.

    Examples
    --------
    >>> import numpy as np
    >>> pack_binary(np.array([[1.0, 0, 1], [0, 1, 1]]))
    array([[5],
           [6]], dtype=uint64)
    """
    ones = matrix == 1.0
    if not (ones | (matrix == 0.0)).all():
        return None
    n_words = -(-matrix.shape[1] // WORD)
    packed = np.zeros((matrix.shape[0], n_words * WORD // 8), dtype=np.uint8)
    bits = np.packbits(ones, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view("<u8").astype(np.uint64, copy=False)


@njit(nogil=True, cache=True)
def multiply_binary(a: Words, b: Words, out: NDArray[np.float64]) -> None:
    """``out[i, j]`` = number of ones that row ``i`` of ``a`` and column ``j`` of ``b`` have in common.

    ``a`` has the shape (n_rows, n_words), ``b`` the shape (n_words, n_columns).
    """
    counts = np.empty(BLOCK, dtype=np.uint64)
    n = b.shape[1]
    for i in range(a.shape[0]):
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            for j in range(size):
                counts[j] = 0
            for w in range(a.shape[1]):
                word, column = a[i, w], b[w, first : first + size]
                for j in range(size):
                    counts[j] += count_ones(word & column[j])
            row = out[i, first : first + size]
            for j in range(size):
                row[j] = counts[j]
