"""Labels as integer codes, and sample weights.

`encode_labels` converts ``y``, as a list of sequences or stacked, to one code per step. A label may be
unknown (``None``) or partially known (a set of labels): its code is then ``PARTIAL``, and its row of
``allowed`` marks the possible labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

UNSEEN = -1  # a label that is not among the classes
PARTIAL = -2  # an unknown or partially known label


class EncodedLabels(NamedTuple):
    """One code per step.

    Parameters
    ----------
    codes : int64 array of shape (n_steps,)
        Index into ``classes``, or `UNSEEN`, or `PARTIAL`.
    classes : array of shape (n_labels,)
        The labels, sorted.
    allowed : boolean array of shape (n_steps, n_labels) or None
        Possible labels of each step; None if every label is known.
    """

    codes: NDArray[np.int64]
    classes: NDArray[Any]
    allowed: NDArray[np.bool_] | None


def encode_labels(
    y: Any,
    offsets: NDArray[np.int64],
    *,
    stacked: bool,
    classes: NDArray[Any] | None = None,
    partial: bool = False,
    name: str = "y",
) -> EncodedLabels:
    """Encode the labels of all sequences.

    Parameters
    ----------
    y : list of label sequences, or a flat sequence of labels if ``stacked``
        The labels.
    offsets : array of shape (n_sequences + 1,)
        First step of each sequence of X, then ``n_steps``.
    stacked : bool
        Whether X was given as one stacked matrix (or one sequence) rather than a list.
    classes : array, optional
        Known classes; other labels get the code `UNSEEN`. By default the labels in ``y``.
    partial : bool
        Whether ``None`` and sets of labels are accepted.
    name : str
        Name of ``y`` in error messages.
    """
    place = Place(name, offsets)
    if y is None:
        raise InputError(
            f"this labeler requires {name} to be passed, but the target {name} is None"
        )
    flat = _flatten(y, place, stacked)
    if isinstance(flat, np.ndarray):
        return _encode_array(flat, classes, place)
    known, allowed_sets = _split_partial(flat, place, partial)
    if classes is None:
        distinct = set(known.values() if isinstance(known, dict) else known)
        for labels in allowed_sets.values():
            distinct.update(labels or ())
        if not distinct and flat:
            raise InputError(f"no label of {name} is known: there is nothing to learn from")
        classes = _sorted_classes(distinct)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    if not allowed_sets:
        values = flat if not isinstance(known, dict) else [known[step] for step in range(len(flat))]
        codes = np.fromiter(map(code_of.get, values, repeat(UNSEEN)), np.int64, len(flat))
        return EncodedLabels(codes, classes, None)
    codes = np.full(len(flat), PARTIAL, dtype=np.int64)
    allowed = np.zeros((len(flat), len(classes)), dtype=bool)
    for step, label in known.items():
        codes[step] = code_of.get(label, UNSEEN)
        if codes[step] >= 0:
            allowed[step, codes[step]] = True
    for step, labels in allowed_sets.items():
        possible = [code_of[label] for label in labels if label in code_of] if labels else ...
        if possible == []:
            raise InputError(f"{place(step)} allows none of the known labels")
        allowed[step, possible] = True
    return EncodedLabels(codes, classes, allowed)


class Place(NamedTuple):
    """Names a step in error messages: ``y[3][5]``."""

    name: str
    offsets: NDArray[np.int64]

    def __call__(self, step: int) -> str:
        """Return the name of a step."""
        sequence = int(np.searchsorted(self.offsets, step, side="right") - 1)
        return f"{self.name}[{sequence}][{step - int(self.offsets[sequence])}]"

    def not_finite(self, step: int, value: Any) -> InputError:
        """Return the error for a label that is NaN or infinite."""
        return InputError(f"Input {self.name} contains NaN or infinity: {self(step)} is {value}")


def _flatten(y: Any, place: Place, stacked: bool) -> Any:
    """Check every length against X; return all labels in one flat list or 1-D array."""
    name, offsets = place
    name_of_x = "X_val" if name == "y_val" else "X"
    n_sequences, n_steps = offsets.size - 1, int(offsets[-1])
    if hasattr(y, "__array__") and not isinstance(y, np.ndarray):  # such as a pandas Series
        y = np.asarray(y)
    if isinstance(y, Iterator):
        y = list(y)
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise InputError(f"{name} must be a list of label lists, got {type(y).__name__}")
    if isinstance(y, np.ndarray) and y.ndim == 2 and 1 in y.shape and stacked:
        y = y.ravel()
    if stacked and not _is_list_of_sequences(y):
        if len(y) != n_steps:
            raise InputError(f"{name_of_x} has {n_steps} steps but {name} has {len(y)} labels")
        return y if _is_plain_array(y) else list(y)
    if len(y) != n_sequences:
        hint = f" ({name} must be a list with one list of labels per sequence)"
        hint = hint if n_steps == len(y) else ""
        raise InputError(f"{name_of_x} has {n_sequences} sequences but {name} has {len(y)}{hint}")
    for i, (labels, length) in enumerate(zip(y, np.diff(offsets).tolist(), strict=True)):
        if isinstance(labels, str) or not hasattr(labels, "__len__"):
            raise InputError(f"{name}[{i}] must be a sequence of labels, got {labels!r}")
        if len(labels) != length:
            raise InputError(
                f"{name_of_x}[{i}] has {length} steps but {name}[{i}] has {len(labels)} labels"
            )
    if n_sequences and all(_is_plain_array(labels) for labels in y):
        text = {labels.dtype.kind in "US" for labels in y if len(labels)}
        if len(text) > 1:
            raise InputError("labels mix strings and numbers")
        return np.concatenate([np.asarray(labels) for labels in y])
    return list(chain.from_iterable(np.asarray(v).tolist() if _is_plain_array(v) else v for v in y))


def _is_list_of_sequences(y: Any) -> bool:
    """Whether y is a list of label lists although X is stacked."""
    has_items = not _is_plain_array(y) and hasattr(y, "__len__") and len(y) > 0
    return has_items and isinstance(y[0], list | tuple | np.ndarray)


def _is_plain_array(labels: Any) -> bool:
    return isinstance(labels, np.ndarray) and labels.dtype.kind in "biufUS" and labels.ndim == 1


def _encode_array(flat: NDArray[Any], classes: NDArray[Any] | None, place: Place) -> EncodedLabels:
    if flat.dtype.kind == "f":
        bad = ~np.isfinite(flat)
        if bad.any():
            step = int(np.argmax(bad))
            raise place.not_finite(step, flat[step])
    found, codes = np.unique(flat, return_inverse=True)
    codes = codes.astype(np.int64)
    if classes is None:
        return EncodedLabels(codes, found, None)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    translate = np.array([code_of.get(label, UNSEEN) for label in found.tolist()], dtype=np.int64)
    return EncodedLabels(translate[codes], classes, None)


def _split_partial(flat: list[Any], place: Place, partial: bool) -> tuple[Any, dict[int, Any]]:
    """Separate known labels from ``None`` and sets; raise an error for what cannot be a label."""
    try:
        kinds = {type(label) for label in set(flat)}
    except TypeError:  # an entry is not hashable: a set of labels, or an error of the user
        kinds = {set}
    if kinds <= {str, int, bool, np.str_}:
        return flat, {}
    known: dict[int, Any] = {}
    unknown: dict[int, Any] = {}
    for step, label in enumerate(flat):
        if isinstance(label, float | np.floating) and not np.isfinite(label):
            raise place.not_finite(step, label)
        if label is None or isinstance(label, set | frozenset):
            if not partial:
                raise InputError(f"{place(step)} is {label!r}: every label must be known here")
            if label is None or len(label) > 1:
                unknown[step] = label
            elif label:
                (known[step],) = label
            else:
                raise InputError(f"{place(step)} is an empty set: no label is possible")
        elif isinstance(label, str | bytes | int | float | bool | np.generic):
            known[step] = label
        else:
            raise InputError(
                f"{place(step)} is a {type(label).__name__}; a label is a string or a number, None "
                "if unknown, or a set of possible labels"
            )
    return known, unknown


def _sorted_classes(distinct: set[Any]) -> NDArray[Any]:
    try:
        ordered = sorted(distinct)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in distinct})
        if len(kinds) == 1:
            raise InputError(f"labels of type {kinds[0]} cannot be sorted") from None
        raise InputError(f"labels mix the types {', '.join(kinds)}") from None
    strings = [isinstance(label, str) for label in ordered]
    if any(strings) and not all(strings):
        raise InputError("labels mix strings and numbers")
    classes = np.array(ordered)
    # NumPy drops trailing NUL characters, and rounds large integers in an array with floats.
    for label, stored in zip(ordered, classes.tolist(), strict=True):
        if label != stored:
            raise InputError(f"the label {label!r} cannot be used: NumPy stores it as {stored!r}")
    return classes


def decode_labels(codes: NDArray[np.int64], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the label of each code."""
    return classes[codes]


