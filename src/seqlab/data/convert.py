"""Convert X, in any of the accepted forms, to `Sequences`.

1. The form: a list (tuple, object array, iterator) of sequences, a 3-D array, one stacked matrix with
   ``lengths=``, or a single matrix, which is one sequence. `Layout` stores it, so that results have
   the form of the input: list in, list out; stacked in, stacked out.
2. The kind: numbers become a dense or CSR matrix here. Dicts, bags of strings and data frames with
   text columns are symbolic; a vectorizer turns them into numbers.
3. Checks: equal numbers of features, finite numbers, no mixture of kinds. Every error names the
   sequence and the position.

Iterators are read sequence by sequence, so that the raw Python objects are never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data._detect import detect, unwrap
from seqlab.data._matrices import (
    WRAP_HINT,
    check_columns,
    describe,
    frame_is_numeric,
    frame_names,
    is_frame,
    refuse_step,
    stack_numeric,
    to_matrix,
    to_row_matrix,
)
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences, integer_lengths, to_offsets

__all__ = [
    "Layout",
    "Vectorizer",
    "as_sequences",
    "describe",
    "frame_records",
    "is_frame",
    "refuse_step",
]


class Vectorizer(Protocol):
    """Turns symbolic sequences into `Sequences`; see `seqlab.SequenceVectorizer`."""

    def transform(self, X: Any) -> Sequences:
        """Vectorize with the features known from fit."""
        ...

    def fit_transform(self, X: Any) -> Sequences:
        """Learn the features of X and vectorize it."""
        ...


@dataclass(frozen=True)
class Layout:
    """The form of the input, which results are given too.

    Parameters
    ----------
    is_list : bool
        True for a list of sequences, a 3-D array or `Sequences`; False for one stacked or single
        matrix.
    symbolic : bool
        Whether a vectorizer produced the numbers.
    empty : bool
        Whether the input was a list of empty sequences only. The `Sequences` then have no step and
        no column, but the number of features is unknown rather than 0.

    Examples
    --------
    >>> import numpy as np
    >>> Layout(is_list=True).restore(np.array([7, 8, 9]), [0, 2, 3])
    [array([7, 8]), array([9])]
    >>> Layout(is_list=False).restore(np.array([7, 8, 9]), [0, 2, 3])
    array([7, 8, 9])
    """

    is_list: bool
    symbolic: bool = False
    empty: bool = False

    def restore(self, stacked: Any, offsets: ArrayLike) -> Any:
        """Convert a result with one row per step to the form of the input.

        Parameters
        ----------
        stacked : array of shape (n_steps, ...)
        offsets : array of shape (n_sequences + 1,)

        Returns
        -------
        list of arrays, one per sequence, or the stacked array itself
        """
        if not self.is_list:
            return stacked
        bounds = np.asarray(offsets).tolist()
        return [stacked[a:b] for a, b in pairwise(bounds)]


def as_sequences(
    X: Any,
    lengths: Iterable[int] | None = None,
    *,
    vectorizer: Vectorizer | None = None,
    fit_vectorizer: bool = False,
    check_finite: bool = True,
) -> tuple[Sequences, Layout]:
    """Convert X to `Sequences`.

    Parameters
    ----------
    X : Sequences, list or iterator of sequences, 3-D array, or one 2-D matrix
        A sequence is a 2-D array, a list of rows of numbers, a sparse matrix or a data frame; or,
        with a vectorizer, a list of dicts, a list of bags of strings or a data frame with text.
    lengths : iterable of int, optional
        Steps per sequence, if X is one stacked matrix or one flat list of steps.
    vectorizer : object with transform, optional
        Used only if X is symbolic.
    fit_vectorizer : bool, default=False
        Whether to call ``vectorizer.fit_transform`` instead of ``transform``.
    check_finite : bool, default=True
        Whether to raise an error for NaN and infinity.

    Returns
    -------
    sequences : Sequences
    layout : Layout

    Examples
    --------
    >>> seqs, layout = as_sequences([[[1, 2], [3, 4]], [[5, 6]]])
    >>> seqs.lengths.tolist(), layout.is_list
    ([2, 1], True)
    >>> seqs, layout = as_sequences([[1, 2], [3, 4], [5, 6]], lengths=[1, 2])
    >>> seqs.lengths.tolist(), layout.is_list
    ([1, 2], False)
    """
    X = unwrap(X)
    if isinstance(X, Sequences):
        _refuse_lengths(lengths)
        sequences, layout = X, Layout(is_list=True)
    elif sp.issparse(X) or isinstance(X, np.ndarray) or is_frame(X):
        check_columns(X, "X")
        if is_frame(X) and not frame_is_numeric(X):
            pieces = _split(X, lengths)
            return _vectorize(pieces, vectorizer, fit_vectorizer, "X is a data frame with text")
        matrix, names = to_matrix(X, "X"), frame_names(X)
        if isinstance(matrix, np.ndarray) and matrix.ndim == 3:
            _refuse_lengths(lengths)
            offsets = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
            matrix, layout = matrix.reshape(offsets[-1], matrix.shape[2]), Layout(is_list=True)
        else:
            offsets = _offsets(lengths, matrix.shape[0])
            layout = Layout(is_list=False)
        sequences = Sequences(matrix, offsets, feature_names=names)
    else:
        stream, kind, nested = detect(X, stacked=lengths is not None)
        if kind is None and vectorizer is not None:
            kind = "symbolic"  # only empty sequences or empty bags
        if nested:
            _refuse_lengths(lengths)
            if kind == "symbolic":
                stream = _checked_frames(stream)
                return _vectorize(stream, vectorizer, fit_vectorizer, "X holds dicts or strings")
            sequences = stack_numeric(stream)
            empty = sequences.n_steps == 0 and sequences.n_features == 0
            layout = Layout(is_list=True, empty=empty)
        elif kind == "symbolic":
            if lengths is None:
                raise InputError(f"X[0] is a dict: {WRAP_HINT}")
            pieces = _split(list(stream), lengths)
            return _vectorize(pieces, vectorizer, fit_vectorizer, "X holds dicts or strings")
        else:
            matrix = to_row_matrix(list(stream), "X")
            sequences = Sequences(matrix, _offsets(lengths, matrix.shape[0]))
            layout = Layout(is_list=False)
    if sequences.n_features == 0 and sequences.n_steps > 0 and not isinstance(X, Sequences):
        raise InputError(
            f"Found array with 0 feature(s) (shape=({sequences.n_steps}, 0)) while a minimum of "
            "1 is required."
        )
    if check_finite:
        _check_finite(sequences, layout)
    return sequences, layout


def frame_records(frame: Any) -> list[dict[str, Any]]:
    """Convert the rows of a data frame to dicts; missing text is None, missing numbers are NaN."""
    columns: dict[str, list[Any]] = {}
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in "biuf":
            dtype = bool if column.dtype == bool else np.float64
            columns[str(name)] = column.to_numpy(dtype=dtype, na_value=np.nan).tolist()
        else:
            values = column.astype(object)
            columns[str(name)] = values.where(column.notna(), None).tolist()
    if len(columns) != frame.shape[1]:
        raise InputError(f"the columns of a data frame must have different names: {list(columns)}")
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _checked_frames(stream: Iterable[Any]) -> Iterator[Any]:
    for index, item in enumerate(stream):
        check_columns(item, f"X[{index}]")
        yield item


def _vectorize(
    pieces: Iterable[Any], vectorizer: Vectorizer | None, fit: bool, found: str
) -> tuple[Sequences, Layout]:
    if vectorizer is None:
        raise InputError(
            f"{found}, but only numbers are expected here (was the model fitted on numeric data?); "
            "put a seqlab.SequenceVectorizer before this step"
        )
    stacked = isinstance(pieces, _Pieces)
    sequences = vectorizer.fit_transform(pieces) if fit else vectorizer.transform(pieces)
    return sequences, Layout(is_list=not stacked, symbolic=True)


class _Pieces(list[Any]):
    """The sequences of one stacked input."""


def _split(stacked: Any, lengths: Iterable[int] | None) -> _Pieces:
    bounds = _offsets(lengths, len(stacked)).tolist()
    rows = stacked.iloc if is_frame(stacked) else stacked
    return _Pieces(rows[a:b] for a, b in pairwise(bounds))


def _refuse_lengths(lengths: Any) -> None:
    if lengths is not None:
        raise InputError("lengths= is for one stacked matrix, but X is a list of sequences")


def _offsets(lengths: Iterable[int] | None, n_rows: int) -> NDArray[np.int64]:
    if lengths is None:
        return np.array([0, n_rows], dtype=np.int64)
    given = integer_lengths(lengths)
    total = sum(given.tolist())  # Python integers do not overflow
    if total != n_rows:
        raise InputError(
            f"lengths sum to {total} but X has {n_rows} rows; under cross-validation give X "
            "as a list of sequences instead of stacked rows"
        )
    return to_offsets(given)


def _check_finite(sequences: Sequences, layout: Layout) -> None:
    matrix: Any = sequences.matrix
    values = matrix.data if sp.issparse(matrix) else matrix
    # A finite sum implies finite entries. The sum of finite entries may overflow: then check each.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(matrix):
        entry = int(np.argmax(bad))
        step = int(np.searchsorted(matrix.indptr, entry, side="right") - 1)
        feature, value = int(matrix.indices[entry]), matrix.data[entry]
    else:
        step, feature = (int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
        value = matrix[step, feature]
    sequence, position = sequences.locate(step)
    what = "NaN" if np.isnan(value) else "infinity"
    place = f"X[{sequence}] position {position}" if layout.is_list else f"row {step}"
    raise InputError(f"Input X contains {what}: {place} feature {feature}")
