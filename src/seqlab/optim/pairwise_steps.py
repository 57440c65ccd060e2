"""Pairwise steps on the dual over cutting planes: weight moves from the plane of lowest gradient that has
weight to the plane of highest gradient, within one sample at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@njit(nogil=True, cache=True)
def solve_plane_dual(
    gram: Vector,
    loss: Vector,
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    alpha: Vector,
    tol: float,
    accuracy: float,
    max_steps: int,
) -> None:
    """Solve the dual over planes with Gram matrix ``gram``; ``alpha`` is the start, and changed in place.

    The planes of sample ``i`` are ``order[bounds[i]:bounds[i + 1]]``; the sum of their weights stays the
    same. The steps end if the gap is at most ``accuracy``, or ``tol`` times the dual objective.
    """
    n_planes = loss.size
    gradient = loss.copy()
    for k in range(n_planes):
        if alpha[k] != 0.0:
            for j in range(n_planes):
                gradient[j] -= alpha[k] * gram[k, j]
    steps = 0
    while steps < max_steps:
        gap = 0.0
        dual = 0.0
        for k in range(n_planes):
            dual += 0.5 * alpha[k] * (gradient[k] + loss[k])
        goal = max(tol * max(abs(dual), 1e-300), accuracy)
        for sample in range(bounds.size - 1):
            inner = 0
            while True:
                up, down = -1, -1
                total = 0.0
                mass = 0.0
                for at in range(bounds[sample], bounds[sample + 1]):
                    k = order[at]
                    total += alpha[k] * gradient[k]
                    mass += alpha[k]
                    if up < 0 or gradient[k] > gradient[up]:
                        up = k
                    if alpha[k] > 0.0 and (down < 0 or gradient[k] < gradient[down]):
                        down = k
                violation = mass * gradient[up] - total
                if inner == 0:
                    gap += violation
                if down < 0 or up == down or gradient[up] <= gradient[down]:
                    break
                if inner >= 20 or violation <= 0.1 * goal:
                    break
                curvature = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
                step = alpha[down]
                if curvature > 0.0:
                    step = min(step, (gradient[up] - gradient[down]) / curvature)
                alpha[up] += step
                alpha[down] -= step
                for j in range(n_planes):
                    gradient[j] -= step * (gram[up, j] - gram[down, j])
                inner += 1
                steps += 1
        if gap <= goal:
            return
