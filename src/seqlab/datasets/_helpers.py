"""Helpers of all data sets: Bunch and random state of scikit-learn, which is imported late, and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def make_result(return_X_y: bool, data: Any, target: Any, **fields: Any) -> Bunch | Any:
    """Return ``(data, target)`` or a Bunch; ``target_names`` are by default the labels that occur."""
    if return_X_y:
        return data, target
    from sklearn.utils import Bunch

    if "target_names" not in fields:
        fields["target_names"] = sorted({label for labels in target for label in labels})
    return Bunch(data=data, target=target, **fields)


def join_parts(
    read: Callable[[str], tuple[list[Any], list[Any] | None]], parts: Iterable[str]
) -> tuple[list[Any], list[Any], NDArray[np.str_]]:
    """Read the parts of a data set; return all sequences, their labels, and the part of each."""
    data: list[Any] = []
    target: list[Any] = []
    split: list[str] = []
    for part in parts:
        X, y = read(part)
        data += X
        target += y or []
        split += [part] * len(X)
    return data, target, np.array(split)


def check_random_state(seed: Any) -> np.random.RandomState:
    """Call the function of scikit-learn with this name."""
    from sklearn import utils

    return utils.check_random_state(seed)


def check_count(value: Any, name: str, *, least: int = 1) -> None:
    """Raise an error unless the value is an integer of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")


def check_choice(value: Any, name: str, choices: Iterable[str | None]) -> None:
    """Raise an error unless the value is one of the choices; suggest the nearest one."""
    known = list(choices)
    if value in known:
        return
    words = [choice for choice in known if choice is not None]
    near = get_close_matches(value.lower(), words, 1, cutoff=0.5) if isinstance(value, str) else []
    allowed = ", ".join(repr(choice) for choice in known)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{name} must be one of {allowed}, got {value!r}{hint}")
