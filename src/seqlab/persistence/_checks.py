"""Checks of the objects that come out of a model file, whichever way they were stored.

Compiled code does not check the indices that it follows, so every array that it will index with is checked
here, once: sparse matrices, and whatever the ``_check_state`` method of a type checks. For estimators of
seqlab, the constructor parameters are also compared with their declared constraints.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from seqlab.data.errors import InputError
from seqlab.persistence._foreign_checks import check_foreign
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.type_names import SAVED_TYPES

_OURS = frozenset(SAVED_TYPES.values())
_PLAIN = (type(None), bool, int, float, str, bytes, slice, type)


def check_objects(model: Any) -> None:
    """Raise a `ModelFileError` if a part of a model is not consistent.

    Parts are checked before the objects that hold them.
    """
    seen: dict[int, Any] = {}
    stack = [(model, False)]
    while stack:
        value, is_ready = stack.pop()
        if is_ready:
            _check(value)
        elif not isinstance(value, _PLAIN) and id(value) not in seen:
            seen[id(value)] = value
            stack.append((value, True))
            stack.extend((part, False) for part in _parts(value))


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype == object else ()
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return value
    return vars(value).values() if hasattr(value, "__dict__") else ()


def _check(value: Any) -> None:
    kind = type(value)
    is_plain = isinstance(value, np.ndarray | np.generic | dict | list | tuple | set | frozenset)
    if is_plain and not hasattr(value, "_check_state"):  # a named tuple may have one
        return
    if sp.issparse(value):
        _check_sparse(value)
        return
    path = f"{kind.__module__}.{kind.__qualname__}"
    is_ours = path in _OURS
    if is_ours or path.startswith("sklearn."):
        _check_names(value, kind)
    try:
        if is_ours:
            _check_parameters(value)
            if hasattr(value, "_check_state"):
                value._check_state()
        elif isinstance(value, BaseEstimator):
            check_foreign(value)
    except ModelFileError:
        raise
    except Exception as error:
        # A wrong type or shape can raise anything in a check.
        what = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"its {kind.__name__} is not consistent: {what:.300}") from error


def _check_sparse(matrix: Any) -> None:
    try:
        if matrix.ndim != 2 or matrix.data.dtype.kind not in "biufc":
            raise TypeError("it is not a matrix of numbers")
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif hasattr(matrix, "coords"):
            for axis, indices in enumerate(matrix.coords):
                if indices.size and not 0 <= indices.min() <= indices.max() < matrix.shape[axis]:
                    raise ValueError("its indices are out of range")
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"a sparse matrix is not valid: {error}") from error


def _check_names(value: Any, kind: type) -> None:
    """Reject attributes that hide a method or a property of the class."""
    for name in list(getattr(value, "__dict__", ())):
        defined = getattr(kind, name, None)
        if isinstance(defined, cached_property):
            del value.__dict__[name]  # files of older versions hold what it computed
        elif isinstance(defined, FunctionType | property | classmethod | staticmethod):
            raise ModelFileError(
                f"its {kind.__name__} has an attribute {name!r:.60} that is a method"
            )


def _check_parameters(value: Any) -> None:
    if isinstance(value, BaseEstimator):
        missing = [name for name in value._get_param_names() if not hasattr(value, name)]
        if missing:
            raise InputError(f"it has no parameter {missing[0]}")
        if hasattr(value, "_parameter_constraints"):
            value._validate_params()
