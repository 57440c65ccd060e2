"""Cutting-plane methods for max-margin training (Tsochantaridis et al. 2005; Joachims, Finley & Yu 2009).

Samples are divided into groups, each with one slack: one group is the 1-slack method, a group for each
sample the n-slack method. A plane of a group is the sum over its samples of labelings of high ``h``; it
bounds the sum of their slacks from below, linearly in ``w``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.plane_descent import descend_on_planes
from seqlab.optim import Bundle, FitState
from seqlab.structures.margins import MarginModel
from seqlab.utils.linalg import dot

# Groups of the method with several slacks: more make an iteration slower, fewer need more iterations.
MAX_GROUPS = 16


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
        zero = np.zeros_like(model.vector())
        bundle = Bundle(len(self._groups), zero.size, np.ones(len(self._groups)))

        def evaluate(point: NDArray[np.float64]) -> tuple[float, float]:
            # The image of the zero vector is zero, too: it needs no kernel matrix.
            model.set(point, None if point.any() else point)
            found = model.find_many_violators()
            for one in found:
                for group, samples in enumerate(self._groups):
                    self._add_plane(bundle, group, one.labels, one.losses, one.scales, samples)
            squared_norm = model.squared_norm()
            return 0.5 * squared_norm + float(dot(limits, found[0].slack)), squared_norm

        return descend_on_planes(bundle, evaluate, tol=self.tol, count="n_updates")

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
