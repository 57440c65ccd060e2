"""Sequences of a file, one by one, with the lines they stand on.

The readers of `seqlab.data.io` do the reading; `LineSource` stands between them and the file and keeps
the lines that have not been answered for, so that output can repeat them as they are. Memory is that
of a block of the file.
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

from seqlab.cli._errors import CommandError, in_terms_of_files
from seqlab.cli._reading import Reading, format_hint, split_columns
from seqlab.data.io import (
    ReadError,
    iter_conll,
    iter_conllu,
    iter_crfsuite,
    iter_jsonl,
    iter_svmlight,
)
from seqlab.data.io.streams import is_blank, iter_line_blocks, source_name

CHUNK_STEPS = 8192  # steps answered at a time: enough for threads, little to hold
_WORD = re.compile(r"[,;]|[^\s,;]+")
_DOCSTART = re.compile(r"-DOCSTART-(?:[ \t]|$)")


@dataclass(slots=True)
class Item:
    """One sequence of a file.

    Parameters
    ----------
    tokens : list
        What the model takes.
    gold : list or None
        Labels in the file.
    words : list of str
        How each step is shown.
    line : int
        Number of the first line; 0 where that is not known.
    before, lines, after : list of str
        Lines before it that are no tokens, its own, and the blank lines that follow.
    """

    tokens: Any
    gold: list[Any] | None
    words: list[str]
    line: int = 0
    before: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


class LineSource(io.TextIOBase):
    """A text file whose reader can be asked later which lines it has read.

    Parameters
    ----------
    source : str
        Path, or "-" for standard input.
    encoding : str
    """

    def __init__(self, source: str, encoding: str) -> None:
        self.name = source_name(source)
        self.number = 1  # of the first line kept
        self._blocks = iter_line_blocks(source, encoding)
        self._kept: deque[str] = deque()

    def read(self, size: int | None = -1) -> str:
        """Return the next block of lines; what a pipe holds now is a block."""
        lines = next(self._blocks, None)
        if lines is None:
            return ""
        self._kept.extend(lines)
        return "\n".join(lines) + "\n"

    @property
    def is_used_up(self) -> bool:
        """Whether every line read so far has been taken."""
        return not self._kept

    @property
    def waiting(self) -> list[str]:
        """The lines read but not yet taken."""
        return list(self._kept)

    def take(self, wanted: Any) -> list[str]:
        """Take lines from the front for as long as they are wanted."""
        taken = []
        while self._kept and wanted(self._kept[0]):
            taken.append(self._kept.popleft())
        self.number += len(taken)
        return taken


def open_items(
    file: str,
    reading: Reading,
    model: Any,
    *,
    labeled: bool | None = None,
    remembered: bool = False,
) -> tuple[Iterator[Item], LineSource]:
    """Sequences of a file for a model; the last item may hold lines without any tokens.

    Parameters
    ----------
    file : str
        Path, or "-" for standard input.
    reading : Reading
    model : fitted model
        Says how many columns it reads.
    labeled : bool or None
        Whether there are labels in the file; None finds out where that is possible.
    remembered : bool
        Whether the format is that of the training file and was not asked for: errors say so.
    """
    source = LineSource(file, reading.encoding)
    makers = {
        "columns": _column_items,
        "conllu": _conllu_items,
        "jsonl": _jsonl_items,
        "crfsuite": _crfsuite_items,
        "svmlight": _svmlight_items,
        "text": _text_items,
    }
    items = makers[reading.format](source, reading, model, labeled)
    hint = format_hint(file, reading) if remembered else ""
    return (_hinted(items, hint, reading) if hint else items), source


def _hinted(items: Iterator[Item], hint: str, reading: Reading) -> Iterator[Item]:
    try:
        yield from items
    except CommandError as error:
        raise CommandError(f"{error}{hint}", error.code) from error
    except ReadError as error:
        if error.line is None or error.reason.startswith(f"not {reading.encoding}"):
            raise
        raise CommandError(f"{in_terms_of_files(str(error))}{hint}") from error


def chunks(items: Iterable[Item], source: LineSource) -> Iterator[list[Item]]:
    """Gather items to work on together: up to `CHUNK_STEPS`, or all that a pipe has given so far."""
    gathered: list[Item] = []
    steps = 0
    for item in items:
        gathered.append(item)
        steps += len(item.words)
        if steps >= CHUNK_STEPS or source.is_used_up:
            yield gathered
            gathered, steps = [], 0
    if gathered:
        yield gathered


def token_columns(model: Any) -> tuple[str, ...] | None:
    """Names of the columns that the model's templates were fitted on; None where it has none."""
    return getattr(getattr(model, "features_", None), "column_names_", None)


