"""The conditional log-likelihood of a chain, as an objective.

    f(w) = sum_i a_i [ log Z(x_i) - log Z(x_i | allowed_i) ] + c2 |w|^2

``log Z(x | allowed)`` sums over the labelings that agree with what is known of the labels; where all
labels are known it is the score of the gold labeling. The gradient is the difference of two expected
feature vectors plus ``2 c2 w``.

With class weights the first term becomes the softmax-margin (Gimpel & Smith 2010): a label other than the
gold one costs ``log(class_weight[gold])`` more, so that classes of weight above 1 are missed less often.
The objective stays convex and exact.

Sequences are cut into slots, each with its own gradient, and slots into blocks that fit the cache; both
depend on the data alone and slots are added in order, so the result has the same bits for any ``n_jobs``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError, PlacedError
from seqlab.data.sequences import Sequences
from seqlab.inference import (
    ChainScores,
    Mask,
    expected_transitions,
    pair_marginals,
)
from seqlab.structures import ChainMarginals, ChainStructure, chain_scores
from seqlab.utils.linalg import axpy, dot
from seqlab.utils.threads import block_bounds, run_blocks

Floats = NDArray[np.float64]

N_SLOTS = 8
# Doubles of scores and marginals that a block may hold: half a megabyte, well inside an L2 cache.
BLOCK_DOUBLES = 65_536


class _SlotResult(NamedTuple):
    loss: float
    gradient: Floats


class ChainLikelihood:
    """Penalised negative conditional log-likelihood.

    Parameters
    ----------
    structure : ChainStructure
        Parameters and their features.
    X : Sequences
        CSR.
    codes : int64 array of shape (n_steps,)
        Gold labels (negative where not known).
    weights : array of shape (n_sequences,)
        Weight of each sequence.
    c2 : float
        Weight of the squared norm.
    allowed : boolean array of shape (n_steps, n_labels), optional
        What is known of the labels, where some are not known.
    miss_cost : array of shape (n_steps,), optional
        Log cost of missing the gold label of a step.
    penalised : boolean array of shape (n_params,), optional
        Weights that the penalty counts; all where not given.
    """

    def __init__(
        self,
        structure: ChainStructure,
        X: Sequences,
        codes: NDArray[np.int64],
        weights: Floats,
        c2: float,
        *,
        allowed: NDArray[np.bool_] | None = None,
        miss_cost: Floats | None = None,
        penalised: NDArray[np.bool_] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.structure = structure
        self.X = X
        self.codes = codes
        self.weights = weights
        self.c2 = float(c2)
        self.allowed = allowed
        self.miss_cost = miss_cost
        self.penalised = penalised
        self.n_jobs = n_jobs
        self.n_params = structure.n_params
        self.strong_convexity = 2.0 * self.c2 if penalised is None else 0.0
        self._step_weights = np.repeat(weights, X.lengths)
        self._weighted = bool(np.any(weights != 1.0))
        self._observed = self._observed_features() if allowed is None else None
        self._slots = _plan(X.offsets, structure)

    def _observed_features(self) -> Floats:
        """Weighted sum of the joint features of the gold labelings."""
        return self.structure.total_features(self.X, self.codes, self.weights)

    def loss(self, w: Floats) -> float:
        """``f(w)``."""
        return self.loss_gradient(w)[0]

    def gradient(self, w: Floats) -> Floats:
        """Gradient of ``f`` at ``w``."""
        return self.loss_gradient(w)[1]

    def loss_gradient(self, w: Floats) -> tuple[float, Floats]:
        """``f(w)`` and its gradient."""
        loss, gradient = self._expected(w)
        if self._observed is not None:
            loss -= dot(w, self._observed)
            gradient -= self._observed
        counted = w if self.penalised is None else np.where(self.penalised, w, 0.0)
        loss += self.c2 * dot(counted, counted)
        axpy(2.0 * self.c2, counted, gradient)
        return float(loss), gradient

    def _expected(self, w: Floats) -> tuple[float, Floats]:
        """Weighted sum of ``log Z`` (minus that of the known labels) and its gradient."""
        readable = self.structure.weights(w)

        def run(slot: int) -> _SlotResult:
            gradient = np.zeros(self.n_params)
            loss = 0.0
            for first, last in self._slots[slot]:
                scores = chain_scores(readable, self.X, first, last)
                try:
                    loss += self._add_block(scores, first, last, gradient)
                except PlacedError as error:
                    raise error.shifted(first) from None
            return _SlotResult(loss, gradient)

        results = run_blocks(run, len(self._slots), self.n_jobs)
        loss, gradient = 0.0, np.zeros(self.n_params)
        for result in results:
            loss += result.loss
            gradient += result.gradient
        return loss, gradient

    def _add_block(self, scores: ChainScores, first: int, last: int, gradient: Floats) -> float:
        """Add the block's part of the gradient; return its part of the loss."""
        begin, stop = int(self.X.offsets[first]), int(self.X.offsets[last])
        if self.miss_cost is not None:
            unary = scores.unary + self.miss_cost[begin:stop, None]
            rows = np.arange(stop - begin)
            gold = self.codes[begin:stop]
            unary[rows, gold] = scores.unary[rows, gold]
            scores = ChainScores(unary, scores.pairwise, scores.start, scores.end, scores.offsets)
        weights = self.weights[first:last]
        log_z, marginals = self._marginals(scores, first, last, None)
        loss = float(np.sum(weights * log_z))
        if self.allowed is not None:
            mask = Mask(steps=self.allowed[begin:stop])
            log_z_known, known = self._marginals(scores, first, last, mask)
            loss -= float(np.sum(weights * log_z_known))
            pair = None
            if marginals.pair is not None and known.pair is not None:
                pair = marginals.pair - known.pair
            transitions = marginals.transitions - known.transitions
            marginals = ChainMarginals(marginals.node - known.node, transitions, pair)
        if not np.isfinite(loss):
            bad = int(np.argmax(~np.isfinite(log_z)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        self.structure.add_expected_features(self.X, marginals, first, last, gradient)
        return loss

    def _marginals(
        self, scores: ChainScores, first: int, last: int, mask: Mask | None
    ) -> tuple[Floats, ChainMarginals]:
        """Log-partition of each sequence and weighted marginals of a block."""
        begin, stop = int(self.X.offsets[first]), int(self.X.offsets[last])
        step_weights = self._step_weights[begin:stop]
        if self.structure.edge is None:
            weights = self.weights[first:last] if self._weighted else None
            counts = expected_transitions(scores, mask=mask, weights=weights)
            node = counts.node * step_weights[:, None] if self._weighted else counts.node
            return counts.log_z, ChainMarginals(node, counts.transitions, None)
        full = pair_marginals(scores, mask=mask)
        node, pair = full.node, full.pair
        if self._weighted:
            node, pair = node * step_weights[:, None], pair * step_weights[:, None, None]
        return full.log_z, ChainMarginals(node, pair.sum(axis=0), pair)


def _plan(offsets: NDArray[np.int64], structure: ChainStructure) -> list[list[tuple[int, int]]]:
    """Slots, each a list of blocks (first, last), each a run of sequences."""
    n_labels = structure.n_labels
    per_step = n_labels * n_labels if structure.edge is not None else n_labels
    slots = block_bounds(offsets, n_labels * n_labels, max_blocks=N_SLOTS)
    plan = []
    for first, last in pairwise(slots.tolist()):
        local = offsets[first : last + 1]
        blocks = first + block_bounds(
            local, per_step, block_work=BLOCK_DOUBLES, max_blocks=last - first
        )
        plan.append(list(pairwise(blocks.tolist())))
    return plan
