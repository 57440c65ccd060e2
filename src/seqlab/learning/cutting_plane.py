"""The 1-slack cutting-plane method for max-margin training (Joachims, Finley & Yu 2009).

All samples share one slack. A plane is the sum over all samples of the labelings of highest ``h``; it bounds
the sum of the slacks from below, linearly in ``w``. Each iteration adds the plane of the current model and
solves the problem with the planes so far, a quadratic program over a simplex. Its value is the dual
objective.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seqlab.learning.margin import to_state
from seqlab.optim import Bundle, FitState
from seqlab.structures.margins import DualValues, MarginModel
from seqlab.utils.linalg import dot

# Accuracy of the quadratic program, as a share of the accuracy asked for.
QP_SHARE = 0.1


class OneSlackCuttingPlane:
    """The 1-slack cutting-plane method.

    Parameters
    ----------
    model : MarginModel
    tol : float
        Relative duality gap at which training stops.
    """

    def __init__(self, model: MarginModel, *, tol: float) -> None:
        self.model, self.tol = model, tol

    def states(self) -> Iterator[FitState]:
        """Yield a state after each new plane; the point is the model with the lowest primal so far."""
        model, limits = self.model, self.model.problem.limits
        best, lowest = np.zeros_like(model.vector()), np.inf
        model.set(best, best)
        bundle = Bundle(1, best.size, np.ones(1))
        while True:
            found = model.find_violators()
            primal = 0.5 * model.squared_norm() + float(dot(limits, found.slack))
            if primal < lowest:
                best, lowest = model.vector(), primal
            values = DualValues(lowest, bundle.dual, limits * found.slack)
            state = to_state(model, values, self.tol, bundle.n_planes)
            state.point = best
            yield state
            plane = model.total(found.labels, limits * found.scales)
            bundle.add(0, plane, float(dot(limits, found.losses)), model.image(plane))
            bundle.solve(QP_SHARE * max(self.tol, 1e-12))
            model.set(bundle.w)
