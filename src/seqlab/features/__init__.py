"""Tokens to matrices: vectorizers, templates and windows."""

from seqlab.features.vectorizer import SequenceVectorizer

__all__ = ["SequenceVectorizer"]