def sequence_weights(
    sample_weight: Any, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of the sequences and of the steps.

    ``sample_weight`` has one entry per sequence, or one per step (flat, or as a list like ``y``); the
    weight of a sequence is then the mean over its steps.
    """
    n_sequences, n_steps = offsets.size - 1, int(offsets[-1])
    lengths = np.diff(offsets)
    if sample_weight is None:
        return np.ones(n_sequences), np.ones(n_steps)
    try:
        if _is_list_of_sequences(sample_weight) and len(sample_weight) == n_sequences:
            sample_weight = np.concatenate([np.asarray(part).ravel() for part in sample_weight])
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must be numbers: {error}") from None
    if weights.ndim == 0:
        weights = np.full(n_sequences, float(weights))
    if weights.ndim != 1 or weights.size not in (n_sequences, n_steps):
        raise InputError(
            f"sample_weight has shape {weights.shape}; expected one weight for each of the "
            f"{n_sequences} sequences (or of the {n_steps} steps)"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        where = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
        raise InputError(f"sample_weight[{where}] is {weights[where]}: weights are finite and >= 0")
    if weights.size and not weights.any():
        raise InputError("sample_weight is zero everywhere: there is nothing to learn from")
    if weights.size == n_sequences:
        return weights, np.repeat(weights, lengths)
    totals = np.add.reduceat(weights, np.minimum(offsets[:-1], max(n_steps - 1, 0)))
    return np.where(lengths > 0, totals / np.maximum(lengths, 1), 0.0), weights
