"""Reading a whole training file, and opening models."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

from seqlab.cli._errors import CommandError
from seqlab.cli._reading import Reading


class TrainingFile(NamedTuple):
    """Content of a training file.

    Attributes
    ----------
    X, y : lists
        As the readers of `seqlab.data.io` give them.
    reading : Reading
        How it was read, with the number of columns found.
    symbolic : bool
        Whether the steps are features already (dicts or bags), to be vectorized.
    tokens : bool
        Whether the steps are tuples of columns, for templates.
    """

    X: list[Any]
    y: list[Any]
    reading: Reading
    symbolic: bool
    tokens: bool


def read_training(file: str, reading: Reading) -> TrainingFile:
    """Read sequences and labels of a file."""
    from seqlab.data import io

    encoding = reading.encoding
    X: Any
    y: Any
    if reading.format == "columns":
        return _read_columns(file, reading)
    if reading.format == "conllu":
        columns = [str(column) for column in reading.columns or ("form",)]
        X, y = io.read_conllu(file, columns=columns, label=str(reading.label), encoding=encoding)
    elif reading.format == "crfsuite":
        X, y = io.read_crfsuite(file, encoding=encoding)
    elif reading.format == "jsonl":
        X, y = io.read_jsonl(file, label=str(reading.label), encoding=encoding)
    else:
        X, y = io.read_svmlight(file, encoding=encoding)
    first = X[0][0] if isinstance(X[0], list) and X[0] else None
    return TrainingFile(X, y, reading, isinstance(first, dict | list), isinstance(first, tuple))


def _read_columns(file: str, reading: Reading) -> TrainingFile:
    from seqlab.data.io import read_conll

    label = -1 if reading.label is None else int(reading.label)
    X, y = read_conll(
        file,
        label=label,
        sep=reading.separator,
        comment=reading.comment,
        encoding=reading.encoding,
    )
    width = len(X[0][0]) + 1
    place = label % width
    if reading.columns is not None:
        chosen = []
        for column in reading.columns:
            number = int(column) + (width if int(column) < 0 else 0)
            if not 0 <= number < width:
                raise CommandError(f"{file}: no column {column} (--columns): lines have {width}")
            if number == place:
                raise CommandError(f"{file}: column {column} (--columns) is the label")
            chosen.append(number - (number > place))
        X = [[tuple([token[c] for c in chosen]) for token in tokens] for tokens in X]
    return TrainingFile(X, y or [], replace(reading, width=width), False, True)


def load_model(path: str) -> Any:
    """Load a model file; every failure is one line."""
    from seqlab.persistence import load

    if not os.path.exists(path):
        raise CommandError(f"{path}: no such model file")
    model = load(path)
    if not hasattr(model, "predict"):
        raise CommandError(f"{path}: holds a {type(model).__name__}, which labels nothing")
    return model


def labeler_of(model: Any) -> Any:
    """The labeler of a tagger, or the model itself."""
    return getattr(model, "labeler_", model)
