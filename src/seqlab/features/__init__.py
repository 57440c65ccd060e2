"""Tokens to matrices: vectorizers, templates and windows."""

from seqlab.features.brackets import BracketFeatures
from seqlab.features.conjunctions import Conjunctions
from seqlab.features.gazetteer import Gazetteer
from seqlab.features.lines import LineFeatures
from seqlab.features.templates import Templates
from seqlab.features.union import SequenceUnion
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.features.window import Window

__all__ = [
    "BracketFeatures",
    "Conjunctions",
    "Gazetteer",
    "LineFeatures",
    "SequenceUnion",
    "SequenceVectorizer",
    "Templates",
    "Window",
]
