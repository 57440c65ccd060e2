"""Read a training file as a whole; load models."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

from seqlab.cli._errors import CommandError
from seqlab.cli._read_options import ReadOptions


class TrainingFile(NamedTuple):
    """Content of a training file.

    Attributes
    ----------
    X, y : lists
        As returned by the readers of `seqlab.data.io`.
    options : ReadOptions
        How the file was read, with the number of columns found.
    has_columns : bool
        Whether the steps are tuples of columns, which need templates.
    has_names : bool
        Whether the steps are features with names (dicts or lists), which need a vectorizer.
    """

    X: list[Any]
    y: list[Any]
    options: ReadOptions
    has_columns: bool
    has_names: bool


def read_training(file: str, options: ReadOptions) -> TrainingFile:
    """Read the sequences and labels of a file."""
    from seqlab.data import io

    encoding = options.encoding
    X: Any
    y: Any
    if options.format == "columns":
        return _read_columns(file, options)
    if options.format == "conllu":
        columns = [str(column) for column in options.columns or ("form",)]
        X, y = io.read_conllu(file, columns=columns, label=str(options.label), encoding=encoding)
    elif options.format == "crfsuite":
        X, y = io.read_crfsuite(file, encoding=encoding)
    elif options.format == "jsonl":
        X, y = io.read_jsonl(file, label=str(options.label), encoding=encoding)
    else:
        X, y = io.read_svmlight(file, encoding=encoding)
    first = X[0][0] if isinstance(X[0], list) and X[0] else None
    return TrainingFile(X, y, options, isinstance(first, tuple), isinstance(first, dict | list))


def _read_columns(file: str, options: ReadOptions) -> TrainingFile:
    from seqlab.data.io import read_conll

    label = -1 if options.label is None else int(options.label)
    X, y = read_conll(
        file,
        label=label,
        sep=options.separator,
        comment=options.comment,
        encoding=options.encoding,
    )
    width = len(X[0][0]) + 1
    label_column = label % width
    if options.columns is not None:
        chosen = []
        for column in options.columns:
            number = int(column) + (width if int(column) < 0 else 0)
            if not 0 <= number < width:
                raise CommandError(
                    f"{file}: no column {column} (--columns): the lines have {width} columns"
                )
            if number == label_column:
                raise CommandError(f"{file}: column {column} (--columns) is the label")
            chosen.append(number - (number > label_column))
        X = [[tuple([token[c] for c in chosen]) for token in tokens] for tokens in X]
    return TrainingFile(X, y or [], replace(options, width=width), True, False)


def load_model(path: str, limits: list[str] | None = None) -> Any:
    """Load a model file that can predict labels.

    Parameters
    ----------
    path : str
    limits : list of str, optional
        Limits that the command line raises, as ``name=number``.
    """
    from seqlab.data.errors import InputError
    from seqlab.persistence import load
    from seqlab.persistence.limits import parse_limits

    if not os.path.exists(path):
        raise CommandError(f"{path}: no such model file")
    try:
        chosen = parse_limits(limits or [])
    except InputError as error:
        raise CommandError(f"--limit: {error}") from None
    model = load(path, limits=chosen)
    if not hasattr(model, "predict"):
        raise CommandError(
            f"{path}: contains a {type(model).__name__}, which cannot predict labels"
        )
    return model


def get_labeler(model: Any) -> Any:
    """Return the labeler of a Tagger, or the model itself."""
    return getattr(model, "labeler_", model)
