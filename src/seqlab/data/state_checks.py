"""Checks of attributes that come from a model file.

A ``_check_state`` method calls them on a restored object. Each raises an `InputError` that names the
attribute.
"""

from __future__ import annotations

import warnings
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError

# Classifiers that need dense rows have fewer features than this.
_MAX_DENSE_FEATURES = 1_000_000
_PLACEHOLDERS = ("passthrough", "drop")  # instead of an estimator, in scikit-learn


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
    if value.format not in ("csr", "csc") or value.dtype != np.float64:
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


def add_new_params(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return a stored state, with the defaults of parameters that did not exist when it was stored."""
    given = signature(kind.__init__).parameters.items()  # type: ignore[misc]
    defaults = {name: one.default for name, one in given if one.default is not Parameter.empty}
    return defaults | state


def has_fitted_attributes(estimator: Any) -> bool:
    """Return whether an estimator has attributes that `fit` sets: names that end with an underscore."""
    return any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))


def probe_classifier(classifier: Any, n_features: int, n_columns: int | None = None) -> Any:
    """Let a fitted classifier predict a row of zeros, so that it fails now if it ever fails.

    Parameters
    ----------
    classifier : classifier of any library
    n_features : int
    n_columns : int, optional
        Number of columns that its ``predict_proba`` must have.

    Returns
    -------
    array of shape (1,)
        The predicted label.
    """
    row: Any = sp.csr_matrix((1, n_features))
    if n_features <= _MAX_DENSE_FEATURES:
        row = np.zeros((1, n_features))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # A row of zeros may be unusual input; only errors and wrong results count here.
        warnings.simplefilter("ignore")
        label = np.asarray(classifier.predict(row))
        for method in ("predict_proba", "decision_function"):
            if hasattr(classifier, method):
                values = np.asarray(getattr(classifier, method)(row))
                wanted = n_columns if method == "predict_proba" else None
                if values.dtype.kind != "f" or (wanted and values.shape != (1, wanted)):
                    raise InputError(f"{method} of {type(classifier).__name__} gives a wrong shape")
    if label.shape != (1,):
        raise InputError(f"predict of {type(classifier).__name__} gives a wrong shape")
    return label


def check_named_estimators(steps: Any, name: str, *methods: str) -> None:
    """Check a list of (name, estimator) pairs whose estimators have the given methods."""
    for step in check_type(steps, name, list):
        require(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str), name)
        is_placeholder = step[1] is None or (isinstance(step[1], str) and step[1] in _PLACEHOLDERS)
        require(is_placeholder or all(hasattr(step[1], one) for one in methods), name)
