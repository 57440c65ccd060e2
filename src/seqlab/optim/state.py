"""What a solver is given and what it gives back.

A solver is a generator of `SolverState`: one per full iteration, the starting point first. Whoever
drives it may stop at any state, report progress, or be interrupted: the last state received is
always a complete one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# Distance from the optimum that counts as none, whatever the objective: labels of one kind leave it at zero.
NEGLIGIBLE = 1e-12


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
        Estimate of ``objective - optimum`` (see `StoppingRule`); ``inf`` in the first iterations.
    bound : float
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
    bound: float
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
    """The stopping rule of the batch solvers: stop when the optimum is within ``tol``, relatively.

    How far the optimum is, is known in two ways. The *bound* ``|g|^2 / (2 mu)`` is certain where the
    objective is strongly convex, and often a hundred times too large. The *estimate* is what the last
    iterations have gained, a quarter of all so far and at least ``period``, times ``safety``: quasi-Newton
    methods converge about linearly, and the longer a run takes, the longer its tail. The smaller of the two
    is the ``gap`` that ``tol`` is compared with.

    Parameters
    ----------
    tol : float
    strong_convexity : float
        Lower bound on the curvature, 0 where none is known.
    period : int
        Iterations to look back on, at least.
    safety : float
        What their gain is multiplied with.
    past : sequence of float
        Values of earlier iterations, where a run goes on.
    """

    SHARE = 0.25

    def __init__(
        self,
        tol: float,
        strong_convexity: float,
        *,
        period: int = 3,
        safety: float = 2.5,
        past: Sequence[float] = (),
    ) -> None:
        self.tol = tol
        self.period = period
        self.safety = safety
        self.strong_convexity = strong_convexity
        self._values: list[float] = list(past)

    def state(self, w: Vector, objective: float, norm: float, n_evaluations: int) -> SolverState:
        """The state of an iteration, with gap, bound and whether to stop."""
        self._values.append(objective)
        bound = certified_gap(norm, self.strong_convexity)
        gap = bound
        period = max(self.period, int(self.SHARE * len(self._values)))
        if len(self._values) > period:
            gap = min(gap, self.safety * (self._values[-1 - period] - objective))
        converged = gap <= max(self.tol * abs(objective), NEGLIGIBLE)
        return SolverState(w, objective, norm, gap, bound, n_evaluations, converged)

    def stuck(self, state: SolverState) -> SolverState:
        """The state where no step decreases the value any more: the optimum, or a dead end.

        It counts as the optimum where floating point allows no more, that is where the last iterations
        gained next to nothing.
        """
        recent = self._values[-1 - self.period :]
        at_rest = len(recent) > self.period and recent[0] - recent[-1] <= 1e-9 * abs(recent[-1])
        flat = state.gradient_norm <= NEGLIGIBLE * max(abs(self._values[0]), 1.0)
        state.converged = at_rest or flat or state.bound <= 1e-6 * abs(state.objective)
        if not state.converged:
            state.message = "no step along the gradient decreases the objective"
        return state
