"""Scores and gradients of functions of (previous label, features, label), one table entry per distinct row.

A learner of score functions, such as tree boosting, has a score for each label ``k``, previous label ``c``
and position; positions with equal features share a *row* of the tables::

    score of label k after label c at position t  =  node[k, row_t] + pair[k, row_t, c]

Column ``c = n_labels`` belongs to positions without a previous label. The gradient of the log-likelihood with
respect to such an entry is the sum, over the positions of the row, of ``[y_{t-1} = c, y_t = k] - P(y_{t-1} =
c, y_t = k)``.

Sums are kept in fixed point (64-bit integers). Integer sums do not depend on their order, so merging equal
rows, splitting the data among threads, and subtracting one part of the data from the whole give the same
bits.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.data.sequences import SequenceBlock

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int64]
Rows = NDArray[np.int32]

# Sums stay below 2 ** 61, so that a difference of two of them does not overflow.
SUM_BITS = 61


class RowScores:
    """Scores that depend on a position only through its row; a `ScoreSource`.

    Parameters
    ----------
    rows : int32 array of shape (n_positions,)
        Row of each position of the bound data.
    n_rows, n_labels : int
    has_pairs : bool
        Whether scores depend on the previous label; if not, positions are independent.

    Attributes
    ----------
    node : array of shape (n_labels, n_rows)
    pair : array of shape (n_labels, n_rows, n_labels + 1), or (n_labels, n_rows, 0) without pairs
        The last column is for positions without a previous label.
    """

    def __init__(self, rows: Rows, n_rows: int, n_labels: int, *, has_pairs: bool) -> None:
        self.rows = rows
        self.n_labels = n_labels
        self.edges_vary = has_pairs
        self.node = np.zeros((n_labels, n_rows))
        self.pair = np.zeros((n_labels, n_rows, n_labels + 1 if has_pairs else 0))
        self.start = self.end = np.zeros(n_labels)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.node.shape[1])

    def node_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each label at each position; see `ScoreSource`."""
        out = np.empty((block.n_steps, self.n_labels))
        gather_nodes(self.node, self.pair, self.rows[block.steps], block.offsets, out)
        return out

    def edge_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each pair of labels on an edge; see `ScoreSource`."""
        if not self.edges_vary:
            return np.zeros((self.n_labels, self.n_labels))
        out = np.empty((block.n_steps, self.n_labels, self.n_labels))
        gather_pairs(self.pair, self.rows[block.steps], out)
        return out


class PairSums:
    """Sums over positions for every (label, row, previous label), in fixed point.

    Parameters
    ----------
    source : RowScores
    total_weight : float
        Sum of the weights of all positions.
    with_curvature : bool
        Whether to sum ``P (1 - P)`` too.

    Attributes
    ----------
    scale : float
        Power of two by which real numbers are multiplied.
    gradient : int64 array of shape (n_labels, n_rows, n_labels + 1)
        ``sum_t weight_t ([y_{t-1} = c, y_t = k] - P_t(c, k))``; the last axis has length 1 without pairs.
    curvature : int64 array of the same shape, or (n_labels, 0, ...)
        ``sum_t weight_t P_t(c, k) (1 - P_t(c, k))``.
    """

    def __init__(self, source: RowScores, total_weight: float, *, with_curvature: bool) -> None:
        n_labels, n_rows = source.node.shape
        n_columns = n_labels + 1 if source.edges_vary else 1
        self.scale = fixed_point_scale(total_weight * n_columns)
        self.gradient = np.zeros((n_labels, n_rows, n_columns), dtype=np.int64)
        n_curved = n_rows if with_curvature else 0
        self.curvature = np.zeros((n_labels, n_curved, n_columns), dtype=np.int64)

    def clear(self) -> None:
        """Set all sums to zero."""
        self.gradient.fill(0)
        self.curvature.fill(0)


def fixed_point_scale(largest: float) -> float:
    """Return the power of two that maps sums of absolute value up to ``largest`` to 61-bit integers."""
    return math.ldexp(1.0, SUM_BITS - math.frexp(max(largest, 1e-200))[1])


@njit(nogil=True, cache=True)
def gather_nodes(node: Floats, pair: Floats, rows: Rows, offsets: Ints, out: Floats) -> None:
    """Write node scores of a block, with the scores of first positions."""
    n_labels = node.shape[0]
    for t in range(rows.size):
        for k in range(n_labels):
            out[t, k] = node[k, rows[t]]
    if pair.shape[2] > 0:
        for i in range(offsets.size - 1):
            t = offsets[i]
            if t < offsets[i + 1]:
                for k in range(n_labels):
                    out[t, k] += pair[k, rows[t], n_labels]


@njit(nogil=True, cache=True)
def gather_pairs(pair: Floats, rows: Rows, out: Floats) -> None:
    """Write the pair scores of a block: entry (t, c, k)."""
    n_labels = pair.shape[0]
    for t in range(rows.size):
        for k in range(n_labels):
            for c in range(n_labels):
                out[t, c, k] = pair[k, rows[t], c]


@njit(nogil=True, cache=True)
def add_block_sums(
    node: Floats,
    pair: Floats,
    codes: Codes,
    rows: Rows,
    weights: Floats,
    offsets: Ints,
    scale: float,
    gradient: Ints,
    curvature: Ints,
) -> None:
    """Add the gradient and the curvature of a block, from its node and pair marginals.

    ``weights`` has one entry per sample, ``codes`` and ``rows`` one per position.
    """
    n_labels = node.shape[1]
    with_curvature = curvature.shape[1] > 0
    for i in range(offsets.size - 1):
        factor = weights[i] * scale
        if factor == 0.0:
            continue
        for t in range(offsets[i], offsets[i + 1]):
            row = rows[t]
            first = t == offsets[i]
            column = n_labels if first else codes[t - 1]
            gradient[codes[t], row, column] += int(factor + 0.5)
            for k in range(n_labels):
                if first:
                    p = node[t, k]
                    gradient[k, row, n_labels] -= int(p * factor + 0.5)
                    if with_curvature:
                        curvature[k, row, n_labels] += int(p * (1.0 - p) * factor + 0.5)
                    continue
                for c in range(n_labels):
                    p = pair[t, c, k]
                    gradient[k, row, c] -= int(p * factor + 0.5)
                    if with_curvature:
                        curvature[k, row, c] += int(p * (1.0 - p) * factor + 0.5)


@njit(nogil=True, cache=True)
def add_independent_sums(
    scores: Floats,
    codes: Codes,
    rows: Rows,
    weights: Floats,
    offsets: Ints,
    scale: float,
    gradient: Ints,
    curvature: Ints,
    log_likelihood: Floats,
) -> None:
    """Set the log-likelihoods and add the sums of a model without pairs: a softmax at each position."""
    n_labels, n_rows = scores.shape
    with_curvature = curvature.shape[1] > 0
    probabilities, log_z = np.empty((n_rows, n_labels)), np.empty(n_rows)
    for row in range(n_rows):
        high = scores[:, row].max()
        total = 0.0
        for k in range(n_labels):
            probabilities[row, k] = math.exp(scores[k, row] - high)
            total += probabilities[row, k]
        log_z[row] = high + math.log(total)
        for k in range(n_labels):
            probabilities[row, k] /= total
    for i in range(offsets.size - 1):
        factor, value = weights[i] * scale, 0.0
        for t in range(offsets[i], offsets[i + 1]):
            row = rows[t]
            value += scores[codes[t], row] - log_z[row]
            if factor == 0.0:
                continue
            gradient[codes[t], row, 0] += int(factor + 0.5)
            for k in range(n_labels):
                p = probabilities[row, k]
                gradient[k, row, 0] -= int(p * factor + 0.5)
                if with_curvature:
                    curvature[k, row, 0] += int(p * (1.0 - p) * factor + 0.5)
        log_likelihood[i] = value
