"""Cutting planes: minimise ``|w|^2 / 2 + C sum_i max(0, max_k l_ik - w . psi_ik)`` over a set of planes.

Every sample ``i`` (or group of samples) has planes ``(psi, l)``, among them the zero plane. The dual over the
planes found so far is

    max  sum_k a_k l_k - |sum_k a_k psi_k|^2 / 2,    a >= 0,  sum of the a_k of each sample <= C

with ``w = sum_k a_k psi_k``. It depends on the planes through their inner products only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.optim.interior_point import factor_gram, solve_planes
from seqlab.utils.linalg import dot, matmul

Vector = NDArray[np.float64]

# A plane that had no weight in so many solutions in a row is dropped.
MAX_IDLE = 10
# Planes whose squared distance is at most this share of their squared length count as equal.
SAME = 1e-14
# Steps of the interior-point method; 15 to 25 are usual.
MAX_STEPS = 80


class Bundle:
    """The planes of all samples, and the solution of the dual over them.

    Parameters
    ----------
    n_samples, n_params : int
    C : array of shape (n_samples,)
        Weight of the slack of each sample.

    Attributes
    ----------
    w : array of shape (n_params,)
        The solution.
    dual : float
        Its dual objective.
    """

    def __init__(self, n_samples: int, n_params: int, C: Vector) -> None:
        self.C = C.astype(np.float64)
        self.w = np.zeros(n_params)
        self.dual = 0.0
        # The first n_samples planes are the zero planes, which have all the weight at first.
        self._psi = np.zeros((n_samples, n_params))
        self._loss = np.zeros(n_samples)
        self._sample = np.arange(n_samples)
        self._alpha = self.C.copy()
        self._idle = np.zeros(n_samples, dtype=np.int64)
        self._gram = np.zeros((n_samples, n_samples))
        self._new: list[tuple[int, Vector, float, Vector]] = []

    @property
    def n_planes(self) -> int:
        """Number of planes, without the zero planes."""
        return self._loss.size + len(self._new) - self.C.size

    def add(self, sample: int, psi: Vector, loss: float, image: Vector | None = None) -> None:
        """Add a plane of a sample.

        With a kernel, ``psi`` is a vector of coefficients and ``image`` its product with the kernel matrix:
        the inner product of two planes is that of the vector of one with the image of the other.
        """
        self._new.append((sample, psi, loss, psi if image is None else image))

    def solve(self, tol: float) -> int:
        """Solve the dual over the planes to a relative gap of ``tol``; set ``w`` and ``dual``.

        Returns how many of the planes added since the last time had not been known.
        """
        n_before = self._loss.size
        self._join_new()
        n_new = self._loss.size - n_before
        used = np.flatnonzero(self.C[self._sample] > 0.0)
        if used.size == 0:
            return n_new
        numbers = np.cumsum(self.C > 0.0) - 1
        alpha = self._alpha[used]
        carries = solve_planes(
            factor_gram(np.ascontiguousarray(self._gram[np.ix_(used, used)])),
            self._loss[used],
            numbers[self._sample[used]],
            self.C[self.C > 0.0],
            alpha,
            tol,
            MAX_STEPS,
        )
        self._alpha[used] = alpha
        self.w = matmul(self._alpha[None, :], self._psi)[0]
        norm = dot(matmul(self._alpha[None, :], self._gram)[0], self._alpha)
        dual = float(dot(self._alpha, self._loss)) - 0.5 * float(norm)
        # A plane may only be forgotten after progress: else it would be found and dropped again and again.
        has_risen = dual > self.dual
        self._idle[used] = np.where(carries, 0, self._idle[used] + has_risen)
        self.dual = max(self.dual, dual)
        if has_risen:
            self._drop_idle()
        return n_new

    def _join_new(self) -> None:
        """Append the new planes, with their inner products."""
        if not self._new:
            return
        n, m = self._loss.size, len(self._new)
        samples, planes, losses, images = zip(*self._new, strict=True)
        self._psi = np.concatenate([self._psi, np.array(planes)])
        gram = np.zeros((n + m, n + m))
        gram[:n, :n] = self._gram
        rows = matmul(self._psi, np.ascontiguousarray(np.array(images).T))
        gram[:, n:], gram[n:, :n] = rows, rows[:n].T
        self._gram = gram
        self._loss = np.append(self._loss, losses)
        self._sample = np.append(self._sample, samples)
        self._alpha = np.append(self._alpha, np.zeros(m))
        self._idle = np.append(self._idle, np.zeros(m, dtype=np.int64))
        self._new = []
        self._keep(self._find_first(n))

    def _find_first(self, n_known: int) -> NDArray[np.int64]:
        """Return all planes but the new ones that equal an earlier plane."""
        squares = np.diagonal(self._gram)
        kept = list(range(n_known))
        for k in range(n_known, self._loss.size):
            earlier = np.array(kept)
            distance = squares[k] + squares[earlier] - 2.0 * self._gram[k, earlier]
            is_same = (self._sample[earlier] == self._sample[k]) & (
                self._loss[earlier] == self._loss[k]
            )
            if not (is_same & (distance <= SAME * squares[k])).any():
                kept.append(k)
        return np.array(kept)

    def _drop_idle(self) -> None:
        kept = self._idle < MAX_IDLE
        kept[: self.C.size] = True
        if kept.all():
            return
        # The weight of a dropped plane, which is almost none, goes to the zero plane.
        np.add.at(self._alpha, self._sample[~kept], self._alpha[~kept])
        self._keep(np.flatnonzero(kept))

    def _keep(self, chosen: NDArray[np.int64]) -> None:
        if chosen.size == self._loss.size:
            return
        self._gram = self._gram[np.ix_(chosen, chosen)]
        for name in ("_psi", "_loss", "_sample", "_alpha", "_idle"):
            setattr(self, name, getattr(self, name)[chosen])
