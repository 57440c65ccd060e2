"""ChainOnlineWeights: the weights of a chain while a perceptron learns them, in a fused kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.perceptron import perceptron_pass
from seqlab.structures.chain.features import ChainFeatures
from seqlab.structures.chain.mixed_rows import MixedRows
from seqlab.structures.chain.padded_weights import PaddedLayout, PaddedWeights
from seqlab.structures.chain.structure import ChainStructure
from seqlab.structures.online import NO_TIE_STATE, PassResult

Floats = NDArray[np.float64]


class ChainOnlineWeights:
    """Weights, their lazily computed sums, and the number of visits; see `OnlineWeights`.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    features : ChainFeatures
        Of the training data.
    """

    def __init__(self, structure: ChainStructure, features: ChainFeatures) -> None:
        self.n_steps = 0
        self._structure = structure
        self._offsets = features.offsets
        self._rows = MixedRows(features, structure.state)
        self._mask = self._rows.new_rows()
        self._rows.spread(np.ones(self._rows.n_weights), self._mask)
        layout = PaddedLayout(structure, self._rows)
        self._now = PaddedWeights(layout)
        self._weighted_updates = PaddedWeights(layout)  # each update times the visits before it
        self._tables = (*self._now.tables, *self._weighted_updates.tables)
        self._saved = [np.zeros_like(table) for table in self._tables]
        self._saved_steps = 0

    def run_pass(
        self,
        codes: NDArray[np.int64],
        weights: Floats,
        order: NDArray[np.int64],
        *,
        beam_width: int = 0,
        early_update: bool = False,
        keep_gold: bool = False,
        tie_state: NDArray[np.uint64] = NO_TIE_STATE,
    ) -> PassResult:
        """Visit the sequences in order; see `OnlineWeights`."""
        structure = self._structure
        predicted = np.empty(codes.size, dtype=np.int64)
        updated = np.zeros(self._offsets.size - 1, dtype=bool)
        n_wrong, self.n_steps = perceptron_pass(
            order, self._offsets, codes, weights, self._rows.arrays, self._rows.columns,
            self._now.tables, self._weighted_updates.tables, self._mask, structure.n_labels,
            structure.has_transition, structure.boundary, self.n_steps,
            beam_width, early_update, keep_gold, tie_state, predicted, updated,
        )  # fmt: skip
        return PassResult(n_wrong, predicted, updated)

    def is_finite(self) -> bool:
        """Return whether all weights, and their sums over time, are finite."""
        return all(bool(np.isfinite(table).all()) for table in self._tables)

    def save(self) -> None:
        """Save a copy of the weights."""
        for kept, table in zip(self._saved, self._tables, strict=True):
            kept[...] = table
        self._saved_steps = self.n_steps

    def restore(self) -> None:
        """Restore the weights stored by `save`."""
        for kept, table in zip(self._saved, self._tables, strict=True):
            table[...] = kept
        self.n_steps = self._saved_steps

    def current(self) -> Floats:
        """Return the weights now."""
        return self._now.flush().copy()

    def average(self) -> Floats:
        """Return the mean of the weights after each visit."""
        return self._now.flush() - self._weighted_updates.flush() / max(self.n_steps, 1)
