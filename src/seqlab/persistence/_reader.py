"""From the content of a model file to the model.

1. the archive (`_archive`): magic number, directory, sizes against the limits, checksums;
2. the member ``seqlab.json``: our format, in a version that we know;
3. the types: only those of `PLAIN_TYPES`, and in parts that skops stores those that skops trusts and those
   that the caller names;
4. modules are imported;
5. the objects are built;
6. the objects are checked (`_checks`).
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import IO, Any, NamedTuple

from numpy.typing import NDArray

from seqlab.persistence import _archive, _skops_parts
from seqlab.persistence._array_store import ArrayReader
from seqlab.persistence._checks import check_objects
from seqlab.persistence._nodes import Decoder, find_type_names
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits
from seqlab.persistence.type_names import PLAIN_TYPES, SAVED_TYPES


def read_model(file: IO[bytes], path: str, trusted: list[str], limits: Limits) -> Any:
    """Check the content of a model file, then build the model."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with errors_as_damage(path):
            plan = _plan(file, trusted, limits)
        # A module that cannot be imported is not a fault of the file.
        for module in sorted(plan.modules):
            import_module(module)
        with errors_as_damage(path):
            model = plan.build(trusted, limits)
            if not hasattr(model, "get_params"):
                raise ModelFileError("it does not hold an estimator")
            with nullcontext() if plan.part is None else in_one_process():
                check_objects(model)
    for warning in caught:  # such as another scikit-learn version: the caller's filters decide
        warnings.warn(warning.message, stacklevel=3)
    return model


class _Plan(NamedTuple):
    """A model file that has been read and checked, but whose objects have not been built.

    Attributes
    ----------
    modules : set of str
        Modules of seqlab, and skops, that building needs.
    root : JSON value or None
        The description of the model; None if all of it is in ``part``.
    arrays : dict of str to array
    part : SkopsPart or None
        Objects of other libraries.
    """

    modules: set[str]
    root: Any
    arrays: dict[str, NDArray[Any]]
    part: _skops_parts.SkopsPart | None

    def build(self, trusted: list[str], limits: Limits) -> Any:
        foreign: Any = [] if self.part is None else _skops_parts.build(self.part, trusted)
        if self.root is None:
            return foreign
        arrays = ArrayReader(self.arrays)
        model = Decoder(arrays, foreign, limits).decode(self.root)
        arrays.check_all_used()
        return model


def _plan(file: IO[bytes], trusted: list[str], limits: Limits) -> _Plan:
    """Read and check a model file, without importing or building anything."""
    _archive.check_magic(file.read(4))
    with _archive.open_archive(file, limits) as archive:
        header = _archive.read_header(archive, limits)
        version = header["version"]
        root, arrays, part, names = None, {}, None, set()
        if version < _archive.VERSION:
            file.seek(0)
            part = _skops_parts.check(file.read(), version, trusted, limits)
        else:
            root = header["root"]
            names = find_type_names(root) & PLAIN_TYPES.keys()
            arrays = _archive.read_arrays(archive)
            if _archive.FOREIGN in archive.NameToInfo:
                content = _archive.read_foreign(archive)
                part = _skops_parts.check(content, version, trusted, limits)
    paths = {PLAIN_TYPES[name] for name in names}
    if part is not None:
        paths |= {"skops.io.load"} | (part.types & set(SAVED_TYPES.values()))
    return _Plan({path.rpartition(".")[0] for path in paths}, root, arrays, part)


@contextmanager
def in_one_process() -> Iterator[None]:
    """Let classifiers of other libraries predict without worker processes, whatever their ``n_jobs`` is."""
    import joblib  # here because most models have no such part

    with joblib.parallel_config(backend="sequential"):
        yield


@contextmanager
def errors_as_damage(path: str) -> Iterator[None]:
    """Turn the errors of reading a damaged file into a `ModelFileError`.

    zipfile, json, NumPy, SciPy and skops raise almost every kind of error then; to the caller they all mean
    the same. A failing disk, too little memory and missing packages are not damage.
    """
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except ImportError as error:
        raise ModelFileError(f"{path}: the model needs {error.name}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        what = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{path}: the model file is damaged ({what:.500})") from error
