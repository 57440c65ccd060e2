"""Learners that train a structure, and the driver of all iterative fits."""

from typing import TYPE_CHECKING

from seqlab.learning.driver import FitResult, run_fit, unchanged_on_failure
from seqlab.learning.early_stopping import EarlyStopping, split_off_validation
from seqlab.learning.monitor import Monitor, ProgressBar
from seqlab.learning.progress import FitProgress
from seqlab.learning.training_data import TrainingData
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.learning.class_weight import (
        StepWeightedLikelihood,
        class_weights,
        step_class_weights,
    )
    from seqlab.learning.curvature import LikelihoodCurvature
    from seqlab.learning.cutting_plane import MAX_GROUPS, CuttingPlane
    from seqlab.learning.likelihood import Likelihood, PenalisedObjective
    from seqlab.learning.margin import BlockAscent, SubgradientDescent
    from seqlab.learning.perceptron import Perceptron
    from seqlab.learning.warm_start import WarmStart, is_worthwhile

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "class_weight": ("StepWeightedLikelihood", "class_weights", "step_class_weights"),
        "cutting_plane": ("MAX_GROUPS", "CuttingPlane"),
        "curvature": ("LikelihoodCurvature",),
        "likelihood": ("Likelihood", "PenalisedObjective"),
        "margin": ("BlockAscent", "SubgradientDescent"),
        "perceptron": ("Perceptron",),
        "warm_start": ("WarmStart", "is_worthwhile"),
    },
)

__all__ = [
    "MAX_GROUPS",
    "BlockAscent",
    "CuttingPlane",
    "EarlyStopping",
    "FitProgress",
    "FitResult",
    "Likelihood",
    "LikelihoodCurvature",
    "Monitor",
    "PenalisedObjective",
    "Perceptron",
    "ProgressBar",
    "StepWeightedLikelihood",
    "SubgradientDescent",
    "TrainingData",
    "WarmStart",
    "class_weights",
    "is_worthwhile",
    "run_fit",
    "split_off_validation",
    "step_class_weights",
    "unchanged_on_failure",
]
