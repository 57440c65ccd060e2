"""Structures: scores from weights, and the interface between learners and inference."""

from typing import TYPE_CHECKING

from seqlab.structures.losses import hamming_loss, miss_costs
from seqlab.structures.online import OnlineWeights
from seqlab.structures.partial_labels import PartialLabels
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.structures.pair_sums import PairSums, RowScores
    from seqlab.structures.protocol import BoundStructure, Structure
    from seqlab.structures.sources import FunctionSource, KernelSource, ScoreSource
    from seqlab.structures.values import BeamOptions, LabelCurvature, SquareShares

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "pair_sums": ("PairSums", "RowScores"),
        "protocol": ("BoundStructure", "Structure"),
        "sources": ("FunctionSource", "KernelSource", "ScoreSource"),
        "values": ("BeamOptions", "LabelCurvature", "SquareShares"),
    },
)

__all__ = [
    "BeamOptions",
    "BoundStructure",
    "FunctionSource",
    "KernelSource",
    "LabelCurvature",
    "OnlineWeights",
    "PairSums",
    "PartialLabels",
    "RowScores",
    "ScoreSource",
    "SquareShares",
    "Structure",
    "hamming_loss",
    "miss_costs",
]
