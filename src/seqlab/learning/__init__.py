"""Learners that train a structure, and the driver of all iterative fits."""

from seqlab.learning.driver import FitResult, run_fit, unchanged_on_failure
from seqlab.learning.likelihood import Likelihood, PenalisedObjective
from seqlab.learning.monitor import Monitor
from seqlab.learning.perceptron import Perceptron
from seqlab.learning.training_data import TrainingData

__all__ = [
    "FitResult",
    "Likelihood",
    "Monitor",
    "PenalisedObjective",
    "Perceptron",
    "TrainingData",
    "run_fit",
    "unchanged_on_failure",
]
