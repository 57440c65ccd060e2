"""Convert numeric sequences to float64 arrays or CSR matrices.

The input is known to be numeric: rows of numbers, arrays, sparse matrices or numeric data frames. Errors
name the sequence and the position. The functions that describe values in messages are here too.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data._canonical import Matrix, to_checked_csr
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences, to_offsets

_TUPLE_HINT = (
    "tuples are columns such as (word, pos); build features with seqlab.Templates, "
    "e.g. Tagger(Templates.default(), ...)"
)
_STRING_HINT = (
    "a step is a dict, a list or set of attribute strings, or a row of numbers; "
    "build features from raw tokens with seqlab.Templates"
)
WRAP_HINT = "X must be a list of sequences; wrap a single sequence in a list: [X]"
RESHAPE_HINT = (
    "Reshape your data: array.reshape(-1, 1) if each step has a single feature, "
    "array.reshape(1, -1) if it is a single step"
)
_TEXT_HINT = "numbers are expected; for text, use dicts, lists of strings or a data frame"


class InputTypeError(InputError, TypeError):
    """A value that cannot be converted to a number; also a `TypeError`, as scikit-learn raises."""


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
    """Raise the error for a step that is neither a dict, nor a bag of strings, nor numbers."""
    if isinstance(step, tuple):
        raise InputError(f"{place} is a tuple: {_TUPLE_HINT}")
    if isinstance(step, str | bytes):
        raise InputError(f"{place} is {describe(step)}: {_STRING_HINT}")
    raise InputError(f"{place} is {describe(step)}, which cannot be a step: {_STRING_HINT}")


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas data frame (pandas is not imported)."""
    return hasattr(value, "iloc") and hasattr(value, "columns")


def refuse_series(item: Any, place: str) -> None:
    """Raise an error for a pandas Series of plain values, which could be one step or many."""
    if hasattr(item, "iloc") and not hasattr(item, "columns"):
        raise InputError(
            f"{place} is a pandas Series, but a sequence is a 2-D table, steps x features: wrap "
            "each Series with series.to_frame() if its entries are steps with one feature"
        )


def check_columns(item: Any, place: str) -> None:
    """Raise an error for a data frame in which two columns have the same name."""
    if not is_frame(item) or item.columns.is_unique:
        return
    name = item.columns[item.columns.duplicated()][0]
    raise InputError(
        f"{place} has two columns named {name!r}: the columns of a data frame must have different "
        "names"
    )


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


def is_number(value: Any) -> bool:
    """Whether a value is a number or a boolean, of Python or NumPy."""
    return isinstance(value, numbers.Number | np.bool_)


def stack_numeric(stream: Iterable[Any]) -> Sequences:
    """Convert and stack numeric sequences one by one."""
    blocks: list[Matrix] = []
    lengths: list[int] = []
    width: int | None = None
    first = 0
    names: NDArray[np.object_] | None = None
    columns: list[Any] | None = None
    for index, item in enumerate(stream):
        # An array of numbers like the first one passes all checks below, which take half of the time to
        # stack short sequences.
        is_plain = type(item) is np.ndarray and item.ndim == 2 and item.dtype.kind in "biuf"
        if is_plain and item.shape[1] == width and columns is None:
            lengths.append(item.shape[0])
            blocks.append(item)
            continue
        place = f"X[{index}]"
        block = _sequence_matrix(item, place)
        lengths.append(block.shape[0])
        if block.shape == (0, 0) and not is_frame(item):  # an empty list: any number of features
            continue
        if width is None:
            width, first = block.shape[1], index
            names = frame_names(item)
            columns = list(item.columns) if is_frame(item) else None
        _check_same_columns(item, columns, place, f"X[{first}]")
        if block.shape[1] != width:
            raise InputError(f"{place} has {block.shape[1]} features but X[{first}] has {width}")
        blocks.append(block)
    if not blocks:
        matrix: Any = np.zeros((0, 0))
    elif not all(isinstance(block, np.ndarray) for block in blocks):
        matrix = sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr")
    else:
        matrix = np.concatenate(blocks, axis=0, dtype=np.float64)
    return Sequences(matrix, to_offsets(lengths), feature_names=names)


def _check_same_columns(item: Any, columns: list[Any] | None, place: str, first: str) -> None:
    if is_frame(item) != (columns is not None):
        here, there = ("a", "not") if is_frame(item) else ("not a", "one")
        raise InputError(
            f"{place} is {here} data frame but {first} is {there}: all sequences must be of one kind"
        )
    if columns is not None and list(item.columns) != columns:
        raise InputError(f"{place} has columns {list(item.columns)} but {first} has {columns}")


