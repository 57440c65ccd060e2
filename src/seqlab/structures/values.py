"""What structures return to learners, and one of their options."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ExpectedFeatures(NamedTuple):
    """Log-partition and expected features of all samples.

    The expected features are given in parts: the caller sums them together with further terms.
    """

    log_z: Floats  # (n_samples,)
    parts: Floats  # (n_parts, n_params)


class PairMarginals(NamedTuple):
    """Marginals of pairs of neighbouring labels of a block, and the log-likelihood of its labels."""

    log_likelihood: Floats  # (n_block_samples,)
    node: Floats  # (n_block_positions, n_labels)
    pair: Floats  # (n_block_positions, n_labels, n_labels), from the previous label to the label


class BeamOptions(NamedTuple):
    """Approximate marginals from a beam."""

    width: int
    keep_gold: bool = True  # whether the gold label is kept too, besides ``width`` others


class SquareShares(NamedTuple):
    """Shares of the squares of the feature of each weight."""

    without_outliers: Floats  # what remains if outliers are clipped
    without_offset: Floats  # what remains if the mean of the column is subtracted


class LabelCurvature(NamedTuple):
    """Blocks of a Hessian, one for each label, and directions that run through several blocks.

    Without them training would be slow in these directions: parts of them that have much curvature each
    have almost none together.
    """

    blocks: list[tuple[NDArray[np.int64], Floats]]  # disjoint sets of weights, and their blocks
    directions: sp.csr_matrix  # (n_directions, n_params)
    hessian: Floats  # (n_directions, n_directions), among the directions
