"""Data to objectives: what trains a structure, and the driver of everything that iterates."""

from seqlab.learning.driver import FitResult, run_fit, unchanged_on_failure
from seqlab.learning.monitor import Monitor

__all__ = ["FitResult", "Monitor", "run_fit", "unchanged_on_failure"]
