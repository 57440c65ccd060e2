"""Gradient tree boosting of structured models."""

from seqlab.learning.boosting.binned import BinnedRows, Bins
from seqlab.learning.boosting.boosting import Boosting
from seqlab.learning.boosting.ensemble import TreeEnsemble
from seqlab.learning.boosting.growers import FeatureTreeGrower, GrownTree, TreeGrower

__all__ = [
    "BinnedRows",
    "Bins",
    "Boosting",
    "FeatureTreeGrower",
    "GrownTree",
    "TreeEnsemble",
    "TreeGrower",
]
