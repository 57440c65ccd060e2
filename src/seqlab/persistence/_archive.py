"""The zip archive of a model file: its members, its checks, and the version of its format.

Sizes are compared with the limits before anything is read: first the magic number, then the size of the
directory, then the sizes in the directory, then those in the headers of the arrays.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zlib
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

import seqlab
from seqlab.persistence._array_store import MEMBERS
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits

HEADER = "seqlab.json"
FOREIGN = "foreign.skops"
SCHEMA = "schema.json"  # of skops
_FORMAT = "seqlab-model"
# Versions 1 to 3 are skops files with the member HEADER. Version 1 had the weights of labelers as compressed
# sparse matrices, versions 1 and 2 the module paths of seqlab's types instead of stable names.
VERSION = 4
_CHUNK = 1 << 20
# A member is compressed if a sample of it shrinks below this share: what shrinks less takes longest. Weights
# often do not shrink.
_WORTHWHILE = 0.5
_SAMPLE = 1 << 14
# Unpacked, the members of a file take at most this many bytes, or this many times the size of the file: a
# small file cannot fill the memory.
_MAX_UNPACKED = 1 << 26
_MAX_RATIO = 20
# A file is at most this many times as large as its members (and a megabyte): gaps of old versions would be
# read. These versions replaced members and kept the old content.
_MAX_GAPS = 3
# Members get the same date, so that the same model gives the same file.
_DATE = (1980, 1, 1, 0, 0, 0)


def write_archive(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]], foreign: bytes | None
) -> bytes:
    """Return the content of a model file."""
    about = {"format": _FORMAT, "version": VERSION, "seqlab": seqlab.__version__, **header}
    text = json.dumps(about, separators=(",", ":")).encode()
    packed = {name for name, array in arrays.items() if _is_compressible(array)}
    n_bytes = sum(array.nbytes for array in arrays.values())
    content = _write_archive(text, arrays, foreign, packed)
    if (
        packed and n_bytes > max(_MAX_UNPACKED, _MAX_RATIO * len(content)) // 2
    ):  # `load` would reject it
        content = _write_archive(text, arrays, foreign, set())
    return content


def _write_archive(
    text: bytes, arrays: dict[str, NDArray[Any]], foreign: bytes | None, packed: set[str]
) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", compression=ZIP_STORED) as archive:
        archive.writestr(_info(HEADER, ZIP_DEFLATED), text, compresslevel=6)
        for name, array in arrays.items():
            if name in packed:
                content = io.BytesIO()
                np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
                info = _info(name, ZIP_DEFLATED)
                archive.writestr(info, content.getbuffer(), compresslevel=1)
                continue
            with archive.open(_info(name), "w", force_zip64=array.nbytes > 2**31) as stream:
                np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
        if foreign is not None:
            archive.writestr(_info(FOREIGN), foreign)
    return buffer.getvalue()


def _is_compressible(array: NDArray[Any]) -> bool:
    """Return whether the beginning and the middle of an array shrink enough."""
    content = array.view(np.uint8)
    middle = content.size // 2
    sample = bytes(content[:_SAMPLE]) + bytes(content[middle : middle + _SAMPLE])
    return len(zlib.compress(sample, 1)) < _WORTHWHILE * len(sample)


def _info(name: str, compression: int = ZIP_STORED) -> ZipInfo:
    info = ZipInfo(name, _DATE)
    info.compress_type = compression
    return info


def check_magic(start: bytes) -> None:
    """Reject what does not start like a zip archive."""
    if not start:
        raise ModelFileError("the file is empty")
    if start[:1] == b"\x80":
        raise ModelFileError("this looks like a pickle, not a model file; it was not read")
    if start[:4] != b"PK\x03\x04":
        raise ModelFileError("this is not a model file written by seqlab")


def open_archive(file: IO[bytes], limits: Limits) -> ZipFile:
    """Open the archive and compare its directory with the limits."""
    size = file.seek(0, io.SEEK_END)
    limits.check("n_bytes", size)
    # Python reads the whole directory at once: look at its size first. It takes 46 bytes and a name per
    # member.
    limits.check("n_members", _directory_size(file, size) // 47)
    archive = ZipFile(file)
    members = archive.infolist()
    limits.check("n_members", len(members))
    if len({member.filename for member in members}) != len(members):
        raise ModelFileError("the archive has two members with the same name")
    for member in members:
        if member.compress_type == ZIP_STORED and member.compress_size != member.file_size:
            raise ModelFileError("the archive is damaged")
    limits.check("n_bytes", sum(member.file_size for member in members))
    if size > _MAX_GAPS * sum(member.compress_size for member in members) + _CHUNK:
        raise ModelFileError("the archive is much larger than its members")
    return archive


def read_foreign(archive: ZipFile) -> bytes:
    """Return the part that skops stores."""
    if archive.getinfo(FOREIGN).compress_type != ZIP_STORED:  # its own members are compressed
        raise ModelFileError("the archive is not stored as seqlab stores it")
    return archive.read(FOREIGN)


def _directory_size(file: IO[bytes], size: int) -> int:
    """Return the size of the directory, from the record at the end of the file."""
    if size < 22:
        raise ModelFileError("the model file is damaged (it ends too early)")
    file.seek(size - 22)
    end = file.read(22)
    if end[:4] != b"PK\x05\x06" or end[20:] != b"\0\0":  # saving writes no comment
        raise ModelFileError("the model file is damaged (it has no directory at its end)")
    n_bytes = int(struct.unpack("<L", end[12:16])[0])
    if n_bytes == 0xFFFFFFFF and size >= 98:
        file.seek(size - 98)
        record = file.read(56)
        if record[:4] == b"PK\x06\x06":
            n_bytes = int(struct.unpack("<Q", record[40:48])[0])
    return n_bytes


def read_header(archive: ZipFile, limits: Limits) -> dict[str, Any]:
    """Return the description of the model, or raise if this seqlab does not read its version."""
    try:
        text = read_json(archive, HEADER, limits)
    except KeyError:
        raise ModelFileError("this is a zip archive, but not a model file of seqlab") from None
    about = json.loads(text)
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise ModelFileError("this is not a model file of seqlab")
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"the format version {version!s:.20} is unknown")
    if version > VERSION:
        raise ModelFileError(
            f"it has format version {version} (seqlab {about.get('seqlab', 'unknown')!s:.20}), newer "
            f"than version {VERSION}, which this seqlab {seqlab.__version__} reads; update seqlab"
        )
    return about


def read_json(archive: ZipFile, name: str, limits: Limits) -> bytes:
    """Return a member with JSON, after a comparison with the limits."""
    limits.check("n_header_bytes", archive.getinfo(name).file_size)
    text = archive.read(name)
    # Every value follows one of these characters. Strings may hold them too: an upper bound.
    limits.check("n_nodes", sum(map(text.count, (b"[", b"{", b","))))
    return text


def read_arrays(archive: ZipFile) -> dict[str, NDArray[Any]]:
    """Return the packed array of each npy member."""
    names = {member.filename for member in archive.infolist()} - {HEADER, FOREIGN}
    if not names <= set(MEMBERS):
        raise ModelFileError(f"the archive has an unknown member {min(names - set(MEMBERS))!r:.60}")
    members = [archive.getinfo(name) for name in names]
    if not {member.compress_type for member in members} <= {ZIP_STORED, ZIP_DEFLATED}:
        raise ModelFileError("the archive is not stored as seqlab stores it")
    packed = sum(member.compress_size for member in members)
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(_MAX_UNPACKED, _MAX_RATIO * packed):
        raise ModelFileError(
            f"the arrays take {packed:,} bytes but would unpack to {unpacked:,}, which `save` never writes"
        )
    return {name: _read_array(archive, name) for name in sorted(names)}


def _read_array(archive: ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(name)
    with archive.open(info) as stream:
        shape, is_fortran, dtype = check_array_header(stream, info.file_size, name)
        if len(shape) != 1 or is_fortran or dtype != MEMBERS[name]:
            raise ModelFileError(f"the array {name} is not stored as seqlab stores it")
        array = np.empty(shape, dtype=dtype)
        content = array.view(np.uint8)
        for begin in range(0, content.size, _CHUNK):
            part = stream.read(min(_CHUNK, content.size - begin))
            content[begin : begin + len(part)] = np.frombuffer(part, dtype=np.uint8)
        stream.read(1)  # the end of the stream, where its checksum is compared
    return array


def check_array_header(
    stream: IO[bytes], size: int, name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Reject an npy stream whose header does not agree with the size of its data; return the header."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ModelFileError(f"the array {name} has an unknown format {version}")
    shape, is_fortran, dtype = read(stream)
    promised = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or promised != size - stream.tell():
        raise ModelFileError(f"the size of the array {name} is not the one in its header")
    return shape, is_fortran, dtype


def rewrite(data: bytes, contents: dict[str, bytes]) -> bytes:
    """Return an archive in which some members are read with another content.

    The new content is appended, which is cheaper than writing all members again; the old one stays,
    without an entry in the directory.
    """
    buffer = io.BytesIO(data)
    with ZipFile(buffer, "a", compression=ZIP_STORED) as archive:
        for name, content in contents.items():
            if name in archive.NameToInfo:
                archive.infolist().remove(archive.getinfo(name))
                del archive.NameToInfo[name]
            archive.writestr(name, content)
    return buffer.getvalue()
