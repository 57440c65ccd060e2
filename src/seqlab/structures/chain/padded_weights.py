"""PaddedWeights: the weights of a chain in the form that the kernels use.

Kernels work on tables whose label axis is padded to a whole number of vector registers. `PaddedWeights`
converts between these tables and the parameter vector of the structure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.padded_weights import flush_tables, load_tables
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
        self.rows, self.n_params = rows, structure.n_params
        self.state = structure.slices["state"]
        before, after = np.nonzero(structure.has_transition)
        places = rows.dense_param, rows.dense_place, before * rows.width + after
        self.places = (*places, structure.n_labels, structure.boundary)  # as the kernels take them

    def load(self, w: Floats, tables: WeightTables) -> WeightTables:
        """Write a parameter vector to tables and return them; their ``state`` shares its memory."""
        load_tables(w, *self.places, tables)
        dense, _, pairwise, start, end = tables
        return WeightTables(dense, w[self.state], pairwise, start, end)


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
        state, pairwise = self.vector[layout.state], np.zeros((1, width, width))
        self.tables = WeightTables(layout.rows.new_rows(), state, pairwise, start, end)

    def flush(self) -> Floats:
        """Write the tables to the parameter vector and return it."""
        flush_tables(self.tables, *self._layout.places, self.vector)
        return self.vector
