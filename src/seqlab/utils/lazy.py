"""Names of a package that are imported on first use, so that importing the package is fast.

Importing numba takes a third of a second, and importing a module with compiled functions takes milliseconds
for each function, even if they are cached. The first `fit` or `predict` imports what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from seqlab.utils.signals import hold_interrupts


def import_on_use(
    package: str, modules: dict[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package with names that are not imported yet.

    An interrupt waits until the module of a name is imported completely.

    Parameters
    ----------
    package : str
    modules : dict of str to tuple of str
        The names in each module, which is given relative to the package.

    Examples
    --------
    >>> find, names = import_on_use("json", {"decoder": ("JSONDecoder",)})
    >>> find("JSONDecoder").__name__
    'JSONDecoder'
    >>> find("YAMLDecoder")
    Traceback (most recent call last):
        ...
    AttributeError: module 'json' has no attribute 'YAMLDecoder'
    """
    module_of_name = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in module_of_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with hold_interrupts():
            value = getattr(import_module(f"{package}.{module_of_name[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of_name})

    return find, names
