"""PerceptronState: the weights of a chain while a perceptron learns them.

Holds the current weights and the lazily kept sums of their average in the layout the kernel works on,
and reads both out as parameter vectors of the structure.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.structures._perceptron_kernel import perceptron_pass
from seqlab.structures.chain import ChainStructure
from seqlab.structures.mixed_rows import MixedRows

Floats = NDArray[np.float64]


class PerceptronState:
    """Weights, their lazy sums, and the number of steps taken.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    X : Sequences
        The training data, CSR.
    """

    def __init__(self, structure: ChainStructure, X: Sequences) -> None:
        self.structure = structure
        self.n_steps = 0
        self._X = X
        self._offsets = np.array(X.offsets)
        self._rows = MixedRows(X.matrix, structure.state)
        width = self._rows.width
        self._mask = self._rows.new_rows()
        self._rows.spread(np.ones(self._rows.n_weights), self._mask)
        self._has_transition = structure.transition_index >= 0
        # Current weights and the sums of their average.
        self._dense = [self._rows.new_rows(), self._rows.new_rows()]
        self._state = np.zeros((2, structure.state.n_weights))
        self._pairwise = np.zeros((2, 1, width, width))
        self._start = np.zeros((2, width))
        self._end = np.zeros((2, width))

    def run_pass(
        self,
        codes: NDArray[np.int64],
        weights: Floats,
        order: NDArray[np.int64],
        *,
        beam_width: int = 0,
        early_update: bool = False,
    ) -> tuple[int, NDArray[np.int64], NDArray[np.bool_]]:
        """One epoch; returns the wrong labels, what was decoded, and who changed the weights."""
        predicted = np.empty(self._X.n_steps, dtype=np.int64)
        updated = np.zeros(len(self._X), dtype=bool)
        n_wrong, self.n_steps = perceptron_pass(
            order, self._offsets, codes, weights, *self._rows.arrays,
            self._dense[0], self._dense[1], self._mask, self._state[0], self._state[1],
            self.structure.n_labels, self._has_transition, self._pairwise[0], self._pairwise[1, 0],
            self.structure.boundary, self._start[0], self._start[1], self._end[0], self._end[1],
            self.n_steps, beam_width, early_update, predicted, updated,
        )  # fmt: skip
        return n_wrong, predicted, updated

    def is_finite(self) -> bool:
        """Whether all weights, and their sums over time, are finite."""
        parts = (*self._dense, self._state, self._pairwise, self._start, self._end)
        return all(bool(np.isfinite(part).all()) for part in parts)

    def current(self) -> Floats:
        """The weights now, as a parameter vector."""
        return self._vector(0)

    def average(self) -> Floats:
        """Mean of the weights after each step, as a parameter vector."""
        return self._vector(0) - self._vector(1) / max(self.n_steps, 1)

    def _vector(self, which: int) -> Floats:
        n_labels = self.structure.n_labels
        state = self._state[which].copy()
        self._rows.gather(self._dense[which], state)
        parts = [state, self._pairwise[which, 0, :n_labels, :n_labels][self._has_transition]]
        if self.structure.boundary:
            parts += [self._start[which, :n_labels], self._end[which, :n_labels]]
        return np.concatenate(parts)
