"""Read the sequences of a file one by one, together with their lines.

The readers of `seqlab.data.io` parse the file; `LineSource` passes them its lines and keeps those of
sequences that are not written yet, so that the output can repeat them unchanged. Only one block of
the file is in memory.
"""

from __future__ import annotations

import io
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from seqlab.cli._errors import CommandError, rephrase
from seqlab.cli._read_options import ReadOptions, format_hint, split_columns
from seqlab.data.io import (
    ReadError,
    iter_conll,
    iter_conllu,
    iter_crfsuite,
    iter_jsonl,
    iter_svmlight,
)
from seqlab.data.io.streams import is_blank, iter_line_blocks, source_name

# Steps predicted in one call: with fewer, threads have too little work; with more, memory grows.
CHUNK_STEPS = 8192
_WORD = re.compile(r"[,;]|[^\s,;]+")
_DOCSTART = re.compile(r"-DOCSTART-(?:[ \t]|$)")


@dataclass(slots=True)
class InputSequence:
    """One sequence of a file.

    Parameters
    ----------
    tokens : list
        Input for the model.
    gold : list or None
        Labels in the file, if it has any.
    words : list of str
        Text to show for each step.
    line : int
        Number of the first line; 0 if unknown.
    before, lines, after : list of str
        Lines before the sequence that are not tokens, its own lines, and the blank lines after it.
    """

    tokens: Any
    gold: list[Any] | None
    words: list[str]
    line: int = 0
    before: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


class LineSource(io.TextIOBase):
    """A text file that keeps the lines that have been read until they are taken.

    Parameters
    ----------
    source : str
        Path, or "-" for standard input.
    encoding : str
    """

    def __init__(self, source: str, encoding: str) -> None:
        self.name = source_name(source)
        self.number = 1  # number of the first line kept
        self._blocks = iter_line_blocks(source, encoding)
        self._kept: deque[str] = deque()

    def read(self, size: int | None = -1) -> str:
        """Return the next block of lines; from a pipe, what has arrived so far."""
        lines = next(self._blocks, None)
        if lines is None:
            return ""
        self._kept.extend(lines)
        return "\n".join(lines) + "\n"

    @property
    def is_empty(self) -> bool:
        """Whether all lines read so far have been taken."""
        return not self._kept

    @property
    def pending(self) -> list[str]:
        """The lines that have been read but not taken."""
        return list(self._kept)

    def take(self, is_wanted: Any) -> list[str]:
        """Take lines from the front until one is not wanted."""
        taken = []
        while self._kept and is_wanted(self._kept[0]):
            taken.append(self._kept.popleft())
        self.number += len(taken)
        return taken


def open_sequences(
    file: str,
    options: ReadOptions,
    model: Any,
    *,
    labeled: bool | None = None,
    hint: bool = False,
) -> tuple[Iterator[InputSequence], LineSource]:
    """Open a file for a model; the last sequence may consist of lines without tokens.

    Parameters
    ----------
    file : str
        Path, or "-" for standard input.
    options : ReadOptions
    model : fitted model
        Knows how many columns it needs.
    labeled : bool or None
        Whether the file has labels; None detects it if the format allows.
    hint : bool
        Whether errors suggest another format, because this one was not given but is that of the
        training file.
    """
    source = LineSource(file, options.encoding)
    readers = {
        "columns": _read_columns,
        "conllu": _read_conllu,
        "jsonl": _read_jsonl,
        "crfsuite": _read_crfsuite,
        "svmlight": _read_svmlight,
        "text": _read_text,
    }
    sequences = readers[options.format](source, options, model, labeled)
    text = format_hint(file, options) if hint else ""
    return (_add_hint(sequences, text, options) if text else sequences), source


def _add_hint(
    sequences: Iterator[InputSequence], hint: str, options: ReadOptions
) -> Iterator[InputSequence]:
    """Add a hint to the errors of reading."""
    try:
        yield from sequences
    except CommandError as error:
        raise CommandError(f"{error}{hint}", error.code) from error
    except ReadError as error:
        if error.line is None or error.reason.startswith(f"not {options.encoding}"):
            raise
        raise CommandError(f"{rephrase(str(error))}{hint}") from error


def iter_chunks(
    sequences: Iterable[InputSequence], source: LineSource
) -> Iterator[list[InputSequence]]:
    """Group sequences to predict together: `CHUNK_STEPS` steps, or what a pipe has sent so far."""
    chunk: list[InputSequence] = []
    n_steps = 0
    for sequence in sequences:
        chunk.append(sequence)
        n_steps += len(sequence.words)
        if n_steps >= CHUNK_STEPS or source.is_empty:
            yield chunk
            chunk, n_steps = [], 0
    if chunk:
        yield chunk


def token_columns(model: Any) -> tuple[str, ...] | None:
    """Names of the columns that the templates of a model were fitted on; None without templates."""
    return getattr(getattr(model, "features_", None), "column_names_", None)


