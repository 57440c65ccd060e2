"""What a solver is given and what it gives back.

A solver is a generator of `SolverState`: one per full iteration, the starting point first. Whoever
drives it may stop at any state, report progress, or be interrupted: the last state received is
always a complete one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Objective(Protocol):
    """A differentiable function to be minimised.

    ``strong_convexity`` is a known lower bound on the curvature (0 where none is known): with it a
    gradient norm certifies how far the optimum can be, ``f(w) - f* <= |g|^2 / (2 mu)``.
    """

    n_params: int
    strong_convexity: float

    def loss_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Value and gradient at ``w``."""
        ...


@dataclass(slots=True)
class SolverState:
    """One full iteration.

    Parameters
    ----------
    w : array of shape (n_params,)
        The point reached.
    objective : float
        Its value, penalties included.
    gradient_norm : float
        Euclidean norm of the gradient (of the smallest subgradient where there is an L1 penalty).
    gap : float
        Certified bound on ``objective - optimum``; ``inf`` where none is known.
    n_evaluations : int
        Calls of ``loss_gradient`` so far.
    converged : bool
        Whether the stopping rule holds here.
    message : str
        Why the solver stopped, once it has.
    """

    w: Vector
    objective: float
    gradient_norm: float
    gap: float
    n_evaluations: int
    converged: bool = False
    message: str = ""


def certified_gap(gradient_norm: float, strong_convexity: float) -> float:
    """Bound on the distance of a value from the optimum: ``|g|^2 / (2 mu)``."""
    if gradient_norm == 0.0:
        return 0.0
    if strong_convexity <= 0.0:
        return float("inf")
    return gradient_norm * gradient_norm / (2.0 * strong_convexity)


class StoppingRule:
    """The one stopping rule of the batch solvers: relative distance from the optimum below ``tol``.

    Where the objective is strongly convex the distance is certified by the gradient. Elsewhere the
    rule asks that both the gradient has shrunk to ``tol`` of its first norm and ten iterations
    together improved the value by less than ``tol`` of it.
    """

    PERIOD = 10

    def __init__(self, tol: float, strong_convexity: float) -> None:
        self.tol = tol
        self.strong_convexity = strong_convexity
        self._first_norm: float | None = None
        self._values: list[float] = []

    def __call__(self, objective: float, gradient_norm: float) -> bool:
        """Whether to stop at a point with this value and gradient norm."""
        if self._first_norm is None:
            self._first_norm = gradient_norm
        self._values.append(objective)
        if gradient_norm == 0.0:
            return True
        scale = max(abs(objective), np.finfo(np.float64).tiny)
        if self.strong_convexity > 0.0:
            return certified_gap(gradient_norm, self.strong_convexity) <= self.tol * scale
        if gradient_norm > self.tol * max(1.0, self._first_norm):
            return False
        if len(self._values) <= self.PERIOD:
            return gradient_norm <= self.tol * self.tol * max(1.0, self._first_norm)
        return self._values[-1 - self.PERIOD] - objective <= self.tol * scale
