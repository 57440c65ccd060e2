"""Warm start: a few stochastic passes before the batch solver.

Batch quasi-Newton methods spend most of their passes on getting near the optimum, and stochastic gradient
descent is at its best there. Four passes, the mean of the iterates of the last one (Polyak averaging),
and the diagonal of the Hessian at that point make what the batch solver needs to finish in a few
passes of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.models._fast_likelihood import FastChainLikelihood
from seqlab.optim import SolverState

Floats = NDArray[np.float64]

N_PASSES = 4
N_SNAPSHOTS = 8
N_SAMPLE = 400  # sequences on which the rate is chosen
FIRST_RATE = 0.1
POWER = 0.55
# Below these a batch solver ends sooner than the passes would.
MIN_SEQUENCES = 200
MIN_WORK = 2_000_000


def pays(objective: FastChainLikelihood) -> bool:
    """Whether the data are large enough for a warm start to save time."""
    return len(objective.X) >= MIN_SEQUENCES and work_of_a_pass(objective) >= MIN_WORK


def work_of_a_pass(objective: FastChainLikelihood) -> float:
    """Additions and multiplications of one pass over the data, about."""
    n_labels = objective.structure.n_labels
    return objective.X.n_steps * n_labels**2 + objective.X.matrix.nnz * min(n_labels, 8)


def warm_start(objective: FastChainLikelihood) -> Floats | None:
    """Weights near the optimum; None where no rate led anywhere.

    The order of the sequences is drawn from a fixed seed: the same data give the same weights.
    """
    random = np.random.default_rng(0)
    n_sequences = len(objective.X)
    rate = _choose_rate(objective, random.permutation(n_sequences)[:N_SAMPLE])
    if rate is None:
        return None
    passes = objective.stochastic()
    for _ in range(N_PASSES - 1):
        passes.run(random.permutation(n_sequences), rate)
    mean = np.zeros(objective.n_params)
    for part in np.array_split(random.permutation(n_sequences), N_SNAPSHOTS):
        passes.run(part, rate)
        mean += passes.weights()
    mean /= N_SNAPSHOTS
    return mean if np.isfinite(mean).all() else None


def from_warm_start(
    objective: FastChainLikelihood,
    batch: Callable[[Floats, int, Floats | None], Iterator[SolverState]],
    max_iter: int,
) -> Iterator[SolverState]:
    """Yield the states of a batch solver that begins at a warm start.

    ``batch(w, max_iter, preconditioner)`` gives the states of the solver from ``w`` on. The first state is
    that of zero weights: an interrupt during the stochastic passes leaves that model behind.
    """
    zero = np.zeros(objective.n_params)
    at_zero = objective.loss_at_zero()
    yield SolverState(zero, at_zero, math.nan, math.inf, math.inf, 0)
    w = warm_start(objective)
    if w is not None:
        loss, gradient = objective.loss_gradient(w)
        if loss < at_zero:
            yield from batch(w, max_iter, scales(objective, w, gradient))
            return
    yield from batch(zero, max_iter, None)


def scales(objective: FastChainLikelihood, w: Floats, gradient: Floats) -> Floats:
    """The preconditioner: a power of the Hessian's diagonal.

    The power 1 needs the fewest passes where the penalty is strong (CoNLL-2000, 18 features per step, c2
    >= 1), 0.5 where it is weak (c2 <= 0.1) or where features overlap much (45 per step): as the model grows
    sure, the curvature it was measured with no longer holds, and correlated features share theirs. The
    scale is such that the first step is as long as the diagonal model of the objective wants it.
    """
    diagonal = objective.curvature(w)
    powers = diagonal**POWER
    step = gradient / powers
    length = float(np.sum(step * step * diagonal)) / max(float(np.sum(step * gradient)), 1e-300)
    return powers * length


def _choose_rate(objective: FastChainLikelihood, sample: NDArray[np.int64]) -> float | None:
    """The rate that predicts a sample best while learning it, by doubling and halving."""

    def trial(rate: float) -> float:
        loss = objective.stochastic().run(sample, rate)
        return loss if math.isfinite(loss) else math.inf

    best_rate, best = FIRST_RATE, trial(FIRST_RATE)
    for factor in (2.0, 0.5):
        rate = best_rate * factor
        for _ in range(30):
            loss = trial(rate)
            if loss >= best and math.isfinite(best):
                break
            best_rate, best = rate, loss
            rate *= factor
    return best_rate if math.isfinite(best) else None