def _read_columns(
    source: Any, options: ReadOptions, model: Any, labeled: bool | None
) -> Iterator[InputSequence]:
    comment = options.comment

    def is_skipped(line: str) -> bool:
        return bool(
            is_blank(line) or (comment and line.startswith(comment)) or _DOCSTART.match(line)
        )

    select: Any = None
    gold_column = None
    sequences = iter_conll(source, label=None, sep=options.separator, comment=comment)
    for rows, _ in sequences:
        before = source.take(is_skipped)
        line = source.number
        if select is None:
            columns, gold_column = split_columns(
                len(rows[0]),
                options,
                token_columns(model),
                f"{source.name}:{line}",
                labeled=labeled,
            )
            select = _column_selector(columns, len(rows[0]))
        lines = source.take(lambda text: not is_skipped(text))
        gold = None if gold_column is None else [row[gold_column] for row in rows]
        tokens = select(rows)
        words = [token[0] for token in tokens]
        yield InputSequence(tokens, gold, words, line, before, lines, source.take(is_blank))
    yield from _read_rest(source)


def _read_conllu(
    source: Any, options: ReadOptions, model: Any, labeled: bool | None
) -> Iterator[InputSequence]:
    def is_skipped(line: str) -> bool:
        return is_blank(line) or line.startswith("#")

    columns = [str(column) for column in options.columns or ("form",)]
    label = str(options.label) if labeled else None
    for tokens, gold in iter_conllu(source, columns=columns, label=label):
        before = source.take(is_skipped)
        line = source.number
        lines = source.take(lambda text: not is_skipped(text))
        while not any(map(is_word_line, lines)):  # the reader skips sentences without words
            before += [*lines, *source.take(is_skipped)]
            line = source.number
            lines = source.take(lambda text: not is_skipped(text))
        words = [text.split("\t", 2)[1] for text in lines if is_word_line(text)]
        yield InputSequence(tokens, gold, words, line, before, lines, source.take(is_blank))
    yield from _read_rest(source)


def is_word_line(line: str) -> bool:
    """Whether a line of CoNLL-U is a word, not a multiword token or an empty node."""
    return line.partition("\t")[0].isdigit()


def _read_jsonl(
    source: Any, options: ReadOptions, model: Any, labeled: bool | None
) -> Iterator[InputSequence]:
    key = str(options.label or "labels")
    for tokens, gold in iter_jsonl(source, label=key if labeled else None):
        source.take(lambda text: not text or text.isspace())
        line = source.number
        lines = source.take(_accept_first(1))
        if gold is None:
            gold = json.loads(lines[0]).get(key)
        words = [token[0] if isinstance(token, tuple) else str(t) for t, token in enumerate(tokens)]
        yield InputSequence(tokens, gold, words, line, [], lines)
        source.take(lambda text: not text or text.isspace())


def _read_crfsuite(
    source: Any, options: ReadOptions, model: Any, labeled: bool | None
) -> Iterator[InputSequence]:
    for steps, gold in iter_crfsuite(source, labeled=labeled is not False):
        source.take(is_blank)
        line = source.number
        source.take(lambda text: not is_blank(text))
        words = [" ".join(list(step)[:1]) for step in steps]
        yield InputSequence(steps, gold, words, line, after=source.take(is_blank))


def _read_svmlight(
    source: Any, options: ReadOptions, model: Any, labeled: bool | None
) -> Iterator[InputSequence]:
    width = int(getattr(model, "n_features_in_", 0))
    for matrix, gold in iter_svmlight(source):
        source.take(lambda text: is_blank(text) or text.lstrip().startswith("#"))
        source.take(_accept_first(matrix.shape[0]))
        matrix.resize(matrix.shape[0], width)  # drop features that training has not seen
        yield InputSequence(matrix, gold.tolist(), [str(t) for t in range(matrix.shape[0])])


def _read_text(
    source: Any, options: ReadOptions, model: Any, labeled: bool | None
) -> Iterator[InputSequence]:
    columns = token_columns(model)
    if columns is not None and len(columns) > 1:
        reason = f"plain text has only words, but the model needs {', '.join(columns)}"
        raise ReadError(source.name, None, reason)
    found = False
    while source.read():
        for line in source.take(lambda text: True):
            number = source.number
            words = _WORD.findall(line)
            if words:
                found = True
                yield InputSequence(
                    [(word,) for word in words], None, words, number, [], words, [""]
                )
    if not found:
        raise ReadError(source.name, None, "no sequences: the file is empty")


def _read_rest(source: LineSource) -> Iterator[InputSequence]:
    lines = source.take(lambda text: True)
    if lines:
        yield InputSequence([], None, [], source.number, lines)


def _accept_first(n: int) -> Any:
    """Return a predicate that is true for the first ``n`` lines."""
    unused = [True] * n
    return lambda _: bool(unused) and unused.pop()


def _column_selector(columns: list[int], n_columns: int) -> Any:
    """Return a function that keeps some columns of each row."""
    if columns == list(range(n_columns)):
        return lambda rows: rows
    if len(columns) == 1:
        (only,) = columns
        return lambda rows: [(row[only],) for row in rows]
    get = itemgetter(*columns)
    return lambda rows: [*map(get, rows)]
