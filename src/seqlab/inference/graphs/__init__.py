"""Inference on graphs: scores, exact and approximate methods."""

from typing import TYPE_CHECKING

from seqlab.inference.graphs.layout import GraphLayout
from seqlab.inference.graphs.scores import GraphScores
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.inference.graphs.methods import (
        GraphInference,
        GraphMarginals,
        RelaxedLabelings,
        labeling_scores,
    )

__getattr__, __dir__ = import_on_use(
    __name__,
    {"methods": ("GraphInference", "GraphMarginals", "RelaxedLabelings", "labeling_scores")},
)

__all__ = [
    "GraphInference",
    "GraphLayout",
    "GraphMarginals",
    "GraphScores",
    "RelaxedLabelings",
    "labeling_scores",
]
