"""How a file is to be read: format, label column, token columns.

`train` writes it into the model (the attribute ``source_``, a plain dict), so that `tag` and
`evaluate` read later files the same way without being told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from seqlab.cli._errors import CommandError
from seqlab.cli._nearest import nearest

FORMATS = ("columns", "conllu", "crfsuite", "jsonl", "svmlight")
_BY_SUFFIX = {
    ".conllu": "conllu",
    ".crfsuite": "crfsuite",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_PACKED = (".gz", ".xz", ".bz2")
_SEPARATORS = {"auto": "auto", "space": " ", "tab": "\t", "whitespace": "whitespace"}
_DEFAULT_LABEL: dict[str, int | str] = {"columns": -1, "conllu": "upos", "jsonl": "labels"}

FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        help="columns, conllu, crfsuite, jsonl or svmlight; auto goes by the file's name.",
        rich_help_panel="Reading",
    ),
]
LaterFormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        help="As in train; auto: as the training file.",
        rich_help_panel="Reading",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        "-l",
        metavar="COLUMN",
        help="The label: a column counted from 0 (-1 is the last), a CoNLL-U field or a JSON key.",
        show_default="the last; upos; labels",
        rich_help_panel="Reading",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="COLUMNS",
        help="The columns that make a token, for example 0,1 or form,xpos.",
        show_default="all but the label; form",
        rich_help_panel="Reading",
    ),
]
SeparatorOption = Annotated[
    str,
    typer.Option(
        "--separator",
        help="Between columns: space, tab, whitespace (any of both), auto (as the first line).",
        rich_help_panel="Reading",
    ),
]
CommentOption = Annotated[
    str | None,
    typer.Option(
        "--comment",
        metavar="PREFIX",
        help="Lines that begin so are no tokens.",
        show_default="none: # is a token",
        rich_help_panel="Reading",
    ),
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", help="Encoding of the file.", rich_help_panel="Reading")
]


@dataclass(frozen=True)
class Reading:
    """How to read a file.

    Parameters
    ----------
    format : str
        One of `FORMATS`, or "text" (one sequence of words a line).
    label : int, str or None
        Column, field or key of the label.
    columns : tuple of int or str, or None
        What makes a token; None for all but the label.
    separator, comment, encoding
        As in `seqlab.data.io.read_conll`.
    width : int
        Number of columns of the training file; 0 where that is not known.
    """

    format: str = "columns"
    label: int | str | None = -1
    columns: tuple[int | str, ...] | None = None
    separator: str = "auto"
    comment: str | None = None
    encoding: str = "utf-8"
    width: int = 0

    def as_attribute(self) -> dict[str, Any]:
        """What a model file keeps."""
        kept = asdict(self)
        kept["columns"] = None if self.columns is None else list(self.columns)
        return {key: value for key, value in kept.items() if value is not None}


def make_reading(
    file: str,
    format: str = "auto",
    label: str | None = None,
    columns: str | None = None,
    separator: str = "auto",
    comment: str | None = None,
    encoding: str = "utf-8",
) -> Reading:
    """Reading of a training file from the options."""
    chosen = _format(file, format)
    return Reading(
        chosen,
        _label(label, chosen),
        _columns(columns, chosen),
        _separator(separator),
        comment,
        encoding,
    )


def reading_of(
    model: Any,
    format: str = "auto",
    label: str | None = None,
    separator: str = "auto",
    comment: str | None = None,
    encoding: str = "utf-8",
) -> Reading:
    """Reading of a file for a model: as its training file was read, but for what is given."""
    kept = dict(getattr(model, "source_", {}))
    kept["columns"] = None if kept.get("columns") is None else tuple(kept["columns"])
    reading = Reading(**kept) if len(kept) > 1 else Reading(format=_natural_format(model))
    if format != "auto" and format != reading.format:
        if format == "text":
            reading = replace(reading, format="text", columns=None, label=None, width=0)
        else:
            chosen = _format("", format)
            reading = Reading(chosen, _DEFAULT_LABEL.get(chosen))
    if label is not None:
        reading = replace(reading, label=_label(label, reading.format), width=0)
    if separator != "auto":
        reading = replace(reading, separator=_separator(separator))
    return replace(reading, comment=comment or reading.comment, encoding=encoding)


def split_columns(
    n_columns: int,
    reading: Reading,
    names: tuple[str, ...] | None,
    where: str,
    *,
    labeled: bool | None,
) -> tuple[list[int], int | None]:
    """Columns of the token and of the label (None without) in a file of so many columns.

    Parameters
    ----------
    n_columns : int
        Columns of the file.
    reading : Reading
    names : tuple of str or None
        The columns of a token in training, where the model knows.
    where : str
        Place for error messages.
    labeled : bool or None
        Whether the file has a label column; None goes by the number of columns.
    """
    if reading.label is None:
        return list(range(n_columns)), None
    width = reading.width or (n_columns if names is None else len(names) + 1)
    has = "1 column" if n_columns == 1 else f"{n_columns} columns"
    if labeled is None:
        labeled = n_columns >= width
    place = _index(reading.label, width)
    wanted = [c for c in range(width) if c != place]
    if reading.columns is not None:
        wanted = [_index(c, width) for c in reading.columns]
    if not labeled:
        wanted = [c - (c > place) for c in wanted]
    listed = "" if names is None else f" ({', '.join(names)})"
    if labeled and n_columns < width:
        raise CommandError(
            f"{where}: {has} where the training file had {width}: the label is missing"
        )
    if max(wanted, default=0) >= n_columns:
        raise CommandError(f"{where}: {has}, but the model reads {len(wanted)}{listed}")
    if n_columns > width:
        raise CommandError(
            f"{where}: {has} where the training file had {width}: "
            f"{len(wanted)} of the token{listed} and the label"
        )
    return wanted, place if labeled else None


def format_hint(file: str, reading: Reading) -> str:
    """What to add to an error of a file that was read as the training file; empty if nothing.

    Examples
    --------
    >>> format_hint("new.txt", Reading("conllu"))
    ' (read as conllu, like the training file; --format columns?)'
    >>> format_hint("new.conllu", Reading("conllu"))
    ''
    """
    by_name = _format(file, "auto")
    if by_name == reading.format:
        return ""
    return f" (read as {reading.format}, like the training file; --format {by_name}?)"


def suffix_free(path: str) -> Path:
    """The path without the suffix of its compression."""
    found = Path(path)
    return found.with_suffix("") if found.suffix.lower() in _PACKED else found


def _index(column: int | str, width: int) -> int:
    number = int(column)
    return number + width if number < 0 else number


def _format(file: str, given: str) -> str:
    if given == "auto":
        return _BY_SUFFIX.get(suffix_free(file).suffix.lower(), "columns")
    if given not in FORMATS:
        raise CommandError(f"no format {given!r}{nearest(given, FORMATS)}")
    return given


def _natural_format(model: Any) -> str:
    """The format of a model that does not say: columns where it has templates."""
    features = getattr(model, "features_", None)
    vectorizer = getattr(model, "vectorizer_", None)
    if type(features).__name__ == "SequenceVectorizer" or vectorizer is not None:
        return "crfsuite"
    return "svmlight" if features is None else "columns"


def _label(given: str | None, format: str) -> int | str | None:
    if given is None:
        return _DEFAULT_LABEL.get(format)
    if format == "columns":
        return _number(given, "--label-column")
    if format in ("crfsuite", "svmlight"):
        raise CommandError(f"--label-column: the label is always first in {format} files")
    return given


def _columns(given: str | None, format: str) -> tuple[int | str, ...] | None:
    if given is None:
        return ("form",) if format == "conllu" else None
    if format not in ("columns", "conllu"):
        raise CommandError(f"--columns: {format} files have no columns")
    parts: Sequence[str] = [part.strip() for part in given.split(",")]
    if format == "conllu":
        return tuple(parts)
    return tuple(_number(part, "--columns") for part in parts)


def _number(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CommandError(f"{option}: {text!r} is no column number (the first is 0)") from None


def _separator(given: str) -> str:
    if given not in _SEPARATORS:
        raise CommandError(f"--separator: no {given!r}{nearest(given, tuple(_SEPARATORS))}")
    return _SEPARATORS[given]
