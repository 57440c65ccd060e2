"""Phrases from classifiers of open and close decisions."""

from seqlab.models.phrases.phrase_inference import DecisionProba, PhraseInference

__all__ = ["DecisionProba", "PhraseInference"]
