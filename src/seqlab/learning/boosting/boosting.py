"""Gradient tree boosting of a structured model (TreeCRF: Dietterich, Ashenfelter & Bulatov 2004).

The score of label ``k`` after label ``c`` at step ``t`` is a sum of regression trees, ``F_k(c, x_t)``, and

    log P(y | x) = sum_t F_{y_t}(y_{t-1}, x_t) - log Z(x)

Each round computes the gradient ``[y_{t-1} = c, y_t = k] - P(y_{t-1} = c, y_t = k | x)`` of the
log-likelihood with respect to all scores, fits one tree per label to it and adds the trees, multiplied by
the learning rate. If the likelihood falls, the step is halved until it does not: the objective never rises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError
from seqlab.learning.boosting.growers import TreeGrower
from seqlab.optim import FitState
from seqlab.structures import BeamOptions, BoundStructure, PairSums, RowScores
from seqlab.utils.linalg import dot
from seqlab.utils.threads import effective_n_jobs, run_blocks

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Halvings of a step before boosting gives up: enough for any learning rate that makes sense, and for those
# that do not. Usually the trees then point uphill only within rounding errors.
MAX_HALVINGS = 60
# Trees that are grown in one call if there is one thread. With more, an interrupt waits longer.
LABELS_PER_CALL = 2
# Rounds that a step with a beam is compared with: with more, a bad step is noticed later.
BEAM_MEMORY = 5


class Boosting:
    """Rounds of tree boosting.

    Parameters
    ----------
    bound : BoundStructure
        The structure, bound to the training data.
    grower : TreeGrower
    codes : array of shape (n_steps,)
        Gold labels.
    weights : array of shape (n_samples,)
    has_pairs : bool, default=True
        Whether scores depend on the previous label; if not, steps are independent.
    learning_rate : float, default=1.0
        Factor of the trees.
    newton : bool, default=True
        Whether trees are fitted to gradients divided by second derivatives, or to gradients alone.
    tol : float, default=0.0
        Training stops if a round decreases the objective by less than this proportion.
    beam : BeamOptions, optional
        Approximate marginals.

    Attributes
    ----------
    rounds : list of (float, list of trees)
        Step and trees of each round; an item of the list holds the trees of some labels, in order.
    """

    def __init__(
        self,
        bound: BoundStructure,
        grower: TreeGrower,
        codes: Codes,
        weights: Floats,
        *,
        has_pairs: bool = True,
        learning_rate: float = 1.0,
        newton: bool = True,
        tol: float = 0.0,
        beam: BeamOptions | None = None,
    ) -> None:
        self.bound, self.grower, self.codes, self.weights = bound, grower, codes, weights
        self.learning_rate, self.tol, self.beam = learning_rate, tol, beam
        # A beam makes the objective jump when other labels enter it: compare with the largest of the last
        # rounds (a non-monotone line search, Grippo, Lampariello & Lucidi 1986).
        self._memory = 1 if beam is None else BEAM_MEMORY
        self.rounds: list[tuple[float, list[Any]]] = []
        self.scores = RowScores(
            grower.row_of_step, grower.n_rows, bound.n_labels, has_pairs=has_pairs
        )
        step_weights = np.repeat(self.weights, bound.X.lengths)
        self._total_weight = float(step_weights.sum())
        self.sums = PairSums(self.scores, self._total_weight, with_curvature=newton)
        self._curvature = self.sums.curvature if newton else self._count_cells(step_weights)
        n_together = LABELS_PER_CALL if effective_n_jobs(bound.n_jobs) == 1 else 1
        bounds = [*range(0, bound.n_labels, n_together), bound.n_labels]
        self._label_blocks = [slice(*ends) for ends in pairwise(bounds)]

    def _count_cells(self, step_weights: Floats) -> NDArray[np.int64]:
        """Return the weight of each cell (row, column), in fixed point: the curvature of least squares.

        It is the same for all labels, but has the shape of the gradient.
        """
        n_labels, *shape = self.sums.gradient.shape
        counts = np.zeros(shape, dtype=np.int64)
        fixed = (step_weights * self.sums.scale + 0.5).astype(np.int64)
        rows, is_first = self.scores.rows, np.zeros(step_weights.size, dtype=np.bool_)
        offsets, lengths = self.bound.X.offsets, self.bound.X.lengths
        is_first[offsets[:-1][lengths > 0]] = True
        if shape[1] == 1:
            np.add.at(counts[:, 0], rows, fixed)
        else:
            np.add.at(counts[:, -1], rows[is_first], fixed[is_first])
            inner = np.zeros(shape[0], dtype=np.int64)
            np.add.at(inner, rows[~is_first], fixed[~is_first])
            counts[:, :-1] = inner[:, None]
        return np.repeat(counts[None], n_labels, axis=0)

    def first_rounds(self, n_rounds: int) -> list[tuple[float, list[Any]]]:
        """Return the steps and trees of the first rounds."""
        return self.rounds[:n_rounds]

    def states(self) -> Iterator[FitState]:
        """Yield a state after each round; its point is the number of rounds."""
        # All scores are equal, so that a beam would be arbitrary: the first round is exact.
        yield from self._rounds_from([self._evaluate(beam=None)])

    def _rounds_from(
        self, values: list[float], pending: tuple[list[Any], float] | None = None
    ) -> Iterator[FitState]:
        """Yield a state after each further round.

        Parameters
        ----------
        values : list of float
            Objectives so far.
        pending : (list of trees, float), optional
            Trees that have already been added, times a step that may be too long.
        """
        while True:
            trees, step = pending or (self._add_trees(), self.learning_rate)
            pending = None
            # The trees of a round that ran out of time say nothing about convergence.
            is_late = self.grower.is_late()
            step, objective = self._find_step(trees, step, max(values[-self._memory :]))
            if step == 0.0:
                converged = not is_late
                yield FitState(
                    len(self.rounds), values[-1], converged=converged, info={"step": 0.0}
                )
                return
            self.rounds.append((step, trees))
            values.append(objective)
            n_rounds = len(self.rounds)
            earlier = values[max(n_rounds - self._memory, 0)]
            # With a beam the objective may also rise, if better labels enter it.
            is_slow = abs(earlier - objective) <= self.tol * abs(earlier)
            converged = is_slow and n_rounds >= self._memory and not is_late
            yield FitState(n_rounds, objective, converged=converged, info={"step": step})

    def _find_step(self, trees: list[Any], step: float, reference: float) -> tuple[float, float]:
        """Shorten the step of new trees until the objective is not above ``reference``.

        Returns the step (0 if there is none) and the objective.
        """
        objective = self._evaluate(self.beam)
        for _ in range(MAX_HALVINGS):
            if objective <= reference:
                return step, objective
            step *= 0.5
            self._subtract(trees, step)
            objective = self._evaluate(self.beam)
        if objective <= reference:
            return step, objective
        self._subtract(trees, step)
        return 0.0, reference

    def _evaluate(self, beam: BeamOptions | None) -> float:
        """Compute the gradient at the current scores; return the objective."""
        self.sums.clear()
        log_likelihood = self.bound.add_pair_sums(
            self.scores, self.codes, self.weights, self.sums, beam=beam
        )
        objective = -dot(self.weights, log_likelihood)
        if not math.isfinite(objective) and not np.isfinite(log_likelihood).all():
            bad = int(np.argmin(np.isfinite(log_likelihood)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        return objective

    def _add_trees(self) -> list[Any]:
        """Grow one tree per label from the current gradient; add them, times the learning rate."""
        sums, blocks = self.sums, self._label_blocks

        def grow(block: int) -> Any:
            labels = blocks[block]
            scores = self.scores.node[labels], self.scores.pair[labels]
            gradient, curvature = sums.gradient[labels], self._curvature[labels]
            return self.grower.grow(gradient, curvature, sums.scale, self.learning_rate, *scores)

        return run_blocks(grow, len(blocks), self.bound.n_jobs)

    def _subtract(self, trees: list[Any], step: float) -> None:
        for labels, grown in zip(self._label_blocks, trees, strict=True):
            grown.add_to(-step, self.scores.node[labels], self.scores.pair[labels])
