"""Two labelings of the same data as integer codes.

Every metric begins here: labels are encoded once, lengths are checked once, and the rest is array
arithmetic. Labels may be any hashable values except missing ones (None, NaN). A label that occurs in only
one of the labelings is a label like the others, which never agrees.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import integer_lengths, to_offsets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Aligned(NamedTuple):
    """Encoded labels of all sequences, stacked.

    Attributes
    ----------
    labels : list
        The distinct labels of both labelings, sorted; codes are indices into it.
    true, pred : integer arrays of shape (n_steps,)
    offsets : integer array of shape (n_sequences + 1,)
    names : (str, str)
        Names of the two labelings in error messages.
    stacked : bool
        Whether the labels were given as one flat array.
    """

    labels: list[Any]
    true: Ints
    pred: Ints
    offsets: Ints
    names: tuple[str, str]
    stacked: bool

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return self.offsets.size - 1

    @property
    def sequence(self) -> Ints:
        """Sequence of each step, shape (n_steps,)."""
        return np.repeat(np.arange(self.n_sequences), np.diff(self.offsets))

    def first_place(self, code: int) -> str:
        """Position of the first occurrence of a label, such as ``y_pred[3][5]``."""
        for name, codes in zip(self.names, (self.true, self.pred), strict=True):
            steps = np.flatnonzero(codes == code)
            if steps.size:
                return place_of(int(steps[0]), name, self.offsets, self.stacked)
        raise LookupError(code)


def align(
    y_true: Any,
    y_pred: Any,
    *,
    lengths: ArrayLike | None = None,
    names: tuple[str, str] = ("y_true", "y_pred"),
) -> Aligned:
    """Encode two labelings and check that they have the same lengths.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences, 2-D arrays, or flat sequences of labels
        A flat sequence is one sequence, or several stacked ones if ``lengths`` is given.
    lengths : array of shape (n_sequences,), optional
        Steps per sequence, for stacked labels.
    names : (str, str)
        Names of the two labelings in error messages.
    """
    flat_true, lengths_true = flatten_labels(y_true, names[0])
    flat_pred, lengths_pred = flatten_labels(y_pred, names[1])
    if (lengths_true is None) != (lengths_pred is None):
        kinds = ["a flat sequence" if n is None else "a list" for n in (lengths_true, lengths_pred)]
        raise InputError(
            f"{names[0]} is {kinds[0]} of labels but {names[1]} is {kinds[1]}"
            " (lists hold one sequence of labels per sample)"
        )
    if lengths_true is None or lengths_pred is None:
        if len(flat_true) != len(flat_pred):
            raise InputError(
                f"{names[0]} has {len(flat_true)} labels but {names[1]} has {len(flat_pred)}"
            )
        offsets = _offsets_of_lengths(lengths, len(flat_true))
    elif lengths is not None:
        raise InputError("lengths= is for stacked labels, but these are a list of sequences")
    else:
        _check_lengths(lengths_true, lengths_pred, names)
        offsets = _offsets_of_lengths(lengths_true, len(flat_true))
    stacked = lengths_true is None
    table = _label_table(flat_true, flat_pred, names, offsets, stacked)
    n_steps = len(flat_true)
    return Aligned(
        list(table),
        np.fromiter(map(table.__getitem__, flat_true), np.int64, n_steps),
        np.fromiter(map(table.__getitem__, flat_pred), np.int64, n_steps),
        offsets,
        names,
        stacked,
    )


def place_of(step: int, name: str, offsets: Ints, stacked: bool) -> str:
    """Name of a stacked step in error messages, such as ``y_pred[3][5]``."""
    if stacked:
        return f"{name}[{step}]"
    sequence = int(np.searchsorted(offsets, step, side="right") - 1)
    return f"{name}[{sequence}][{step - int(offsets[sequence])}]"


def label_set(labels: Any) -> list[Any]:
    """Labels of an ``ignore=`` parameter: one label or a collection of labels."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return [labels]
    return list(labels)


