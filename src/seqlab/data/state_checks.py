"""Checks of attributes that come from a model file.

A ``_check_state`` method calls them on a restored object. Each raises an `InputError` that names the
attribute.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError


def require(condition: Any, name: str) -> None:
    """Raise an error that names an attribute if a condition does not hold."""
    if not condition:
        raise InputError(f"{name} does not agree with the other attributes")


def check_array(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    kinds: str = "f",
    *,
    low: float | None = None,
    high: float | None = None,
    dtype: Any = None,
) -> Any:
    """Check the type, shape and range of an array, and return it.

    Parameters
    ----------
    value : object
    name : str
        Of the attribute.
    shape : tuple of int or None
        None for any length.
    kinds : str, default="f"
        Kinds of number, as in ``dtype.kind``.
    low, high : float, optional
        The entries must satisfy ``low <= entry < high``.
    dtype : dtype, optional
        If only this type is possible.

    Examples
    --------
    >>> check_array(np.array([0, 2]), "columns", (2,), "i", low=0, high=3).tolist()
    [0, 2]
    >>> check_array(np.array([0, 3]), "columns", (2,), "i", low=0, high=3)
    Traceback (most recent call last):
        ...
    seqlab.data.errors.InputError: columns has entries out of range
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        raise InputError(f"{name} is not an array of the right type")
    if dtype is not None and value.dtype != dtype:
        raise InputError(f"{name} has the type {value.dtype}, not {np.dtype(dtype)}")
    if value.ndim != len(shape) or any(
        wanted is not None and n != wanted for n, wanted in zip(value.shape, shape, strict=True)
    ):
        raise InputError(f"{name} has the shape {value.shape}")
    if value.size and (
        (low is not None and not value.min() >= low)
        or (high is not None and not value.max() < high)
    ):
        raise InputError(f"{name} has entries out of range")
    return value


def check_matrix(value: Any, name: str, shape: tuple[int | None, int | None]) -> Any:
    """Check a dense or sparse matrix of floats, and return it; the indices of sparse ones are valid."""
    if not sp.issparse(value):
        return check_array(value, name, shape)
    if value.format not in ("csr", "csc") or value.dtype.kind != "f":
        raise InputError(f"{name} is not a matrix of the right type")
    if any(
        wanted is not None and n != wanted for n, wanted in zip(value.shape, shape, strict=True)
    ):
        raise InputError(f"{name} has the shape {value.shape}")
    return value


def check_classes(value: Any, name: str = "classes_") -> int:
    """Check an array of distinct labels in sorted order, and return their number."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not value.size:
        raise InputError(f"{name} is not an array of labels")
    if value.dtype.kind not in "biufUSO":
        raise InputError(f"{name} has the type {value.dtype}")
    if len(set(value.tolist())) != value.size:
        raise InputError(f"{name} has a label twice")
    return int(value.size)


def check_int(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Check a whole number with ``low <= value < high``, and return it."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not is_integer or value < low or (high is not None and value >= high):
        raise InputError(f"{name} is {value!s:.40}")
    return int(value)


def check_number(value: Any, name: str, low: float = -np.inf) -> None:
    """Check a finite number of at least ``low``."""
    if not isinstance(value, Real) or not low <= float(value) < np.inf:
        raise InputError(f"{name} is {value!s:.40}")


def check_type(value: Any, name: str, *kinds: type) -> Any:
    """Check the type of a value, and return it."""
    if not isinstance(value, kinds):
        raise InputError(f"{name} is a {type(value).__name__}")
    return value


def check_list(value: Any, name: str, kind: type, length: int | None = None) -> Any:
    """Check a list whose items have one type, and return it."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise InputError(f"{name} is not a list of the right length")
    for item in value:
        check_type(item, f"an entry of {name}", kind)
    return value
