"""`save` and `load`.

A model file is a zip archive: the member ``seqlab.json`` describes the objects (`seqlab.persistence._nodes`),
and one npy member per number type holds the arrays (`seqlab.persistence._array_store`). Objects of other
libraries are in one more member, which skops writes and reads. Files of format versions 1 to 3, which skops
wrote as a whole, can still be read.

Writing creates the whole file in memory, reads it back like `load`, and only then replaces the target
in one step.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from typing import IO, Any

from seqlab.persistence import _archive
from seqlab.persistence._callbacks import without_callbacks
from seqlab.persistence._reader import errors_as_damage, read_model
from seqlab.persistence._writer import to_bytes
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits
from seqlab.persistence.type_names import TRUSTED_TYPES
from seqlab.utils.files import open_atomic, resolve_target

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

    Warns
    -----
    UserWarning
        If the model is beyond the default limits of `load`; the message says how to load it.

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
    data = to_bytes(without_callbacks(model), _type_names(trusted))
    target = resolve_target(path)
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


def load(path: PathLike, *, trusted: Trusted = (), limits: Limits | None = None) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed. Its sizes and types are checked before anything is built, and the
    arrays of the model before it is returned.

    Parameters
    ----------
    path : str or path-like
    trusted : iterable of str or type, default=()
        Other types (full names, or the types) that the file may contain. Name only types that you
        know, because their code runs. Types of seqlab and most types of scikit-learn need not be
        named; fitted trees must be, see `save`.
    limits : Limits, optional
        Sizes that the file may have; see `seqlab.persistence.Limits`. The defaults are far above what
        models need.

    Returns
    -------
    estimator
        With the same parameters and the same predictions as the saved one.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, was written by a newer seqlab, contains types
        that are not trusted, or is beyond the limits.
    FileNotFoundError
        If the file does not exist.
    """
    limits = Limits() if limits is None else limits
    with open(path, "rb") as file:
        stream: IO[bytes] = file
        if not file.seekable():  # a pipe
            start = file.read(4)
            with errors_as_damage(os.fspath(path)):
                _archive.check_magic(start)
            stream = io.BytesIO(start + file.read(limits.n_bytes))
        return read_model(stream, os.fspath(path), _type_names(trusted), limits)


def _type_names(trusted: Trusted) -> list[str]:
    given = [trusted] if isinstance(trusted, str | type) else list(trusted)
    more = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in given]
    return [*TRUSTED_TYPES, *more]
