"""Inference on graphs: scores, exact and approximate methods."""

from seqlab.inference.graphs.layout import GraphLayout
from seqlab.inference.graphs.methods import (
    GraphInference,
    GraphMarginals,
    RelaxedLabelings,
    labeling_scores,
)
from seqlab.inference.graphs.scores import GraphScores

__all__ = [
    "GraphInference",
    "GraphLayout",
    "GraphMarginals",
    "GraphScores",
    "RelaxedLabelings",
    "labeling_scores",
]
