"""Fitting an HMM: counts where labels are known, expectation-maximisation where they are not.

The objective is the logarithm of the joint probability of observations and known labels plus that of the
prior that smoothing stands for,

    sum_i a_i log P(x_i, y_i in allowed_i) + log prior,

sequences with weights a. One iteration takes, for sequences whose labels are not all known, the expected
counts under the posterior given what is known (forward-backward, restricted to allowed labels), adds the
exact counts of the others, and estimates by relative frequency (Baum-Welch): the objective never falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import PlacedError
from seqlab.inference import ChainScores, Mask, expected_transitions, path_scores
from seqlab.models._markov import (
    ChainCounts,
    LegalTransitions,
    MarkovChain,
    chain_log_prior,
    count_chain,
    estimate_chain,
)
from seqlab.models.hmm._emissions import Emissions, Floats, Statistics
from seqlab.utils.threads import block_bounds, run_blocks

# Doubles of scores that a block may hold (8 MB).
BLOCK_DOUBLES = 1_000_000
# Where EM starts, nothing legal is impossible: a parameter at 0 would stay there.
START_SMOOTHING = 0.1


@dataclass(slots=True)
class Part:
    """Some of the training sequences.

    Parameters
    ----------
    matrix : as prepared by the emissions
    offsets : array of shape (n_sequences + 1,)
    codes : int64 array of shape (n_steps,)
        Labels; negative where not known.
    allowed : boolean array of shape (n_steps, n_labels) or None
        Possible labels; None where all are known.
    weights : array of shape (n_sequences,)
    numbers : int64 array of shape (n_sequences,)
        Number of each sequence in the data.
    """

    matrix: Any
    offsets: NDArray[np.int64]
    codes: NDArray[np.int64]
    allowed: NDArray[np.bool_] | None
    weights: Floats
    numbers: NDArray[np.int64]

    def chosen(self, sequences: NDArray[np.bool_]) -> Part:
        """The part of some of its sequences."""
        rows = np.repeat(sequences, np.diff(self.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[sequences])])
        return Part(
            self.matrix[np.flatnonzero(rows)],
            offsets.astype(np.int64),
            self.codes[rows],
            None if self.allowed is None else self.allowed[rows],
            self.weights[sequences],
            self.numbers[sequences],
        )


class HMMParameters(NamedTuple):
    """All that an HMM learns."""

    chain: MarkovChain
    emissions: Emissions


class Counts(NamedTuple):
    """All that parameters are estimated from; the log-likelihood of the data under the old ones."""

    chain: ChainCounts
    emissions: Statistics
    log_likelihood: float

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(
            self.chain.plus(other.chain),
            tuple(a + b for a, b in zip(self.emissions, other.emissions, strict=True)),
            self.log_likelihood + other.log_likelihood,
        )


class EMState(NamedTuple):
    """One iteration.

    Parameters
    ----------
    parameters : HMMParameters
    log_likelihood : float
        Of the data, under these parameters.
    objective : float
        The log-likelihood and the prior, negated: what falls.
    """

    parameters: HMMParameters
    log_likelihood: float
    objective: float


@dataclass(slots=True)
class HMMFit:
    """What stays the same during a fit.

    Parameters
    ----------
    data : Part
    legal : LegalTransitions
    smoothing : float
        Of the chain; the emissions have their own.
    with_end : bool
    n_jobs : int or None
    """

    data: Part
    legal: LegalTransitions
    smoothing: float
    with_end: bool
    n_jobs: int | None

    def run(self, emissions: Emissions, smoothing: float) -> Iterator[EMState]:
        """States of the fit: one where all labels are known, else without end."""
        known = np.logical_and.reduceat(self.data.codes >= 0, self.data.offsets[:-1])
        emissions = emissions.with_smoothing(smoothing)
        labelled = self.data if known.all() else self.data.chosen(known)
        counts = self._known_counts(labelled, emissions)
        if known.all():
            parameters = self._estimated(counts, emissions)
            yield self._state(parameters, self._path_likelihood(labelled, parameters))
            return
        hidden = self.data.chosen(~known)
        begin = counts.plus(self._known_counts(hidden, emissions))
        parameters = self._start(begin, emissions, smoothing)
        while True:
            expected = self._expected_counts(hidden, parameters)
            known_likelihood = self._path_likelihood(labelled, parameters)
            yield self._state(parameters, expected.log_likelihood + known_likelihood)
            parameters = self._estimated(counts.plus(expected), emissions)

    def _state(self, parameters: HMMParameters, log_likelihood: float) -> EMState:
        prior = parameters.emissions.log_prior() + chain_log_prior(
            parameters.chain, self.legal, self.smoothing
        )
        return EMState(parameters, log_likelihood, -(log_likelihood + prior))

    def _estimated(self, counts: Counts, emissions: Emissions) -> HMMParameters:
        chain = estimate_chain(counts.chain, self.legal, self.smoothing, with_end=self.with_end)
        return HMMParameters(chain, emissions.estimated(counts.emissions))

    def _start(self, counts: Counts, emissions: Emissions, smoothing: float) -> HMMParameters:
        chain = estimate_chain(
            counts.chain, self.legal, max(self.smoothing, START_SMOOTHING), with_end=self.with_end
        )
        wide = emissions.with_smoothing(max(smoothing, START_SMOOTHING))
        return HMMParameters(chain, wide.estimated(counts.emissions).with_smoothing(smoothing))

    def _known_counts(self, part: Part, emissions: Emissions) -> Counts:
        """Counts of the known labels; a label among several possible ones counts in equal shares."""
        n_labels = self.legal.start.size

        def block(first: int, last: int) -> Statistics:
            begin, stop = int(part.offsets[first]), int(part.offsets[last])
            codes = part.codes[begin:stop]
            shares = np.zeros((stop - begin, n_labels))
            known = np.flatnonzero(codes >= 0)
            shares[known, codes[known]] = 1.0
            if part.allowed is not None:
                allowed = part.allowed[begin:stop]
                partly = (codes < 0) & ~allowed.all(axis=1)
                shares[partly] = allowed[partly] / allowed[partly].sum(axis=1, keepdims=True)
            shares *= _step_weights(part, first, last)[:, None]
            return emissions.statistics(part.matrix, begin, stop, shares)

        blocks = self._over_blocks(part, block)
        if not blocks:
            nothing = np.zeros((0, n_labels))
            blocks = [emissions.statistics(part.matrix, 0, 0, nothing)]
        chain = count_chain(part.codes, part.offsets, part.weights, n_labels)
        return Counts(chain, _summed(blocks), 0.0)

    def _path_likelihood(self, part: Part, parameters: HMMParameters) -> float:
        scores = chain_scorer(parameters, self.legal.end, part.matrix, part.offsets)

        def block(first: int, last: int) -> float:
            begin, stop = int(part.offsets[first]), int(part.offsets[last])
            values = path_scores(scores(first, last), part.codes[begin:stop])
            weights = part.weights[first:last]
            return float((weights * values)[weights > 0].sum())

        return sum(self._over_blocks(part, block))

    def _expected_counts(self, part: Part, parameters: HMMParameters) -> Counts:
        scores = chain_scorer(parameters, self.legal.end, part.matrix, part.offsets)
        assert part.allowed is not None
        allowed = part.allowed

        def block(first: int, last: int) -> Counts:
            begin, stop = int(part.offsets[first]), int(part.offsets[last])
            weights = part.weights[first:last]
            found = expected_transitions(
                scores(first, last), weights, mask=Mask(steps=allowed[begin:stop])
            )
            shares = found.node * _step_weights(part, first, last)[:, None]
            ends = part.offsets[first : last + 1] - begin
            chain = ChainCounts(
                shares[ends[:-1]].sum(axis=0), found.transitions, shares[ends[1:] - 1].sum(axis=0)
            )
            statistics = parameters.emissions.statistics(part.matrix, begin, stop, shares)
            return Counts(chain, statistics, float((weights * found.log_z).sum()))

        blocks = self._over_blocks(part, block)
        total = blocks[0]
        for one in blocks[1:]:
            total = total.plus(one)
        return total

    def _over_blocks(self, part: Part, function: Callable[[int, int], Any]) -> list[Any]:
        """Results of fixed blocks of sequences, in order: the same bits for any number of threads."""
        n_sequences = part.offsets.size - 1
        bounds = block_bounds(
            part.offsets,
            self.legal.start.size,
            block_work=BLOCK_DOUBLES,
            max_blocks=max(n_sequences, 1),
        )

        def block(b: int) -> Any:
            first, last = int(bounds[b]), int(bounds[b + 1])
            try:
                return function(first, last)
            except PlacedError as error:
                if error.sequence is None:
                    raise
                raise type(error)(
                    error.message, int(part.numbers[first + error.sequence])
                ) from None

        return run_blocks(block, bounds.size - 1, self.n_jobs)


def chain_scorer(
    parameters: HMMParameters,
    legal_end: NDArray[np.bool_],
    matrix: Any,
    offsets: NDArray[np.int64],
) -> Callable[[int, int], ChainScores]:
    """The function that gives the log-probabilities of sequences first..last as chain scores."""
    chain, emit = parameters.chain, parameters.emissions.scorer()
    with np.errstate(divide="ignore"):
        start, transitions = np.log(chain.start), np.log(chain.transitions)
        end = np.log(legal_end.astype(np.float64) if chain.end is None else chain.end)

    def scores(first: int, last: int) -> ChainScores:
        begin, stop = int(offsets[first]), int(offsets[last])
        unary = emit(matrix, begin, stop)
        return ChainScores(unary, transitions, start, end, offsets[first : last + 1] - begin)

    return scores


def _step_weights(part: Part, first: int, last: int) -> Floats:
    return np.repeat(part.weights[first:last], np.diff(part.offsets[first : last + 1]))


def _summed(blocks: list[Statistics]) -> Statistics:
    total = blocks[0]
    for one in blocks[1:]:
        total = tuple(a + b for a, b in zip(total, one, strict=True))
    return total
