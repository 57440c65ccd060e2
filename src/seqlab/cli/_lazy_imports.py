"""Import scikit-learn without two packages that it imports and training does not use.

It imports all of scipy.stats and pandas for a function each, which takes half a second.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_NOT_YET = ("scipy.stats", "pandas")


class _StandIn(ModuleType):
    """What an import binds in the place of a module: loads the module when asked for anything in it."""

    def __getattr__(self, name: str) -> Any:
        _leave(self)
        return getattr(import_module(self.__name__), name)


def _leave(stand_in: ModuleType) -> None:
    if sys.modules.get(stand_in.__name__) is stand_in:
        del sys.modules[stand_in.__name__]


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # by a finder that wants it so
        return False


def import_scikit_learn() -> None:
    """Import what every estimator needs of scikit-learn; the other two load when somebody uses them."""
    wanted = [name for name in _NOT_YET if name not in sys.modules and _is_there(name)]
    stand_ins = [_StandIn(name) for name in wanted]
    sys.modules.update(zip(wanted, stand_ins, strict=True))
    try:
        import_module("sklearn.base")
    finally:
        for stand_in in stand_ins:  # whoever imports them from now on gets the modules themselves
            _leave(stand_in)
