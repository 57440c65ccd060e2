"""Data frames: one row per step, and a column that identifies the sequence.

pandas is imported only when a data frame is read or created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError
from seqlab.data.io.streams import ReadError, WriteError, collect, pair_up

if TYPE_CHECKING:
    import pandas as pd

_NAME = "<frame>"


def iter_frame(
    frames: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    group: str,
    label: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[tuple[Any, list[Any] | None]]:
    """Iterate over the sequences of a data frame, or of its chunks (``read_csv(chunksize=...)``).

    Parameters are those of `read_frame`. A sequence may continue in the next chunk.

    Examples
    --------
    >>> import pandas as pd
    >>> from seqlab.data.io import iter_frame
    >>> frame = pd.DataFrame({"doc": [1, 1, 2], "word": ["a", "b", "c"], "tag": ["X", "Y", "X"]})
    >>> for tokens, labels in iter_frame(frame, group="doc", label="tag"):
    ...     print(tokens, labels)
    [('a',), ('b',)] ['X', 'Y']
    [('c',)] ['X']
    """
    pieces: Iterable[Any] = [frames] if hasattr(frames, "columns") else frames
    parts: list[Any] = []
    key: Any = None
    seen: set[Any] = set()
    n_rows = 0
    for piece in pieces:
        _check(piece, group, label, columns, n_rows)
        keys = piece[group].to_numpy()
        bounds = np.flatnonzero(keys[1:] != keys[:-1]) + 1
        for start, stop in zip([0, *bounds], [*bounds, len(keys)], strict=True):
            if stop == start:
                continue
            if parts and keys[start] == key:
                parts.append(piece.iloc[start:stop])
                continue
            if parts:
                yield _sequence(parts, group, label, columns)
            key = keys[start]
            if key in seen:
                reason = (
                    f"group {key!r} occurs again after another; sort the rows by {group!r} first"
                )
                raise ReadError(_NAME, n_rows + int(start) + 1, reason)
            seen.add(key)
            parts = [piece.iloc[start:stop]]
        n_rows += len(piece)
    if not parts:
        raise ReadError(_NAME, None, "no sequences: the frame has no rows")
    yield _sequence(parts, group, label, columns)


def read_frame(
    frame: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    group: str,
    label: str | None = None,
    columns: Sequence[str] | None = None,
) -> tuple[list[Any], list[list[Any]] | None]:
    """Turn a data frame with one row per step into sequences.

    Parameters
    ----------
    frame : DataFrame, or iterable of its consecutive chunks
        The rows of a sequence are consecutive.
    group : str
        The column that has the same value for all steps of a sequence.
    label : str, optional
        The column of labels.
    columns : sequence of str, optional
        The columns of a step; by default all others.

    Returns
    -------
    X : list of sequences
        Text columns only: lists of tuples of str. Numbers and booleans only: 2-D float arrays.
        Both: lists of dicts (column to value).
    y : list of list, or None
        The labels; None without `label`.

    Raises
    ------
    ReadError
        For a missing label, group or value, a group that occurs again after another one, a missing
        column, or a frame without rows; the message gives the row, counted from 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from seqlab.data.io import read_frame
    >>> frame = pd.DataFrame({"day": [1, 1], "heat": [20.5, 21.0], "on": [True, False]})
    >>> X, y = read_frame(frame, group="day")
    >>> X[0].tolist(), y
    ([[20.5, 1.0], [21.0, 0.0]], None)
    """
    return collect(iter_frame(frame, group=group, label=label, columns=columns), label is not None)


def write_frame(
    X: Iterable[Any],
    y: Iterable[Sequence[Any]] | None = None,
    *,
    columns: Sequence[str] | None = None,
    group: str = "sequence",
    label: str = "label",
) -> pd.DataFrame:
    """Create a data frame with one row per step.

    Parameters
    ----------
    X : iterable of sequences
        Lists of tuples of columns, lists of dicts, 2-D arrays or sparse matrices.
    y : iterable of sequences of labels, optional
        Labels.
    columns : sequence of str, optional
        Names of the columns of tuples and arrays; ``c0``, ``c1``, ... by default.
    group, label : str
        Names of the columns for the number of the sequence, counted from 0, and the label.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from seqlab.data.io import write_frame
    >>> write_frame([[("a",), ("b",)]], [["X", "Y"]], columns=["word"])
       sequence word label
    0         0    a     X
    1         0    b     Y
    """
    import pandas as pd

    pieces, groups, all_labels = [], [], []
    dense = (matrix.toarray() if sp.issparse(matrix) else matrix for matrix in X)
    for index, sequence, labels in pair_up(dense, y):
        if len(sequence) == 0:
            raise WriteError(f"X[{index}] is empty: a data frame cannot contain it")
        if isinstance(sequence[0], Mapping):
            piece = pd.DataFrame.from_records([dict(step) for step in sequence])
        else:
            rows = [(step,) if isinstance(step, str) else tuple(step) for step in sequence]
            names = list(columns) if columns is not None else [f"c{k}" for k in range(len(rows[0]))]
            if any(len(row) != len(names) for row in rows):
                raise WriteError(f"X[{index}] has steps that do not match the columns {names}")
            piece = pd.DataFrame.from_records(rows, columns=names)
        pieces.append(piece)
        groups += [index] * len(piece)
        all_labels += [] if labels is None else list(labels)
    frame = pd.concat(pieces, ignore_index=True) if pieces else pd.DataFrame()
    taken = {group, label if y is not None else group} & set(frame.columns)
    if taken:
        raise WriteError(
            f"the columns {sorted(taken)} exist already; choose another group or label"
        )
    frame.insert(0, group, groups)
    if y is not None:
        frame[label] = all_labels
    return frame


def _check(
    piece: pd.DataFrame,
    group: str,
    label: str | None,
    columns: Sequence[str] | None,
    n_before: int,
) -> None:
    needed = [group, *([label] if label is not None else []), *(columns or [])]
    for name in needed:
        if name not in piece.columns:
            there = ", ".join(map(repr, piece.columns))
            raise ReadError(_NAME, None, f"no column {name!r}; the frame has {there}")
    for name in needed[: 1 if label is None else 2]:
        missing = np.flatnonzero(piece[name].isna().to_numpy())
        if missing.size:
            what = "group" if name == group else "label"
            raise ReadError(_NAME, n_before + int(missing[0]) + 1, f"the {what} is missing")


def _sequence(
    parts: list[Any], group: str, label: str | None, columns: Sequence[str] | None
) -> tuple[Any, list[Any] | None]:
    import pandas as pd

    rows = parts[0] if len(parts) == 1 else pd.concat(parts)
    names = (
        list(columns)
        if columns is not None
        else [name for name in rows.columns if name not in (group, label)]
    )
    if not names:
        raise InputError("no columns are left for the steps")
    labels = None if label is None else rows[label].tolist()
    numeric = [pd.api.types.is_numeric_dtype(rows[name].dtype) for name in names]
    if all(numeric):
        return rows[names].to_numpy(dtype=np.float64), labels
    if any(numeric):
        return rows[names].to_dict("records"), labels
    values = rows[names].astype(object)
    if values.isna().to_numpy().any():
        raise ReadError(
            _NAME, None, f"group {rows[group].iloc[0]!r} has a step with a missing value"
        )
    texts = [[str(value) for value in values[name]] for name in names]
    return list(zip(*texts, strict=True)), labels
