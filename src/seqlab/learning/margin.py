"""Max-margin learners that improve the dual one sample at a time.

    minimise  |w|^2 / 2 + sum_i limit_i max_y [ loss(y) - scale(y) w' psi_i(y) ]

After every pass the primal and the dual objective are computed exactly; their difference, the duality gap,
bounds the distance from the optimum. Passes visit the samples whose own gap is not small compared with the
mean: the others would hardly change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError
from seqlab.optim import FitState
from seqlab.structures.margins import BlockDual, DualValues, MarginModel

# Samples with a gap below this share of the mean are not visited. On one fold of the OCR letters, shares from
# 0 to 0.5 took within 10 % of the same time.
ACTIVE_SHARE = 0.1
# A dual above the primal, or a negative |w|^2, by more than this share of the objective is an error.
IMPOSSIBLE = 1e-6
# Passes over stored labelings after each pass with inference, at most.
MAX_CACHED_PASSES = 50


class BlockAscent:
    """Block-coordinate ascent on a max-margin dual.

    Parameters
    ----------
    model : MarginModel
    dual : BlockDual
        Of that model.
    tol : float
        Relative duality gap, (primal - dual) / primal, at which training stops.
    random : RandomState
        Draws the order of each pass.
    n_cached : int, default=0
        Passes over stored labelings after each pass with inference.
    cached_gain : float, default=inf
        Further such passes while one increases the dual by more than this share of ``tol`` times the primal.
    """

    def __init__(
        self,
        model: MarginModel,
        dual: BlockDual,
        *,
        tol: float,
        random: np.random.RandomState,
        n_cached: int = 0,
        cached_gain: float = np.inf,
    ) -> None:
        self.model, self.dual = model, dual
        self.tol, self.random = tol, random
        self.n_cached, self.cached_gain = n_cached, cached_gain

    def states(self) -> Iterator[FitState]:
        """Yield a state after each pass; the point is the model with the lowest primal so far.

        The dual rises with every pass, but the primal may fall and rise again.
        """
        active = np.flatnonzero(self.model.problem.limits > 0.0)
        values: DualValues | None = None
        best, lowest = self.model.vector(), np.inf
        while True:
            n_steps = self.dual.run_pass(self.random.permutation(active))
            n_steps += self._run_cached(active, values)
            values = self.dual.measure()
            if not values.primal >= lowest:
                best, lowest = self.model.vector(), values.primal
            state = to_state(self.model, values._replace(primal=lowest), self.tol, n_steps)
            state.point = best
            yield state
            share = ACTIVE_SHARE * float(values.gaps.mean())
            active = np.flatnonzero(values.gaps > max(share, 0.0))

    def _run_cached(self, active: NDArray[np.int64], values: DualValues | None) -> int:
        n_steps = 0
        for k in range(MAX_CACHED_PASSES if np.isfinite(self.cached_gain) else self.n_cached):
            before = self.dual.objective() if np.isfinite(self.cached_gain) else 0.0
            n_steps += self.dual.run_pass(self.random.permutation(active), search=False)
            if k + 1 >= self.n_cached and np.isfinite(self.cached_gain):
                gain = self.dual.objective() - before
                scale = self.tol * (abs(before) if values is None else abs(values.primal))
                if gain <= self.cached_gain * scale:
                    break
        return n_steps


def to_state(model: MarginModel, values: DualValues, tol: float, n_steps: int) -> FitState:
    """Return the state of a pass; converged if the relative duality gap is at most ``tol``."""
    primal, dual = values.primal, values.dual
    check_objectives(primal, dual, model.squared_norm())
    # Rounding can make the difference of two almost equal objectives negative.
    gap = max(primal - dual, 0.0)
    converged = gap <= max(tol * abs(primal), 1e-12)
    info = {"dual": dual, "n_updates": float(n_steps)}
    return FitState(model.vector(), primal, gap, converged, info=info)


def check_objectives(primal: float, dual: float, squared_norm: float) -> None:
    """Raise an error if the objectives cannot be those of a max-margin problem."""
    if not np.isfinite(primal - dual):
        raise NumericalError("the objective is not finite: scale the features or lower C")
    if squared_norm < -IMPOSSIBLE * max(abs(primal), abs(dual)):
        raise NumericalError(
            f"|w|^2 is {squared_norm:.3g}: the kernel is not positive semidefinite"
        )
    if primal - dual < -IMPOSSIBLE * abs(primal):
        raise NumericalError(
            f"the dual objective, {dual:.6g}, exceeds the primal one, {primal:.6g}: numbers of this size "
            "cannot be added precisely enough; scale the features or lower C"
        )


class SubgradientDescent:
    """Averaged stochastic subgradient descent (Pegasos); there is no certificate.

    Parameters
    ----------
    model : MarginModel
    random : RandomState
        Draws the order of each pass.
    """

    def __init__(self, model: MarginModel, *, random: np.random.RandomState) -> None:
        self.model, self.random = model, random

    def states(self) -> Iterator[FitState]:
        """Yield the weighted average after each pass, with its primal objective."""
        model, limits = self.model, self.model.problem.limits
        method = model.subgradient()
        while True:
            method.run_pass(self.random.permutation(limits.size))
            average = method.average()
            model.set(average)
            slack = model.find_violators().slack
            primal = 0.5 * model.squared_norm() + float((limits * slack).sum())
            if not np.isfinite(primal):
                raise NumericalError("the objective is not finite: scale the features or lower C")
            yield FitState(average, primal)
