"""The container every data set comes in: scikit-learn's Bunch, imported only when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from sklearn.utils import Bunch


def make_bunch(**fields: Any) -> Bunch:
    """Pack fields in a `sklearn.utils.Bunch` (a dict whose keys are attributes too)."""
    from sklearn.utils import Bunch

    return Bunch(**fields)


def random_state(seed: Any) -> np.random.RandomState:
    """scikit-learn's `check_random_state`."""
    from sklearn.utils import check_random_state

    return check_random_state(seed)
