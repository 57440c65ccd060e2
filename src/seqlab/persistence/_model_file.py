"""`save` and `load`.

A model file is a skops file, that is, a zip archive of plain arrays and a JSON schema, with one more
member that names the format. Reading checks everything before it builds anything, in this order:

1. the archive: uncompressed members with unique names, the checksum of each, arrays as large as
   their headers say;
2. the member ``seqlab.json``: our format, in a version that we know;
3. the names of our types (`seqlab.persistence.type_names`): all known;
4. the types: only those of `TRUSTED_TYPES`, those of scikit-learn, NumPy and SciPy that skops trusts,
   and those that the caller names;
5. skops builds the model.

Writing creates the whole file in memory, reads it back like `load`, and only then replaces the target
in one step.
"""

from __future__ import annotations

import errno
import io
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from seqlab.persistence import _archive
from seqlab.persistence._callbacks import without_callbacks
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.type_names import (
    TREE_TYPES,
    TRUSTED_TYPES,
    use_current_paths,
    use_stable_names,
)
from seqlab.utils.files import open_atomic

PathLike = str | os.PathLike[str]
Trusted = Iterable[str | type]


def save(model: Any, path: PathLike, *, trusted: Trusted = ()) -> None:
    """Write a model to a file that `load` reads.

    The target is replaced in one step after everything has been written; if anything fails before
    that, the target does not change.

    Parameters
    ----------
    model : estimator or transformer
        Fitted or not. The ``callback`` of a labeler is not saved.
    path : str or path-like
    trusted : iterable of str or type, default=()
        Other types in the model (full names, or the types) that you will also pass to `load`. Types
        of seqlab and most types of scikit-learn need not be named.

    Raises
    ------
    ModelFileError
        If the model is not an estimator, or contains something that `load` would refuse, such as a
        function of your own; the message says where. In this case nothing is written.
    OSError
        If the file cannot be written: the folder is missing or read-only, the disk is full.

    See Also
    --------
    load : Read the file.

    Notes
    -----
    Fitted trees of scikit-learn (decision trees, random forests, gradient boosting) are not trusted
    unless named: they are tables of node numbers that scikit-learn follows without checks, and a
    crafted file could crash the process. To save and load such a model, pass
    ``trusted=["sklearn.tree._tree.Tree"]`` to both; histogram gradient boosting needs
    ``trusted=["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"]``. In `load`, do
    this only for files from a source that you trust.

    Examples
    --------
    >>> import os, tempfile
    >>> from seqlab import SequenceVectorizer, load, save
    >>> vectorizer = SequenceVectorizer().fit([[["w=to"], ["w=be"]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.seqlab")
    ...     save(vectorizer, path)
    ...     load(path).get_feature_names_out().tolist()
    ['w=to', 'w=be']
    """
    if isinstance(model, type):
        raise ModelFileError(f"{model.__name__} is a class: save an estimator, {model.__name__}()")
    if not hasattr(model, "get_params"):
        raise ModelFileError(
            f"only estimators and transformers can be saved (with get_params), got {model!r:.60}"
        )
    data = _to_bytes(without_callbacks(model), _type_names(trusted))
    target = Path(os.path.realpath(path))
    if target.is_dir():  # otherwise only the last step fails, with an error that differs by system
        raise IsADirectoryError(errno.EISDIR, "cannot save to a folder", os.fspath(path))
    try:
        with open_atomic(target) as file:
            file.write(data)
    except OSError as error:  # it names the temporary file, which the user does not know
        if error.errno is None:
            raise
        what = f"cannot save to {os.fspath(path)!r}: {error.strerror}"
        raise OSError(error.errno, what, str(target.parent)) from None


