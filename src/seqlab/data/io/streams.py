r"""Read and write text: paths, file objects and standard streams, compressed or not.

Input is read in blocks, decoded incrementally and split into lines at ``\n`` only (a trailing ``\r``
is dropped): other Unicode line breaks do not end a line. Output to a path is written to a temporary file
in the same folder, which is renamed when it is complete.
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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

from seqlab.data.errors import InputError
from seqlab.utils.files import is_special, open_atomic, resolve_target

Source: TypeAlias = "str | os.PathLike[str] | IO[str] | IO[bytes]"

_BLOCK = 1 << 18
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}
_MODULES: dict[str, Any] = {".gz": gzip, ".xz": lzma, ".bz2": bz2}
_NOT_FOR_FILES = (
    "idna",
    "punycode",
    "undefined",
)  # codecs of host names, and one that always fails
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class ReadError(InputError):
    """Input that does not follow its format.

    Attributes
    ----------
    file : str
        Name of the file, ``<stdin>`` or ``<stream>``.
    line : int or None
        Line, counted from 1; None if the error concerns the whole file.
    reason : str
        The error.

    Examples
    --------
    >>> from seqlab.data.io import ReadError
    >>> print(ReadError("train.conll", 17, "2 columns, but earlier lines have 3"))
    train.conll:17: 2 columns, but earlier lines have 3
    """

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {reason}")
        self.file, self.line, self.reason = file, line, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.line, self.reason)


class WriteError(InputError):
    """Data that a format cannot represent; the message names the sequence and the position."""


def source_name(source: Source) -> str:
    """Name of an input in messages: path, ``<stdin>`` or the name of the file object."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def iter_line_blocks(source: Source, encoding: str = "utf-8") -> Iterator[list[str]]:
    """Yield lists of consecutive complete lines, without line ends, in the memory of one block.

    Raises `ReadError` for bytes that are not in the encoding, with line and byte offset, and for
    damaged compressed data.
    """
    rest: list[str] = []  # pieces of a line whose end has not been read; joined once
    for number, text in enumerate(_iter_text(source, source_name(source), encoding)):
        lines = (text if number else text.removeprefix("\ufeff")).split("\n")
        last = lines.pop()
        if lines:
            if rest:
                lines[0] = "".join([*rest, lines[0]])
            if "\r" in text or lines[0].endswith("\r"):
                lines = [line.removesuffix("\r") for line in lines]
            rest = []
            yield lines
        if last:
            rest.append(last)
    if rest:
        yield ["".join(rest).removesuffix("\r")]


def is_blank(line: str) -> bool:
    """Whether a line holds only spaces and tabs: any other white space is text."""
    return not line or (line.isspace() and not line.strip(" \t"))


