"""Labelers that combine the posteriors of any classifier along a sequence."""

from seqlab.models.combinators.classifier_hmm import ClassifierHMM
from seqlab.models.combinators.memm import MEMM
from seqlab.models.combinators.pmm import ProjectionMarkovModel

__all__ = ["MEMM", "ClassifierHMM", "ProjectionMarkovModel"]
