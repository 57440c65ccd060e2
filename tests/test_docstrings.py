"""Every example in a docstring runs and gives the output shown."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import seqlab

MODULES = [
    module.name
    for module in pkgutil.walk_packages(seqlab.__path__, "seqlab.")
    if "__main__" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
