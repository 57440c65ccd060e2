"""Solvers, which minimise an objective and do not depend on sequences."""

from typing import TYPE_CHECKING

from seqlab.optim.state import FitState, Objective
from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.optim.bundle import Bundle
    from seqlab.optim.lbfgs_solver import lbfgs
    from seqlab.optim.owlqn_solver import owlqn
    from seqlab.optim.pairwise_steps import solve_plane_dual
    from seqlab.optim.preconditioner import BlockPreconditioner, Preconditioner
    from seqlab.optim.proximal_solver import proximal

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "bundle": ("Bundle",),
        "lbfgs_solver": ("lbfgs",),
        "owlqn_solver": ("owlqn",),
        "pairwise_steps": ("solve_plane_dual",),
        "preconditioner": ("BlockPreconditioner", "Preconditioner"),
        "proximal_solver": ("proximal",),
    },
)

__all__ = [
    "BlockPreconditioner",
    "Bundle",
    "FitState",
    "Objective",
    "Preconditioner",
    "lbfgs",
    "owlqn",
    "proximal",
    "solve_plane_dual",
]
