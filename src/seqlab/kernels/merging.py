"""Merging of equal rows: a kernel matrix needs only the distinct ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class MergedRows(NamedTuple):
    """The distinct rows of a matrix.

    Attributes
    ----------
    rows : matrix of shape (n_distinct, n_columns)
        In the order of their first occurrence.
    place : int64 array of shape (n_rows,)
        Index of each original row among the distinct ones.
    """

    rows: Any
    place: NDArray[np.int64]


def merge_equal_rows(matrix: Any) -> MergedRows:
    """Return the distinct rows of an array or CSR matrix, and the place of each row among them.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.kernels import merge_equal_rows
    >>> merge_equal_rows(np.array([[0.0, 1], [2, 3], [0, 1]])).place
    array([0, 1, 0])
    """
    place = np.empty(matrix.shape[0], dtype=np.int64)
    seen: dict[Any, int] = {}
    first: list[int] = []
    for t, key in enumerate(_row_keys(matrix)):
        place[t] = seen.setdefault(key, len(seen))
        if place[t] == len(first):
            first.append(t)
    if len(first) == matrix.shape[0]:
        return MergedRows(matrix, place)
    return MergedRows(matrix[np.array(first)], place)


def _row_keys(matrix: Any) -> list[Any]:
    """Return a hashable object for each row, equal for equal rows."""
    if not sp.issparse(matrix):
        return [row.tobytes() for row in matrix + 0.0]  # + 0.0 turns -0.0 into 0.0
    indices, data = matrix.indices, matrix.data
    return [
        (indices[a:b].tobytes(), data[a:b].tobytes()) for a, b in pairwise(matrix.indptr.tolist())
    ]
