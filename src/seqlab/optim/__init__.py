"""Solvers, which minimise an objective and do not depend on sequences."""

from seqlab.optim.bundle import Bundle
from seqlab.optim.lbfgs_solver import lbfgs
from seqlab.optim.owlqn_solver import owlqn
from seqlab.optim.pairwise_steps import solve_plane_dual
from seqlab.optim.proximal_solver import proximal
from seqlab.optim.state import FitState, Objective

__all__ = [
    "Bundle",
    "FitState",
    "Objective",
    "lbfgs",
    "owlqn",
    "proximal",
    "solve_plane_dual",
]
