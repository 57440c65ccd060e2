"""Gradient tree boosting of structured models."""

from seqlab.learning.boosting.binned import BinnedRows, Bins
from seqlab.learning.boosting.boosting import Boosting
from seqlab.learning.boosting.ensemble import TreeEnsemble
from seqlab.learning.boosting.growers import MIN_GAIN, FeatureTreeGrower, GrownTrees, TreeGrower
from seqlab.learning.boosting.languages import (
    DescribedTrees,
    LanguageTreeGrower,
    NodeTests,
    TreeLanguage,
)

__all__ = [
    "MIN_GAIN",
    "BinnedRows",
    "Bins",
    "Boosting",
    "DescribedTrees",
    "FeatureTreeGrower",
    "GrownTrees",
    "LanguageTreeGrower",
    "NodeTests",
    "TreeEnsemble",
    "TreeGrower",
    "TreeLanguage",
]