def iter_lines(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield line numbers, counted from 1, and lines without line ends."""
    return enumerate(chain.from_iterable(iter_line_blocks(source, encoding)), 1)


def _iter_text(source: Source, name: str, encoding: str) -> Iterator[str]:
    """Yield decoded blocks; the first one may begin with a byte order mark."""
    stream: Any = source
    if isinstance(source, str | os.PathLike):
        if source != "-":
            with open(source, "rb") as opened:
                yield from _decode(_decompressed(opened, name), name, encoding)
            return
        if sys.stdin is None:
            raise ReadError(name, None, "standard input is closed")
        stream = getattr(sys.stdin, "buffer", sys.stdin)
    if isinstance(stream, io.TextIOBase):
        while text := stream.read(_BLOCK):
            yield text
        return
    yield from _decode(_decompressed(stream, name), name, encoding)


def _decode(read: Callable[[int], bytes], name: str, encoding: str) -> Iterator[str]:
    _check_encoding(encoding)
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    n_bytes, n_lines = 0, 0
    while True:
        try:
            block = read(_BLOCK)
        except _DAMAGE as error:
            raise ReadError(name, None, f"damaged compressed data ({error})") from error
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            # error.object holds the bytes kept from the previous block, then this block.
            offset = n_bytes + len(block) - len(error.object) + error.start
            before = error.object[: error.start].decode(encoding, errors="replace")
            byte = error.object[error.start]
            raise ReadError(
                name,
                n_lines + before.count("\n") + 1,
                f"not {encoding}: byte 0x{byte:02x} at offset {offset}; "
                "set the encoding of the file, for example encoding='latin-1'",
            ) from error
        except UnicodeError as error:  # for example UTF-16 without a byte order mark
            raise ReadError(name, n_lines + 1, f"not {encoding}: {error}") from error
        n_bytes += len(block)
        n_lines += text.count("\n")
        if text:
            yield text
        if not block:
            return


def _check_encoding(encoding: str) -> None:
    """Raise an error unless the name is that of a text encoding; Python also has codecs of bytes."""
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise InputError(f"unknown encoding {encoding!r}") from None
    is_text = getattr(codec, "_is_text_encoding", True) and codec.name not in _NOT_FOR_FILES
    if not is_text or codec.incrementaldecoder is None or codec.incrementalencoder is None:
        raise InputError(f"{encoding!r} is not an encoding of text")


def _decompressed(stream: Any, name: str) -> Callable[[int], bytes]:
    """Read method of a binary stream that decompresses it, if its first bytes show compression."""
    head = stream.peek(6)[:6] if hasattr(stream, "peek") else b""
    if len(head) < 6:
        # Read byte by byte while it may still be compressed: a pipe may have no more bytes yet.
        head = b""
        while any(magic.startswith(head) and magic != head for magic in MAGIC.values()):
            byte = stream.read(1)
            head += byte
            if not byte:
                break
        stream = io.BufferedReader(_Raw(head, stream))
    suffix = Path(name).suffix.lower()
    for known, magic in MAGIC.items():
        if head.startswith(magic):
            opened = _MODULES[known].open(stream, "rb")
            return opened.read1
    if suffix in MAGIC and head:
        raise ReadError(
            name, None, f"the name ends in {suffix} but the content is not in this format"
        )
    # read1 returns what a pipe has now, instead of waiting for a full block.
    return getattr(stream, "read1", stream.read)


class _Raw(io.RawIOBase):
    """A raw stream of bytes already read, followed by another stream, which it does not close."""

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
    """Give a function that writes text to a path, to ``"-"`` (standard output) or to a file object.

    A path is written as a temporary file that is renamed at the end, and is compressed if it ends in
    .gz, .xz or .bz2; after an error, an existing file is unchanged. An existing path that is not a
    regular file (a pipe, a terminal) is written directly, without a buffer, and so is /dev/stdout.
    """
    _check_encoding(encoding)
    try:
        yield from _open_writer(dest, encoding)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise WriteError(f"the encoding {encoding} does not have {character!r}") from error


def _open_writer(dest: Source, encoding: str) -> Iterator[Callable[[str], Any]]:
    if isinstance(dest, str | os.PathLike) and dest != "-":
        path = resolve_target(dest)
        if is_special(path):  # nothing waits in a buffer: there may be a reader
            with open_atomic(path) as opened:
                encoder = codecs.getincrementalencoder(encoding)()
                yield lambda text: opened.write(encoder.encode(text))
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
        encoder = codecs.getincrementalencoder(encoding)()  # one byte order mark, at the beginning
        yield lambda text: stream.write(encoder.encode(text))
    with suppress(AttributeError):
        stream.flush()


def _write_path(path: Path, encoding: str) -> Iterator[Callable[[str], Any]]:
    suffix = path.suffix.lower()
    with open_atomic(path) as plain:
        packed: Any = plain
        if suffix == ".gz":  # no time stamp, so that equal data give equal bytes
            packed = gzip.GzipFile("", "wb", fileobj=plain, mtime=0)
        elif suffix in _MODULES:
            packed = _MODULES[suffix].open(plain, "wb")
        with io.TextIOWrapper(packed, encoding=encoding, newline="\n") as text:
            yield text.write


def pair_up(X: Any, y: Any) -> Iterator[tuple[int, Any, Any]]:
    """Yield the number, steps and labels (None without `y`) of each sequence; check the lengths."""
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
        n_steps = sequence.shape[0] if hasattr(sequence, "shape") else len(sequence)
        if len(row) != n_steps:
            raise WriteError(f"X[{index}] has {n_steps} steps but y[{index}] has {len(row)} labels")
        yield index, sequence, row
    if next(labels, missing) is not missing:
        raise WriteError(f"y has more sequences than X, which has {index + 1}")


def collect(sequences: Iterable[tuple[Any, Any]], labeled: bool) -> tuple[list[Any], Any]:
    """Lists ``(X, y)`` of one or more pairs of sequence and labels; y is None if not `labeled`."""
    X, y = map(list, zip(*sequences, strict=True))
    return X, y if labeled else None
