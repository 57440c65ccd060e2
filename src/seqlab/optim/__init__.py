"""Objectives to weights: solvers that know nothing of sequences."""

from seqlab.optim.lbfgs_solver import lbfgs
from seqlab.optim.monitor import Monitor
from seqlab.optim.owlqn_solver import owlqn
from seqlab.optim.state import Objective, SolverState

__all__ = ["Monitor", "Objective", "SolverState", "lbfgs", "owlqn"]