def _column_items(
    source: Any, reading: Reading, model: Any, labeled: bool | None
) -> Iterator[Item]:
    comment = reading.comment

    def is_outside(line: str) -> bool:
        return bool(
            is_blank(line) or (comment and line.startswith(comment)) or _DOCSTART.match(line)
        )

    pick: Any = None
    gold_column = None
    sequences = iter_conll(source, label=None, sep=reading.separator, comment=comment)
    for rows, _ in sequences:
        before = source.take(is_outside)
        line = source.number
        if pick is None:
            columns, gold_column = split_columns(
                len(rows[0]),
                reading,
                token_columns(model),
                f"{source.name}:{line}",
                labeled=labeled,
            )
            pick = _picker(columns, len(rows[0]))
        lines = source.take(lambda text: not is_outside(text))
        gold = None if gold_column is None else [row[gold_column] for row in rows]
        tokens = pick(rows)
        words = [token[0] for token in tokens]
        yield Item(tokens, gold, words, line, before, lines, source.take(is_blank))
    yield from _rest(source)


def _conllu_items(
    source: Any, reading: Reading, model: Any, labeled: bool | None
) -> Iterator[Item]:
    def is_outside(line: str) -> bool:
        return is_blank(line) or line.startswith("#")

    columns = [str(column) for column in reading.columns or ("form",)]
    label = str(reading.label) if labeled else None
    for tokens, gold in iter_conllu(source, columns=columns, label=label):
        before = source.take(is_outside)
        line = source.number
        lines = source.take(lambda text: not is_outside(text))
        while not any(map(is_word_line, lines)):  # a sentence without words is passed over
            before += [*lines, *source.take(is_outside)]
            line = source.number
            lines = source.take(lambda text: not is_outside(text))
        words = [text.split("\t", 2)[1] for text in lines if is_word_line(text)]
        yield Item(tokens, gold, words, line, before, lines, source.take(is_blank))
    yield from _rest(source)


def is_word_line(line: str) -> bool:
    """Whether a line of CoNLL-U is a word, not a range of words or an empty node."""
    return line.partition("\t")[0].isdigit()


def _jsonl_items(source: Any, reading: Reading, model: Any, labeled: bool | None) -> Iterator[Item]:
    key = str(reading.label or "labels")
    for tokens, gold in iter_jsonl(source, label=key if labeled else None):
        source.take(lambda text: not text or text.isspace())
        line = source.number
        lines = source.take(_first_only())
        if gold is None:
            gold = json.loads(lines[0]).get(key)
        words = [token[0] if isinstance(token, tuple) else str(t) for t, token in enumerate(tokens)]
        yield Item(tokens, gold, words, line, [], lines)
        source.take(lambda text: not text or text.isspace())


def _crfsuite_items(
    source: Any, reading: Reading, model: Any, labeled: bool | None
) -> Iterator[Item]:
    for steps, gold in iter_crfsuite(source, labeled=labeled is not False):
        source.take(is_blank)
        line = source.number
        source.take(lambda text: not is_blank(text))
        words = [" ".join(list(step)[:1]) for step in steps]
        yield Item(steps, gold, words, line, after=source.take(is_blank))


def _svmlight_items(
    source: Any, reading: Reading, model: Any, labeled: bool | None
) -> Iterator[Item]:
    width = int(getattr(model, "n_features_in_", 0))
    for matrix, gold in iter_svmlight(source):
        source.take(lambda text: is_blank(text) or text.lstrip().startswith("#"))
        source.take(_first_only(matrix.shape[0]))
        matrix.resize(matrix.shape[0], width)  # features not seen in training say nothing
        yield Item(matrix, gold.tolist(), [str(t) for t in range(matrix.shape[0])])


def _text_items(source: Any, reading: Reading, model: Any, labeled: bool | None) -> Iterator[Item]:
    columns = token_columns(model)
    if columns is not None and len(columns) > 1:
        reason = f"plain text has words only, but the model reads {', '.join(columns)}"
        raise ReadError(source.name, None, reason)
    found = False
    while source.read():
        for line in source.take(lambda text: True):
            number = source.number
            words = _WORD.findall(line)
            if words:
                found = True
                yield Item([(word,) for word in words], None, words, number, [], words, [""])
    if not found:
        raise ReadError(source.name, None, "no sequences: the file is empty")


def _rest(source: LineSource) -> Iterator[Item]:
    left = source.take(lambda text: True)
    if left:
        yield Item([], None, [], source.number, left)


def _first_only(n: int = 1) -> Any:
    """Return a predicate that wants the first ``n`` lines."""
    unused = [True] * n
    return lambda _: bool(unused) and unused.pop()


def _picker(columns: list[int], n_columns: int) -> Any:
    """Return the function that cuts rows down to some columns."""
    if columns == list(range(n_columns)):
        return lambda rows: rows
    if len(columns) == 1:
        (only,) = columns
        return lambda rows: [(row[only],) for row in rows]
    get = itemgetter(*columns)
    return lambda rows: [*map(get, rows)]
