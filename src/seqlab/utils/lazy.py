"""Names of a package that are imported on first use, so that importing the package is fast.

Importing a module with compiled functions takes milliseconds for each function, even if they are cached.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def import_on_use(package: str, modules: dict[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names are in modules that are not imported yet.

    Parameters
    ----------
    package : str
    modules : dict of str to tuple of str
        The names in each module, which is given relative to the package.

    Examples
    --------
    >>> find = import_on_use("json", {"decoder": ("JSONDecoder",)})
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
        return getattr(import_module(f"{package}.{module_of_name[name]}"), name)

    return find
