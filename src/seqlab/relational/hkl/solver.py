"""Hierarchical kernel learning of chains: active set, mirror descent and cutting planes.

    minimise  Omega(f)^2 / 2 + |f_T|^2 / 2 + sum_i limit_i max_y h_i(y)

where ``f`` are the weights of conjunctions and ``f_T`` those of transitions. Three loops, from the outside:

1. The active nodes. If a sufficient condition says that no other node can improve the objective by more than
   the tolerance, training ends; otherwise the nodes that violate it most become active.
2. Mirror descent on ``gamma``, the weights of the groups of nodes, with backtracking.
3. Cutting planes for fixed ``gamma``: labelings of highest ``h`` are added until the gap is small.

The planes are kept when ``gamma`` or the active nodes change. After every step of mirror descent the duality
gap is computed; it holds for the whole lattice as soon as the condition has been checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError
from seqlab.optim import FitState
from seqlab.relational.hkl.lattice import ActiveLattices, Candidate, Node
from seqlab.relational.hkl.norm import normalize
from seqlab.relational.hkl.plane_dual import DualPoint, PlaneDual
from seqlab.structures.chain import ChainMarginModel
from seqlab.utils.linalg import dot

Floats = NDArray[np.float64]

# Groups of sequences with a slack of their own: more groups need fewer planes each, but a larger program.
MAX_GROUPS = 4
# Accuracy of the cutting planes, as a share of the present gap, and of their quadratic programs, as a share
# of that.
CUT_SHARE, QP_SHARE = 0.25, 0.1
# Planes added per step of mirror descent, at most.
MAX_CUTS = 50
# Mirror descent: factors of the step length after success and failure, trials per step, and the largest
# change of an entry of gamma in one step, as a logarithm.
STEP_UP, STEP_DOWN, MAX_TRIALS, MAX_CHANGE = 1.5, 0.4, 12, 4.0
# A step that changes every entry of gamma by less than this, as a logarithm, is a stall: the errors of the
# quadratic programs hide the descent. The gap falls with the root of these errors only, so that they are made
# smaller by this factor then, down to this share of the tolerance.
MIN_CHANGE, SHARPEN, MIN_SHARE = 1e-2, 0.1, 1e-9
# Nodes added at a time: at least this number, or this share of the active ones.
MIN_ADDED, ADDED_SHARE = 32, 0.25
# Weight in gamma that new nodes get together.
NEW_SHARE = 0.1
# Share of the tolerance by which the objective may rise when nodes with small weights are dropped at the end.
PRUNE_SHARE = 0.1


class HKLModel(NamedTuple):
    """Weights of conjunctions and transitions."""

    nodes: list[Node]
    table: Floats  # (n_nodes, n_labels)
    is_selected: NDArray[np.bool_]  # (n_nodes, n_labels); closed under sub-conjunctions
    arcs: Floats


class HKLSolver:
    """Trains the weights of conjunctions and transitions of a chain.

    Parameters
    ----------
    model : ChainMarginModel
        Its features are indicators of the distinct steps.
    lattices : ActiveLattices
    tol : float
        Relative duality gap at which training stops.
    max_nodes : int
        Limit on active nodes, over all lattices.
    deadline : float, default=inf
        Time, by `training_time`, after which an iteration ends early: the caller stops after it.
    """

    def __init__(
        self,
        model: ChainMarginModel,
        lattices: ActiveLattices,
        *,
        tol: float,
        max_nodes: int,
        deadline: float = math.inf,
    ) -> None:
        self.model, self.lattices = model, lattices
        self.tol, self.max_nodes = tol, max_nodes
        n_rows, n_labels = model.table.shape
        self._groups = _group_sequences(np.diff(model.offsets))
        n_arcs = model.vector().size - model.table.size
        n_groups = int(self._groups.max()) + 1
        self._dual = PlaneDual(n_groups, n_rows, n_labels, n_arcs, deadline)
        self._dual.activate(lattices)
        self._primal = np.inf
        self._at_zero = float(dot(model.problem.limits, model.find_violators().slack))
        self._best = np.zeros((0, 0)), np.zeros(n_arcs)
        self._lower = -np.inf
        self._step = 1.0
        self._descent_share = QP_SHARE * CUT_SHARE

    def states(self) -> Iterator[FitState]:
        """Yield a state after each step of mirror descent; its point is an `HKLModel`."""
        gamma = normalize(1.0 / self.lattices.norm.d)
        relative_gap, share = 1.0, 0.1
        while True:
            point = self._cut(gamma, CUT_SHARE * max(self.tol, min(relative_gap, 1.0)))
            omega2 = self.lattices.norm.dual_norm_bound(gamma, point.q)
            active_gap = self._primal - self._active_dual(point, omega2)
            relative_gap = active_gap / max(abs(self._primal), 1e-300)
            candidates: list[Candidate] = []
            target = max(self.tol * self._primal, 1e-12)
            message = ""
            if active_gap <= max(0.5 * self.tol, share) * self._primal or active_gap <= 1e-12:
                share *= 0.5
                candidates = self.lattices.find_candidates(self._dual.beta())
                highest = max((one.bound for one in candidates), default=0.0)
                lower = self._active_dual(point, max(omega2, highest))
                self._lower = max(self._lower, lower)
                limit = omega2 + 2.0 * (target - active_gap)
                candidates = [one for one in candidates if one.bound > max(limit, 0.0)]
                if active_gap <= 0.5 * target and candidates:
                    message = self._message_if_full()
            yield self._state(active_gap, point, target, message)
            if message:
                return
            gamma = self._grow(gamma, candidates)
            gamma = self._descend(gamma)

    def _cut(self, gamma: Floats, accuracy: float) -> DualPoint:
        """Add planes until the gap for this ``gamma`` is at most ``accuracy`` times the primal.

        After the deadline there may be fewer planes: every point has valid bounds.
        """
        limits = self.model.problem.limits
        for _ in range(MAX_CUTS):
            point = self._dual.solve(gamma, QP_SHARE * accuracy * min(self._primal, self._at_zero))
            self._set(point.f, point.arcs)
            found = self.model.find_violators()
            risk = float(dot(limits, found.slack))
            self._keep_best(point.f, point.arcs, risk)
            primal = 0.5 * point.penalty + risk
            if not np.isfinite(primal):
                raise NumericalError("the objective is not finite: lower C or raise length_penalty")
            if primal - point.value <= max(accuracy * primal, 1e-13) or self._dual.is_late():
                break
            self._add_planes(found.labels, limits * found.scales, limits * found.losses)
        return point

    def _set(self, f: Floats, arcs: Floats) -> None:
        scores = np.asarray(self.lattices.columns @ self.lattices.expand(f))
        self.model.set(np.concatenate([scores.ravel(), arcs]))

    def _keep_best(self, f: Floats, arcs: Floats, risk: float) -> None:
        lengths = np.sqrt((f * f).sum(axis=1))
        omega = self.lattices.norm.value(lengths)
        primal = 0.5 * (omega * omega + float((arcs * arcs).sum())) + risk
        if primal < self._primal:
            self._primal, self._best = primal, (f, arcs)

    def _add_planes(self, labels: NDArray[np.int64], weights: Floats, losses: Floats) -> None:
        n_groups = int(self._groups.max()) + 1
        vectors = [
            self.model.total(labels, np.where(self._groups == group, weights, 0.0))
            for group in range(n_groups)
        ]
        size = self.model.table.size
        self._dual.add(
            np.arange(n_groups),
            np.array([vector[:size].reshape(self.model.table.shape) for vector in vectors]),
            np.array([vector[size:] for vector in vectors]),
            np.bincount(self._groups, losses, n_groups).astype(np.float64),
        )

    def _active_dual(self, point: DualPoint, omega2: float) -> float:
        """Return the dual objective of a point whose squared dual norm is at most ``omega2``."""
        return point.loss - 0.5 * float((point.arcs * point.arcs).sum()) - 0.5 * omega2

    def _message_if_full(self) -> str:
        if self.lattices.n_active < self.max_nodes:
            return ""
        return (
            f"the search reached max_nodes={self.max_nodes} conjunctions before the duality gap of the whole "
            "lattice was small; raise max_nodes, length_penalty or tol, or limit max_length"
        )

    def _state(self, active_gap: float, point: DualPoint, target: float, message: str) -> FitState:
        gap = max(self._primal - self._lower, 0.0)
        converged = gap <= target
        tolerated = min(PRUNE_SHARE * target, target - gap) if converged else 0.0
        pruned, objective = self._prune(tolerated)
        gap = max(objective - self._lower, 0.0)
        info = {
            "active_gap": max(active_gap, 0.0),
            "n_conjunctions": float(self.lattices.n_active),
            "n_planes": float(self._dual.n_planes),
        }
        return FitState(pruned, objective, gap, converged, message, info)

    def _prune(self, tolerated: float) -> tuple[HKLModel, float]:
        """Drop nodes with small weights, together with their descendants; return the model and its objective.

        The objective may rise by the tolerated amount; without one, only zeros are dropped.
        """
        f, arcs = self._best
        lengths = np.sqrt((f * f).sum(axis=1))
        sizes = self.lattices.norm.group_norms(lengths)
        thresholds = np.unique(sizes)
        low, high = -1, thresholds.size  # thresholds[low] is acceptable, thresholds[high] is not
        objective = self._primal
        if tolerated > 0.0:
            while high - low > 1:
                middle = (low + high) // 2
                kept = sizes > thresholds[middle]
                value = self._measure(f * kept[:, None], arcs)
                if value <= self._primal + tolerated:
                    low, objective = middle, value
                else:
                    high = middle
        kept = sizes > (thresholds[low] if low >= 0 else 0.0)
        flags = np.repeat(kept[:, None], f.shape[1], axis=1).astype(np.float64)
        table, is_kept = self.lattices.expand(f * kept[:, None]), self.lattices.expand(flags) > 0.0
        used = np.flatnonzero(is_kept.any(axis=1))
        nodes = [self.lattices.nodes[k] for k in used]
        return HKLModel(nodes, table[used], is_kept[used], arcs.copy()), objective

    def _measure(self, f: Floats, arcs: Floats) -> float:
        """Return the primal objective."""
        self._set(f, arcs)
        risk = float(dot(self.model.problem.limits, self.model.find_violators().slack))
        omega = self.lattices.norm.value(np.sqrt((f * f).sum(axis=1)))
        return 0.5 * (omega * omega + float((arcs * arcs).sum())) + risk

    def _grow(self, gamma: Floats, candidates: list[Candidate]) -> Floats:
        """Make the candidates with the highest bounds active; return the new ``gamma``."""
        room = self.max_nodes - self.lattices.n_active
        n_added = min(room, max(MIN_ADDED, int(ADDED_SHARE * self.lattices.n_active)))
        chosen = sorted(candidates, key=lambda one: (-one.bound, one.lattice, one.node))
        chosen = chosen[: max(n_added, 0)]
        if not chosen:
            return gamma
        before = self.lattices.pairs
        self.lattices.add(chosen)
        place = {pair: k for k, pair in enumerate(self.lattices.pairs)}
        old = np.array([place[pair] for pair in before])
        grown = np.full(self.lattices.n_active, NEW_SHARE / len(chosen))
        grown[old] = (1.0 - NEW_SHARE) * gamma
        f = np.zeros((self.lattices.n_active, self._best[0].shape[1]))
        f[old] = self._best[0]
        self._best = f, self._best[1]
        self._dual.activate(self.lattices)
        return normalize(grown)

    def _descend(self, gamma: Floats) -> Floats:
        """Return ``gamma`` after one step of mirror descent that does not raise the dual over the planes.

        The step length is relative to ``Phi / (2 r)``, so that it does not depend on the scale of the data.
        """
        accuracy = self._descent_share * self.tol * self._primal
        point = self._dual.solve(gamma, accuracy)
        ratios = self.lattices.norm.conjugate(gamma, point.q).ratios
        alpha = self._dual.alpha.copy()
        largest = float(np.abs(ratios - 1.0).max(initial=0.0))
        if largest == 0.0:
            return gamma
        step = min(self._step, MAX_CHANGE / largest)
        for _ in range(MAX_TRIALS):
            moved = normalize(gamma * np.exp(step * (ratios - 1.0)))
            if self._dual.is_late():
                break
            if self._dual.solve(moved, accuracy).value <= point.value:
                self._step = STEP_UP * step
                if step * largest < MIN_CHANGE:
                    self._sharpen()
                return moved
            step *= STEP_DOWN
            self._dual.alpha = alpha.copy()
        self._step = max(step, 1e-3)
        self._sharpen()
        return gamma

    def _sharpen(self) -> None:
        """Solve the quadratic programs of mirror descent more accurately from now on, and try long steps."""
        if self._descent_share > MIN_SHARE:
            self._descent_share *= SHARPEN
            self._step = 1.0


def _group_sequences(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the group of each sequence: consecutive sequences of about the same number of steps."""
    n_groups = min(lengths.size, MAX_GROUPS)
    ends = np.cumsum(lengths)
    group = np.minimum((ends - 1) * n_groups // ends[-1], n_groups - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