def _sequence_matrix(item: Any, place: str) -> Matrix:
    """Convert one of a list of sequences."""
    if not (sp.issparse(item) or is_frame(item) or isinstance(item, np.ndarray)):
        if isinstance(item, str | bytes | Mapping | Set) or not isinstance(item, Iterable):
            raise InputError(
                f"{place} is {describe(item)}, but a sequence is a list of steps. {WRAP_HINT}"
            )
        refuse_series(item, place)
        return to_row_matrix(list(item), place)
    if is_frame(item) and not frame_is_numeric(item):
        raise InputError(f"{place} is a data frame with text, but earlier sequences hold numbers")
    matrix = to_matrix(item, place)
    if matrix.ndim != 2:
        raise InputError(f"{place} is a {matrix.ndim}-D array, but a sequence is steps x features")
    return matrix


def to_row_matrix(rows: list[Any], place: str) -> NDArray[np.float64]:
    """Convert a list of rows of numbers."""
    if not rows:
        return np.zeros((0, 0))
    width = None
    for position, row in enumerate(rows):
        where = f"{place}[{position}]"
        if isinstance(row, str | bytes | Mapping | Set | numbers.Number) or not isinstance(
            row, Collection
        ):
            raise InputError(
                f"{where} is {describe(row)}, but earlier steps are rows of numbers: all steps of X "
                "must be of one kind"
            )
        if isinstance(row, tuple) and place != "X":
            refuse_step(row, where)
        if width is None:
            width = len(row)
        if len(row) != width:
            raise InputError(f"{where} has {len(row)} features but {place}[0] has {width}")
    matrix = to_matrix(rows, place)
    if matrix.ndim != 2:
        raise InputError(
            f"{place} has {matrix.ndim} levels of lists, but a step is a row of numbers"
        )
    return matrix


def to_matrix(item: Any, place: str) -> Any:
    """Convert to an array of numbers or a CSR matrix, without a copy if the input already is one.

    Numbers of another type than float64 are converted later, when all sequences are stacked: the data are
    then never in memory three times.
    """
    if is_frame(item):
        return _frame_matrix(item, place)
    try:
        array = item if sp.issparse(item) else np.asarray(item)
    except ValueError:  # one of the entries is a list
        _refuse_entries(item, place)
        raise
    kind = array.dtype.kind
    if kind == "c":
        raise InputError(f"Complex data not supported: {place} has dtype {array.dtype}")
    if sp.issparse(array):
        return to_checked_csr(array, place)
    if kind == "O":
        return _object_matrix(array, place)
    if kind not in "biuf":
        if isinstance(item, list):
            _refuse_entries(item, place)
        raise InputError(f"{place} is an array of dtype {array.dtype}, but {_TEXT_HINT}")
    return array


def _frame_matrix(frame: Any, place: str) -> NDArray[np.float64]:
    check_columns(frame, place)
    if any(getattr(dtype, "kind", "O") == "c" for dtype in frame.dtypes):
        raise InputError(f"Complex data not supported: {place}")
    try:
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        return _object_matrix(frame.to_numpy(dtype=object, na_value=np.nan), place)


def _refuse_entries(rows: list[Any], place: str) -> None:
    """Raise an error that names the first entry that is not a number."""
    for position, row in enumerate(rows):
        for feature, value in enumerate(row):
            if not is_number(value):
                raise InputError(
                    f"{place}[{position}] holds {describe(value)} as feature {feature}, but "
                    f"{_TEXT_HINT}"
                )


def _object_matrix(array: NDArray[np.object_], place: str) -> NDArray[np.float64]:
    """Convert an array of Python objects."""
    for where, value in np.ndenumerate(array):
        if isinstance(value, complex | np.complexfloating):
            raise InputError(f"Complex data not supported: {_entry_name(place, where)}")
        if isinstance(value, str | bytes):
            raise InputError(f"{_entry_name(place, where)} is {describe(value)}, but {_TEXT_HINT}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        for where, value in np.ndenumerate(array):
            _check_number(value, _entry_name(place, where))
        raise


def _check_number(value: Any, place: str) -> None:
    try:
        float(value)
    except OverflowError:
        raise InputError(f"{place} is a number too large for a float") from None
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{place} is not a number: {error}") from None


def _entry_name(place: str, where: tuple[int, ...]) -> str:
    """Name of an array entry in messages: ``X[2][0] feature 1``."""
    *outer, last = where
    return f"{place}{''.join(f'[{i}]' for i in outer)} feature {last}"


def frame_names(item: Any) -> NDArray[np.object_] | None:
    """Column names of a data frame, or None unless all of them are strings."""
    if not is_frame(item) or not all(isinstance(name, str) for name in item.columns):
        return None
    return np.array(list(item.columns), dtype=object)
