"""How to read a file: its format, label column, token columns and encoding.

`train` stores these options in the model (the attribute ``source_``, a plain dict), so that `tag` and
`evaluate` read other files in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from seqlab.cli._errors import CommandError
from seqlab.cli._suggestions import suggest

FORMATS = ("columns", "conllu", "crfsuite", "jsonl", "svmlight")
_FORMAT_OF_SUFFIX = {
    ".conllu": "conllu",
    ".crfsuite": "crfsuite",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_COMPRESSION_SUFFIXES = (".gz", ".xz", ".bz2")
_SEPARATORS = {"auto": "auto", "space": " ", "tab": "\t", "whitespace": "whitespace"}
_DEFAULT_LABEL: dict[str, int | str] = {"columns": -1, "conllu": "upos", "jsonl": "labels"}
option = partial(typer.Option, rich_help_panel="Input format")

FormatOption = Annotated[
    str,
    option(
        "--format",
        "-f",
        help="columns, conllu, crfsuite, jsonl or svmlight; auto: by the name of the file.",
    ),
]
ModelFormatOption = Annotated[
    str, option("--format", "-f", help="As in train; auto: the format of the training file.")
]
LabelOption = Annotated[
    str | None,
    option(
        "--label-column",
        "-l",
        metavar="COLUMN",
        help="The label: a column number (the first is 0, the last is -1), a CoNLL-U field or a "
        "JSON key.",
        show_default="the last column; upos; labels",
    ),
]
ColumnsOption = Annotated[
    str | None,
    option(
        "--columns",
        "-c",
        metavar="COLUMNS",
        help="The columns of a token, for example 0,1 or form,xpos.",
        show_default="all except the label; form",
    ),
]
SeparatorOption = Annotated[
    str,
    option(
        "--separator",
        help="Between columns: space, tab, whitespace (both); auto: as in the first line.",
    ),
]
CommentOption = Annotated[
    str | None,
    option(
        "--comment",
        metavar="PREFIX",
        help="Lines that start with this prefix are comments, not tokens.",
        show_default="no comments: # is a token",
    ),
]
EncodingOption = Annotated[str, option("--encoding", help="Encoding of the file.")]
ModelEncodingOption = Annotated[
    str | None,
    option("--encoding", help="Encoding of the file.", show_default="that of the training file"),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=N",
        help="Raise a limit of the model file, for example n_bytes=10000000000; may be repeated.",
    ),
]


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file.

    Parameters
    ----------
    format : str
        One of `FORMATS`, or "text" (one sequence of words per line).
    label : int, str or None
        Column, field or key of the label.
    columns : tuple of int or str, or None
        Columns of a token; None for all except the label.
    separator, comment, encoding
        As in `seqlab.data.io.read_conll`.
    width : int
        Number of columns of the training file; 0 if unknown.
    """

    format: str = "columns"
    label: int | str | None = -1
    columns: tuple[int | str, ...] | None = None
    separator: str = "auto"
    comment: str | None = None
    encoding: str = "utf-8"
    width: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a model file."""
        values = asdict(self)
        values["columns"] = None if self.columns is None else list(self.columns)
        return {key: value for key, value in values.items() if value is not None}


def make_read_options(
    file: str,
    format: str = "auto",
    label: str | None = None,
    columns: str | None = None,
    separator: str = "auto",
    comment: str | None = None,
    encoding: str = "utf-8",
) -> ReadOptions:
    """Check the options of the command line and combine them."""
    chosen = _check_format(file, format)
    return ReadOptions(
        chosen,
        _check_label(label, chosen),
        _check_columns(columns, chosen),
        _check_separator(separator),
        comment,
        encoding,
    )


def load_read_options(
    model: Any,
    format: str = "auto",
    label: str | None = None,
    separator: str = "auto",
    comment: str | None = None,
    encoding: str | None = None,
) -> ReadOptions:
    """Return the options stored in a model, changed by those given on the command line."""
    stored = dict(getattr(model, "source_", {}))
    stored["columns"] = None if stored.get("columns") is None else tuple(stored["columns"])
    options = ReadOptions(**stored) if len(stored) > 1 else ReadOptions(_guess_format(model))
    if format != "auto" and format != options.format:
        needed = _guess_format(model)
        if format in ("columns", "conllu", "text") and needed != "columns":
            raise CommandError(
                f"--format {format}: this model has no templates for columns of text; it needs "
                f"features, as in {needed} files"
            )
        if format == "text":
            options = replace(options, format="text", columns=None, label=None, width=0)
        else:
            chosen = _check_format("", format)
            options = ReadOptions(chosen, _DEFAULT_LABEL.get(chosen), encoding=options.encoding)
    if label is not None:
        options = replace(options, label=_check_label(label, options.format), width=0)
    if separator != "auto":
        options = replace(options, separator=_check_separator(separator))
    return replace(
        options, comment=comment or options.comment, encoding=encoding or options.encoding
    )


def split_columns(
    n_columns: int,
    options: ReadOptions,
    names: tuple[str, ...] | None,
    place: str,
    *,
    labeled: bool | None,
) -> tuple[list[int], int | None]:
    """Find the columns of the token and of the label (None if there is none).

    Parameters
    ----------
    n_columns : int
        Number of columns in the file.
    options : ReadOptions
    names : tuple of str or None
        The columns of a token in training, if the model knows them.
    place : str
        File and line, for error messages.
    labeled : bool or None
        Whether the file has a label column; None decides by the number of columns.
    """
    if options.label is None:
        return list(range(n_columns)), None
    width = options.width or (n_columns if names is None else len(names) + 1)
    found = "1 column" if n_columns == 1 else f"{n_columns} columns"
    if labeled is None:
        labeled = n_columns >= width
    label = _column_index(options.label, width)
    tokens = [c for c in range(width) if c != label]
    if options.columns is not None:
        tokens = [_column_index(c, width) for c in options.columns]
    if not labeled:
        tokens = [c - (c > label) for c in tokens]
    listed = "" if names is None else f" ({', '.join(names)})"
    if labeled and n_columns < width:
        raise CommandError(
            f"{place}: {found}, but the training file had {width}: the label is missing"
        )
    if max(tokens, default=0) >= n_columns:
        raise CommandError(f"{place}: {found}, but the model needs {len(tokens)}{listed}")
    if n_columns > width:
        raise CommandError(
            f"{place}: {found}, but the training file had {width}: "
            f"{len(tokens)} for the token{listed} and the label"
        )
    return tokens, label if labeled else None


def format_hint(file: str, options: ReadOptions) -> str:
    """Hint to add to an error if the name of the file suggests another format, or an empty string.

    Examples
    --------
    >>> format_hint("new.txt", ReadOptions("conllu"))
    ' (read as conllu, like the training file; try --format columns)'
    >>> format_hint("new.conllu", ReadOptions("conllu"))
    ''
    """
    by_name = _check_format(file, "auto")
    if by_name == options.format:
        return ""
    return f" (read as {options.format}, like the training file; try --format {by_name})"


def _column_index(column: int | str, width: int) -> int:
    number = int(column)
    return number + width if number < 0 else number


def _check_format(file: str, given: str) -> str:
    if given == "auto":
        path = Path(file)
        if path.suffix.lower() in _COMPRESSION_SUFFIXES:
            path = path.with_suffix("")
        return _FORMAT_OF_SUFFIX.get(path.suffix.lower(), "columns")
    if given not in FORMATS:
        raise CommandError(f"--format: unknown format {given!r}{suggest(given, FORMATS)}")
    return given


def _guess_format(model: Any) -> str:
    """Return the format for a model without stored options: columns if it has templates."""
    features = getattr(model, "features_", None)
    vectorizer = getattr(model, "vectorizer_", None)
    if type(features).__name__ == "SequenceVectorizer" or vectorizer is not None:
        return "crfsuite"
    return "svmlight" if features is None else "columns"


def _check_label(given: str | None, format: str) -> int | str | None:
    if given is None:
        return _DEFAULT_LABEL.get(format)
    if format == "columns":
        return _parse_column(given, "--label-column")
    if format in ("crfsuite", "svmlight"):
        raise CommandError(f"--label-column: in {format} files the label is always first")
    return given


def _check_columns(given: str | None, format: str) -> tuple[int | str, ...] | None:
    if given is None:
        return ("form",) if format == "conllu" else None
    if format not in ("columns", "conllu"):
        raise CommandError(f"--columns: {format} files have no columns")
    parts: Sequence[str] = [part.strip() for part in given.split(",")]
    if format == "conllu":
        return tuple(parts)
    return tuple(_parse_column(part, "--columns") for part in parts)


def _parse_column(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CommandError(
            f"{option}: {text!r} is not a column number (the first column is 0)"
        ) from None


def _check_separator(given: str) -> str:
    if given not in _SEPARATORS:
        raise CommandError(
            f"--separator: unknown separator {given!r}{suggest(given, tuple(_SEPARATORS))}"
        )
    return _SEPARATORS[given]
