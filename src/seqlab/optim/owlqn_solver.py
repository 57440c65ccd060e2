"""OWL-QN, for a smooth objective plus ``c1 * sum |w|``.

Orthant-wise limited-memory quasi-Newton (Andrew & Gao 2007). Inside one orthant the L1 term is
linear, so L-BFGS pairs are taken from the smooth part, directions from the pseudo-gradient (the
subgradient of smallest norm), and every trial point is projected to the orthant in which the step
begins. Weights that would change sign become exactly zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seqlab.data.errors import NumericalError
from seqlab.optim.history_matrix import InverseHessian
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.state import CurvatureModel, FitState, Objective, StoppingRule, Vector
from seqlab.utils.linalg import dot

SUFFICIENT_DECREASE = 1e-4
MAX_TRIALS = 40
# Factor of the decrease in the last iterations and in the last quarter, and the factor if features have
# other values than 0 and 1.
SAFETY, UNEVEN_SAFETY = 3.0, 10.0


def owlqn(
    objective: Objective,
    w: Vector,
    *,
    c1: Vector,
    max_iter: int,
    tol: float,
    memory: int = 6,
    preconditioner: Preconditioner | None = None,
    curvature: CurvatureModel | None = None,
    n_jobs: int | None = None,
) -> Iterator[FitState]:
    """Yield the states of OWL-QN, from the starting point to convergence.

    Parameters
    ----------
    objective : Objective
        The smooth part: value and gradient.
    w : array of shape (n_params,)
        Starting point.
    c1 : array of shape (n_params,)
        L1 penalty of each weight (0 for an unpenalised weight).
    max_iter, tol, memory, preconditioner, curvature, n_jobs
        As in `lbfgs`.
    """
    # Stricter than for L-BFGS: weights that become zero or non-zero make convergence uneven and slow.
    safety = SAFETY if curvature is None or curvature.is_even else UNEVEN_SAFETY
    is_reliable = curvature is None or curvature.is_reliable
    rule = StoppingRule(
        tol,
        objective.strong_convexity,
        period=8,
        safety=safety,
        late_safety=safety,
        tail_safety=safety,
        only_bound=not is_reliable,
    )
    inverse_hessian = InverseHessian(w.size, memory, preconditioner, n_jobs=n_jobs)
    smooth, gradient = objective.loss_gradient(w)
    value = smooth + float(dot(c1, np.abs(w)))
    if not np.isfinite(value):
        raise NumericalError("the objective is not finite at the starting point")
    pseudo = pseudo_gradient(w, gradient, c1)
    direction = np.empty_like(w)
    norm = float(np.sqrt(dot(pseudo, pseudo)))
    state = rule.state(w, value, norm, inverse_hessian.descend(pseudo, direction))
    yield state
    for _ in range(max_iter):
        if state.converged:
            return
        direction[np.sign(direction) != -np.sign(pseudo)] = 0.0  # keep only descent components
        orthant = np.where(w != 0.0, np.sign(w), -np.sign(pseudo))
        step = 1.0 if inverse_hessian.is_scaled else min(1.0, 1.0 / norm)
        improved = False
        for _trial in range(MAX_TRIALS):
            w_new = w + step * direction
            w_new[np.sign(w_new) == -orthant] = 0.0
            smooth_new, gradient_new = objective.loss_gradient(w_new)
            value_new = smooth_new + float(dot(c1, np.abs(w_new)))
            expected = float(dot(pseudo, w_new - w))
            if np.isfinite(value_new) and value_new <= (
                value + SUFFICIENT_DECREASE * expected + 1e-14 * abs(value)
            ):
                improved = True
                break
            step *= 0.5
        if not improved or not np.any(w_new != w):
            if inverse_hessian.is_empty:
                yield rule.stuck(state)
                return
            inverse_hessian.clear()
            inverse_hessian.descend(pseudo, direction)
            continue
        inverse_hessian.update(w, w_new, gradient, gradient_new)
        w, value, gradient = w_new, value_new, gradient_new
        pseudo = pseudo_gradient(w, gradient, c1)
        norm = float(np.sqrt(dot(pseudo, pseudo)))
        state = rule.state(w, value, norm, inverse_hessian.descend(pseudo, direction))
        if curvature is not None and rule.needs_check(state):
            diagonal = curvature.check(w)
            if diagonal is not None:
                inverse_hessian.clear(diagonal)
                decrement = inverse_hessian.descend(pseudo, direction)
                if decrement > rule.allowed_gap(value):
                    rule.reject(state, decrement)
        yield state


def pseudo_gradient(w: Vector, gradient: Vector, c1: Vector) -> Vector:
    """Return the smallest subgradient of ``f(w) + sum c1 |w|``: 0 for a coordinate that is optimal at 0."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - c1, 0.0)
    return np.where(w != 0.0, gradient + c1 * np.sign(w), at_zero)
