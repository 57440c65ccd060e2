"""Column files: one token per line, columns of text, a blank line between sequences.

The format of CoNLL, CRF++ and Wapiti. Columns are separated by single tabs or by runs of spaces; the
first token line decides which, and a later line with the other separator is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from seqlab.data.errors import InputError
from seqlab.data.io.streams import (
    ReadError,
    Source,
    WriteError,
    collect,
    is_blank,
    iter_line_blocks,
    open_writer,
    pair_up,
    source_name,
)

Token: TypeAlias = "tuple[str, ...]"

DOCSTART = "-DOCSTART-"
_SEPARATORS = ("auto", " ", "\t", "whitespace")


def iter_conll(
    source: Source,
    *,
    label: int | None = -1,
    sep: str = "auto",
    comment: str | None = None,
    docstart: str | None = DOCSTART,
    encoding: str = "utf-8",
) -> Iterator[tuple[list[Token], list[str] | None]]:
    r"""Iterate over the sequences of a column file, in constant memory.

    Parameters are those of `read_conll`.

    Yields
    ------
    tokens : list of tuple of str
        One tuple per token: all columns but the label.
    labels : list of str or None
        None if ``label=None``.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import iter_conll
    >>> file = io.StringIO("the DT B-NP\ndog NN I-NP\n\nbarks VBZ B-VP\n")
    >>> for tokens, labels in iter_conll(file):
    ...     print(tokens, labels)
    [('the', 'DT'), ('dog', 'NN')] ['B-NP', 'I-NP']
    [('barks', 'VBZ')] ['B-VP']
    """
    if sep not in _SEPARATORS:
        raise InputError(f"sep must be one of {_SEPARATORS}, got {sep!r}")
    rows = _Rows(source_name(source), label, sep)
    empty = True
    for first, lines in iter_line_groups(source, comment, docstart, encoding):
        empty = False
        yield rows.parse(first, lines)
    if empty:
        raise ReadError(rows.name, None, "no sequences: the file is empty")


def read_conll(
    source: Source,
    *,
    label: int | None = -1,
    sep: str = "auto",
    comment: str | None = None,
    docstart: str | None = DOCSTART,
    encoding: str = "utf-8",
) -> tuple[list[list[Token]], list[list[str]] | None]:
    r"""Read a column file (CoNLL, CRF++, Wapiti).

    Parameters
    ----------
    source : path, "-" or file object
        A path (also .gz, .xz, .bz2), standard input, or an open text or binary file.
    label : int or None, default=-1
        Column of the label, counted from the end if negative; None if there is no label column.
    sep : {"auto", " ", "\t", "whitespace"}, default="auto"
        Columns are separated by runs of spaces, by single tabs, or ("whitespace") by runs of both;
        "auto" uses tabs or spaces as in the first token line, and raises an error for lines with the
        other one. If tabs separate, a column may contain spaces or be empty.
    comment : str, optional
        Lines that start with this are skipped, and end a sequence as a blank line does. None by
        default, because ``#`` is a token in real text.
    docstart : str or None, default="-DOCSTART-"
        Lines with this first column are skipped, and end a sequence.
    encoding : str, default="utf-8"
        Encoding of bytes; a byte order mark is dropped.

    Returns
    -------
    X : list of list of tuple of str
        One tuple per token: all columns but the label.
    y : list of list of str, or None
        The labels; None if ``label=None``.

    Raises
    ------
    ReadError
        For a wrong number of columns, mixed separators, a missing label, bytes that are not in the
        encoding, or a file without sequences; the message gives file and line.

    See Also
    --------
    iter_conll : The same, one sequence at a time.
    write_conll : The inverse.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_conll
    >>> X, y = read_conll(io.StringIO("the DT B-NP\ndog NN I-NP\n"))
    >>> X, y
    ([[('the', 'DT'), ('dog', 'NN')]], [['B-NP', 'I-NP']])
    >>> read_conll(io.StringIO("the DT B-NP\ndog NN\n"))
    Traceback (most recent call last):
    ...
    seqlab.data.io.streams.ReadError: <stream>:2: 2 columns, but earlier lines have 3
    """
    return collect(
        iter_conll(
            source, label=label, sep=sep, comment=comment, docstart=docstart, encoding=encoding
        ),
        label is not None,
    )


def write_conll(
    X: Iterable[Sequence[Any]],
    y: Iterable[Sequence[Any]] | None,
    dest: Source,
    *,
    label: int = -1,
    sep: str = " ",
    encoding: str = "utf-8",
) -> None:
    r"""Write a column file, with a blank line after each sequence.

    Parameters
    ----------
    X : iterable of sequences of tuples of str
        Tokens; a plain string is a token of one column.
    y : iterable of sequences of labels, or None
        Written with ``str``; None for no label column.
    dest : path, "-" or file object
        A path is written through a temporary file and a rename, compressed by its extension.
    label : int, default=-1
        Column of the label in the written line.
    sep : {" ", "\t"}, default=" "
        Column separator.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Raises
    ------
    WriteError
        For a column that contains the separator or a line end, or an empty sequence.

    Examples
    --------
    >>> import sys
    >>> from seqlab.data.io import write_conll
    >>> write_conll([[("the", "DT"), ("dog", "NN")]], [["B-NP", "I-NP"]], sys.stdout)
    the DT B-NP
    dog NN I-NP
    <BLANKLINE>
    """
    if sep not in (" ", "\t"):
        raise InputError(f"sep must be a space or a tab, got {sep!r}")
    with open_writer(dest, encoding) as write:
        for index, tokens, labels in pair_up(X, y):
            if len(tokens) == 0:
                raise WriteError(f"X[{index}] is empty: a column file cannot contain it")
            lines = []
            for t, token in enumerate(tokens):
                columns = [token] if isinstance(token, str) else list(token)
                if labels is not None:
                    at = label if label >= 0 else len(columns) + 1 + label
                    columns.insert(at, str(labels[t]))
                lines.append(_join(columns, sep, index, t))
            write("\n".join(lines) + "\n\n")


def _join(columns: list[str], sep: str, index: int, t: int) -> str:
    line = sep.join(columns)
    is_split = line.count(sep) != len(columns) - 1 or "\n" in line or line.endswith("\r")
    if is_split or (sep == " " and ("" in columns or "\t" in line)) or not line.strip(" \t"):
        raise WriteError(
            f"X[{index}][{t}]: {columns!r} cannot be written with separator {sep!r}"
            + ("; use sep='\\t'" if sep == " " else "")
        )
    return line


def iter_line_groups(
    source: Source, comment: str | None, docstart: str | None, encoding: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line, and the lines, of each sequence."""
    n_before, pending, mark = 0, list[str](), len(docstart or "")
    # Few lines end a sequence; a quick test of the first character excludes nearly all the others.
    candidates = {"", " ", "\t", (docstart or "")[:1], (comment or "")[:1]}
    for block in iter_line_blocks(source, encoding):
        begin = 0
        for k in [k for k, line in enumerate(block) if line[:1] in candidates]:
            line = block[k]
            if not (
                is_blank(line)
                or (docstart and line.startswith(docstart) and line[mark:][:1] in ("", " ", "\t"))
                or (comment and line.startswith(comment))
            ):
                continue
            pending += block[begin:k]
            begin = k + 1
            if pending:
                yield n_before + begin - len(pending), pending
                pending = []
        pending += block[begin:]
        n_before += len(block)
    if pending:
        yield n_before + 1 - len(pending), pending


