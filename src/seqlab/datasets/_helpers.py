"""Helpers of all data sets: Bunch and random state of scikit-learn, which is imported late, and checks."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from seqlab.data.errors import InputError

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def make_bunch(**fields: Any) -> Bunch:
    """Create a `sklearn.utils.Bunch`, a dict with its keys as attributes."""
    from sklearn.utils import Bunch

    return Bunch(**fields)


def random_state(seed: Any) -> np.random.RandomState:
    """Call scikit-learn's `check_random_state`."""
    from sklearn.utils import check_random_state

    return check_random_state(seed)


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
