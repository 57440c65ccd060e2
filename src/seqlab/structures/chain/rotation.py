"""Columns of large values, such as time stamps, in coordinates in which they are not almost collinear.

The first and the last time stamp of an event differ by seconds, but each is 1e9. What matters is their
difference, a direction in which the curvature is 1e-18 times that of either column: no model of the curvature
in floating point sees it, and the objective seems to be flat. After an orthogonal rotation of these columns
one of them has the common offset, and the others are differences of ordinary size. The L2 penalty does not
change, so the optimum is the same; an L1 penalty does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.structures.chain.columns import has_large_offset, typical_shares
from seqlab.utils.linalg import matmul

if TYPE_CHECKING:
    from seqlab.structures.chain.pattern import FeaturePattern
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Mean square from which the values of a column count as large.
MIN_MEAN_SQUARE = 1e6
# Columns of which less than this share of the squares remains if outliers are clipped are not rotated.
MIN_TYPICAL_SHARE = 0.02
# With more columns a rotation would take longer than it saves.
MAX_COLUMNS = 64
# Rows from which a rotation is computed, per column. Any rotation leaves the optimum as it is.
ROWS_PER_COLUMN, MIN_ROWS = 20, 5_000


class Rotation(NamedTuple):
    """An orthogonal rotation of some columns.

    Parameters
    ----------
    columns : array of shape (n_columns,)
    matrix : array of shape (n_columns, n_columns)
        The rotated columns are ``X[:, columns] @ matrix``.
    least_share : float
        Mean square of the smallest rotated column divided by that of all of them.
    """

    columns: Ints
    matrix: Floats
    least_share: float


def find_rotation(X: Any, mean_squares: Floats) -> Rotation | None:
    """Return a rotation to the principal axes of the columns with large values or large offsets.

    None if there are less than two of them, or too many. X is CSR or dense; columns of a CSR matrix count
    only if they have an entry in each row. Columns whose squares are mostly outliers do not count: their
    principal axes are those of the outliers.
    """
    is_large = has_large_offset(X) | (mean_squares >= MIN_MEAN_SQUARE)
    if sp.issparse(X):
        n_entries = np.bincount(X.indices[: X.nnz], minlength=X.shape[1])
        is_large &= n_entries == X.shape[0]
    if is_large.sum() >= 2:
        is_large &= typical_shares(X) >= MIN_TYPICAL_SHARE
    columns = np.flatnonzero(is_large)
    if not 2 <= columns.size <= MAX_COLUMNS:
        return None
    every = max(1, X.shape[0] // max(ROWS_PER_COLUMN * columns.size, MIN_ROWS))
    sample = _dense(X[::every], columns)
    with np.errstate(over="ignore"):
        total = float(np.square(sample).mean())
    if not np.isfinite(total) or sample.shape[0] < columns.size:
        return None
    # By a QR decomposition: the small singular vectors are accurate although the values differ by 1e10.
    axes = np.linalg.svd(np.linalg.qr(sample, mode="r"))[2]
    matrix = np.ascontiguousarray(axes.T)
    least = float(np.square(matmul(sample, matrix)).mean(axis=0).min())
    return Rotation(columns, matrix, least / total)


def rotate_columns(X: Sequences, rotation: Rotation) -> Sequences:
    """Return the sequences with rotated columns; a copy."""
    matrix, columns = X.matrix.copy(), rotation.columns
    rotated = matmul(_dense(matrix, columns), rotation.matrix)
    if sp.issparse(matrix):
        place = np.full(matrix.shape[1], -1)
        place[columns] = np.arange(columns.size)
        entries = np.flatnonzero(place[matrix.indices[: matrix.nnz]] >= 0)
        step = np.searchsorted(matrix.indptr, entries, side="right") - 1
        matrix.data[entries] = rotated[step, place[matrix.indices[entries]]]
    else:
        matrix[:, columns] = rotated
    return Sequences(matrix, X.offsets)


class RotatedWeights:
    """Weights of rotated columns, and the same model with weights of the original ones.

    Parameters
    ----------
    structure : ChainStructure
        Made for the original columns.
    rotation : Rotation
    """

    def __init__(self, structure: ChainStructure, rotation: Rotation) -> None:
        self._matrix = rotation.matrix
        patterns = {"state": structure.state, "edge": structure.edge}
        self._places = [
            structure.slices[name].start + _places(pattern, rotation.columns)
            for name, pattern in patterns.items()
            if pattern is not None
        ]

    @staticmethod
    def are_possible(structure: ChainStructure, rotation: Rotation) -> bool:
        """Return whether all of the columns have weights for the same labels, and label pairs."""
        patterns = [structure.state, *([] if structure.edge is None else [structure.edge])]
        return all(_has_equal_rows(pattern, rotation.columns) for pattern in patterns)

    def restore(self, w: Floats) -> Floats:
        """Return the weights of the original columns; they give the same scores."""
        restored = w.copy()
        for places in self._places:
            restored[places] = matmul(self._matrix, w[places])
        return restored


def _dense(X: Any, columns: Ints) -> Floats:
    part = X[:, columns]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


def _places(pattern: FeaturePattern, columns: Ints) -> Ints:
    """Return the indices of the weights of some features, shape (n_features, n_weights_of_each)."""
    starts, _ = pattern.explicit()
    n_weights = int(starts[columns[0] + 1] - starts[columns[0]])
    places: Ints = starts[columns].astype(np.int64)[:, None] + np.arange(n_weights)
    return places


def _has_equal_rows(pattern: FeaturePattern, columns: Ints) -> bool:
    starts, labels = pattern.explicit()
    first, *others = (labels[starts[k] : starts[k + 1]] for k in columns)
    return all(np.array_equal(first, other) for other in others)
