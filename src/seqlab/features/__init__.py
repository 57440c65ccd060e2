"""Tokens to matrices: vectorizers, templates and windows.

Names are loaded on first use, because `SequenceUnion` needs parts of scikit-learn that are slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqlab.features.brackets import BracketFeatures as BracketFeatures
    from seqlab.features.conjunctions import Conjunctions as Conjunctions
    from seqlab.features.gazetteer import Gazetteer as Gazetteer
    from seqlab.features.lines import LineFeatures as LineFeatures
    from seqlab.features.templates import Templates as Templates
    from seqlab.features.union import SequenceUnion as SequenceUnion
    from seqlab.features.vectorizer import SequenceVectorizer as SequenceVectorizer
    from seqlab.features.window import Window as Window

_MODULE_OF_NAME = {
    "BracketFeatures": "brackets",
    "Conjunctions": "conjunctions",
    "Gazetteer": "gazetteer",
    "LineFeatures": "lines",
    "SequenceUnion": "union",
    "SequenceVectorizer": "vectorizer",
    "Templates": "templates",
    "Window": "window",
}
__all__ = sorted(_MODULE_OF_NAME)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF_NAME:
        return getattr(import_module(f"seqlab.features.{_MODULE_OF_NAME[name]}"), name)
    if name in _MODULE_OF_NAME.values():
        return import_module(f"seqlab.features.{name}")
    raise AttributeError(f"module 'seqlab.features' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULE_OF_NAME.values()])
