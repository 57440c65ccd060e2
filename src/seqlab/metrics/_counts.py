"""Metrics as functions of counts that are summed over sequences.

Every metric of this package is ``score(sum_i counts[i])``: a vector of counts per sequence is summed
over the data, and the score is a function of the sum. With sample weights it is a weighted sum; in a
bootstrap resample the weights are the multiplicities, so that resampling does not read labels again.

For classes ``k`` (phrase types or labels) the counts are right, predicted and gold::

    P_k = right_k / predicted_k      R_k = right_k / gold_k      F1_k = 2 P_k R_k / (P_k + R_k)

with ``0 / 0 = 0``, without a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.metrics._align import Floats, check_weight

AVERAGES = ("micro", "macro", "weighted")


class Counts(NamedTuple):
    """Counts per sequence, and the score as a function of their sum.

    Attributes
    ----------
    matrix : CSR matrix of shape (n_sequences, n_counts)
    score : callable
        Maps totals of shape (..., n_counts) to scores of shape (...).
    """

    matrix: sp.csr_matrix
    score: Callable[[Floats], Floats]

    def evaluate(self, sample_weight: ArrayLike | None = None) -> float:
        """The score of all sequences."""
        return float(self.score(self.total(sample_weight)))

    def total(self, sample_weight: ArrayLike | None = None) -> Floats:
        """Weighted sum of the counts over sequences, shape (n_counts,)."""
        weight = check_weight(sample_weight, self.matrix.shape[0])
        if weight is None:
            weight = np.ones(self.matrix.shape[0])
        return np.asarray(self.matrix.T @ weight, dtype=np.float64)


def count_matrix(
    rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]
) -> sp.csr_matrix:
    """Count how often each (sequence, column) pair occurs."""
    return sp.coo_matrix((np.ones(rows.size), (rows, columns)), shape=shape).tocsr()


def count_columns(parts: Sequence[NDArray[np.int64]], n_sequences: int) -> sp.csr_matrix:
    """Count how often each sequence occurs in part ``k``, as column ``k``."""
    columns = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    return count_matrix(np.concatenate(parts), columns, (n_sequences, len(parts)))


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient with ``0 / 0 = 0``."""
    out = np.zeros(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)))
    return np.divide(numerator, denominator, out=out, where=np.asarray(denominator) != 0)


def precision_recall_f1(totals: Floats) -> Floats:
    """Compute precision, recall and F1 (..., 3) from counts (..., 3): right, predicted, gold."""
    right, predicted, gold = np.moveaxis(totals, -1, 0)
    precision, recall = divide(right, predicted), divide(right, gold)
    # 2PR / (P + R) = 2 right / (predicted + gold), with one rounding instead of three.
    return np.stack([precision, recall, divide(2 * right, predicted + gold)], axis=-1)


def averaged(totals: Floats, average: str) -> Floats:
    """Average precision, recall and F1 over classes.

    Parameters
    ----------
    totals : array of shape (..., n_classes, 3)
        Right, predicted and gold counts.
    average : {"micro", "macro", "weighted"}
        Scores of the summed counts; mean over the classes that occur; mean weighted by gold counts.

    Returns
    -------
    array of shape (..., 3)
    """
    if average == "micro":
        return precision_recall_f1(totals.sum(axis=-2))
    if average == "macro":
        # Exclude classes that are in neither labeling (of this resample).
        weight = ((totals[..., 1] > 0) | (totals[..., 2] > 0)).astype(np.float64)
    else:
        weight = totals[..., 2]
    scores = precision_recall_f1(totals)
    return divide((scores * weight[..., None]).sum(axis=-2), weight.sum(axis=-1)[..., None])


def check_average(average: object, *, none_allowed: bool = False) -> None:
    """Raise `InputError` for an unknown average."""
    if average in AVERAGES or (average is None and none_allowed):
        return
    known = ", ".join(map(repr, AVERAGES)) + (" or None" if none_allowed else "")
    raise InputError(f"average must be one of {known}, got {average!r}")
