"""The dual over cutting planes for fixed ``gamma``.

A plane is the sum over the sequences of a group of the differences between the gold labeling and another
one. Its emission part is a table of counts per distinct step and label, which does not depend on the active
nodes or on ``gamma``: all planes stay valid when those change. With ``h = sum_k alpha_k p_k`` for the active
nodes, ``q_w = |h_w|^2`` and ``h_T`` for the transitions the dual is

    max  sum_k alpha_k l_k - |h_T|^2 / 2 - Phi(gamma, q) / 2,    alpha >= 0, sum of the alpha of a group = 1.

For ``rho = 2`` this is a quadratic program; otherwise quadratic models are maximised in turn, with an exact
line search.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.optim import solve_plane_dual
from seqlab.relational.hkl.lattice import ActiveLattices
from seqlab.utils.linalg import matmul
from seqlab.utils.signals import check_signals
from seqlab.utils.training_clock import training_time

Floats = NDArray[np.float64]

# Quadratic models per solution, at most.
MAX_MODELS = 100
MAX_QP_STEPS = 200_000
# Halvings of the interval of the exact line search.
N_BISECTIONS = 40
# A plane that had no weight when the last so many planes were added is dropped.
MAX_IDLE = 25


class DualPoint(NamedTuple):
    """A solution of the dual over planes."""

    value: float
    h: Floats  # dual vectors of the active nodes, (n_active, width)
    q: Floats  # their squared lengths
    f: Floats  # weights of the active nodes
    arcs: Floats  # weights of transitions and boundaries
    penalty: float  # Phi + |arcs|^2
    loss: float  # sum of alpha_k l_k


class PlaneDual:
    """Planes of groups of sequences, and the dual over them.

    Parameters
    ----------
    n_groups : int
    n_rows, n_labels : int
        Shape of the table of a plane.
    n_arcs : int
    deadline : float, default=inf
        Time, by `training_time`, after which solutions may be less accurate.
    """

    def __init__(
        self, n_groups: int, n_rows: int, n_labels: int, n_arcs: int, deadline: float = math.inf
    ) -> None:
        self.deadline = deadline
        # The first plane of each group is the zero plane, which has all the weight at first.
        self.group = np.arange(n_groups)
        self.tables = np.zeros((n_groups, n_rows, n_labels))
        self.arcs = np.zeros((n_groups, n_arcs))
        self.losses = np.zeros(n_groups)
        self.alpha = np.ones(n_groups)
        self._idle = np.zeros(n_groups, dtype=np.int64)
        self._arc_gram = np.zeros((n_groups, n_groups))
        self._n_groups = n_groups
        self._projected = np.zeros((n_groups, 0, 1))

    @property
    def n_planes(self) -> int:
        """Number of planes, without the zero planes."""
        return self.losses.size - self._n_groups

    def add(self, group: NDArray[np.int64], tables: Floats, arcs: Floats, losses: Floats) -> None:
        """Add planes, one for each entry of ``group``."""
        self._drop_idle()
        self.group = np.concatenate([self.group, group])
        self.tables = np.concatenate([self.tables, tables])
        self.arcs = np.concatenate([self.arcs, arcs])
        self.losses = np.concatenate([self.losses, losses])
        self.alpha = np.concatenate([self.alpha, np.zeros(group.size)])
        self._idle = np.concatenate([self._idle, np.zeros(group.size, dtype=np.int64)])
        self._arc_gram = matmul(self.arcs, self.arcs.T)
        self._projected = np.concatenate([self._projected, self._lattices.project(tables)])

    def activate(self, lattices: ActiveLattices) -> None:
        """Use the active nodes of the lattices from now on."""
        self._lattices = lattices
        self._projected = lattices.project(self.tables)

    def beta(self) -> Floats:
        """Return the coefficients of the rows in the dual, (n_rows, n_labels)."""
        used = np.flatnonzero(self.alpha)
        flat = self.tables[used].reshape(used.size, -1)
        return matmul(self.alpha[None, used], flat).reshape(self.tables.shape[1:])

    def is_late(self) -> bool:
        """Return whether the deadline is over; an interrupt that waits takes effect now."""
        check_signals()
        return training_time() >= self.deadline

    def _drop_idle(self) -> None:
        self._idle = np.where(self.alpha > 0.0, 0, self._idle + 1)
        kept = self._idle < MAX_IDLE
        kept[: self._n_groups] = True
        if kept.all():
            return
        for name in ("group", "tables", "arcs", "losses", "alpha", "_idle", "_projected"):
            setattr(self, name, getattr(self, name)[kept])

    def solve(self, gamma: Floats, accuracy: float) -> DualPoint:
        """Maximise the dual over the planes to within ``accuracy`` of its maximum.

        After the deadline it returns the point that it has reached, which is feasible.
        """
        order = np.argsort(self.group, kind="stable")
        bounds = np.searchsorted(self.group[order], np.arange(self._n_groups + 1))
        norm = self._lattices.norm
        for _ in range(MAX_MODELS):
            point, eta = self._evaluate(self.alpha, gamma)
            gradient = self._gradient(self.alpha, point)
            mass = np.array([gradient[order[a:b]].max() for a, b in pairwise(bounds.tolist())])
            distance = float(mass.sum()) - float((self.alpha * gradient).sum())
            if distance <= accuracy or self.is_late():
                break
            hessian = self._hessian(point, eta)
            target = self.alpha.copy()
            linear = gradient + (hessian * self.alpha).sum(axis=1)
            # Half of the distance is left for the change of the quadratic model.
            solve_plane_dual(
                hessian, linear, order, bounds, target, 0.0, 0.5 * accuracy, MAX_QP_STEPS
            )
            target[target < 0.0] = 0.0
            step = 1.0
            if norm.r > 1.0:
                step = self._search(gamma, target - self.alpha)
            if step == 0.0:
                break
            self.alpha += step * (target - self.alpha)
            self.alpha[self.alpha < 1e-15] = 0.0
        return self._evaluate(self.alpha, gamma)[0]

    def _evaluate(self, alpha: Floats, gamma: Floats) -> tuple[DualPoint, Floats]:
        n, width = self._projected.shape[1:]
        used = np.flatnonzero(alpha)
        h = matmul(alpha[None, used], self._projected[used].reshape(used.size, -1))
        h = h.reshape(n, width)
        arcs = matmul(alpha[None, used], self.arcs[used])[0]
        q = (h * h).sum(axis=1)
        values = self._lattices.norm.conjugate(gamma, q)
        penalty = values.phi + float((arcs * arcs).sum())
        loss = float((alpha * self.losses).sum())
        f = values.eta[:, None] * h
        return DualPoint(loss - 0.5 * penalty, h, q, f, arcs, penalty, loss), values.eta

    def _gradient(self, alpha: Floats, point: DualPoint) -> Floats:
        flat = self._projected.reshape(alpha.size, -1)
        scores = matmul(flat, point.f.reshape(-1, 1))[:, 0]
        return self.losses - scores - matmul(self.arcs, point.arcs[:, None])[:, 0]

    def _hessian(self, point: DualPoint, eta: Floats) -> Floats:
        """Return the negative second derivative by ``alpha``."""
        n_planes = self.alpha.size
        scaled = self._projected * np.sqrt(eta)[None, :, None]
        flat = scaled.reshape(n_planes, -1)
        hessian = self._arc_gram + matmul(flat, flat.T)
        r = self._lattices.norm.r
        if r == 1.0 or not point.q.any():
            return hessian
        # Second derivatives of the weights eta.
        along = (self._projected * point.h[None]).sum(axis=2)
        share = np.divide(eta, point.q, out=np.zeros_like(eta), where=point.q > 0.0)
        phi = point.penalty - float((point.arcs * point.arcs).sum())
        total = matmul(along, eta[:, None])
        curved = along * np.sqrt(share)[None]
        hessian += (2.0 * r - 2.0) * (matmul(curved, curved.T) - total * total.T / phi)
        return hessian

    def _search(self, gamma: Floats, direction: Floats) -> float:
        """Return the step in [0, 1] that maximises the dual along a direction."""

        def slope(step: float) -> float:
            alpha = self.alpha + step * direction
            point, _ = self._evaluate(alpha, gamma)
            return float((self._gradient(alpha, point) * direction).sum())

        if slope(1.0) >= 0.0:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(N_BISECTIONS):
            middle = 0.5 * (low + high)
            if slope(middle) >= 0.0:
                low = middle
            else:
                high = middle
        return low
