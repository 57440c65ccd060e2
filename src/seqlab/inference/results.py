"""Named results of inference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.inference.scores import Floats


class Marginals(NamedTuple):
    """Log-partition and node marginals.

    Attributes
    ----------
    log_z : array of shape (n_sequences,)
        ``log sum_y exp(score(y))`` of each sequence.
    node : array of shape (n_steps, n_labels)
        ``P(y_t = s)``.
    """

    log_z: Floats
    node: Floats


class PairMarginals(NamedTuple):
    """Log-partition, node marginals and pair marginals.

    Attributes
    ----------
    log_z : array of shape (n_sequences,)
        ``log sum_y exp(score(y))`` of each sequence.
    node : array of shape (n_steps, n_labels)
        ``P(y_t = s)``.
    pair : array of shape (n_steps, n_labels, n_labels)
        ``P(y_{t-1} = i, y_t = j)``; zeros at each sequence's first step.
    """

    log_z: Floats
    node: Floats
    pair: Floats


class TransitionCounts(NamedTuple):
    """Log-partition, node marginals and expected transition counts.

    Attributes
    ----------
    log_z : array of shape (n_sequences,)
        ``log sum_y exp(score(y))`` of each sequence.
    node : array of shape (n_steps, n_labels)
        ``P(y_t = s)``.
    transitions : array of shape (n_labels, n_labels)
        ``sum_n weight_n sum_t P(y_{t-1} = i, y_t = j)`` over all sequences.
    """

    log_z: Floats
    node: Floats
    transitions: Floats


class Labelings(NamedTuple):
    """One labeling per sequence and its score.

    Attributes
    ----------
    labels : int64 array of shape (n_steps,)
        Label of every step.
    score : array of shape (n_sequences,)
        Score of each sequence's labeling.
    """

    labels: NDArray[np.int64]
    score: Floats
