"""Which sequences a stacked learner trains on and which it asks about: folds, groups, pieces.

Sequences are dealt to folds as wholes, groups of them too. A single sequence is cut into pieces first. With
several levels, each level deals what the level above leaves it: the training part of a fold.
"""

from __future__ import annotations

from itertools import count
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold

from seqlab.data.errors import InputError

Ints = NDArray[np.int64]


def fold_units(offsets: Ints, cv: Any, levels: int) -> Ints:
    """Bounds of what is dealt to folds: the sequences, or the pieces of a single one."""
    if offsets.size > 2:
        return offsets
    n_folds = _n_folds(cv)
    if n_folds is None:
        try:
            n_folds = int(cv.get_n_splits())
        except (TypeError, ValueError):  # as many as there are sequences or groups
            return offsets
    n_steps, n_pieces = int(offsets[-1]), n_folds**levels
    if n_steps < n_pieces:
        return offsets
    return np.linspace(0, n_steps, n_pieces + 1).astype(np.int64)


def deal(
    n_sequences: int, cv: Any, groups: Any, *, levels: int, random_state: Any
) -> list[tuple[Ints, Ints]]:
    """Sequences to train on and to ask about, fold by fold, each asked about once."""
    splitter, n_folds = cv, _n_folds(cv)
    if n_folds is not None:
        _check_enough(n_sequences, cv, n_folds, groups, levels)
        kind = KFold if groups is None else GroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=random_state)
    try:
        parts = list(splitter.split(np.zeros((n_sequences, 1)), None, groups))
    except (TypeError, ValueError) as error:
        given = "without groups" if groups is None else "with groups"
        raise InputError(
            f"cv={cv!r} cannot deal {n_sequences} sequences to folds ({given}, and without one label for "
            f"each sequence): {error}"
        ) from error
    asked = np.zeros(n_sequences, dtype=np.int64)
    for train, test in parts:
        asked[test] += 1
        if np.intersect1d(train, test).size:
            raise InputError(f"cv={cv!r} trains on sequences that it asks about")
    if (asked != 1).any():
        which = int(np.argmax(asked != 1))
        raise InputError(
            f"the test parts of cv={cv!r} must hold each sequence once, but X[{which}] is in "
            f"{asked[which]} of them"
        )
    return parts


def _n_folds(cv: Any) -> int | None:
    """Folds where ``cv`` says how many; None for a splitter."""
    if isinstance(cv, str):  # "two_halves"
        return 2
    return int(cv) if isinstance(cv, Integral) else None


def _check_enough(n_sequences: int, cv: Any, n_folds: int, groups: Any, levels: int) -> None:
    what, n_units = "sequences", n_sequences
    if groups is not None:
        try:
            what, n_units = "groups", np.unique(groups).size
        except TypeError as error:
            raise InputError(f"groups must be of one kind, to be told apart: {error}") from None
    if not _is_enough(n_units, n_folds, levels):
        least = next(n for n in count(n_folds) if _is_enough(n, n_folds, levels))
        nested = f" with levels={levels}" if levels > 1 else ""
        smaller = "" if n_folds == 2 else " or a smaller cv"
        raise InputError(
            f"cv={cv!r}{nested} needs {least} {what} at least, but there are {n_units} "
            f"(n_samples={n_units}); give more data{smaller}"
        )


def _is_enough(n_units: int, n_folds: int, levels: int) -> bool:
    """Whether every level has a unit for each fold, the largest fold being left out above it."""
    for _ in range(levels):
        if n_units < n_folds:
            return False
        n_units -= -(-n_units // n_folds)
    return True
