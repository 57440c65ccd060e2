r"""Text in and out, whatever it comes in: paths, file objects, standard streams, compressed or not.

Input is read in blocks, decoded by an incremental decoder and cut in lines at ``\n`` only (a
trailing ``\r`` is dropped): no other Unicode line break ends a line. Output to a path goes to a
temporary neighbour and is renamed when it is complete.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from seqlab.data.errors import InputError
from seqlab.utils.files import open_atomic

Source: TypeAlias = "str | os.PathLike[str] | IO[str] | IO[bytes]"

_BLOCK = 1 << 18
_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}
_MODULES: dict[str, Any] = {".gz": gzip, ".xz": lzma, ".bz2": bz2}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class ReadError(InputError):
    """Input that cannot be read as the format it should be in.

    Attributes
    ----------
    file : str
        Name of the file, ``<stdin>`` or ``<stream>``.
    line : int or None
        Line, from 1; None where the file as a whole is meant.
    reason : str
        What is wrong.

    Examples
    --------
    >>> from seqlab.data.io import ReadError
    >>> print(ReadError("train.conll", 17, "2 columns where earlier lines have 3"))
    train.conll:17: 2 columns where earlier lines have 3
    """

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {reason}")
        self.file, self.line, self.reason = file, line, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.line, self.reason)


class WriteError(InputError):
    """Data that a format cannot hold; the message names the sequence and the position."""


def source_name(source: Source) -> str:
    """Name of an input for messages: path, ``<stdin>`` or the file object's own name."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def iter_line_blocks(source: Source, encoding: str = "utf-8") -> Iterator[list[str]]:
    """Lists of consecutive complete lines, without line ends; memory is that of one block.

    Raises `ReadError` with line and byte offset where the bytes are not in the encoding, and for
    damaged compressed data.
    """
    rest = ""
    for text in _iter_text(source, source_name(source), encoding):
        text = rest + text
        lines = text.split("\n")
        rest = lines.pop()
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        if lines:
            yield lines
    if rest:
        yield [rest.removesuffix("\r")]


def is_blank(line: str) -> bool:
    """Whether a line holds nothing but ASCII blanks: any other white space is text."""
    return not line or (line.isspace() and not line.strip(" \t"))


