"""Objects of other libraries, such as the classifiers of scikit-learn, stored and read by skops.

skops imports all of scikit-learn; it is imported only if a model has such a part, or for a file of format
version 1, 2 or 3.
"""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile

from seqlab.persistence import _archive
from seqlab.persistence._skops_schema import check_schema, rename_types
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits
from seqlab.persistence.type_names import (
    TREE_TYPES,
    TRUSTED_TYPES,
    current_path,
    stable_name,
)


def dump(value: Any) -> bytes:
    """Return a skops file in which types of seqlab have stable names."""
    from skops import io as skops_io

    content = skops_io.dumps(value, compression=ZIP_STORED)
    with ZipFile(io.BytesIO(content)) as archive:
        schema = rename_types(archive.read(_archive.SCHEMA), stable_name)
    return _archive.rewrite(content, {_archive.SCHEMA: schema})


def find_untrusted(data: bytes, trusted: list[str]) -> set[str]:
    """Return the types in a file of `dump` that `load` would refuse."""
    from skops import io as skops_io

    with suppress(Exception):  # if the content is not even readable
        with ZipFile(io.BytesIO(data)) as archive:
            schema = rename_types(archive.read(_archive.SCHEMA), lambda m, n: current_path(m, n, 3))
        renamed = _archive.rewrite(data, {_archive.SCHEMA: schema})
        return set(skops_io.get_untrusted_types(data=renamed)) - set(trusted)
    return set()


class SkopsPart(NamedTuple):
    """A skops file that has been checked but not read.

    Attributes
    ----------
    data : bytes
    types : set of str
        Full names of all types in it.
    """

    data: bytes
    types: set[str]


def check(data: bytes, version: int, trusted: list[str], limits: Limits) -> SkopsPart:
    """Check a skops file without importing skops or building anything.

    Parameters
    ----------
    data : bytes
    version : int
        Format version of the model file, which decides how types of seqlab are named.
    trusted : list of str
        Types in addition to those that skops trusts.
    limits : Limits
    """
    with _archive.open_archive(io.BytesIO(data), limits) as archive:
        if any(info.compress_type != ZIP_STORED for info in archive.infolist()):
            raise ModelFileError("the archive is not stored as seqlab stores it")
        for name in archive.namelist():
            with archive.open(name) as stream:  # compares the checksum
                while stream.read(1 << 20):
                    pass
        schema, types = check_schema(
            _archive.read_json(archive, _archive.SCHEMA, limits),
            lambda module, name: current_path(module, name, version),
            archive,
            len(data),
            set(trusted) - set(TRUSTED_TYPES),
            limits,
        )
    return SkopsPart(_archive.rewrite(data, {_archive.SCHEMA: schema}), types)


def build(part: SkopsPart, trusted: list[str]) -> Any:
    """Return what a checked skops file holds."""
    from skops import io as skops_io

    untrusted = set(skops_io.get_untrusted_types(data=part.data)) - set(trusted)
    if untrusted:
        raise ModelFileError(
            f"it holds types that are not trusted: {', '.join(sorted(untrusted))}"
            f"{explain_trees(untrusted)}; pass trusted={sorted(untrusted)} if you know "
            "where the file comes from"
        )
    return skops_io.loads(part.data, trusted=trusted)


def explain_trees(untrusted: set[str]) -> str:
    """Return why trees are not trusted, if they are among the types."""
    if not untrusted & TREE_TYPES:
        return ""
    return (
        " (trees of scikit-learn are not trusted by default, because a crafted file could crash the "
        "process when the model predicts; your own files are safe)"
    )