def load(path: PathLike, *, trusted: Trusted = ()) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed, and nothing is built before the whole file has been checked.

    Parameters
    ----------
    path : str or path-like
    trusted : iterable of str or type, default=()
        Other types (full names, or the types) that the file may contain. Name only types that you
        know, because their code runs. Types of seqlab and most types of scikit-learn need not be
        named; fitted trees must be, see `save`.

    Returns
    -------
    estimator
        With the same parameters and the same predictions as the saved one.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, was written by a newer seqlab, or contains types
        that are not trusted.
    FileNotFoundError
        If the file does not exist.
    """
    data = Path(path).read_bytes()
    return _from_bytes(data, os.fspath(path), _type_names(trusted))


def _type_names(trusted: Trusted) -> list[str]:
    given = [trusted] if isinstance(trusted, str | type) else list(trusted)
    more = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in given]
    return [*TRUSTED_TYPES, *more]


def _to_bytes(model: Any, trusted: list[str]) -> bytes:
    """Return the content of the model file, after a check that it can be loaded."""
    from skops import io as skops_io  # takes a second to import; only saving and loading need it

    name = type(model).__name__
    for place, value in _walk(model, name):
        if isinstance(value, dict) and not _has_storable_keys(value):
            raise ModelFileError(
                f"{place} is a dict with keys that a model file cannot hold: use strings, or "
                "numbers of one type (not bool)"
            )
    try:
        content = skops_io.dumps(model, compression=ZIP_STORED)
        with ZipFile(io.BytesIO(content)) as archive:
            schema = use_stable_names(archive.read(_archive.SCHEMA))
        data = _archive.write_archive(content, schema, name)
        _from_bytes(data, "its file", trusted)
    except Exception as error:
        untrusted: set[str] = set()
        with suppress(Exception):  # if the content is not even readable
            untrusted = set(skops_io.get_untrusted_types(data=content)) - set(trusted)
        if untrusted:
            raise ModelFileError(_refusal(model, name, untrusted)) from error
        raise ModelFileError(f"this {name} cannot be saved: {error}") from error
    return data


def _refusal(model: Any, name: str, untrusted: set[str]) -> str:
    """Return a message that names the parts of the model with types that `load` would refuse."""
    found: dict[str, str] = {}
    for place, value in _walk(model, name):
        for kind in (value, type(value)):
            full = f"{getattr(kind, '__module__', '')}.{getattr(kind, '__name__', '')}"
            if full in untrusted:
                found.setdefault(full, place)
    said = [
        f"{place} is {'' if full.endswith('>') else 'a '}{full}"
        for full, place in sorted(found.items())
    ]
    said += [f"{name} holds a {full}" for full in sorted(untrusted - set(found))]
    return (
        f"{', '.join(said)}, which load() would refuse{_explain_trees(untrusted)}; pass "
        f"trusted={sorted(untrusted)} to save() and load() if you know that code"
    )


def _explain_trees(untrusted: set[str]) -> str:
    if not untrusted & TREE_TYPES:
        return ""
    return (
        " (trees of scikit-learn are not trusted by default, because a crafted file could crash the "
        "process when the model predicts; your own files are safe)"
    )


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a model with their names: attributes of estimators, items of containers."""
    yield place, value
    if isinstance(value, BaseEstimator):
        parts: Iterable[tuple[str, Any]] = [(f"{place}.{k}", v) for k, v in vars(value).items()]
    elif isinstance(value, dict):
        parts = [(f"{place}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{place}[{k}]", v) for k, v in enumerate(value)]
    else:
        return
    for inner, part in parts:
        yield from _walk(part, inner)


def _has_storable_keys(value: dict[Any, Any]) -> bool:
    """Return whether the keys are the same after JSON: ``bool("false")`` is True, ``1`` becomes ``"1"``."""
    kinds = set(map(type, value))
    return len(kinds) <= 1 and not kinds & {bool, np.bool_, type(None)}


def _from_bytes(data: bytes, path: str, trusted: list[str]) -> Any:
    """Check the content of a model file, then build the model."""
    from skops import io as skops_io

    _archive.check_magic(data, path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # With a damaged file, zipfile, json, NumPy, SciPy and skops raise almost every kind of error;
        # to the caller they all mean the same.
        try:
            with ZipFile(io.BytesIO(data)) as archive:
                _archive.check_archive(archive, len(data))
                version = _archive.read_version(archive)
                schema = use_current_paths(archive.read(_archive.SCHEMA), version)
            data = _archive.append_schema(data, schema)
            untrusted = set(skops_io.get_untrusted_types(data=data)) - set(trusted)
            if untrusted:
                raise ModelFileError(
                    f"it holds types that are not trusted: {', '.join(sorted(untrusted))}"
                    f"{_explain_trees(untrusted)}; pass trusted={sorted(untrusted)} if you know "
                    "where the file comes from"
                )
            model = skops_io.loads(data, trusted=trusted)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error.__cause__
        except (Exception, MemoryError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ModelFileError(f"{path}: the model file is damaged ({what})") from error
    for warning in caught:  # such as another scikit-learn version: the caller's filters decide
        warnings.warn(warning.message, stacklevel=3)
    return model
