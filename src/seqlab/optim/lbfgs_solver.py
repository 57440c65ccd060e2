"""L-BFGS, for smooth objectives.

Limited-memory quasi-Newton (Liu & Nocedal 1989) with a weak-Wolfe line search. Cost per iteration:
one or two evaluations of the objective and ``4 m n`` multiplications for memory ``m`` and ``n``
parameters.

`scipy.optimize.minimize` is not used because its results depend on the number of BLAS threads, and
because it cannot be run one iteration at a time, as progress bars and interrupts require.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from seqlab.data.errors import NumericalError
from seqlab.optim.history_matrix import InverseHessian
from seqlab.optim.line_search import weak_wolfe
from seqlab.optim.lower_bound import LowerBound
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.state import (
    CurvatureModel,
    FitState,
    Objective,
    StoppingRule,
    Vector,
)
from seqlab.utils.linalg import dot


def lbfgs(
    objective: Objective,
    w: Vector,
    *,
    max_iter: int,
    tol: float,
    memory: int = 6,
    preconditioner: Preconditioner | None = None,
    curvature: CurvatureModel | None = None,
    project: Callable[[Vector], None] | None = None,
    n_jobs: int | None = None,
) -> Iterator[FitState]:
    """Yield the states of L-BFGS, from the starting point to convergence.

    Parameters
    ----------
    objective : Objective
        Value and gradient.
    w : array of shape (n_params,)
        Starting point.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Relative distance from the optimum at which to stop (see `StoppingRule`).
    memory : int
        Number of pairs to keep.
    preconditioner : Preconditioner, optional
        Approximate Hessian.
    curvature : CurvatureModel, optional
        Renews the preconditioner of a long run, and is asked before a point is accepted as the optimum (see
        `StoppingRule`).
    project : callable, optional
        Removes, in place, the part of a vector in directions in which the optimum is known to be zero.
        The starting point must not have such a part; it is removed from every step.
    n_jobs : int, optional
        Number of threads for long vectors; the result does not depend on it.
    """
    # The late factor counts if nothing is known of slow directions.
    rule = StoppingRule(
        tol,
        objective.strong_convexity,
        late_safety=4.5,
        divide_bound=curvature is not None and curvature.is_even,
        confirm=curvature is not None and not curvature.is_even,
        only_bound=curvature is not None and not curvature.is_reliable,
    )
    inverse_hessian = InverseHessian(w.size, memory, preconditioner, n_jobs=n_jobs)
    value, gradient = objective.loss_gradient(w)
    if not np.isfinite(value):
        raise NumericalError("the objective is not finite at the starting point")
    direction = np.empty_like(w)

    def descend() -> float:
        decrement = inverse_hessian.descend(gradient, direction)
        if project is not None:
            project(direction)
        return (
            decrement if curvature is None else max(decrement, curvature.rough_decrement(gradient))
        )

    norm = float(np.sqrt(dot(gradient, gradient)))
    decrement = descend()
    lower = LowerBound(objective.strong_convexity) if objective.strong_convexity > 0.0 else None
    if lower is not None:
        lower.restart(value, w, gradient)
    state = rule.state(w, value, norm, decrement, _slow_decrement(gradient, curvature))
    yield state
    n_done = 0
    for _ in range(max_iter):
        if state.converged:
            return
        first_step = 1.0
        if inverse_hessian.is_empty:
            # Without curvature information the first step has at most unit length.
            first_step = inverse_hessian.first_step or min(1.0, 1.0 / norm)
        found = weak_wolfe(objective, w, value, gradient, direction, first_step)
        if found.step == 0.0:
            if inverse_hessian.is_empty:
                yield rule.stuck(state)
                return
            inverse_hessian.clear()
            descend()
            continue
        is_stored = inverse_hessian.update(w, found.w, gradient, found.gradient)
        w, value, gradient = found.w, found.objective, found.gradient
        if lower is not None and is_stored:
            products = inverse_hessian.difference_products(lower.strong_convexity)
            lower.add(value, w, gradient, products)
        elif lower is not None:
            lower.restart(value, w, gradient)
        norm = float(np.sqrt(dot(gradient, gradient)))
        n_done += 1
        renewed = None if curvature is None else curvature.renew(n_done, w, gradient)
        if renewed is not None:
            inverse_hessian.replace_preconditioner(renewed)
        decrement = descend()
        slow = _slow_decrement(gradient, curvature)
        lowest = None if lower is None else lower.value
        state = rule.state(w, value, norm, decrement, slow, lowest)
        if curvature is not None and rule.needs_check(state):
            renewed = curvature.check(w)
            if renewed is not None:
                inverse_hessian.clear(renewed)
                decrement = descend()
                decrement = max(decrement, curvature.slow_decrement(gradient) or 0.0)
                if decrement > rule.allowed_gap(value):
                    rule.reject(state, decrement)
        yield state


def _slow_decrement(gradient: Vector, curvature: CurvatureModel | None) -> float | None:
    return None if curvature is None else curvature.slow_decrement(gradient)
