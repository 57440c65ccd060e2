"""Directions in which the weights of a feature for all of its labels change by the same number.

If a feature was seen with all labels, the likelihood is constant in this direction (see `invariance`). If it
was not seen with some, it has no weights for them, and the direction changes only whether the label is one of
these. The model hardly ever expects that at steps with the feature, so the curvature is small, although that
of each weight may be large: training would be slow if the weights counted as independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.structures.chain.columns import ROWS
from seqlab.utils.linalg import matmul

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Steps from which the curvature is computed.
MAX_STEPS = 4_000


class ShiftDirections:
    """One direction for each feature that has weights for some labels, but not for all.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    X : Sequences

    Attributes
    ----------
    directions : CSR matrix of shape (n_directions, n_params)
    """

    def __init__(self, structure: ChainStructure, X: Sequences) -> None:
        self._X = X
        starts, labels = structure.state.explicit()
        counts = np.diff(starts)
        self._features = np.flatnonzero((counts > 1) & (counts < structure.n_labels))
        row = np.full(counts.size, -1)
        row[self._features] = np.arange(self._features.size)
        row = np.repeat(row, counts)
        weights = np.flatnonzero(row >= 0)
        self._is_missing = np.ones((self._features.size, structure.n_labels))
        self._is_missing[row[weights], labels[weights]] = 0.0
        entries = np.ones(weights.size), (row[weights], structure.slices["state"].start + weights)
        shape = self._features.size, structure.n_params
        self.directions = sp.csr_matrix(entries, shape=shape)

    def curvatures(self, steps: Ints, variances: NDArray[np.float32]) -> Floats:
        """Return the curvature of the log-partitions in each direction, treating steps as independent.

        ``variances`` (n_labels, n_places) are those of the labels at ``steps``.
        """
        every = max(1, -(-steps.size // MAX_STEPS))
        steps, variances = steps[::every], variances[:, ::every]
        out = np.zeros(self._features.size)
        for first in range(0, steps.size if self._features.size else 0, ROWS):
            part = self._X.matrix[steps[first : first + ROWS]][:, self._features]
            x = part.toarray() if sp.issparse(part) else part
            # A label that a feature was never seen with has a probability below one half.
            some = variances[:, first : first + ROWS].T.astype(np.float64)
            probabilities = 0.5 - np.sqrt(np.maximum(0.25 - some, 0.0))
            missing = np.minimum(matmul(probabilities, self._is_missing.T), 1.0)
            with np.errstate(over="ignore"):
                out += np.sum(x * x * (missing * (1.0 - missing)), axis=0)
        return out * (self._X.n_steps / max(steps.size, 1))