def is_kept(labels: list[Any], ignore: Any) -> NDArray[np.bool_]:
    """Whether each label is *not* ignored, shape (n_labels,)."""
    ignored = label_set(ignore)
    return np.array([label not in ignored for label in labels], dtype=bool)


def check_weight(sample_weight: ArrayLike | None, n_sequences: int) -> Floats | None:
    """Check that there is one non-negative weight per sequence; None is returned as it is."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_sequences,):
        raise InputError(
            f"sample_weight has shape {weight.shape} but there are {n_sequences} sequences"
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise InputError("sample_weight must be finite and not negative")
    return weight


def flatten_labels(y: Any, name: str) -> tuple[list[Any], list[int] | None]:
    """Return all labels in one list, and the length of each sequence (None for stacked labels)."""
    if hasattr(y, "to_numpy"):  # a pandas Series
        y = y.to_numpy()
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise InputError(f"{name} must be a list of label sequences, got {type(y).__name__}")
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        return y.tolist(), None
    if isinstance(y, np.ndarray) and y.ndim not in (1, 2):
        raise InputError(f"{name} must have one or two dimensions, got {y.ndim}")
    if len(y) and _is_label(y[0]):
        return list(y), None
    items = []
    for i, item in enumerate(y):
        if _is_label(item):
            raise InputError(f"{name}[{i}] is the label {item!r}, not a sequence of labels")
        if getattr(item, "ndim", 1) != 1:
            raise InputError(f"{name}[{i}] has {item.ndim} dimensions, expected one label per step")
        items.append(item.tolist() if hasattr(item, "tolist") else list(item))
    return list(chain.from_iterable(items)), [len(item) for item in items]


def _is_label(item: Any) -> bool:
    return isinstance(item, str | bytes | set | frozenset) or not hasattr(item, "__len__")


def _is_unknown(label: Any) -> bool:
    """Whether a label is missing (None, NaN, pandas' NA and NaT) or a set of possible labels."""
    if isinstance(label, float | np.floating):
        return bool(label != label)
    return (
        label is None
        or isinstance(label, set | frozenset)
        or type(label).__name__ in ("NAType", "NaTType")
    )


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _check_lengths(true: list[int], pred: list[int], names: tuple[str, str]) -> None:
    if len(true) != len(pred):
        raise InputError(f"{names[0]} has {len(true)} sequences but {names[1]} has {len(pred)}")
    for i, (a, b) in enumerate(zip(true, pred, strict=True)):
        if a != b:
            raise InputError(f"{names[0]}[{i}] has {a} labels but {names[1]}[{i}] has {b}")


def _offsets_of_lengths(lengths: Any, n_steps: int) -> Ints:
    sizes = integer_lengths([n_steps] if lengths is None else lengths)
    if sum(sizes.tolist()) != n_steps:
        raise InputError(f"lengths must be counts that sum to the {n_steps} labels")
    return to_offsets(sizes)


def _label_table(
    true: list[Any], pred: list[Any], names: tuple[str, str], offsets: Ints, stacked: bool
) -> dict[Any, int]:
    try:
        distinct = dict.fromkeys(true) | dict.fromkeys(pred)
    except TypeError:
        distinct = {None: None}
    if any(map(_is_unknown, distinct)):
        for name, flat in zip(names, (true, pred), strict=True):
            for step, label in enumerate(flat):
                if _is_unknown(label) or not _is_hashable(label):
                    place = place_of(step, name, offsets, stacked)
                    raise InputError(f"{place} is {label!r}: only known labels can be scored")
    labels = [label.item() if isinstance(label, np.generic) else label for label in distinct]
    try:
        labels.sort()
    except TypeError:  # labels of several types
        labels.sort(key=lambda label: (type(label).__name__, str(label)))
    return {label: code for code, label in enumerate(labels)}
