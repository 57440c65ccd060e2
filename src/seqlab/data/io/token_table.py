"""Read a regular column file as a `TokenTable`, nearly without Python code per token.

The separators of a block of bytes are found by NumPy, and the strings between them are numbered by the
compiled code of `StringTable`: both release the interpreter lock. Only regular files are read: UTF-8, single
separators, the same number of columns in every line, nothing to skip. For any other file the answer is None,
and `read_conll` reads it or raises the error that explains what is wrong.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlab.data.io.conll import DOCSTART
from seqlab.data.io.streams import MAGIC
from seqlab.data.packed_strings import unpack_strings
from seqlab.data.string_table import StringTable, padded
from seqlab.data.token_table import CodedColumn, TokenTable, order_of_use

_BLOCK = 1 << 18
_NEWLINE, _SPACE, _TAB = b"\n \t"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Text that `read_conll` does not take literally: bytes that it removes, lines that it skips.
_SPECIAL = (b"\r", DOCSTART.encode())


def read_token_table(
    path: str | os.PathLike[str],
    *,
    label: int = -1,
    sep: str = "auto",
    is_stopped: Callable[[], bool] = lambda: False,
) -> tuple[TokenTable, list[list[str]]] | None:
    r"""Read a column file; return None if it is not regular, or if reading was stopped.

    Parameters
    ----------
    path : path
        A regular file in UTF-8, not compressed.
    label : int, default=-1
        Column of the label, counted from the end if negative.
    sep : {"auto", " ", "\t"}, default="auto"
        As in `read_conll`; None is returned for any other separator.
    is_stopped : callable, optional
        Called before every block: reading ends if it returns True.

    Returns
    -------
    tokens : TokenTable
        All columns but the label.
    labels : list of list of str
    """
    if os.path.splitext(path)[1].lower() in MAGIC:
        return None
    with open(path, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        reader = _TableReader(sep)
        for block in _whole_lines(file):
            if is_stopped() or not reader.add(block):
                return None
    return reader.finish(label)


def load_kernels() -> None:
    """Load or compile every kernel that `read_token_table` calls, so that a thread only runs them."""
    reader = _TableReader(" ")
    for _ in range(2):  # the second time, the table grows
        reader.add(b"a b\n" * 500)
    reader.finish(-1)


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield blocks that end at the end of a line."""
    rest: list[bytes] = []  # pieces of a line whose end has not been read; joined once
    while block := file.read(_BLOCK):
        lines, end, last = block.rpartition(b"\n")
        if end:
            yield b"".join([*rest, lines, end])
            rest = []
        if last:
            rest.append(last)
    if rest:
        yield b"".join([*rest, b"\n"])


class _TableReader:
    """Numbers the columns of all lines; a blank line is one empty string."""

    def __init__(self, sep: str) -> None:
        self.sep = sep
        self.n_columns = 0
        self.table = StringTable()
        self.numbers: list[NDArray[np.int32]] = []
        self.is_blank: list[NDArray[np.bool_]] = []

    def add(self, block: bytes) -> bool:
        """Read whole lines; return False if they are not regular."""
        if not self.n_columns:
            block = block.lstrip(b"\n")
            if not block:  # blank lines before the first sequence
                return True
            if not self._inspect(block):
                return False
        if any(text in block for text in _SPECIAL) or not _is_utf8(block):
            return False
        data = padded(np.frombuffer(block, np.uint8))
        text = data[: len(block)]
        separator, other = (_SPACE, _TAB) if self.sep == " " else (_TAB, _SPACE)
        ends = np.flatnonzero((text == separator) | (text == _NEWLINE))
        is_empty = np.diff(ends, prepend=-1) == 1
        line_ends = np.flatnonzero(text[ends] == _NEWLINE)
        per_line = np.diff(line_ends, prepend=-1)
        blank_lines = line_ends[per_line == 1]
        is_regular = (
            bool(np.isin(per_line, (1, self.n_columns)).all())
            and np.array_equal(np.flatnonzero(is_empty), blank_lines)
            and not (text == other).any()
        )
        if is_regular:
            self.numbers.append(self.table.add_parts(data, ends))
            self.is_blank.append(is_empty)
        return is_regular

    def _inspect(self, block: bytes) -> bool:
        """Take separator and number of columns from the first token line, as `read_conll` does."""
        if block.startswith((_BYTE_ORDER_MARK, *MAGIC.values())):
            return False
        line = block.partition(b"\n")[0]
        if self.sep == "auto":
            self.sep = "\t" if b"\t" in line else " "
        self.n_columns = line.count(self.sep.encode()) + 1
        return self.sep in (" ", "\t") and self.n_columns > 1

    def finish(self, label: int) -> tuple[TokenTable, list[list[str]]] | None:
        """Return tokens and labels, or None if there are none."""
        if not self.numbers or not -self.n_columns <= label < self.n_columns:
            return None
        numbers, is_blank = np.concatenate(self.numbers), np.concatenate(self.is_blank)
        tokens = numbers[~is_blank].reshape(-1, self.n_columns)
        blank = np.flatnonzero(is_blank)
        cuts = (blank - np.arange(blank.size)) // self.n_columns
        offsets = np.unique(np.concatenate([[0], cuts, [tokens.shape[0]]]))
        strings = unpack_strings(self.table.blob, self.table.offsets)
        columns = [_code(column, strings) for column in tokens.T]
        labels = columns.pop(label).texts()
        bounds = pairwise(offsets.tolist())
        return TokenTable(columns, offsets), [labels[begin:end] for begin, end in bounds]


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _code(numbers: NDArray[np.int32], strings: list[str]) -> CodedColumn:
    """Number the values of one column in the order in which they occur."""
    used = order_of_use(numbers, len(strings))
    codes = np.empty(len(strings), np.int32)
    codes[used] = np.arange(used.size, dtype=np.int32)
    return CodedColumn([strings[number] for number in used.tolist()], codes[numbers])
