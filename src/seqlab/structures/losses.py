"""Hamming loss: the number of wrong labels, and the same loss as a cost of each label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def hamming_loss(codes: Codes, predicted: Codes, offsets: NDArray[np.int64]) -> Floats:
    """Count the wrong labels of each sample, shape (n_samples,)."""
    wrong = np.concatenate([[0], np.cumsum(codes != predicted)])
    return np.diff(wrong[offsets]).astype(np.float64)


def miss_costs(codes: Codes, n_labels: int, costs: Floats | float = 1.0) -> Floats:
    """Return the cost of every label at every position: 0 for the gold label, else ``costs``.

    Parameters
    ----------
    codes : array of shape (n_positions,)
        Gold labels; the costs of a position whose label is unknown (negative) must be 0.
    n_labels : int
    costs : float or array of shape (n_positions,), default=1.0
        Cost of any other label at each position; 1 gives the Hamming loss.

    Returns
    -------
    array of shape (n_positions, n_labels)
    """
    table = np.empty((codes.size, n_labels))
    table[:] = np.reshape(costs, (-1, 1))
    table[np.arange(codes.size), codes] = 0.0
    return table
