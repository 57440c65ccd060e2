"""CoNLL-U, the format of Universal Dependencies: ten tab-separated columns per word.

Only words are read: lines of multiword tokens (``3-4``) and of empty nodes (``8.1``) are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seqlab.data.errors import InputError
from seqlab.data.io.conll import Token, iter_line_groups
from seqlab.data.io.streams import (
    ReadError,
    Source,
    WriteError,
    collect,
    open_writer,
    pair_up,
    source_name,
)

CONLLU_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# In these fields "_" means that the annotation is missing; in the others it is a value.
_REQUIRED = {"upos", "xpos", "deprel", "head"}


def iter_conllu(
    source: Source,
    *,
    columns: Sequence[str] = ("form",),
    label: str | None = "upos",
    encoding: str = "utf-8",
) -> Iterator[tuple[list[Token], list[str] | None]]:
    r"""Iterate over the sentences of a CoNLL-U file; parameters are those of `read_conllu`.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import iter_conllu
    >>> text = "# text = Go\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"
    >>> next(iter_conllu(io.StringIO(text), columns=["form", "lemma"]))
    ([('Go', 'go')], ['VERB'])
    """
    wanted = [_field(column) for column in columns]
    target = None if label is None else _field(label)
    required = label in _REQUIRED
    name, empty = source_name(source), True
    for first, lines in iter_line_groups(source, "#", None, encoding):
        rows = [line.split("\t") for line in lines]
        if set(map(len, rows)) != {10}:
            at, row = next((k, row) for k, row in enumerate(rows) if len(row) != 10)
            reason = f"{len(row)} tab-separated columns, but CoNLL-U has 10"
            raise ReadError(name, first + at, reason)
        words = []
        for k, row in enumerate(rows):
            if row[0].isdigit():
                words.append(row)
                if required and row[target] == "_":  # type: ignore[index]
                    raise ReadError(name, first + k, f"the label is missing ({label} is _)")
            elif not row[0].replace("-", "").replace(".", "").isdigit():
                raise ReadError(name, first + k, f"{row[0]!r} is not a word number")
        if not words:
            continue
        empty = False
        tokens = [tuple([row[k] for k in wanted]) for row in words]
        yield tokens, None if target is None else [row[target] for row in words]
    if empty:
        raise ReadError(name, None, "no sentences: the file is empty")


def read_conllu(
    source: Source,
    *,
    columns: Sequence[str] = ("form",),
    label: str | None = "upos",
    encoding: str = "utf-8",
) -> tuple[list[list[Token]], list[list[str]] | None]:
    r"""Read a CoNLL-U file.

    Parameters
    ----------
    source : path, "-" or file object
        A path (also .gz, .xz, .bz2), standard input, or an open text or binary file.
    columns : sequence of str, default=("form",)
        Fields of a token: id, form, lemma, upos, xpos, feats, head, deprel, deps, misc.
    label : str or None, default="upos"
        The field that is the label; None for no labels.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Returns
    -------
    X : list of list of tuple of str
        One tuple per word, in the order of `columns`.
    y : list of list of str, or None
        The labels.

    Raises
    ------
    ReadError
        For a line without ten columns, an invalid word number, a missing label, a wrong encoding, or
        a file without sentences; the message gives file and line.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_conllu
    >>> text = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"
    >>> read_conllu(io.StringIO(text), label="xpos")
    ([[('Go',)]], [['VB']])
    """
    return collect(
        iter_conllu(source, columns=columns, label=label, encoding=encoding), label is not None
    )


def write_conllu(
    X: Iterable[Sequence[Any]],
    y: Iterable[Sequence[Any]] | None,
    dest: Source,
    *,
    columns: Sequence[str] = ("form",),
    label: str = "upos",
    encoding: str = "utf-8",
) -> None:
    """Write a CoNLL-U file; words are numbered from 1 and other fields are ``_``.

    Parameters
    ----------
    X : iterable of sequences of tuples of str
        Tokens with the fields of `columns`; a plain string is a token of one field.
    y : iterable of sequences of labels, or None
        Written to the field `label`.
    dest : path, "-" or file object
        A path is written through a temporary file and a rename, compressed by its extension.
    columns, label
        As in `read_conllu`.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import write_conllu
    >>> out = io.StringIO()
    >>> write_conllu([["Go"]], [["VERB"]], out)
    >>> out.getvalue().split()
    ['1', 'Go', '_', 'VERB', '_', '_', '_', '_', '_', '_']
    """
    places = [_field(column) for column in columns]
    target = _field(label)
    if 0 in places or target == 0 or (y is not None and target in places):
        raise InputError(
            "the writer numbers the field id itself, and the label needs a field of its own"
        )
    with open_writer(dest, encoding) as write:
        for index, tokens, labels in pair_up(X, y):
            if len(tokens) == 0:
                raise WriteError(f"X[{index}] is empty: CoNLL-U cannot contain it")
            lines = []
            for t, token in enumerate(tokens):
                values = [token] if isinstance(token, str) else list(token)
                if len(values) != len(places):
                    raise WriteError(
                        f"X[{index}][{t}] has {len(values)} columns, not {len(places)}"
                    )
                row = [str(t + 1)] + ["_"] * 9
                for place, value in zip(places, values, strict=True):
                    row[place] = value
                if labels is not None:
                    row[target] = str(labels[t])
                line = "\t".join(row)
                if line.count("\t") != 9 or "\n" in line or line.endswith("\r") or "" in row:
                    raise WriteError(f"X[{index}][{t}]: {values!r} cannot be written as CoNLL-U")
                lines.append(line)
            write("\n".join(lines) + "\n\n")


def _field(name: str) -> int:
    if name not in CONLLU_FIELDS:
        raise InputError(f"CoNLL-U has no field {name!r}; it has {', '.join(CONLLU_FIELDS)}")
    return CONLLU_FIELDS.index(name)
