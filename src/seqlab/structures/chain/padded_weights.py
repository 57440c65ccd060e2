"""PaddedWeights: the weights of a chain as the kernels take them.

Kernels work on tables whose label axis is padded to a whole number of vector registers. `PaddedWeights`
is the one place that converts between these tables and the parameter vector of the structure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain.mixed_rows import MixedRows
from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]


class WeightTables(NamedTuple):
    """Tables of weights, as kernels take them."""

    dense: Floats  # (n_dense, width), state weights of dense features
    state: Floats  # (n_weights,), those of the other features
    pairwise: Floats  # (1, width, width), transition weights
    start: Floats  # (width,)
    end: Floats  # (width,)


class PaddedWeights:
    """Tables of weights, zero in the padding.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    rows : MixedRows
        The layout of the state weights.
    vector : array of shape (n_params,), optional
        Memory for the parameter vector; zeros if not given.

    Attributes
    ----------
    vector : array of shape (n_params,)
        The parameter vector; up to date after `flush`.
    tables : WeightTables
        ``state`` shares the memory of ``vector``.
    """

    def __init__(
        self, structure: ChainStructure, rows: MixedRows, vector: Floats | None = None
    ) -> None:
        self._structure, self._rows = structure, rows
        self.vector: Floats = np.zeros(structure.n_params) if vector is None else vector
        self.tables = WeightTables(
            rows.new_rows(),
            self.vector[structure.slices["state"]],
            np.zeros((1, rows.width, rows.width)),
            *np.zeros((2, rows.width)),
        )

    @classmethod
    def from_vector(cls, structure: ChainStructure, rows: MixedRows, w: Floats) -> PaddedWeights:
        """Return the tables of a parameter vector, whose memory they share."""
        padded, n_labels = cls(structure, rows, w), structure.n_labels
        table = padded.tables
        rows.spread(table.state, table.dense)
        square = np.zeros((n_labels, n_labels))
        square[structure.has_transition] = w[structure.slices["transitions"]]
        table.pairwise[0, :n_labels, :n_labels] = square
        if structure.boundary:
            table.start[:n_labels] = w[structure.slices["start"]]
            table.end[:n_labels] = w[structure.slices["end"]]
        return padded

    def flush(self) -> Floats:
        """Write the tables to the parameter vector and return it."""
        structure, n_labels, table = self._structure, self._structure.n_labels, self.tables
        self._rows.gather(table.dense, table.state)
        square = table.pairwise[0, :n_labels, :n_labels]
        self.vector[structure.slices["transitions"]] = square[structure.has_transition]
        if structure.boundary:
            self.vector[structure.slices["start"]] = table.start[:n_labels]
            self.vector[structure.slices["end"]] = table.end[:n_labels]
        return self.vector
