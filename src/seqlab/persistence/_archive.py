"""The zip archive of a model file: its checks, and the member that says what it is."""

from __future__ import annotations

import io
import json
import math
import warnings
from typing import IO
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

import seqlab
from seqlab.persistence.errors import ModelFileError

SCHEMA = "schema.json"  # of skops
_MARKER = "seqlab.json"
_FORMAT = "seqlab-model"
# Version 1 had the weights of labelers as compressed sparse matrices, versions 1 and 2 the module paths
# of seqlab's types instead of stable names.
_VERSION = 3
# Sparse matrices are compressed inside the file, at most about a thousandfold (all ones). Their unpacked
# size may be a gigabyte, or a hundred times the size of the file if that is more.
_UNPACKED_BYTES = 2**30
_UNPACKED_RATIO = 100


def write_archive(data: bytes, schema: bytes, model: str) -> bytes:
    """Return the skops file `data` with another schema and with our marker."""
    about = {"format": _FORMAT, "version": _VERSION, "model": model, "seqlab": seqlab.__version__}
    buffer = io.BytesIO()
    with (
        ZipFile(io.BytesIO(data)) as source,
        ZipFile(buffer, "w", compression=ZIP_STORED) as target,
    ):
        for member in source.infolist():
            content = schema if member.filename == SCHEMA else source.read(member)
            target.writestr(member.filename, content)
        target.writestr(_MARKER, json.dumps(about))
    return buffer.getvalue()


def append_schema(data: bytes, schema: bytes) -> bytes:
    """Return an archive that is read with another schema; the old one stays, without a directory entry.

    Cheaper than writing all members again.
    """
    buffer = io.BytesIO(data)
    with ZipFile(buffer, "a", compression=ZIP_STORED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the name is there already
        archive.infolist().remove(archive.getinfo(SCHEMA))
        archive.writestr(SCHEMA, schema)
    return buffer.getvalue()


def check_magic(data: bytes, path: str) -> None:
    """Reject what does not start like a zip archive."""
    if not data:
        raise ModelFileError(f"{path}: the file is empty")
    if data[:1] == b"\x80":
        raise ModelFileError(f"{path}: this looks like a pickle, not a model file; it was not read")
    if data[:4] != b"PK\x03\x04":
        raise ModelFileError(f"{path}: this is not a model file written by seqlab")


def check_archive(archive: ZipFile, size: int) -> None:
    """Reject an archive that is damaged, or that could unpack to far more than the file itself."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) != len(names):
        raise ModelFileError("the archive has two members with the same name")
    if any(member.compress_type != ZIP_STORED for member in members) or (
        sum(member.file_size for member in members) > size
    ):
        raise ModelFileError("the archive is not stored as seqlab stores it")
    limit = max(_UNPACKED_BYTES, _UNPACKED_RATIO * size)
    for name in names:
        content = archive.read(name)  # verifies the checksum
        if name.endswith(".npy"):
            _check_array(io.BytesIO(content), len(content), name)
        elif name.endswith(".npz"):
            limit -= _check_sparse(content, name, limit)


def _check_sparse(content: bytes, name: str, limit: int) -> int:
    """Reject a sparse matrix that is too large or has indices out of range; return its bytes."""
    with ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > limit:
            raise ModelFileError("its sparse matrices would unpack to far more than the file")
        for member in archive.infolist():
            with archive.open(member) as stream:
                _check_array(stream, member.file_size, name)
    matrix = sp.load_npz(io.BytesIO(content))
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return unpacked


def _check_array(stream: IO[bytes], size: int, name: str) -> None:
    """Reject an array whose header does not agree with the size of its data."""
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ModelFileError(f"the array {name} has an unknown format {version}")
    shape, _, dtype = read_header(stream)
    promised = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or promised != size - stream.tell():
        raise ModelFileError(f"the size of the array {name} is not the one in its header")


def read_version(archive: ZipFile) -> int:
    """Return the format version, or raise if this seqlab does not read it."""
    try:
        about = json.loads(archive.read(_MARKER))
    except KeyError:
        raise ModelFileError("this is a zip archive, but not a model file of seqlab") from None
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise ModelFileError("this is not a model file of seqlab")
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"the format version {version!r} is unknown")
    if version > _VERSION:
        raise ModelFileError(
            f"it has format version {version} (seqlab {about.get('seqlab', 'unknown')}), newer "
            f"than version {_VERSION}, which this seqlab {seqlab.__version__} reads; update seqlab"
        )
    return version
