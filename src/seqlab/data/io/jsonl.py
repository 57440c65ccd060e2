"""JSON lines: one sequence per line, tokens or features with their labels.

``{"tokens": ["the", "dog"], "labels": ["B-NP", "I-NP"]}`` for words (or ``[["the", "DT"], ...]``
for columns); ``{"features": [...], "labels": [...]}`` for steps that are dicts, bags of attributes
(lists of strings) or rows of numbers. Other keys are ignored.
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
    collect,
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
    """Iterate over the sequences of a JSON lines file; parameters are those of `read_jsonl`.

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
        A step that is a string becomes ``(string,)``, a dict stays a dict. Lists of strings are bags
        of attributes under "features", and columns under any other key, which become tuples; lists
        of numbers are the rows of a 2-D array.
    y : list of list, or None
        Labels: strings, numbers or booleans; ``null`` is None (unknown), a list is a set (one of).

    Raises
    ------
    ReadError
        For a line that is not a JSON object, a missing key, different numbers of tokens and labels,
        steps of several kinds, a wrong encoding, or a file without sequences; the message gives file
        and line.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_jsonl
    >>> read_jsonl(io.StringIO('{"features": [{"word": "in", "cap": true}], "labels": ["B"]}'))
    ([[{'word': 'in', 'cap': True}]], [['B']])
    """
    return collect(
        iter_jsonl(source, tokens=tokens, label=label, encoding=encoding), label is not None
    )


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
        For a value that JSON cannot represent.

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
                reason = f"X[{index}] or y[{index}] cannot be written as JSON: {error}"
                raise WriteError(reason) from error
            write(text + "\n")


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"not valid JSON: {error.msg} at column {error.colno}"
        raise ReadError(name, number, reason) from error
    except RecursionError:
        raise ReadError(name, number, "the JSON is nested too deeply") from None
    except ValueError:  # Python refuses to convert thousands of digits
        raise ReadError(name, number, "the JSON has a number with too many digits") from None
    if not isinstance(record, dict):
        raise ReadError(name, number, "not a JSON object such as {'tokens': [], 'labels': []}")
    return record


def _list(record: dict[str, Any], key: str, name: str, number: int) -> list[Any]:
    if key not in record:
        keys = ", ".join(map(repr, record)) or "none"
        raise ReadError(name, number, f"no key {key!r} in the object; its keys: {keys}")
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
        try:
            return np.array(steps, dtype=np.float64)
        except OverflowError:
            raise ReadError(name, number, f"{key!r}: a number is too large") from None
    raise ReadError(name, number, f"{key!r}: lists must hold strings, or equal numbers of numbers")


def _label(value: Any, name: str, number: int) -> Any:
    if isinstance(value, list):
        try:
            return set(value)
        except TypeError:
            pass
    elif not isinstance(value, dict):
        return value
    raise ReadError(name, number, f"{value!r} is not a label")


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
    """Convert NumPy scalars, arrays and mappings to types that JSON supports."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} value")
