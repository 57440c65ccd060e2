"""Cutting-plane methods for max-margin training (Tsochantaridis et al. 2005; Joachims, Finley & Yu 2009).

Samples are divided into groups, each with one slack: one group is the 1-slack method, a group for each
sample the n-slack method. A plane of a group is the sum over its samples of labelings of high ``h``; it
bounds the sum of their slacks from below, linearly in ``w``. Each iteration adds the planes of the current
model and solves the problem with the planes so far, a quadratic program. Its value is the dual objective.

The next model is not the solution of the program, which may be far off as long as there are few planes, but
a point between it and the best model so far (Ben-Ameur & Neto 2007). For the same reason the program is
solved only as precisely as the duality gap deserves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.margin import to_state
from seqlab.optim import Bundle, FitState
from seqlab.structures.margins import DualValues, MarginModel
from seqlab.utils.linalg import dot

# Groups of the method with several slacks: more make an iteration slower, fewer need more iterations.
MAX_GROUPS = 16
# Share of the way from the best model so far to the solution of the quadratic program. It is doubled after an
# iteration without a new plane, in which the program described the objective exactly.
STEP = 0.1
# Accuracy of the quadratic program, as a share of the relative duality gap. The share is divided by 4 after
# an iteration in which the dual rose by less than RISE times the gap.
QP_SHARE = 0.1
RISE = 1e-3


class CuttingPlane:
    """The cutting-plane method.

    Parameters
    ----------
    model : MarginModel
    tol : float
        Relative duality gap at which training stops.
    n_groups : int, default=1
        Number of slacks; at most one for each sample.
    """

    def __init__(self, model: MarginModel, *, tol: float, n_groups: int = 1) -> None:
        self.model, self.tol = model, tol
        positive = np.flatnonzero(model.problem.limits > 0.0)
        n_groups = max(min(n_groups, positive.size), 1)
        self._groups = list(np.array_split(positive, n_groups))

    def states(self) -> Iterator[FitState]:
        """Yield a state after each iteration; the point is the model with the lowest primal so far."""
        model, limits = self.model, self.model.problem.limits
        best, lowest = np.zeros_like(model.vector()), np.inf
        step, share = STEP, QP_SHARE
        model.set(best, best)
        bundle = Bundle(len(self._groups), best.size, np.ones(len(self._groups)))
        while True:
            found = model.find_many_violators()
            slack = found[0].slack
            primal = 0.5 * model.squared_norm() + float(dot(limits, slack))
            if primal < lowest:
                best, lowest = model.vector(), primal
            gap = max(lowest - bundle.dual, 0.0)
            values = DualValues(lowest, bundle.dual, limits * slack)
            state = to_state(model, values, self.tol, bundle.n_planes)
            state.point = best
            yield state
            for one in found:
                for group, samples in enumerate(self._groups):
                    self._add_plane(bundle, group, one.labels, one.losses, one.scales, samples)
            dual = bundle.dual
            n_new = bundle.solve(max(share * gap / max(lowest, 1e-300), 1e-13))
            share = QP_SHARE if bundle.dual - dual > RISE * gap else 0.25 * share
            step = STEP if n_new > 0 else min(2.0 * step, 1.0)
            model.set(best + step * (bundle.w - best))

    def _add_plane(
        self,
        bundle: Bundle,
        group: int,
        labels: NDArray[np.int64],
        losses: NDArray[np.float64],
        scales: NDArray[np.float64],
        samples: NDArray[np.int64],
    ) -> None:
        """Add the plane of these labelings of the samples of a group, unless it is the zero plane."""
        limits = self.model.problem.limits
        if not losses[samples].any():
            return
        weights = np.zeros(limits.size)
        weights[samples] = limits[samples] * scales[samples]
        plane = self.model.total(labels, weights)
        loss = float(dot(limits[samples], losses[samples]))
        bundle.add(group, plane, loss, self.model.image(plane))
