"""Fitting an HMM: counting if all labels are known, otherwise expectation-maximisation.

EM maximises the log joint probability of observations and known labels plus the log prior that smoothing
implies,

    sum_i a_i log P(x_i, y_i in allowed_i) + log prior,

with sequence weights a. For sequences with unknown labels, one iteration computes the expected counts under
the posterior given the known labels (forward-backward, restricted to allowed labels), adds the exact counts
of all other sequences, and estimates by relative frequency (Baum-Welch). The sum never decreases; the
``objective`` in the history is its negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlab import inference
from seqlab.data.errors import PlacedError
from seqlab.inference import ChainScores, Mask
from seqlab.models._markov import (
    ChainCounts,
    LegalTransitions,
    MarkovChain,
    chain_log_prior,
    count_chain,
    estimate_chain,
)
from seqlab.models._structural_zeros import log_or_forbidden
from seqlab.models.hmm._emissions import Emissions, Floats, Statistics
from seqlab.optim import FitState
from seqlab.utils.threads import block_bounds, reduce_blocks

Result = TypeVar("Result")

# Doubles of scores per block (8 MB). Larger: more memory, fewer blocks for threads to share.
BLOCK_DOUBLES = 1_000_000
# Smallest smoothing of the initial parameters: a legal parameter that starts at 0 would stay 0.
START_SMOOTHING = 0.1


@dataclass(slots=True)
class TrainingPart:
    """A subset of the training sequences.

    Parameters
    ----------
    matrix : as prepared by the emissions
    offsets : array of shape (n_sequences + 1,)
    codes : int64 array of shape (n_steps,)
        Labels; negative if unknown.
    allowed : boolean array of shape (n_steps, n_labels) or None
        Possible labels; None if all are known.
    weights : array of shape (n_sequences,)
    numbers : int64 array of shape (n_sequences,)
        Index of each sequence in the data, for error messages.
    """

    matrix: Any
    offsets: NDArray[np.int64]
    codes: NDArray[np.int64]
    allowed: NDArray[np.bool_] | None
    weights: Floats
    numbers: NDArray[np.int64]

    def select(self, sequences: NDArray[np.bool_]) -> TrainingPart:
        """Return the part with the given sequences."""
        rows = np.repeat(sequences, np.diff(self.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[sequences])])
        return TrainingPart(
            self.matrix[np.flatnonzero(rows)],
            offsets.astype(np.int64),
            self.codes[rows],
            None if self.allowed is None else self.allowed[rows],
            self.weights[sequences],
            self.numbers[sequences],
        )


class HMMParameters(NamedTuple):
    """The parameters of an HMM."""

    chain: MarkovChain
    emissions: Emissions


class Counts(NamedTuple):
    """Counts for the estimation of parameters, and the log-likelihood under the previous ones."""

    chain: ChainCounts
    emissions: Statistics
    log_likelihood: float

    def plus(self, other: Counts) -> Counts:
        """Return the sum of both."""
        return Counts(
            self.chain.plus(other.chain),
            _add_statistics(self.emissions, other.emissions),
            self.log_likelihood + other.log_likelihood,
        )


@dataclass(slots=True)
class HMMTrainer:
    """Estimates the parameters of an HMM; holds what does not change during a fit.

    Parameters
    ----------
    data : TrainingPart
    legal : LegalTransitions
    smoothing : float
        Smoothing of the chain; the emissions have their own.
    with_end : bool
    n_jobs : int or None
    """

    data: TrainingPart
    legal: LegalTransitions
    smoothing: float
    with_end: bool
    n_jobs: int | None

    def run(self, emissions: Emissions, smoothing: float, tol: float) -> Iterator[FitState]:
        """Yield the states of the fit, with `HMMParameters`: one if all labels are known, else endlessly.

        A state of EM has converged if the objective fell by at most ``tol`` times its absolute value.
        """
        known = np.logical_and.reduceat(self.data.codes >= 0, self.data.offsets[:-1])
        emissions = emissions.with_smoothing(smoothing)
        labelled = self.data if known.all() else self.data.select(known)
        counts = self._known_counts(labelled, emissions)
        if known.all():
            parameters = self._estimate(counts, emissions)
            state = self._state(parameters, self._path_likelihood(labelled, parameters))
            state.converged = True
            yield state
            return
        hidden = self.data.select(~known)
        initial = counts.plus(self._known_counts(hidden, emissions))
        parameters = self._initial_parameters(initial, emissions, smoothing)
        previous = np.inf
        while True:
            expected = self._expected_counts(hidden, parameters)
            known_likelihood = self._path_likelihood(labelled, parameters)
            state = self._state(parameters, expected.log_likelihood + known_likelihood)
            decrease, previous = previous - state.objective, state.objective
            state.converged = bool(decrease <= tol * max(abs(previous), 1.0))
            yield state
            parameters = self._estimate(counts.plus(expected), emissions)

    def _state(self, parameters: HMMParameters, log_likelihood: float) -> FitState:
        prior = parameters.emissions.log_prior() + chain_log_prior(
            parameters.chain, self.legal, self.smoothing
        )
        info = {"log_likelihood": log_likelihood}
        return FitState(parameters, -(log_likelihood + prior), info=info)

    def _estimate(self, counts: Counts, emissions: Emissions) -> HMMParameters:
        chain = estimate_chain(counts.chain, self.legal, self.smoothing, with_end=self.with_end)
        return HMMParameters(chain, emissions.estimate(counts.emissions))

    def _initial_parameters(
        self, counts: Counts, emissions: Emissions, smoothing: float
    ) -> HMMParameters:
        chain = estimate_chain(
            counts.chain, self.legal, max(self.smoothing, START_SMOOTHING), with_end=self.with_end
        )
        smoothed = emissions.with_smoothing(max(smoothing, START_SMOOTHING))
        return HMMParameters(chain, smoothed.estimate(counts.emissions).with_smoothing(smoothing))

    def _known_counts(self, part: TrainingPart, emissions: Emissions) -> Counts:
        """Count known labels; if several labels are possible, each counts by an equal part."""
        n_labels = self.legal.start.size

        def block(first: int, last: int) -> Statistics:
            begin, stop = int(part.offsets[first]), int(part.offsets[last])
            codes = part.codes[begin:stop]
            label_weights = np.zeros((stop - begin, n_labels))
            known = np.flatnonzero(codes >= 0)
            label_weights[known, codes[known]] = 1.0
            if part.allowed is not None:
                allowed = part.allowed[begin:stop]
                partly = (codes < 0) & ~allowed.all(axis=1)
                label_weights[partly] = allowed[partly] / allowed[partly].sum(axis=1, keepdims=True)
            label_weights *= _step_weights(part, first, last)[:, None]
            return emissions.statistics(part.matrix, begin, stop, label_weights)

        if part.offsets.size == 1:
            statistics = emissions.statistics(part.matrix, 0, 0, np.zeros((0, n_labels)))
        else:
            statistics = self._over_blocks(part, block, _add_statistics)
        chain = count_chain(part.codes, part.offsets, part.weights, n_labels)
        return Counts(chain, statistics, 0.0)

    def _path_likelihood(self, part: TrainingPart, parameters: HMMParameters) -> float:
        if part.offsets.size == 1:
            return 0.0
        scorer = HMMScorer(parameters, self.legal.end, part.matrix, part.offsets)

        def block(first: int, last: int) -> float:
            begin, stop = int(part.offsets[first]), int(part.offsets[last])
            values = inference.path_scores(scorer.scores(first, last), part.codes[begin:stop])
            weights = part.weights[first:last]
            return float((weights * values)[weights > 0].sum())

        return self._over_blocks(part, block, add)

    def _expected_counts(self, part: TrainingPart, parameters: HMMParameters) -> Counts:
        scorer = HMMScorer(parameters, self.legal.end, part.matrix, part.offsets)
        assert part.allowed is not None
        allowed = part.allowed

        def block(first: int, last: int) -> Counts:
            begin, stop = int(part.offsets[first]), int(part.offsets[last])
            weights = part.weights[first:last]
            found = inference.expected_transitions(
                scorer.scores(first, last), weights, mask=Mask(steps=allowed[begin:stop])
            )
            label_weights = found.node * _step_weights(part, first, last)[:, None]
            ends = part.offsets[first : last + 1] - begin
            start = label_weights[ends[:-1]].sum(axis=0)
            end = label_weights[ends[1:] - 1].sum(axis=0)
            chain = ChainCounts(start, found.transitions, end)
            statistics = parameters.emissions.statistics(part.matrix, begin, stop, label_weights)
            return Counts(chain, statistics, float((weights * found.log_z).sum()))

        return self._over_blocks(part, block, Counts.plus)

    def _over_blocks(
        self,
        part: TrainingPart,
        function: Callable[[int, int], Result],
        combine: Callable[[Result, Result], Result],
    ) -> Result:
        """Combine the results of fixed blocks, in order: the same bits for any number of threads."""
        n_sequences = part.offsets.size - 1
        bounds = block_bounds(
            part.offsets,
            self.legal.start.size,
            block_work=BLOCK_DOUBLES,
            max_blocks=max(n_sequences, 1),
        )

        def block(b: int) -> Result:
            first, last = int(bounds[b]), int(bounds[b + 1])
            try:
                return function(first, last)
            except PlacedError as error:
                if error.sequence is None:
                    raise
                raise type(error)(
                    error.message, int(part.numbers[first + error.sequence])
                ) from None

        return reduce_blocks(block, combine, bounds.size - 1, self.n_jobs)


class HMMScorer:
    """Log-probabilities of an HMM as chain scores.

    Parameters
    ----------
    parameters : HMMParameters
    legal_end : boolean array of shape (n_labels,)
        Labels that may come last.
    matrix : as prepared by the emissions
    offsets : array of shape (n_sequences + 1,)
    """

    def __init__(
        self,
        parameters: HMMParameters,
        legal_end: NDArray[np.bool_],
        matrix: Any,
        offsets: NDArray[np.int64],
    ) -> None:
        chain, self._emit = parameters.chain, parameters.emissions.make_scorer()
        self._matrix, self._offsets = matrix, offsets
        end = legal_end.astype(np.float64) if chain.end is None else chain.end
        logs = map(log_or_forbidden, (chain.transitions, chain.start, end))
        self._transitions, self._start, self._end = logs

    def scores(self, first: int, last: int) -> ChainScores:
        """Return the scores of sequences first..last."""
        begin, stop = int(self._offsets[first]), int(self._offsets[last])
        unary = self._emit(self._matrix, begin, stop)
        offsets = self._offsets[first : last + 1] - begin
        return ChainScores(unary, self._transitions, self._start, self._end, offsets)


def _step_weights(part: TrainingPart, first: int, last: int) -> Floats:
    return np.repeat(part.weights[first:last], np.diff(part.offsets[first : last + 1]))


def _add_statistics(first: Statistics, second: Statistics) -> Statistics:
    return tuple(a + b for a, b in zip(first, second, strict=True))
