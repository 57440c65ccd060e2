"""JSON lines: one sequence per line, tokens or features with their labels.

``{"tokens": ["the", "dog"], "labels": ["B-NP", "I-NP"]}`` for words (or ``[["the", "DT"], ...]``
for columns); ``{"features": [...], "labels": [...]}`` for steps that are dicts, bags of attributes
(lists of strings) or rows of numbers. Other keys are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.io.streams import (
    ReadError,
    Source,
    WriteError,
    iter_lines,
    open_writer,
    pair_up,
    source_name,
)


def iter_jsonl(
    source: Source,
    *,
    tokens: str | None = None,
    label: str | None = "labels",
    encoding: str = "utf-8",
) -> Iterator[tuple[Any, list[Any] | None]]:
    """Sequences of a JSON lines file, one by one; parameters are those of `read_jsonl`.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import iter_jsonl
    >>> next(iter_jsonl(io.StringIO('{"tokens": ["a", "b"], "labels": ["X", null]}')))
    ([('a',), ('b',)], ['X', None])
    """
    name, empty = source_name(source), True
    for number, line in iter_lines(source, encoding):
        if not line or line.isspace():
            continue
        empty = False
        record = _parse(line, name, number)
        key = tokens or next((key for key in ("tokens", "features") if key in record), "tokens")
        steps = _list(record, key, name, number)
        sequence = _steps(steps, key, name, number)
        if label is None:
            yield sequence, None
            continue
        labels = _list(record, label, name, number)
        if len(labels) != len(steps):
            reason = f"{len(steps)} {key} but {len(labels)} {label}"
            raise ReadError(name, number, reason)
        yield sequence, [_label(value, name, number) for value in labels]
    if empty:
        raise ReadError(name, None, "no sequences: the file is empty")


def read_jsonl(
    source: Source,
    *,
    tokens: str | None = None,
    label: str | None = "labels",
    encoding: str = "utf-8",
) -> tuple[list[Any], list[list[Any]] | None]:
    """Read JSON lines, one sequence per line.

    Parameters
    ----------
    source : path, "-" or file object
        A path (also .gz, .xz, .bz2), standard input, or an open text or binary file.
    tokens : str, optional
        Key of the steps; by default "tokens", or "features" if that is missing.
    label : str or None, default="labels"
        Key of the labels; None for no labels.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Returns
    -------
    X : list of sequences
        A step that is a string becomes ``(string,)``; lists under "features" stay bags of
        attributes, or make up a 2-D array if they hold numbers, and lists under any other key are
        columns and become tuples; dicts stay dicts.
    y : list of list, or None
        Labels: strings, numbers or booleans; ``null`` is None (unknown), a list is a set (one of).

    Raises
    ------
    ReadError
        With file and line: no JSON object, a missing key, other numbers of tokens and labels, steps
        of mixed kinds, wrong encoding, no sequence.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_jsonl
    >>> read_jsonl(io.StringIO('{"features": [{"word": "in", "cap": true}], "labels": ["B"]}'))
    ([[{'word': 'in', 'cap': True}]], [['B']])
    """
    X, y = [], []
    for sequence, labels in iter_jsonl(source, tokens=tokens, label=label, encoding=encoding):
        X.append(sequence)
        y.append(labels)
    return X, None if label is None else y  # type: ignore[return-value]


def write_jsonl(
    X: Iterable[Any],
    y: Iterable[Sequence[Any]] | None,
    dest: Source,
    *,
    encoding: str = "utf-8",
) -> None:
    """Write JSON lines, one sequence per line.

    Parameters
    ----------
    X : iterable of sequences
        Steps that are tuples of columns or strings are written under "tokens"; dicts, lists of
        attributes and rows of a 2-D array or sparse matrix under "features".
    y : iterable of sequences of labels, or None
        Strings, numbers, booleans, None (unknown) or sets (one of).
    dest : path, "-" or file object
        A path is written through a temporary file and a rename, compressed by its extension.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Raises
    ------
    WriteError
        A value that JSON cannot hold.

    Examples
    --------
    >>> import sys
    >>> from seqlab.data.io import write_jsonl
    >>> write_jsonl([[("the", "DT"), ("dog", "NN")]], [["B-NP", "I-NP"]], sys.stdout)
    {"tokens": [["the", "DT"], ["dog", "NN"]], "labels": ["B-NP", "I-NP"]}
    """
    with open_writer(dest, encoding) as write:
        dense = (matrix.toarray() if sp.issparse(matrix) else matrix for matrix in X)
        for index, sequence, labels in pair_up(dense, y):
            record = _record(sequence)
            if labels is not None:
                record["labels"] = [
                    sorted(value) if isinstance(value, set | frozenset) else value
                    for value in labels
                ]
            try:
                text = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain)
            except (TypeError, ValueError) as error:
                raise WriteError(f"X[{index}] or y[{index}] does not fit JSON: {error}") from error
            write(text + "\n")


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ReadError(name, number, f"no JSON: {error.msg} at column {error.colno}") from error
    except RecursionError:
        raise ReadError(name, number, "no JSON that can be read: nested too deeply") from None
    if not isinstance(record, dict):
        raise ReadError(name, number, "not a JSON object such as {'tokens': [], 'labels': []}")
    return record


def _list(record: dict[str, Any], key: str, name: str, number: int) -> list[Any]:
    if key not in record:
        keys = ", ".join(map(repr, record)) or "none"
        raise ReadError(name, number, f"no {key!r} in the object; its keys: {keys}")
    if not isinstance(record[key], list):
        raise ReadError(name, number, f"{key!r} is not a list")
    return record[key]


def _steps(steps: list[Any], key: str, name: str, number: int) -> Any:
    kinds = {type(step) for step in steps}
    if kinds <= {dict}:
        return steps
    if kinds == {str}:
        return [(step,) for step in steps]
    if kinds != {list}:
        raise ReadError(name, number, f"{key!r} must be all strings, all lists or all objects")
    inner = {type(value) for step in steps for value in step}
    if inner <= {str}:
        return steps if key == "features" else [tuple(step) for step in steps]
    if inner <= {int, float, bool} and len(set(map(len, steps))) == 1:
        return np.array(steps, dtype=np.float64)
    raise ReadError(name, number, f"{key!r}: lists must hold strings, or equally many numbers")


def _label(value: Any, name: str, number: int) -> Any:
    if isinstance(value, list):
        try:
            return set(value)
        except TypeError:
            pass
    elif not isinstance(value, dict):
        return value
    raise ReadError(name, number, f"{value!r} is no label")


def _record(sequence: Any) -> dict[str, Any]:
    if isinstance(sequence, np.ndarray):
        return {"features": sequence.tolist()}
    steps = list(sequence)
    if any(isinstance(step, Mapping | list | np.ndarray) for step in steps):
        return {"features": steps}
    words = [step[0] if isinstance(step, tuple) and len(step) == 1 else step for step in steps]
    if any(isinstance(word, tuple) for word in words):
        return {"tokens": steps}
    return {"tokens": words}


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays, and mappings, as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} value")
