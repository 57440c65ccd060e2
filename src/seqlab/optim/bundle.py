"""Cutting planes: minimise ``|w|^2 / 2 + C sum_i max(0, max_k l_ik - w . psi_ik)`` over a set of planes.

Every sample ``i`` has planes ``(psi, l)``, among them the zero plane. The dual over the planes found so far
is

    max  sum_k a_k l_k - |sum_k a_k psi_k|^2 / 2,    a >= 0,  sum of the a_k of each sample <= C

with ``w = sum_k a_k psi_k``. It is solved by moving weight between two planes of one sample at a time: to
the plane with the largest gradient, from the plane with the smallest gradient that has weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.utils.linalg import dot

Vector = NDArray[np.float64]

# A plane that had no weight in so many solutions in a row is dropped.
MAX_IDLE = 25


class Bundle:
    """The planes of all samples, and the solution of the dual over them.

    Parameters
    ----------
    n_samples, n_params : int
    C : array of shape (n_samples,)
        Weight of the slack of each sample.
    """

    def __init__(self, n_samples: int, n_params: int, C: Vector) -> None:
        self.C = C
        self.w = np.zeros(n_params)
        self.dual = 0.0
        # The first n_samples planes are the zero planes, which have all the weight at first.
        self._psi: list[Vector] = [np.zeros(n_params)] * n_samples
        self._loss = np.zeros(n_samples)
        self._sample = np.arange(n_samples)
        self._alpha = C.astype(np.float64).copy()
        self._idle = np.zeros(n_samples, dtype=np.int64)
        self._gram = np.zeros((n_samples, n_samples))

    @property
    def n_planes(self) -> int:
        """Number of planes, without the zero planes."""
        return len(self._psi) - self.C.size

    def add(self, sample: int, psi: Vector, loss: float, image: Vector | None = None) -> None:
        """Add a plane of a sample.

        With a kernel, ``psi`` is a vector of coefficients and ``image`` its product with the kernel matrix:
        the inner product of two planes is that of the vector of one with the image of the other.
        """
        image = psi if image is None else image
        row = np.array([dot(image, other) for other in self._psi])
        gram = np.zeros((row.size + 1, row.size + 1))
        gram[:-1, :-1] = self._gram
        gram[-1, :-1] = gram[:-1, -1] = row
        gram[-1, -1] = dot(psi, image)
        self._gram = gram
        self._psi.append(psi)
        self._loss = np.append(self._loss, loss)
        self._sample = np.append(self._sample, sample)
        self._alpha = np.append(self._alpha, 0.0)
        self._idle = np.append(self._idle, 0)

    def solve(self, tol: float, max_steps: int = 1_000_000) -> None:
        """Solve the dual over the planes to a relative gap of ``tol``; set ``w`` and ``dual``."""
        order = np.argsort(self._sample, kind="stable")
        bounds = np.searchsorted(self._sample[order], np.arange(self.C.size + 1))
        solve_plane_dual(self._gram, self._loss, order, bounds, self._alpha, tol, 0.0, max_steps)
        self._alpha[self._alpha < 0.0] = 0.0
        self.w = np.zeros(self.w.size)
        for weight, psi in zip(self._alpha, self._psi, strict=True):
            if weight > 0.0:
                self.w += weight * psi
        norm = dot(self._alpha, np.array([dot(row, self._alpha) for row in self._gram]))
        self.dual = float(self._alpha @ self._loss) - 0.5 * float(norm)
        self._drop_idle()

    def _drop_idle(self) -> None:
        self._idle = np.where(self._alpha > 0.0, 0, self._idle + 1)
        kept = self._idle < MAX_IDLE
        kept[: self.C.size] = True
        if kept.all():
            return
        chosen = np.flatnonzero(kept)
        self._psi = [self._psi[k] for k in chosen]
        self._gram = self._gram[np.ix_(chosen, chosen)]
        for name in ("_loss", "_sample", "_alpha", "_idle"):
            setattr(self, name, getattr(self, name)[chosen])


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
