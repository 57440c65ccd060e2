r"""Logical sequences as text: a label and ground atoms per line.

``label TAB use(kettle), at(person, kitchen)``; a blank line ends a sequence, and ``%`` begins a line of
comment. ``true`` is a step without atoms. Atoms may be separated by commas or spaces; constants with other
characters than names are written in single quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seqlab.data.atoms import Atom, parse_atoms
from seqlab.data.errors import InputError
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
from seqlab.data.symbolic import SymbolicSequences

_COMMENT = "%"


def iter_logical(
    source: Source, *, labeled: bool = True, encoding: str = "utf-8"
) -> Iterator[tuple[list[list[Atom]], list[str] | None]]:
    r"""Iterate over the sequences of a file of atoms; parameters are those of `read_logical`.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import iter_logical
    >>> next(iter_logical(io.StringIO("tea\tuse(kettle), use(cup)\n")))
    ([['use(kettle)', 'use(cup)']], ['tea'])
    """
    name, empty = source_name(source), True
    for first, lines in iter_line_groups(source, None, None, encoding):
        steps: list[list[Atom]] = []
        labels: list[str] = []
        for number, line in enumerate(lines, first):
            if line.startswith(_COMMENT):
                continue
            label, text = "", line
            if labeled:
                label, tab, text = line.partition("\t")
                if not label.strip():
                    raise ReadError(name, number, "the label is missing")
                if not tab:
                    raise ReadError(
                        name, number,
                        "there is no tab between label and atoms (write true for a step without atoms)",
                    )  # fmt: skip
            try:
                steps.append(parse_atoms(text))
            except InputError as error:
                raise ReadError(name, number, str(error)) from None
            labels.append(label.strip())
        if steps:
            empty = False
            yield steps, labels if labeled else None
    if empty:
        raise ReadError(name, None, "no sequences: the file is empty")


def read_logical(
    source: Source, *, labeled: bool = True, encoding: str = "utf-8"
) -> tuple[list[list[list[Atom]]], list[list[str]] | None]:
    r"""Read logical sequences.

    Parameters
    ----------
    source : path, "-" or file object
        A path (also .gz, .xz, .bz2), standard input, or an open text or binary file.
    labeled : bool, default=True
        Whether each line begins with the label and a tab.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Returns
    -------
    X : list of list of list of Atom
        The atoms of each step. Every labeler takes them: an `Atom` is a string.
    y : list of list of str, or None
        The labels; None if not `labeled`.

    Raises
    ------
    ReadError
        For a missing label or tab, text that is not an atom, a wrong encoding, or a file without sequences;
        the message gives file and line.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_logical
    >>> X, y = read_logical(io.StringIO("tea\tuse(kettle)\nidle\ttrue\n\ntea\tuse('tea bag')\n"))
    >>> X, y
    ([[['use(kettle)'], []], [["use('tea bag')"]]], [['tea', 'idle'], ['tea']])
    >>> X[1][0][0].arguments
    ('tea bag',)
    """
    return collect(iter_logical(source, labeled=labeled, encoding=encoding), labeled)


def write_logical(
    X: Iterable[Sequence[Any]],
    y: Iterable[Sequence[Any]] | None,
    dest: Source,
    *,
    encoding: str = "utf-8",
) -> None:
    r"""Write logical sequences.

    Parameters
    ----------
    X : SymbolicSequences, or iterable of sequences of steps
        As in `SymbolicSequences.from_steps`.
    y : iterable of sequences of labels, or None
        Labels, written with ``str``; if None, there is no label field.
    dest : path, "-" or file object
        A path is written through a temporary file and a rename, compressed by its extension.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Raises
    ------
    WriteError
        For an empty sequence, a label or atom that contains a line end or a tab, a label that begins or ends
        with a blank, or the atom ``true``, which means a step without atoms.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import write_logical
    >>> out = io.StringIO()
    >>> write_logical([[["use(kettle)", ("at", "kitchen")], []]], [["tea", "idle"]], out)
    >>> out.getvalue()
    'tea\tuse(kettle), at(kitchen)\nidle\ttrue\n\n'
    """
    if not isinstance(X, SymbolicSequences):
        X = SymbolicSequences.from_steps(X)
    with open_writer(dest, encoding) as write:
        for index, steps, labels in pair_up(X, y):
            if len(steps) == 0:
                raise WriteError(f"X[{index}] is empty: the format cannot contain it")
            lines = []
            for t, atoms in enumerate(steps):
                text = ", ".join(atoms) or "true"
                label = "" if labels is None else str(labels[t])
                is_split = any(mark in label + text for mark in "\n\r\t")
                if is_split or (labels is not None and is_blank(label)):
                    raise WriteError(
                        f"X[{index}][{t}]: a label is empty, or a label or atom contains a tab or line end"
                    )
                if label != label.strip() or "true" in atoms:
                    raise WriteError(
                        f"X[{index}][{t}]: the label begins or ends with a blank, or an atom is 'true'"
                    )
                line = text if labels is None else f"{label}\t{text}"
                if line.startswith(_COMMENT):
                    raise WriteError(f"X[{index}][{t}]: a line must not begin with {_COMMENT}")
                lines.append(line)
            write("\n".join(lines) + "\n\n")
