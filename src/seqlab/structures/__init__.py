"""Structures: scores from weights, and the interface between learners and inference."""

from typing import TYPE_CHECKING

from seqlab.structures.losses import hamming_loss, miss_costs
from seqlab.structures.online import OnlineWeights
from seqlab.structures.partial_labels import PartialLabels
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.structures.pair_sums import PairSums, RowScores
    from seqlab.structures.protocol import BeamOptions, BoundStructure, Structure
    from seqlab.structures.sources import FunctionSource, KernelSource, ScoreSource

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "pair_sums": ("PairSums", "RowScores"),
        "protocol": ("BeamOptions", "BoundStructure", "Structure"),
        "sources": ("FunctionSource", "KernelSource", "ScoreSource"),
    },
)

__all__ = [
    "BeamOptions",
    "BoundStructure",
    "FunctionSource",
    "KernelSource",
    "OnlineWeights",
    "PairSums",
    "PartialLabels",
    "RowScores",
    "ScoreSource",
    "Structure",
    "hamming_loss",
    "miss_costs",
]
