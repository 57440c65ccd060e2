"""PartialLabels: labels of which some are not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class PartialLabels:
    """Labels of which some are not known.

    Parameters
    ----------
    codes : array of shape (n_positions,)
        Negative if a label is not known.
    allowed : boolean array of shape (n_positions, n_labels)
        Possible labels of each position.
    offsets : array of shape (n_samples + 1,)

    Attributes
    ----------
    is_informative : boolean array of shape (n_samples,)
        Whether anything is known of the labels of each sample. If nothing is, the probability of what is
        known is 1 for all weights.
    log_counts : array of shape (n_samples,)
        Logarithm of the number of labelings that agree with what is known.
    """

    def __init__(self, codes: Codes, allowed: NDArray[np.bool_], offsets: Codes) -> None:
        self.codes, self.allowed = codes, allowed
        n_samples, n_labels = offsets.size - 1, allowed.shape[1]
        sample = np.repeat(np.arange(n_samples), np.diff(offsets))
        counts = allowed.sum(axis=1)
        self.is_informative = np.bincount(sample, counts < n_labels, n_samples) > 0.0
        self.log_counts: Floats = np.bincount(sample, np.log(counts), n_samples).astype(float)
