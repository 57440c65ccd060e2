"""Warm start: a few stochastic passes before the batch solver.

Batch quasi-Newton methods need most of their passes to get near the optimum, and stochastic gradient descent
does that faster. After a few stochastic passes, a batch solver that starts at the mean of the iterates of the
last one (Polyak averaging), with the diagonal of the Hessian at that point as a preconditioner, finishes in
ten or twenty passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.curvature import LikelihoodCurvature
from seqlab.learning.likelihood import Likelihood, PenalisedObjective
from seqlab.optim import FitState, Preconditioner
from seqlab.structures.stochastic_support import StochasticPasses, StochasticSupport
from seqlab.utils.linalg import dot
from seqlab.utils.training_clock import training_time

Floats = NDArray[np.float64]

# Passes continue while each reduces the running loss (with the penalty) by 3 %. After that the mean is a few
# percent above the optimum, close enough for its curvature to be a good preconditioner.
MIN_PASSES, MAX_PASSES = 2, 30
MAX_RATIO = 0.97
# If the preconditioner has a block for each label, a pass of the batch solver brings more, and the stochastic
# passes end sooner: 12 generated dense problems are trained in 0.89 to 1.02 times the time.
MAX_RATIO_WITH_BLOCKS = 0.94
N_SAMPLE = 400  # number of sequences on which the learning rate is chosen
RATE = 0.15
MAX_HALVINGS = 30
# Below this c2, for features of mean square 1, the square root of the curvature is the better preconditioner.
WEAK_PENALTY = 0.05
# With less data, or less work per pass, a batch solver alone is faster. On 40 problems with a work per pass
# of 125,000 to 500,000 the stochastic passes save a fifth of the time.
MIN_SEQUENCES = 200
MIN_WORK = 125_000


class WarmStart:
    """Stochastic passes over a penalised likelihood.

    Parameters
    ----------
    objective : PenalisedObjective
        Objective with the data term ``term``.
    term : Likelihood
    support : StochasticSupport
        Methods of the structure for stochastic passes.
    curvature : LikelihoodCurvature
    max_seconds : float, optional
        End the passes after this time; at least one is run.
    """

    def __init__(
        self,
        objective: PenalisedObjective,
        term: Likelihood,
        support: StochasticSupport,
        curvature: LikelihoodCurvature,
        max_seconds: float | None = None,
    ) -> None:
        self.objective, self.term, self.support = objective, term, support
        self.curvature = curvature
        self._max_seconds = math.inf if max_seconds is None else max_seconds
        self._is_weak = objective.c2 < WEAK_PENALTY * support.mean_square

    def states(
        self,
        batch: Callable[[Floats, int, Preconditioner | None], Iterator[FitState]],
        max_iter: int,
    ) -> Iterator[FitState]:
        """Yield the states of a batch solver that starts from the result of stochastic passes.

        ``batch(w, max_iter, preconditioner)`` yields the states of the solver that starts at ``w``. The first
        state has zero weights, and is not yet an iteration.
        """
        n_left = max(max_iter - 1, 0)  # the stochastic passes count as one iteration
        zero, at_zero = np.zeros(self.term.n_params), self.term.value_at_zero()
        info = {"gradient_norm": math.nan, "bound": math.inf}
        yield FitState(zero, at_zero, math.inf, info=info)
        w = self.find_start()
        if w is not None:
            if not self.curvature.sparse:  # an L1 penalty may have its optimum elsewhere
                self.objective.remove_constant_part(w)
            loss, gradient = self.objective.loss_gradient(w)
            if loss < at_zero:
                yield from batch(
                    w, n_left, self.curvature.after_passes(w, gradient, weak=self._is_weak)
                )
                return
        yield from batch(zero, n_left, self.curvature.at_zero(zero))

    def find_start(self) -> Floats | None:
        """Return weights near the optimum; None if the passes diverge.

        The order of the sequences is random with a fixed seed: the same data give the same weights.
        """
        random, began = np.random.default_rng(0), training_time()
        n_samples = len(self.term.bound.X)
        passes = self._choose_rate(random.permutation(n_samples)[:N_SAMPLE])
        has_blocks = self.term.has_label_blocks() and not self.curvature.sparse
        max_ratio = MAX_RATIO_WITH_BLOCKS if has_blocks else MAX_RATIO
        before = math.inf
        for n_done in range(1, MAX_PASSES + 1):
            running_loss, mean = passes.run(random.permutation(n_samples))
            running_loss += self.objective.c2 * dot(mean, mean)
            if not math.isfinite(running_loss):
                return None
            if n_done >= MIN_PASSES and running_loss > max_ratio * before:
                break
            if training_time() - began >= self._max_seconds:
                break
            before = running_loss
        return mean

    def _choose_rate(self, sample: NDArray[np.int64]) -> StochasticPasses:
        """Return passes at `RATE` (for feature values of 1), halved until they reduce a sample's loss."""
        rate = RATE / self.support.mean_square
        at_zero = self.term.value_at_zero(sample)
        passes = self._new_passes(rate)
        for _ in range(MAX_HALVINGS):
            loss, _ = passes.run(sample)
            if loss < at_zero:
                break
            rate *= 0.5
            del passes  # not in memory together with the next ones
            passes = self._new_passes(rate)
        passes.restart()
        return passes

    def _new_passes(self, rate: float) -> StochasticPasses:
        term, c2 = self.term, self.objective.c2
        return self.support.stochastic_passes(term.codes, term.weights, c2, rate, term.partial)


def is_worthwhile(term: Likelihood, support: StochasticSupport) -> bool:
    """Return whether a warm start saves time: on large data without features of very different scale."""
    return is_large(term) and support.is_evenly_scaled


def is_large(term: Likelihood) -> bool:
    """Return whether a pass over the data takes more than a few milliseconds."""
    return len(term.bound.X) >= MIN_SEQUENCES and term.bound.work_per_pass >= MIN_WORK
