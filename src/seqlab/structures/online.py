"""Weights of an online learner: passes of perceptron updates, and the average of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

if TYPE_CHECKING:
    from seqlab.structures.protocol import BoundStructure

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
# Ties go to the lowest label.
NO_TIE_STATE: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)


class PassResult(NamedTuple):
    """Result of one pass over the data."""

    n_wrong: int  # wrong labels
    predicted: Codes  # decoded labels, (n_positions,); -1 if decoding stopped before the position
    updated: NDArray[np.bool_]  # samples that changed the weights, (n_samples,)


class OnlineWeights(Protocol):
    """Weights that perceptron updates change, and their running average.

    Attributes
    ----------
    n_steps : int
        Number of samples visited so far.
    """

    n_steps: int

    def run_pass(
        self,
        codes: Codes,
        weights: Floats,
        order: NDArray[np.int64],
        *,
        beam_width: int = 0,
        early_update: bool = False,
        keep_gold: bool = False,
        tie_state: NDArray[np.uint64] = NO_TIE_STATE,
    ) -> PassResult:
        """Visit the samples in order; add ``weights[i] (phi(gold) - phi(decoded))`` for each wrong one.

        Parameters
        ----------
        codes : array of shape (n_positions,)
        weights : array of shape (n_samples,)
        order : array of shape (n_visits,)
        beam_width : int
            Labels kept per step; 0 for exact decoding.
        early_update : bool
            Whether to stop when the gold label falls out of the beam, and to update on the prefix.
        keep_gold : bool
            Whether the gold label is always kept in the beam.
        tie_state : array of shape (1,) or (0,)
            State of the generator that breaks ties, changed in place; empty: ties go to the lowest label.
        """
        ...

    def current(self) -> Floats:
        """Return the weights now."""
        ...

    def average(self) -> Floats:
        """Return the mean of the weights after each visit."""
        ...

    def is_finite(self) -> bool:
        """Return whether all weights, and their sums over time, are finite."""
        ...

    def save(self) -> None:
        """Save a copy of the weights."""
        ...

    def restore(self) -> None:
        """Restore the weights stored by `save`."""
        ...


class DenseOnlineWeights:
    """Online weights of any structure, as one dense vector.

    The average is computed lazily: if ``u`` is the sum of the updates, each times the number of visits before
    it, the mean of the weights after ``n`` visits is ``w - u / n``.

    Parameters
    ----------
    bound : BoundStructure
    """

    def __init__(self, bound: BoundStructure) -> None:
        self.n_steps = 0
        self._bound = bound
        self._w = np.zeros(bound.n_params)
        self._weighted_updates = np.zeros(bound.n_params)
        self.save()

    def run_pass(
        self,
        codes: Codes,
        weights: Floats,
        order: NDArray[np.int64],
        *,
        beam_width: int = 0,
        early_update: bool = False,
        keep_gold: bool = False,
        tie_state: NDArray[np.uint64] = NO_TIE_STATE,
    ) -> PassResult:
        """Visit the samples in order; see `OnlineWeights`."""
        if beam_width > 0 or early_update or keep_gold:
            raise InputError(f"{type(self._bound).__name__} does not support beam search")
        if tie_state.size > 0:
            raise InputError(f"{type(self._bound).__name__} does not support random ties")
        bound = self._bound
        predicted = np.empty(codes.size, dtype=np.int64)
        updated = np.zeros(len(bound.X), dtype=bool)
        for i in order.tolist():
            block = bound.block(i, i + 1)
            gold = codes[block.steps]
            decoded = bound.argmax(bound.scores(bound.source(self._w), block))
            predicted[block.steps] = decoded
            updated[i] = bool((decoded != gold).any())
            if updated[i]:
                places, values = bound.feature_difference(i, gold, decoded)
                self._w[places] += weights[i] * values
                self._weighted_updates[places] += self.n_steps * weights[i] * values
            self.n_steps += 1
        return PassResult(int((predicted != codes).sum()), predicted, updated)

    def current(self) -> Floats:
        """Return the weights now."""
        return self._w.copy()

    def average(self) -> Floats:
        """Return the mean of the weights after each visit."""
        return self._w - self._weighted_updates / max(self.n_steps, 1)

    def is_finite(self) -> bool:
        """Return whether all weights, and their sums over time, are finite."""
        return bool(np.isfinite(self._w).all() and np.isfinite(self._weighted_updates).all())

    def save(self) -> None:
        """Save a copy of the weights."""
        self._saved = self.n_steps, self._w.copy(), self._weighted_updates.copy()

    def restore(self) -> None:
        """Restore the weights stored by `save`."""
        self.n_steps, self._w[:], self._weighted_updates[:] = self._saved
