"""Conversion of whatever a user calls X into `Sequences`: once, at the border.

Three questions are asked of X, in this order, and nothing is guessed twice:

1. *Which form?* A list (tuple, object array, iterator) of sequences, a 3-D array, one stacked
   matrix with ``lengths=``, or a single matrix, which is one sequence. `Layout` remembers it, so
   that results go back the way the data came: list in, list out; stacked in, stacked out.
2. *Which kind?* Numbers become a dense or CSR matrix here. Dicts, bags of strings and data frames
   with text columns are symbolic: a vectorizer, passed in, turns them into numbers.
3. *Is it sound?* Equal feature counts, finite numbers, no mixture of kinds. Every error names
   the sequence and the position.

Iterators are read sequence by sequence: the raw Python objects are never all held at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data._matrices import (
    RESHAPE_HINT,
    WRAP_HINT,
    check_columns,
    describe,
    frame_is_numeric,
    frame_names,
    is_frame,
    is_number,
    numeric_matrix,
    refuse_series,
    refuse_step,
    rows_matrix,
    stack_numeric,
)
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences, integer_lengths

Kind = Literal["numeric", "symbolic"]


class Vectorizer(Protocol):
    """What turns symbolic sequences into `Sequences`; see `seqlab.SequenceVectorizer`."""

    def transform(self, X: Any) -> Sequences:
        """Vectorize with the features known from fit."""
        ...

    def fit_transform(self, X: Any) -> Sequences:
        """Learn the features of X and vectorize it."""
        ...


@dataclass(frozen=True)
class Layout:
    """The form in which the input came, and in which results go back.

    Parameters
    ----------
    is_list : bool
        True for a list of sequences, a 3-D array or `Sequences`; False for one stacked or single
        matrix.
    symbolic : bool
        Whether a vectorizer produced the numbers.
    empty : bool
        Whether a list held nothing but empty sequences: the `Sequences` have no step and no
        column, and the number of features is unknown rather than 0.

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
        """Give a result with one row per step the form of the input.

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
        Steps per sequence, when X is one stacked matrix, or one flat list of steps.
    vectorizer : object with transform, optional
        Used for symbolic X only.
    fit_vectorizer : bool, default=False
        Call ``vectorizer.fit_transform`` in place of ``transform``.
    check_finite : bool, default=True
        Reject NaN and infinity.

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
    X = _plain(X)
    if isinstance(X, Sequences):
        _refuse_lengths(lengths)
        sequences, layout = X, Layout(is_list=True)
    elif sp.issparse(X) or isinstance(X, np.ndarray) or is_frame(X):
        check_columns(X, "X")
        if is_frame(X) and not frame_is_numeric(X):
            pieces = _cut(X, lengths)
            return _vectorize(pieces, vectorizer, fit_vectorizer, "X is a data frame with text")
        matrix, names = numeric_matrix(X, "X"), frame_names(X)
        if isinstance(matrix, np.ndarray) and matrix.ndim == 3:
            _refuse_lengths(lengths)
            offsets = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
            matrix, layout = matrix.reshape(offsets[-1], matrix.shape[2]), Layout(is_list=True)
        else:
            offsets = _offsets(lengths, matrix.shape[0])
            layout = Layout(is_list=False)
        sequences = Sequences(matrix, offsets, feature_names=names)
    else:
        stream, kind, nested = _look(X, stacked=lengths is not None)
        if kind is None and vectorizer is not None:
            kind = "symbolic"  # nothing but empty bags, or none
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
            pieces = _cut(list(stream), lengths)
            return _vectorize(pieces, vectorizer, fit_vectorizer, "X holds dicts or strings")
        else:
            matrix = rows_matrix(list(stream), "X")
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


def input_kind(X: Any) -> Kind:
    """Tell numbers from symbols by the first step of the first sequence that is not empty.

    Parameters
    ----------
    X : any form `as_sequences` accepts, except an iterator, which looking would consume

    Returns
    -------
    "numeric" or "symbolic"

    Examples
    --------
    >>> input_kind([[{"word": "to"}, {"word": "be"}]])
    'symbolic'
    >>> input_kind([[[0.5, 1.0]]])
    'numeric'
    """
    X = _plain(X)
    if is_frame(X):
        return "numeric" if frame_is_numeric(X) else "symbolic"
    if isinstance(X, Sequences | np.ndarray) or sp.issparse(X):
        return "numeric"
    if isinstance(X, Iterator):
        raise InputError("X is an iterator: looking at its first step would consume it")
    return _look(X)[1] or "numeric"


def frame_records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a data frame as dicts; missing text is None, missing numbers stay NaN."""
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


def _plain(X: Any) -> Any:
    """Unwrap objects that only know how to become an array; leave the forms we know."""
    known = Sequences | np.ndarray | list | tuple
    if isinstance(X, known) or sp.issparse(X) or is_frame(X):
        pass
    elif hasattr(X, "__array__"):
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        if X.ndim == 1 and X.dtype == object and X.size and not is_number(X[0]):
            return list(X)
        if X.ndim < 2 or X.ndim > 3:
            raise InputError(
                f"Expected 2D array, got {X.ndim}D array instead (3D for sequences of equal "
                f"length). {RESHAPE_HINT}"
            )
    return X