def iter_lines(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines without their ends."""
    number = 0
    for block in iter_line_blocks(source, encoding):
        for line in block:
            number += 1
            yield number, line


def _iter_text(source: Source, name: str, encoding: str) -> Iterator[str]:
    """Decoded blocks; a byte order mark at the beginning is dropped."""
    stream: Any = source
    if isinstance(source, str | os.PathLike):
        if source != "-":
            with open(source, "rb") as opened:
                yield from _decode(_decompressed(opened, name), name, encoding)
            return
        stream = getattr(sys.stdin, "buffer", sys.stdin)
    if isinstance(stream, io.TextIOBase):
        first = True
        while text := stream.read(_BLOCK):
            yield text.removeprefix("\ufeff") if first else text
            first = False
        return
    yield from _decode(_decompressed(stream, name), name, encoding)


def _decode(read: Callable[[int], bytes], name: str, encoding: str) -> Iterator[str]:
    try:
        decoder = codecs.getincrementaldecoder(encoding)("strict")
    except LookupError:
        raise InputError(f"unknown encoding {encoding!r}") from None
    n_bytes, n_lines, first = 0, 0, True
    while True:
        try:
            block = read(_BLOCK)
        except _DAMAGE as error:
            raise ReadError(name, None, f"damaged compressed data ({error})") from error
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            # error.object is what the decoder held back before plus this block.
            offset = n_bytes + len(block) - len(error.object) + error.start
            good = error.object[: error.start].decode(encoding, errors="replace")
            byte = error.object[error.start]
            raise ReadError(
                name,
                n_lines + good.count("\n") + 1,
                f"not {encoding}: byte 0x{byte:02x} at offset {offset}; "
                "give the file's encoding, for example encoding='latin-1'",
            ) from error
        n_bytes += len(block)
        n_lines += text.count("\n")
        if text:
            yield text.removeprefix("\ufeff") if first else text
            first = False
        if not block:
            return


def _decompressed(stream: Any, name: str) -> Callable[[int], bytes]:
    """Read method of a binary stream, seen through its compression (told by its first bytes)."""
    head = stream.peek(6)[:6] if hasattr(stream, "peek") else b""
    if len(head) < 6:
        # Byte by byte while it may still be compressed: a pipe may hold no more than that now.
        head = b""
        while any(magic.startswith(head) and magic != head for magic in _MAGIC.values()):
            byte = stream.read(1)
            head += byte
            if not byte:
                break
        stream = io.BufferedReader(_Raw(head, stream))
    suffix = Path(name).suffix.lower()
    for known, magic in _MAGIC.items():
        if head.startswith(magic):
            opened = _MODULES[known].open(stream, "rb")
            return opened.read1
    if suffix in _MAGIC and head:
        raise ReadError(name, None, f"the name ends in {suffix} but the content does not begin so")
    # read1 gives what a pipe holds now instead of waiting for a full block.
    return getattr(stream, "read1", stream.read)


class _Raw(io.RawIOBase):
    """A raw stream over bytes already read and a binary `read`, which is never closed from here."""

    def __init__(self, head: bytes, inner: Any) -> None:
        self._head = head
        self._read = getattr(inner, "read1", inner.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_writer(dest: Source, encoding: str = "utf-8") -> Iterator[Callable[[str], Any]]:
    """Write function for a path, ``"-"`` (standard output) or a file object.

    A path is written through a temporary neighbour that takes its name at the end, and is
    compressed if it ends in .gz, .xz or .bz2; on an error, the old file stays as it was. A path
    that exists and is no regular file (a pipe, a terminal) is written directly.
    """
    if isinstance(dest, str | os.PathLike) and dest != "-":
        path = Path(os.path.realpath(dest))
        if path.exists() and not path.is_file():
            with open(path, "w", encoding=encoding, newline="\n") as opened:
                yield opened.write
            return
        yield from _write_path(path, encoding)
        return
    stream: Any = dest
    if dest == "-":
        sys.stdout.flush()
        stream = getattr(sys.stdout, "buffer", sys.stdout)
    if isinstance(stream, io.TextIOBase):
        yield stream.write
    else:
        yield lambda text: stream.write(text.encode(encoding))
    with suppress(AttributeError):
        stream.flush()


def _write_path(path: Path, encoding: str) -> Iterator[Callable[[str], Any]]:
    suffix = path.suffix.lower()
    with open_atomic(path) as plain:
        packed: Any = plain
        if suffix == ".gz":  # no time stamp: the same data, the same bytes
            packed = gzip.GzipFile("", "wb", fileobj=plain, mtime=0)
        elif suffix in _MODULES:
            packed = _MODULES[suffix].open(plain, "wb")
        with io.TextIOWrapper(packed, encoding=encoding, newline="\n") as text:
            yield text.write


def pair_up(X: Any, y: Any) -> Iterator[tuple[int, Any, Any]]:
    """Number, sequence and labels (None without `y`) of each sequence, lengths checked."""
    if y is None:
        for index, sequence in enumerate(X):
            yield index, sequence, None
        return
    labels = iter(y)
    missing: Any = object()
    index = -1
    for index, sequence in enumerate(X):
        row = next(labels, missing)
        if row is missing:
            raise WriteError(f"X has more sequences than y, which has {index}")
        if len(row) != len(sequence):
            raise WriteError(
                f"X[{index}] has {len(sequence)} steps but y[{index}] has {len(row)} labels"
            )
        yield index, sequence, row
    if next(labels, missing) is not missing:
        raise WriteError(f"y has more sequences than X, which has {index + 1}")
