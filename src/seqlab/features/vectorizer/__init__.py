"""SequenceVectorizer: dicts or bags of strings to feature matrices."""

from seqlab.features.vectorizer.vectorizer import SequenceVectorizer

__all__ = ["SequenceVectorizer"]
