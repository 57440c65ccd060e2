"""Cutting planes with a stabilised centre, for any objective that is bounded from below by planes.

    minimise  |w|^2 / 2 + sum_g limit_g slack_g(w)

Each iteration evaluates the objective at a point, which yields planes that bound the slacks of the groups
from below, and solves the problem with the planes so far, a quadratic program. Its value is the dual
objective. The next point is not the solution of the program, which may be far off as long as there are few
planes, but a point between it and the best point so far (Ben-Ameur & Neto 2007). For the same reason the
program is solved only as precisely as the duality gap deserves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.margin import check_objectives
from seqlab.optim import Bundle, FitState

Floats = NDArray[np.float64]

# Share of the way from the best point so far to the solution of the quadratic program. It is doubled after an
# iteration without a new plane, in which the program described the objective exactly.
STEP = 0.1
# Accuracy of the quadratic program, as a share of the relative duality gap. The share is divided by 4 after
# an iteration in which the dual rose by less than RISE times the gap.
QP_SHARE = 0.1
RISE = 1e-3


def descend_on_planes(
    bundle: Bundle,
    evaluate: Callable[[Floats], tuple[float, float]],
    *,
    tol: float,
    count: str = "n_planes",
) -> Iterator[FitState]:
    """Yield a state after each evaluation; the point is the one with the lowest objective so far.

    Parameters
    ----------
    bundle : Bundle
        Without planes.
    evaluate : function
        Takes a point, adds planes to the bundle, and returns the objective and the squared norm of the point.
    tol : float
        Relative duality gap at which the states are marked as converged.
    count : str, default="n_planes"
        Name of the number of planes in ``info``.
    """
    point = best = np.zeros_like(bundle.w)
    lowest, step, share = np.inf, STEP, QP_SHARE
    while True:
        n_planes = float(bundle.n_planes)
        primal, squared_norm = evaluate(point)
        if not primal >= lowest:
            best, lowest = point, primal
        check_objectives(lowest, bundle.dual, squared_norm)
        gap = max(lowest - bundle.dual, 0.0)
        converged = gap <= max(tol * abs(lowest), 1e-12)
        info = {"dual": bundle.dual, count: n_planes}
        yield FitState(best, lowest, gap, converged, info=info)
        dual = bundle.dual
        n_new = bundle.solve(max(share * gap / max(abs(lowest), 1e-300), 1e-13))
        share = QP_SHARE if bundle.dual - dual > RISE * gap else 0.25 * share
        step = STEP if n_new > 0 else min(2.0 * step, 1.0)
        point = best + step * (bundle.w - best)