class _Rows:
    """Splits lines into columns, and checks that they are consistent with the first line."""

    def __init__(self, name: str, label: int | None, sep: str) -> None:
        self.name, self.label = name, label
        self.sep = sep
        self.is_fixed = sep != "auto"
        self.n_columns = 0

    def parse(self, first: int, lines: list[str]) -> tuple[list[Token], list[str] | None]:
        """Return the tokens and labels of one sequence; `first` is the number of its first line."""
        if self.n_columns == 0:
            self._inspect(first, lines[0])
        flat = self._split_quickly(lines)
        if flat is None:
            rows = [self._split(first + k, line) for k, line in enumerate(lines)]
            flat = [column for row in rows for column in row]
        # Words and tags are repeated: interning saves memory and keeps their hashes.
        flat = [*map(sys.intern, flat)]
        columns = [flat[k :: self.n_columns] for k in range(self.n_columns)]
        if self.label is None:
            return list(zip(*columns, strict=True)), None
        labels = columns.pop(self.label)
        if "" in labels:
            raise ReadError(self.name, first + labels.index(""), "the label is missing")
        return list(zip(*columns, strict=True)), labels

    def _inspect(self, number: int, line: str) -> None:
        """Take separator and number of columns from the first token line."""
        if not self.is_fixed:
            self.sep = "\t" if "\t" in line else " "
        self.n_columns = len(self._columns(line))
        if self.label is None:
            return
        if not -self.n_columns <= self.label < self.n_columns:
            raise ReadError(
                self.name,
                number,
                f"no column {self.label} for the label: the line has {self.n_columns}",
            )
        if self.n_columns == 1:
            reason = "only one column, the label; a token needs another one (or set label=None)"
            raise ReadError(self.name, number, reason)

    def _split_quickly(self, lines: list[str]) -> list[str] | None:
        """Concatenated columns of all lines if every line is regular, else None."""
        sep = self.sep
        if sep == "whitespace" or {line.count(sep) for line in lines} != {self.n_columns - 1}:
            return None
        text = sep.join(lines)
        # Two tabs enclose an empty column, two spaces are one separator.
        if sep == " " and (
            "  " in text
            or text[0] == " "
            or text[-1] == " "
            or (not self.is_fixed and "\t" in text)
        ):
            return None
        return text.split(sep)

    def _columns(self, line: str) -> list[str]:
        if self.sep == "\t":
            return line.split("\t")
        if self.sep == "whitespace":
            line = line.replace("\t", " ")
        return [column for column in line.split(" ") if column]

    def _split(self, number: int, line: str) -> list[str]:
        """Split one line into columns, or raise the error that explains what is wrong."""
        row = self._columns(line)
        if not self.is_fixed and self.sep == " " and "\t" in line:
            reason = "a tab, but earlier lines are separated by spaces"
            raise ReadError(self.name, number, f"{reason}; set sep='whitespace' to accept both")
        if len(row) == self.n_columns:
            return row
        if self.sep == "\t" and "\t" not in line and len(line.split()) == self.n_columns:
            reason = "separated by spaces, but earlier lines by tabs"
            raise ReadError(self.name, number, f"{reason}; set sep='whitespace' to accept both")
        columns = "1 column" if len(row) == 1 else f"{len(row)} columns"
        reason = f"{columns}, but earlier lines have {self.n_columns}"
        if self.label is not None and len(row) == self.n_columns - 1:
            reason += " (is the label missing?)" if self.n_columns == 2 else ""
        raise ReadError(self.name, number, reason)
