"""Objectives to weights: solvers that know nothing of sequences."""

from seqlab.optim.lbfgs_solver import lbfgs
from seqlab.optim.owlqn_solver import owlqn
from seqlab.optim.state import FitState, Objective

__all__ = ["FitState", "Objective", "lbfgs", "owlqn"]