def _look(X: Any, *, stacked: bool = False) -> tuple[Iterator[Any], Kind | None, bool]:
    """Read on until a step shows what X is.

    Returns the whole stream again, its kind (None when all is empty), and whether its items are
    sequences (True) or the steps of a single sequence (False). ``stacked`` says that lengths were
    given: then a list of strings is a step, a bag; else it would be a sequence of raw tokens.
    """
    if isinstance(X, str | bytes | Mapping | Set) or not isinstance(X, Iterable):
        raise InputError(f"X is {describe(X)}: X is a list of sequences")
    stream = iter(X)
    seen: list[Any] = []
    kind: Kind | None = None
    nested = not stacked
    for index, item in enumerate(stream):
        place = f"X[{index}]"
        if stacked and _is_bag(item, place):
            verdict: tuple[Kind, bool] | None = ("symbolic", False)
        else:
            verdict, item = _look_at_item(item, place)
        seen.append(item)
        if verdict is not None:
            kind, nested = verdict
            break
    if not seen:
        raise InputError("X is empty: at least one sequence is required")
    return chain(seen, stream), kind, nested


def _is_bag(item: Any, place: str) -> bool:
    """Whether an item of a flat list of steps is a bag of strings that is not empty."""
    if isinstance(item, str | bytes):
        refuse_step(item, place)
    if is_frame(item) or sp.issparse(item) or not isinstance(item, Collection):
        return False
    if isinstance(item, np.ndarray) and item.ndim != 1:
        return False
    if isinstance(item, Mapping | Sequences) or not isinstance(next(iter(item), None), str):
        return False
    if isinstance(item, tuple):
        refuse_step(item, place)
    return True


def _look_at_item(item: Any, place: str) -> tuple[tuple[Kind, bool] | None, Any]:
    """Kind and nesting that one item of X shows, or None when it is empty."""
    if is_frame(item):
        return ("numeric" if frame_is_numeric(item) else "symbolic", True), item
    if sp.issparse(item) or isinstance(item, Sequences):
        return ("numeric", True), item
    if isinstance(item, np.ndarray) and item.ndim > 1:
        return ("numeric", True), item
    if isinstance(item, Mapping):
        return ("symbolic", False), item
    if is_number(item) or (isinstance(item, np.ndarray) and item.ndim == 0):
        raise InputError(
            f"Expected 2D array, got 1D array instead: {place} is a number. {RESHAPE_HINT}"
        )
    if isinstance(item, str | bytes | Set) or not isinstance(item, Iterable):
        raise InputError(
            f"{place} is {describe(item)}, but a sequence is a list of steps. {WRAP_HINT}"
        )
    if not isinstance(item, Collection):
        item = list(item)
    for position, step in enumerate(item):
        verdict = _look_at_step(step, f"{place}[{position}]", item, place)
        if verdict is not None:
            return verdict, item
    return None, item


def _look_at_step(step: Any, where: str, item: Any, place: str) -> tuple[Kind, bool] | None:
    """Kind and nesting that one step of an item shows, or None when it is empty."""
    if isinstance(step, Mapping):
        return "symbolic", True
    if is_number(step) or isinstance(step, str):
        refuse_series(item, place)
    if is_number(step):
        return "numeric", False
    if isinstance(step, str | bytes | tuple) or not isinstance(step, Collection):
        refuse_step(step, where)
    for attribute in step:
        if isinstance(attribute, str):
            return "symbolic", True
        if is_number(attribute):
            return "numeric", True
        raise InputError(
            f"{where} holds {describe(attribute)}: a step holds either numbers or strings"
        )
    return None


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
            "put a seqlab.SequenceVectorizer first"
        )
    stacked = isinstance(pieces, _Pieces)
    sequences = vectorizer.fit_transform(pieces) if fit else vectorizer.transform(pieces)
    return sequences, Layout(is_list=not stacked, symbolic=True)


class _Pieces(list[Any]):
    """The sequences cut from one stacked input."""


def _cut(stacked: Any, lengths: Iterable[int] | None) -> _Pieces:
    bounds = _offsets(lengths, len(stacked)).tolist()
    rows = stacked.iloc if is_frame(stacked) else stacked
    return _Pieces(rows[a:b] for a, b in pairwise(bounds))


def _refuse_lengths(lengths: Any) -> None:
    if lengths is not None:
        raise InputError(
            "lengths= belongs to one stacked matrix, but X already is a list of sequences"
        )


def _offsets(lengths: Iterable[int] | None, n_rows: int) -> NDArray[np.int64]:
    if lengths is None:
        return np.array([0, n_rows], dtype=np.int64)
    given = integer_lengths(lengths)
    total = sum(given.tolist())  # exact, whatever the numbers
    if total != n_rows:
        raise InputError(
            f"lengths sum to {total} but X has {n_rows} rows; under cross-validation give X "
            "as a list of sequences instead of stacked rows"
        )
    offsets = np.zeros(given.size + 1, dtype=np.int64)
    np.cumsum(given, out=offsets[1:])
    return offsets


def _check_finite(sequences: Sequences, layout: Layout) -> None:
    matrix: Any = sequences.matrix
    values = matrix.data if sp.issparse(matrix) else matrix
    # One sum is finite when all numbers are, unless it overflows: then look at each.
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
