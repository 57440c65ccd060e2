"""Window: the features of neighbouring steps in addition to those of a step.

With ``before = b`` and ``after = a`` the row of step ``t`` becomes

    [x(t), x(t-b), ..., x(t-1), x(t+1), ..., x(t+a), outside]

where a neighbour outside the sequence has zeros, and ``outside`` has a 1 for each distance at which the
neighbour is outside.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features._base import MatrixTransformer

# Steps of a window: each one adds a copy of the columns of X, or of the literals of a pattern.
MAX_STEPS = 1000


class Window(MatrixTransformer):
    """Append the features of neighbouring steps.

    Parameters
    ----------
    before, after : int
        Number of steps before and after a step whose features are added.
    boundary : bool
        Whether to add, for each distance, a column that is 1 if the neighbour is outside the sequence.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_ : ndarray of object
        Names of the columns of the input.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.features import Window
    >>> window = Window(before=1, after=0)
    >>> window.fit_transform([np.array([[1.0], [2.0], [3.0]])])[0]
    array([[1., 0., 1.],
           [2., 1., 0.],
           [3., 2., 0.]])
    >>> window.get_feature_names_out().tolist()
    ['x0', 'x0[-1]', '__BOS__[-1]']
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "before": [Interval(Integral, 0, None, closed="left")],
        "after": [Interval(Integral, 0, None, closed="left")],
        "boundary": ["boolean"],
    }

    def __init__(self, *, before: int = 1, after: int = 1, boundary: bool = True) -> None:
        self.before = before
        self.after = after
        self.boundary = boundary

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns: ``name`` and ``name[-1]``; ``__BOS__[-1]`` for the boundary."""
        names = self._input_names(input_features)
        all_names = [str(name) for name in names]
        for distance in self._distances():
            all_names += [f"{name}[{distance:+d}]" for name in names]
        if self.boundary:
            all_names += [
                f"{'__BOS__' if distance < 0 else '__EOS__'}[{distance:+d}]"
                for distance in self._distances()
            ]
        return np.array(all_names, dtype=object)

    def _distances(self) -> list[int]:
        return [*range(-self.before, 0), *range(1, self.after + 1)]

    def _append(self, sequences: Sequences) -> Sequences:
        offsets, lengths = sequences.offsets, sequences.lengths
        steps = np.arange(sequences.n_steps)
        begin, end = np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)
        parts, outside = [sequences.matrix], []
        for distance in self._distances():
            neighbours = steps + distance
            inside = (neighbours >= begin) & (neighbours < end)
            parts.append(_take_rows(sequences.matrix, neighbours, inside))
            outside.append(~inside)
        if self.boundary and outside:
            parts.append(np.array(outside, dtype=np.float64).T)
        if sequences.is_sparse:
            return Sequences(sp.hstack(parts, format="csr"), offsets)
        return Sequences(np.hstack(parts), offsets)


def check_window(window: Any) -> tuple[int, int]:
    """Return the numbers of steps before and after a step; raise an `InputError` if they are not valid.

    Examples
    --------
    >>> check_window([2, 0])
    (2, 0)
    """
    is_pair = isinstance(window, tuple | list) and len(window) == 2
    if not is_pair or not all(map(_is_count, window)):
        raise InputError(
            f"window must be two whole numbers of steps (before, after) of at least 0, got {window!r}"
        )
    before, after = int(window[0]), int(window[1])
    if before + after > MAX_STEPS:
        raise InputError(f"window has more than {MAX_STEPS} steps: {window!r}")
    return before, after


def _is_count(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= 0


def _take_rows(matrix: Any, rows: NDArray[np.int64], wanted: NDArray[np.bool_]) -> Any:
    """Rows of the matrix; rows that are not wanted are zero."""
    if not sp.issparse(matrix):
        out = np.zeros((rows.size, matrix.shape[1]))
        out[wanted] = matrix[rows[wanted]]
        return out
    sizes = np.zeros(rows.size, np.int64)
    sizes[wanted] = np.diff(matrix.indptr)[rows[wanted]]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    kept = matrix[rows[wanted]]
    return sp.csr_matrix((kept.data, kept.indices, indptr), shape=(rows.size, matrix.shape[1]))
