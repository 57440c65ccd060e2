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

import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Matrix, Sequences

Kind = Literal["numeric", "symbolic"]

_TUPLE_HINT = (
    "tuples are columns such as (word, pos); build features with seqlab.Templates, "
    "e.g. Tagger(Templates.default(), ...)"
)
_STRING_HINT = (
    "a step is a dict, a list or set of attribute strings, or a row of numbers; "
    "build features from raw tokens with seqlab.Templates"
)
_WRAP_HINT = "X is a list of sequences; wrap a single sequence in a list: [X]"
_RESHAPE_HINT = (
    "Reshape your data: array.reshape(-1, 1) if each step has a single feature, "
    "array.reshape(1, -1) if it is a single step"
)


class InputTypeError(InputError, TypeError):
    """A value of a type that cannot be a number; also a `TypeError`, as scikit-learn raises."""


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
        Steps per sequence, when X is one stacked matrix.
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
        if is_frame(X) and not frame_is_numeric(X):
            pieces = _cut(X, lengths)
            return _vectorize(pieces, vectorizer, fit_vectorizer, "X is a data frame with text")
        matrix, names = _numeric_matrix(X, "X"), _frame_names(X)
        if isinstance(matrix, np.ndarray) and matrix.ndim == 3:
            _refuse_lengths(lengths)
            offsets = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
            matrix, layout = matrix.reshape(offsets[-1], matrix.shape[2]), Layout(is_list=True)
        else:
            offsets = _offsets(lengths, matrix.shape[0])
            layout = Layout(is_list=False)
        sequences = Sequences(matrix, offsets, feature_names=names)
    else:
        stream, kind, nested = _look(X)
        if nested:
            _refuse_lengths(lengths)
            if kind == "symbolic" or (kind is None and vectorizer is not None):
                return _vectorize(stream, vectorizer, fit_vectorizer, "X holds dicts or strings")
            sequences, layout = _stack(stream), Layout(is_list=True)
        elif kind == "symbolic":
            if lengths is None:
                raise InputError(f"X[0] is a dict: {_WRAP_HINT}")
            pieces = _cut(list(stream), lengths)
            return _vectorize(pieces, vectorizer, fit_vectorizer, "X holds dicts")
        else:
            matrix = _rows_matrix(list(stream), "X")
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


