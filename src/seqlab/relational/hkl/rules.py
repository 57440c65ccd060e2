"""Rules: conjunctions with weights, as columns of numbers and as text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Rule(NamedTuple):
    """A conjunction that speaks for or against a label.

    Attributes
    ----------
    label : object
    conditions : tuple of str
        Names of the inputs that must be on; empty for the bias of the label.
    weight : float
        Added to the score of the label at every step at which all conditions hold.
    """

    label: Any
    conditions: tuple[str, ...]
    weight: float

    def __str__(self) -> str:
        condition = " and ".join(self.conditions) if self.conditions else "always"
        return f"{self.weight:+.4g}  {self.label}  if {condition}"


def binary_inputs(matrix: Any) -> sp.csr_matrix:
    """Return 1 for every positive entry, as CSR."""
    csr = sp.csr_matrix(matrix)
    positive = sp.csr_matrix(
        ((csr.data > 0.0).astype(np.float64), csr.indices, csr.indptr), csr.shape, copy=True
    )
    positive.eliminate_zeros()
    return positive


def conjunction_columns(inputs: sp.csr_matrix, indices: Any, offsets: Any) -> sp.csr_matrix:
    """Return a column for each conjunction: 1 at the steps at which all of its inputs are on.

    Parameters
    ----------
    inputs : CSR matrix of shape (n_steps, n_inputs)
        Zeros and ones.
    indices, offsets : int arrays
        The inputs of conjunction k are ``indices[offsets[k]:offsets[k + 1]]``. The empty conjunction, which
        holds everywhere, must be the first one if it is present.
    """
    sizes = np.diff(offsets)
    members = sp.csc_matrix(
        (np.ones(indices.size), indices, offsets), (inputs.shape[1], sizes.size)
    )
    counts = (inputs @ members).tocsr()
    is_complete = counts.data == sizes[counts.indices]
    counts.data[:] = is_complete
    counts.eliminate_zeros()
    if sizes.size and sizes[0] == 0:
        everywhere = sp.csr_matrix(np.ones((inputs.shape[0], 1)))
        counts = sp.hstack([everywhere, counts[:, 1:]], format="csr")
    return counts
