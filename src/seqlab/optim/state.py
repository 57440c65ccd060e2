"""What a solver is given and what it gives back.

Everything that iterates is a generator of `FitState`: one per full iteration. Whoever drives it may stop
at any state, report progress, or be interrupted: the last state received is always a complete one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# An absolute distance from the optimum that always counts as converged: with a single label the optimum is 0,
# and no relative distance would ever be small.
NEGLIGIBLE = 1e-12


class Objective(Protocol):
    """A differentiable function to be minimised.

    ``strong_convexity`` is a known lower bound on the curvature (0 if none is known): with it a
    gradient norm certifies how far the optimum can be, ``f(w) - f* <= |g|^2 / (2 mu)``.
    """

    n_params: int
    strong_convexity: float

    def loss_gradient(self, w: Vector) -> tuple[float, Vector]:
        """Value and gradient at ``w``."""
        ...


@dataclass(slots=True)
class FitState:
    """One full iteration of any iterative fit.

    Parameters
    ----------
    point : Any
        What the iteration has reached: a weight vector, parameters, or an object that holds them. After an
        interrupt the model stores this: it must still be that of the last full iteration.
    objective : float
        What is minimised, penalties included; for a learner without one, its number of errors.
    gap : float or None
        Distance of the objective from the optimum, estimated or certified; None if the solver has no
        notion of it.
    converged : bool
        Whether the stopping rule holds here.
    message : str
        Why the solver stopped before its goal, if it did.
    info : dict of str to float
        Further values, recorded in the history: gradient norm, certified bound, number of updates.
    """

    point: Any
    objective: float
    gap: float | None = None
    converged: bool = False
    message: str = ""
    info: dict[str, float] = field(default_factory=dict)


def certified_gap(gradient_norm: float, strong_convexity: float) -> float:
    """Bound on the distance of a value from the optimum: ``|g|^2 / (2 mu)``."""
    if gradient_norm == 0.0:
        return 0.0
    if strong_convexity <= 0.0:
        return float("inf")
    return gradient_norm * gradient_norm / (2.0 * strong_convexity)


class StoppingRule:
    """The stopping rule of the batch solvers: stop if the optimum is within ``tol``, relatively.

    Two quantities tell how far the optimum is. The *bound* ``|g|^2 / (2 mu)`` is certain if the
    objective is strongly convex, and often a hundred times too large. The *estimate* is what the last
    iterations have gained, a quarter of all so far and at least ``period``, times ``safety``: quasi-Newton
    methods converge about linearly, and the longer a run takes, the longer its tail. The smaller of the two
    is the ``gap`` that ``tol`` is compared with.

    Parameters
    ----------
    tol : float
    strong_convexity : float
        Lower bound on the curvature, 0 if none is known.
    period : int
        Smallest number of iterations to look back.
    safety : float
        Factor on the gain of these iterations.
    """

    SHARE = 0.25

    def __init__(
        self, tol: float, strong_convexity: float, *, period: int = 3, safety: float = 2.5
    ) -> None:
        self.tol = tol
        self.period = period
        self.safety = safety
        self.strong_convexity = strong_convexity
        self._values: list[float] = []

    def state(self, w: Vector, objective: float, gradient_norm: float) -> FitState:
        """Return the state of an iteration, with gap, bound and whether to stop."""
        self._values.append(objective)
        bound = certified_gap(gradient_norm, self.strong_convexity)
        gap = bound
        period = max(self.period, int(self.SHARE * len(self._values)))
        if len(self._values) > period:
            gap = min(gap, self.safety * (self._values[-1 - period] - objective))
        converged = gap <= max(self.tol * abs(objective), NEGLIGIBLE)
        info = {"gradient_norm": gradient_norm, "bound": bound}
        return FitState(w, objective, gap, converged, info=info)

    def stuck(self, state: FitState) -> FitState:
        """Return the state if no step decreases the value any more: the optimum, or a failure.

        It counts as the optimum if the last iterations gained next to nothing, which is all that floating
        point allows.
        """
        recent = self._values[-1 - self.period :]
        stationary = len(recent) > self.period and recent[0] - recent[-1] <= 1e-9 * abs(recent[-1])
        flat = state.info["gradient_norm"] <= NEGLIGIBLE * max(abs(self._values[0]), 1.0)
        certified = state.info["bound"] <= 1e-6 * abs(state.objective)
        state.converged = stationary or flat or certified
        if not state.converged:
            state.message = "no step along the gradient decreases the objective"
        return state
