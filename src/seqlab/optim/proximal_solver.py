"""Proximal quasi-Newton method, for a smooth objective plus ``sum c1 |w|``.

Each iteration minimises a quadratic model of the smooth part plus the penalty, over the weights that are not
optimal at zero, and searches along the step to that minimum (Lee, Sun & Saunders 2014; Becker, Fadili & Ochs
2019). OWL-QN ignores the penalty when it computes a direction and corrects signs afterwards, which spoils the
direction; here the model includes the penalty. It needs a half to a fifth of OWL-QN's iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from seqlab.data.errors import NumericalError
from seqlab.optim._model_kernels import (
    least_subgradient,
    linear_change,
    separable_decrease,
    take_step,
)
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.quadratic_model import QuadraticModel
from seqlab.optim.state import (
    CurvatureModel,
    FitState,
    Objective,
    StoppingRule,
    Vector,
)
from seqlab.utils.linalg import dot

SUFFICIENT_DECREASE = 1e-4
MAX_TRIALS = 40
# Factor of the decrement of slow directions.
CAUTION = 3.0
# The solver ends if the objective has not decreased in this number of iterations: rounding errors prevent
# any further decrease.
MAX_FLAT = 20


def proximal(
    objective: Objective,
    w: Vector,
    *,
    c1: Vector,
    max_iter: int,
    tol: float,
    memory: int = 6,
    preconditioner: Preconditioner | None = None,
    curvature: CurvatureModel | None = None,
    project: Callable[[Vector, Vector, Vector], float] | None = None,
    n_jobs: int | None = None,
) -> Iterator[FitState]:
    """Yield the states of the proximal quasi-Newton method; parameters as in `owlqn`.

    ``project`` moves a point, in place, along directions in which only the penalty changes, to where that is
    least. It receives the point, the gradient, which it updates, and c1, and returns the decrease. The model,
    which has much curvature along parts of these directions, would move there slowly.
    """
    is_reliable = curvature is None or curvature.is_reliable
    rule = StoppingRule(tol, objective.strong_convexity, confirm=True, only_bound=not is_reliable)
    smooth, gradient = objective.loss_gradient(w)
    value = smooth + float(dot(c1, np.abs(w)))
    if not np.isfinite(value):
        raise NumericalError("the objective is not finite at the starting point")
    if project is not None:
        w, gradient = w.copy(), gradient.copy()
        value -= project(w, gradient, c1)
    norm = subgradient_norm(w, gradient, c1)
    if preconditioner is None:
        preconditioner = Preconditioner(np.full(w.size, max(norm, 1e-300)))
    model = QuadraticModel(preconditioner, memory, n_jobs=n_jobs)
    direction = np.empty_like(w)
    decrement = model.minimise(w, gradient, c1, direction)
    state = rule.state(w, value, norm, decrement, slow_decrement(w, gradient, c1, curvature))
    yield state

    n_done, n_flat = 0, 0
    for _ in range(max_iter):
        if state.converged:
            return
        if n_flat >= MAX_FLAT:
            yield rule.stuck(state)
            return
        expected = float(linear_change(w, gradient, c1, direction))
        step, improved = 1.0, False
        for _trial in range(MAX_TRIALS):
            w_new = np.empty_like(w)
            penalty = float(take_step(w, direction, step, c1, w_new))
            smooth_new, gradient_new = objective.loss_gradient(w_new)
            value_new = smooth_new + penalty
            if np.isfinite(value_new) and value_new <= (
                value + SUFFICIENT_DECREASE * step * expected + 1e-14 * abs(value)
            ):
                improved = True
                break
            step *= 0.5
        if not improved or not np.any(w_new != w):
            if model.is_empty and not model.has_block:
                yield rule.stuck(state)
                return
            if model.is_empty:  # a block may have far too little curvature in some directions
                model.remove_blocks()
            model.clear()
            model.minimise(w, gradient, c1, direction)
            continue
        if project is not None:  # copies, because the objective keeps its last results
            w_new, gradient_new = w_new.copy(), gradient_new.copy()
            value_new -= project(w_new, gradient_new, c1)
        model.update(w, w_new, gradient, gradient_new)
        n_flat = n_flat + 1 if value_new >= value else 0
        w, value, gradient = w_new, value_new, gradient_new
        norm = subgradient_norm(w, gradient, c1)
        n_done += 1
        renewed = None if curvature is None else curvature.renew(n_done, w, gradient)
        if renewed is not None:
            model.replace_preconditioner(renewed)
        decrement = model.minimise(w, gradient, c1, direction)
        state = rule.state(w, value, norm, decrement, slow_decrement(w, gradient, c1, curvature))
        if curvature is not None and rule.needs_check(state):
            renewed = curvature.check(w)
            if renewed is not None:
                model.clear(renewed)
                decrement = model.minimise(w, gradient, c1, direction, exact=True)
                slow = slow_decrement(w, gradient, c1, curvature) or 0.0
                decrement = max(decrement, slow)
                if decrement > rule.allowed_gap(value):
                    rule.reject(state, decrement)
        yield state


def slow_decrement(
    w: Vector, gradient: Vector, c1: Vector, curvature: CurvatureModel | None
) -> float | None:
    """Return the decrease predicted by the curvature of slow directions; None if that is not known."""
    if curvature is None or curvature.slow is None:
        return None
    return CAUTION * float(separable_decrease(w, gradient, c1, curvature.slow))


def subgradient_norm(w: Vector, gradient: Vector, c1: Vector) -> float:
    """Return the norm of the smallest subgradient of ``f(w) + sum c1 |w|``."""
    return float(np.sqrt(least_subgradient(w, gradient, c1)))