def describe(value: Any) -> str:
    """Name the type of a value for an error message: 'a dict', 'a string', 'an array'."""
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bytes):
        return "a bytes object"
    if is_frame(value):
        return "a data frame"
    if sp.issparse(value):
        return "a sparse matrix"
    if isinstance(value, np.ndarray):
        return f"a {value.ndim}-D array"
    if value is None:
        return "None"
    if isinstance(value, numbers.Number):
        return "a number" if isinstance(value, numbers.Real) else "a complex number"
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def refuse_step(step: Any, place: str) -> NoReturn:
    """Raise the error that fits a step which is neither a dict, a bag of strings nor numbers."""
    if isinstance(step, tuple):
        raise InputError(f"{place} is a tuple: {_TUPLE_HINT}")
    if isinstance(step, str | bytes):
        raise InputError(f"{place} is {describe(step)}: {_STRING_HINT}")
    raise InputError(f"{place} is {describe(step)}, which cannot be a step: {_STRING_HINT}")


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas data frame, found out without importing pandas."""
    return hasattr(value, "iloc") and hasattr(value, "columns")


def frame_is_numeric(frame: Any) -> bool:
    """Whether every column of a data frame holds numbers."""
    for place, dtype in enumerate(frame.dtypes):
        kind = getattr(dtype, "kind", "O")
        if kind in "biufc":
            continue
        if kind != "O" or str(dtype) != "object":
            return False
        column = frame.iloc[:, place]
        if not all(isinstance(value, numbers.Number) for value in column):
            return False
    return True


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
        if X.ndim == 1 and X.dtype == object and X.size and not _is_number(X[0]):
            return list(X)
        if X.ndim < 2 or X.ndim > 3:
            raise InputError(
                f"Expected 2D array, got {X.ndim}D array instead (3D for sequences of equal "
                f"length). {_RESHAPE_HINT}"
            )
    return X


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number | np.bool_)


def _look(X: Any) -> tuple[Iterator[Any], Kind | None, bool]:
    """Read on until a step shows what X is.

    Returns the whole stream again, its kind (None when all is empty), and whether its items are
    sequences (True) or the steps of a single sequence (False).
    """
    if isinstance(X, str | bytes | Mapping | Set) or not isinstance(X, Iterable):
        raise InputError(f"X is {describe(X)}: X is a list of sequences")
    stream = iter(X)
    seen: list[Any] = []
    kind: Kind | None = None
    nested = True
    for index, item in enumerate(stream):
        verdict, item = _look_at_item(item, f"X[{index}]")
        seen.append(item)
        if verdict is not None:
            kind, nested = verdict
            break
    if not seen:
        raise InputError("X is empty: at least one sequence is required")
    return chain(seen, stream), kind, nested


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
    if _is_number(item):
        raise InputError(
            f"Expected 2D array, got 1D array instead: {place} is a number. {_RESHAPE_HINT}"
        )
    if isinstance(item, str | bytes | Set) or not isinstance(item, Iterable):
        raise InputError(
            f"{place} is {describe(item)}, but a sequence is a list of steps. {_WRAP_HINT}"
        )
    if not isinstance(item, Collection):
        item = list(item)
    for position, step in enumerate(item):
        where = f"{place}[{position}]"
        if _is_number(step):
            return ("numeric", False), item
        if isinstance(step, Mapping):
            return ("symbolic", True), item
        if isinstance(step, str | bytes | tuple) or not isinstance(step, Collection):
            refuse_step(step, where)
        for attribute in step:
            if isinstance(attribute, str):
                return ("symbolic", True), item
            if _is_number(attribute):
                return ("numeric", True), item
            raise InputError(
                f"{where} holds {describe(attribute)}: a step holds either numbers or strings"
            )
    return None, item


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
    given = np.asarray(lengths if isinstance(lengths, np.ndarray) else list(lengths))
    if given.size == 0:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError("lengths must be a list of integers, one per sequence")
    if np.any(given < 0):
        raise InputError(f"lengths[{int(np.argmax(given < 0))}] is negative")
    if given.sum() != n_rows:
        raise InputError(
            f"lengths sum to {given.sum()} but X has {n_rows} rows; under cross-validation give X "
            "as a list of sequences instead of stacked rows"
        )
    offsets = np.zeros(given.size + 1, dtype=np.int64)
    np.cumsum(given, out=offsets[1:])
    return offsets


def _stack(stream: Iterable[Any]) -> Sequences:
    """Convert and stack numeric sequences one by one."""
    blocks: list[Matrix] = []
    lengths: list[int] = []
    width: int | None = None
    first = 0
    names: NDArray[np.object_] | None = None
    columns: list[Any] | None = None
    for index, item in enumerate(stream):
        place = f"X[{index}]"
        block = _sequence_matrix(item, place)
        lengths.append(block.shape[0])
        if block.shape == (0, 0) and not is_frame(item):  # an empty list: any number of features
            continue
        if width is None:
            width, first = block.shape[1], index
            names = _frame_names(item)
            columns = list(item.columns) if is_frame(item) else None
        _check_same_columns(item, columns, place, f"X[{first}]")
        if block.shape[1] != width:
            raise InputError(f"{place} has {block.shape[1]} features but X[{first}] has {width}")
        blocks.append(block)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if not blocks:
        matrix: Any = np.zeros((0, 0))
    elif any(sp.issparse(block) for block in blocks):
        matrix = sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr")
    else:
        matrix = np.concatenate(blocks, axis=0)
    return Sequences(matrix, offsets, feature_names=names)


def _check_same_columns(item: Any, columns: list[Any] | None, place: str, first: str) -> None:
    if is_frame(item) != (columns is not None):
        here, there = ("a", "no") if is_frame(item) else ("no", "a")
        raise InputError(
            f"{place} is {here} data frame but {first} is {there} data frame: give one kind"
        )
    if columns is not None and list(item.columns) != columns:
        raise InputError(f"{place} has columns {list(item.columns)} but {first} has {columns}")


def _sequence_matrix(item: Any, place: str) -> Matrix:
    """Matrix of one sequence of a list of sequences."""
    if not (sp.issparse(item) or is_frame(item) or isinstance(item, np.ndarray)):
        if isinstance(item, str | bytes | Mapping | Set) or not isinstance(item, Iterable):
            raise InputError(
                f"{place} is {describe(item)}, but a sequence is a list of steps. {_WRAP_HINT}"
            )
        return _rows_matrix(list(item), place)
    if is_frame(item) and not frame_is_numeric(item):
        raise InputError(
            f"{place} is a data frame with text, but the sequences before hold numbers"
        )
    matrix = _numeric_matrix(item, place)
    if matrix.ndim != 2:
        raise InputError(f"{place} is a {matrix.ndim}-D array, but a sequence is steps x features")
    return matrix


def _rows_matrix(rows: list[Any], place: str) -> NDArray[np.float64]:
    """Matrix of a list of rows of numbers."""
    if not rows:
        return np.zeros((0, 0))
    width = None
    for position, row in enumerate(rows):
        where = f"{place}[{position}]"
        if isinstance(row, str | bytes | Mapping | Set | numbers.Number) or not isinstance(
            row, Collection
        ):
            raise InputError(
                f"{where} is {describe(row)}, but the steps before are rows of numbers: one kind "
                "of step in all of X"
            )
        if isinstance(row, tuple) and place != "X":
            refuse_step(row, where)
        if width is None:
            width = len(row)
        if len(row) != width:
            raise InputError(f"{where} has {len(row)} features but {place}[0] has {width}")
    matrix = _numeric_matrix(rows, place)
    if matrix.ndim != 2:
        raise InputError(
            f"{place} has {matrix.ndim} levels of lists, but a step is a row of numbers"
        )
    return matrix


def _numeric_matrix(item: Any, place: str) -> Any:
    """Float64 array or CSR matrix of anything numeric, without copying what is right already."""
    if is_frame(item):
        if any(getattr(dtype, "kind", "O") == "c" for dtype in item.dtypes):
            raise InputError(f"Complex data not supported: {place}")
        return item.to_numpy(dtype=np.float64, na_value=np.nan)
    array = item if sp.issparse(item) else np.asarray(item)
    kind = array.dtype.kind
    if kind == "c":
        raise InputError(f"Complex data not supported: {place} has dtype {array.dtype}")
    if sp.issparse(array):
        if array.ndim != 2:
            raise InputError(f"{place} is a {array.ndim}-D sparse array: steps x features expected")
        return sp.csr_matrix(array, dtype=np.float64)
    if kind == "O":
        return _object_matrix(array, place)
    if kind not in "biuf":
        raise InputError(
            f"{place} is an array of dtype {array.dtype}, but numbers are expected; for text give "
            "dicts, lists of strings or a data frame"
        )
    return np.asarray(array, dtype=np.float64)


def _object_matrix(array: NDArray[np.object_], place: str) -> NDArray[np.float64]:
    """Numbers out of an array of Python objects."""
    for where, value in np.ndenumerate(array):
        if isinstance(value, complex | np.complexfloating):
            raise InputError(f"Complex data not supported: {place}{list(where)}")
        if isinstance(value, str | bytes):
            raise InputError(
                f"{place}{list(where)} is {describe(value)}, but numbers are expected; for text "
                "give dicts, lists of strings or a data frame"
            )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{place} is not numeric: {error}") from None


def _frame_names(item: Any) -> NDArray[np.object_] | None:
    """Column names of a data frame whose names are strings."""
    if not is_frame(item) or not all(isinstance(name, str) for name in item.columns):
        return None
    return np.array(list(item.columns), dtype=object)


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
