"""PaddedWeights: the weights of a chain in the form that the kernels use.

Kernels work on tables whose label axis is padded to a whole number of vector registers. `PaddedWeights`
converts between these tables and the parameter vector of the structure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain.mixed_rows import MixedRows
from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]


class WeightTables(NamedTuple):
    """Tables of weights, in the form that the kernels use."""

    dense: Floats  # (n_dense, width), state weights of dense features
    state: Floats  # (n_weights,), state weights of the other features
    pairwise: Floats  # (1, width, width), transition weights
    start: Floats  # (width,)
    end: Floats  # (width,)


class PaddedLayout:
    """Positions of the weights of a chain in padded tables.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    rows : MixedRows
        The layout of the state weights.
    """

    def __init__(self, structure: ChainStructure, rows: MixedRows) -> None:
        self.rows, self.n_labels, self.slices = rows, structure.n_labels, structure.slices
        self.n_params, self.boundary = structure.n_params, structure.boundary
        before, after = np.nonzero(structure.has_transition)
        self.transition_place = before * rows.width + after

    def load(self, w: Floats, tables: WeightTables) -> WeightTables:
        """Write a parameter vector to tables and return them; their ``state`` shares its memory."""
        dense, _, pairwise, start, end = tables
        state = w[self.slices["state"]]
        self.rows.spread(state, dense)
        pairwise.reshape(-1)[self.transition_place] = w[self.slices["transitions"]]
        if self.boundary:
            start[: self.n_labels] = w[self.slices["start"]]
            end[: self.n_labels] = w[self.slices["end"]]
        return WeightTables(dense, state, pairwise, start, end)


class PaddedWeights:
    """Tables of weights, initially zero, that can be converted to a parameter vector.

    Parameters
    ----------
    layout : PaddedLayout
    vector : array of shape (n_params,), optional
        Memory for the parameter vector; zeros if not given.

    Attributes
    ----------
    vector : array of shape (n_params,)
        The parameter vector; up to date after `flush`.
    tables : WeightTables
        ``state`` shares the memory of ``vector``.
    """

    def __init__(self, layout: PaddedLayout, vector: Floats | None = None) -> None:
        self._layout, width = layout, layout.rows.width
        self.vector: Floats = np.zeros(layout.n_params) if vector is None else vector
        start, end = np.zeros((2, width))
        state, pairwise = self.vector[layout.slices["state"]], np.zeros((1, width, width))
        self.tables = WeightTables(layout.rows.new_rows(), state, pairwise, start, end)

    def flush(self) -> Floats:
        """Write the tables to the parameter vector and return it."""
        layout, tables, vector = self._layout, self.tables, self.vector
        layout.rows.gather(tables.dense, tables.state)
        square = tables.pairwise.reshape(-1)
        vector[layout.slices["transitions"]] = square[layout.transition_place]
        if layout.boundary:
            vector[layout.slices["start"]] = tables.start[: layout.n_labels]
            vector[layout.slices["end"]] = tables.end[: layout.n_labels]
        return vector
