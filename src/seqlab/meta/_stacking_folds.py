"""Cross-validation folds of a stacked learner.

A sequence, or a group of sequences, is never split between folds. A single sequence is first cut into pieces.
With several levels, each level splits the training part of a fold of the level above.
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
    """Return the bounds of the units that are assigned to folds: sequences, or pieces of a single one."""
    if offsets.size > 2:
        return offsets
    n_folds = _n_folds(cv)
    if n_folds is None:
        try:
            n_folds = int(cv.get_n_splits())
        except (TypeError, ValueError):  # the splitter derives it from the sequences or groups
            return offsets
    n_steps, n_pieces = int(offsets[-1]), n_folds**levels
    if n_steps < n_pieces:
        return offsets
    return np.linspace(0, n_steps, n_pieces + 1).astype(np.int64)


def split_folds(
    n_sequences: int, cv: Any, groups: Any, *, levels: int, random_state: Any
) -> list[tuple[Ints, Ints]]:
    """Return (train, test) indices of sequences for each fold; each sequence is in one test part."""
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
            f"cv={cv!r} cannot split {n_sequences} sequences into folds ({given}, and without one label "
            f"for each sequence): {error}"
        ) from error
    n_tests = np.zeros(n_sequences, dtype=np.int64)
    for train, test in parts:
        n_tests[test] += 1
        if np.intersect1d(train, test).size:
            raise InputError(f"cv={cv!r} has folds whose training and test parts overlap")
    if (n_tests != 1).any():
        which = int(np.argmax(n_tests != 1))
        raise InputError(
            f"cv={cv!r} must have each sequence in exactly one test part, but X[{which}] is in "
            f"{n_tests[which]}"
        )
    return parts


def _n_folds(cv: Any) -> int | None:
    """Return the number of folds if ``cv`` specifies it, None if ``cv`` is a splitter."""
    if isinstance(cv, str):  # "two_halves"
        return 2
    return int(cv) if isinstance(cv, Integral) else None


def _check_enough(n_sequences: int, cv: Any, n_folds: int, groups: Any, levels: int) -> None:
    what, n_units = "sequences", n_sequences
    if groups is not None:
        try:
            what, n_units = "groups", np.unique(groups).size
        except TypeError as error:
            raise InputError(f"groups must all be of one type to be sorted: {error}") from None
    if not _is_enough(n_units, n_folds, levels):
        least = next(n for n in count(n_folds) if _is_enough(n, n_folds, levels))
        nested = f" with levels={levels}" if levels > 1 else ""
        smaller = "" if n_folds == 2 else " or a smaller cv"
        raise InputError(
            f"cv={cv!r}{nested} needs at least {least} {what}, but there are {n_units} "
            f"(n_samples={n_units}); give more data{smaller}"
        )


def _is_enough(n_units: int, n_folds: int, levels: int) -> bool:
    """Return whether each level has a unit per fold; each level leaves out its largest fold."""
    for _ in range(levels):
        if n_units < n_folds:
            return False
        n_units -= -(-n_units // n_folds)
    return True
