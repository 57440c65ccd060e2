"""Solvers, which minimise an objective and do not depend on sequences."""

from typing import TYPE_CHECKING

from seqlab.optim.lbfgs_solver import lbfgs
from seqlab.optim.owlqn_solver import owlqn
from seqlab.optim.proximal_solver import proximal
from seqlab.optim.state import FitState, Objective
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.optim.bundle import Bundle
    from seqlab.optim.pairwise_steps import solve_plane_dual

__getattr__ = import_on_use(
    __name__, {"bundle": ("Bundle",), "pairwise_steps": ("solve_plane_dual",)}
)

__all__ = [
    "Bundle",
    "FitState",
    "Objective",
    "lbfgs",
    "owlqn",
    "proximal",
    "solve_plane_dual",
]
