r"""CRFsuite's text format: a label and weighted attributes per line, separated by tabs.

``label TAB attribute[:value] TAB attribute[:value] ...``; a blank line ends a sequence. A colon or
backslash in a name is written ``\:`` or ``\\``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from seqlab.data.io.conll import iter_line_groups
from seqlab.data.io.streams import (
    ReadError,
    Source,
    WriteError,
    collect,
    is_blank,
    open_writer,
    pair_up,
    source_name,
)

_ESCAPED = re.compile(r"\\(.)")
# The name of an attribute, of escaped or plain characters, then optionally a colon and the value.
_ATTRIBUTE = re.compile(r"((?:\\.|[^\\:])*)(?::(.*))?", re.DOTALL)


def iter_crfsuite(
    source: Source, *, labeled: bool = True, encoding: str = "utf-8"
) -> Iterator[tuple[list[dict[str, float]], list[str] | None]]:
    r"""Iterate over the sequences of a CRFsuite file; parameters are those of `read_crfsuite`.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import iter_crfsuite
    >>> next(iter_crfsuite(io.StringIO("B\tword=in\tlength:2\n")))
    ([{'word=in': 1.0, 'length': 2.0}], ['B'])
    """
    name, empty = source_name(source), True
    for first, lines in iter_line_groups(source, None, None, encoding):
        empty = False
        rows = [line.split("\t") for line in lines]
        labels = [_unescape(row.pop(0)) for row in rows] if labeled else None
        if labels and "" in labels:
            raise ReadError(name, first + labels.index(""), "the label is missing")
        yield [_attributes(row, name, first + k) for k, row in enumerate(rows)], labels
    if empty:
        raise ReadError(name, None, "no sequences: the file is empty")


def read_crfsuite(
    source: Source, *, labeled: bool = True, encoding: str = "utf-8"
) -> tuple[list[list[dict[str, float]]], list[list[str]] | None]:
    r"""Read CRFsuite's text format.

    Parameters
    ----------
    source : path, "-" or file object
        A path (also .gz, .xz, .bz2), standard input, or an open text or binary file.
    labeled : bool, default=True
        Whether the first field is the label.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Returns
    -------
    X : list of list of dict
        Attributes and values of each step. The value of an attribute is 1 by default; values of
        repeated attributes are added, as in CRFsuite.
    y : list of list of str, or None
        The labels; None if not `labeled`.

    Raises
    ------
    ReadError
        For a value that is not a number, a missing label, a wrong encoding, or a file without
        sequences; the message gives file and line.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_crfsuite
    >>> read_crfsuite(io.StringIO("B\ta\tb:0.5\n\nO\ttime=12\\:30\n"))
    ([[{'a': 1.0, 'b': 0.5}], [{'time=12:30': 1.0}]], [['B'], ['O']])
    """
    return collect(iter_crfsuite(source, labeled=labeled, encoding=encoding), labeled)


def write_crfsuite(
    X: Iterable[Sequence[Any]],
    y: Iterable[Sequence[Any]] | None,
    dest: Source,
    *,
    encoding: str = "utf-8",
) -> None:
    r"""Write CRFsuite's text format.

    Parameters
    ----------
    X : iterable of sequences of dicts or of lists of str
        A dict maps names to numbers, booleans (1 or 0) or strings (written as ``name=value``); a
        list holds attributes of value 1.
    y : iterable of sequences of labels, or None
        Labels, written with ``str``; if None, there is no label field.
    dest : path, "-" or file object
        A path is written through a temporary file and a rename, compressed by its extension.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Raises
    ------
    WriteError
        For a name that is empty or contains a tab or line end, a value that is not finite, or an
        empty sequence.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import write_crfsuite
    >>> out = io.StringIO()
    >>> write_crfsuite([[{"word": "in", "at:end": True, "length": 2.5}]], [["B"]], out)
    >>> out.getvalue()
    'B\tword=in\tat\\:end\tlength:2.5\n\n'
    """
    with open_writer(dest, encoding) as write:
        for index, items, labels in pair_up(X, y):
            if len(items) == 0:
                raise WriteError(f"X[{index}] is empty: CRFsuite's format cannot contain it")
            lines = []
            for t, item in enumerate(items):
                fields = [_format(name, value) for name, value in _pairs(item, index, t)]
                if labels is not None:
                    fields.insert(0, _escape(str(labels[t])))
                line = "\t".join(fields)
                is_split = line.count("\t") != len(fields) - 1 or "\n" in line or "\r" in line
                if is_split or "" in fields or is_blank(line):
                    raise WriteError(
                        f"X[{index}][{t}]: a name is empty or contains a tab or line end"
                    )
                lines.append(line)
            write("\n".join(lines) + "\n\n")


def _attributes(fields: list[str], name: str, number: int) -> dict[str, float]:
    item: dict[str, float] = {}
    for field in fields:
        if not field:
            continue
        attribute, value = field, 1.0
        if "\\" in field or ":" in field:
            match = _ATTRIBUTE.fullmatch(field)
            if match is None:
                raise ReadError(name, number, f"{field!r} ends with an incomplete escape")
            attribute = _unescape(match[1])
            if match[2] is not None:
                value = _number(match[2], field, name, number)
        item[attribute] = item.get(attribute, 0.0) + value
    return item


def _number(text: str, field: str, name: str, number: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        reason = f"{text!r} in {field!r} is not a number; a colon in a name is written \\:"
        raise ReadError(name, number, reason)
    return value


def _pairs(item: Any, index: int, t: int) -> Iterator[tuple[str, float]]:
    """Yield the names and values of one step."""
    if not isinstance(item, Mapping):
        if isinstance(item, str | tuple):
            raise WriteError(f"X[{index}][{t}] is not a dict or list of attributes: {item!r}")
        for attribute in item:
            yield attribute, 1.0
        return
    for attribute, value in item.items():
        if isinstance(value, str):
            yield f"{attribute}={value}", 1.0
        elif not math.isfinite(value):
            raise WriteError(f"X[{index}][{t}]: {attribute!r} is {value}")
        else:
            yield attribute, float(value)


def _format(attribute: str, value: float) -> str:
    name = _escape(attribute)
    if value == 1.0 or not name:
        return name
    return f"{name}:{value!r}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
