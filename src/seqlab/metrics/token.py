"""Scores per step and per sequence.

With ``y`` the gold labels, ``p`` the predicted ones and N steps in all::

    token accuracy     = 1/N sum_t [p_t = y_t]
    recall of label k  = sum_t [p_t = y_t = k] / sum_t [y_t = k]
    macro recall       = mean of the recalls over the labels that occur in y
    sequence accuracy  = share of the sequences with no wrong label

Token accuracy is the mean of the recalls weighted by how often each label occurs in ``y``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.metrics._align import Aligned, align, is_kept
from seqlab.metrics._counts import Counts, Floats, count_columns, count_matrix, divide


def token_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    ignore: Any = (),
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the steps with the right label.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences, or flat (stacked) sequences of labels
    ignore : label or collection of labels
        Steps with one of these *gold* labels are ignored.
    lengths : array of shape (n_sequences,), optional
        Steps per sequence, for stacked labels.
    sample_weight : array of shape (n_sequences,), optional
        Weight of each sequence.

    Returns
    -------
    float
        Between 0 and 1. Data without a step to score raise an `InputError`.

    Examples
    --------
    >>> from seqlab.metrics import token_accuracy
    >>> token_accuracy([["N", "V"], ["D", "N"]], [["N", "V"], ["D", "V"]])
    0.75
    """
    counts = token_accuracy_counts(y_true, y_pred, ignore=ignore, lengths=lengths)
    return _evaluate(counts, sample_weight, "label")


def macro_recall(
    y_true: Any,
    y_pred: Any,
    *,
    ignore: Any = (),
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean recall over labels ("class accuracy").

    Every label that occurs in ``y_true`` has the same weight. Labels that occur only in ``y_pred``
    have no recall and are not part of the mean; predicting them is an error for the gold label.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences, or flat (stacked) sequences of labels
    ignore : label or collection of labels
        Labels to exclude from the mean, for example an "idle" class. Their steps do not count, but
        predicting them at other steps is still an error.
    lengths, sample_weight
        As in `token_accuracy`.

    Examples
    --------
    >>> from seqlab.metrics import macro_recall
    >>> y_true, y_pred = [["idle", "idle", "cook", "eat"]], [["idle", "idle", "cook", "cook"]]
    >>> round(macro_recall(y_true, y_pred), 4)
    0.6667
    >>> macro_recall(y_true, y_pred, ignore="idle")
    0.5
    """
    counts = macro_recall_counts(y_true, y_pred, ignore=ignore, lengths=lengths)
    return _evaluate(counts, sample_weight, "label")


def sequence_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the sequences with all labels right; an empty sequence is right.

    Examples
    --------
    >>> from seqlab.metrics import sequence_accuracy
    >>> sequence_accuracy([["N", "V"], ["D", "N"]], [["N", "V"], ["D", "V"]])
    0.5
    """
    counts = sequence_accuracy_counts(y_true, y_pred, lengths=lengths)
    return _evaluate(counts, sample_weight, "sequence")


class Confusion(NamedTuple):
    """Confusion matrix of steps.

    Attributes
    ----------
    matrix : array of shape (n_labels, n_labels)
        ``matrix[i, j]``: steps with gold label ``labels[i]`` and predicted label ``labels[j]``.
    labels : list
        The labels of both axes.
    """

    matrix: NDArray[np.int64]
    labels: list[Any]

    def worst(self, n: int = 5) -> list[tuple[Any, Any, int]]:
        """The ``n`` most frequent errors as (gold, predicted, count), most frequent first."""
        errors = self.matrix.copy()
        np.fill_diagonal(errors, 0)
        order = np.argsort(-errors, axis=None, kind="stable")[:n]
        pairs = zip(*np.unravel_index(order, errors.shape), strict=True)
        return [
            (self.labels[i], self.labels[j], int(errors[i, j])) for i, j in pairs if errors[i, j]
        ]


def confusion(
    y_true: Any, y_pred: Any, *, labels: Any = None, lengths: ArrayLike | None = None
) -> Confusion:
    """Count the steps of each pair of gold and predicted label.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences, or flat (stacked) sequences of labels
    labels : collection of labels, optional
        Labels of the axes, in order; steps with other gold or predicted labels are ignored. By
        default all labels that occur, sorted.
    lengths : array of shape (n_sequences,), optional
        Steps per sequence, for stacked labels.

    Examples
    --------
    >>> from seqlab.metrics import confusion
    >>> table = confusion([["N", "V"], ["D", "N"]], [["N", "V"], ["D", "V"]])
    >>> table.labels, table.matrix.tolist()
    (['D', 'N', 'V'], [[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    >>> table.worst(1)
    [('N', 'V', 1)]
    """
    aligned = align(y_true, y_pred, lengths=lengths)
    n_labels = len(aligned.labels)
    cells = np.bincount(aligned.true * n_labels + aligned.pred, minlength=n_labels**2)
    matrix = cells.reshape(n_labels, n_labels)
    if labels is None:
        return Confusion(matrix, aligned.labels)
    axis = list(labels)
    code_of = {label: code for code, label in enumerate(aligned.labels)}
    chosen = np.array([code_of.get(label, n_labels) for label in axis], dtype=np.int64)
    padded = np.pad(matrix, (0, 1))  # last row and column: unseen labels
    return Confusion(padded[np.ix_(chosen, chosen)], axis)


def token_accuracy_counts(
    y_true: Any, y_pred: Any, *, ignore: Any = (), lengths: ArrayLike | None = None
) -> Counts:
    """Count the right steps and all steps of each sequence."""
    aligned = align(y_true, y_pred, lengths=lengths)
    kept = is_kept(aligned.labels, ignore)[aligned.true]
    right = kept & (aligned.true == aligned.pred)
    sequence = aligned.sequence
    return Counts(count_columns((sequence[right], sequence[kept]), aligned.n_sequences), _ratio)


def macro_recall_counts(
    y_true: Any, y_pred: Any, *, ignore: Any = (), lengths: ArrayLike | None = None
) -> Counts:
    """Count the right steps and the gold steps of each label and sequence."""
    aligned = align(y_true, y_pred, lengths=lengths)
    kept = is_kept(aligned.labels, ignore)[aligned.true]
    right = kept & (aligned.true == aligned.pred)
    sequence, n_labels = aligned.sequence, len(aligned.labels)
    rows = np.concatenate([sequence[right], sequence[kept]])
    columns = np.concatenate([aligned.true[right], aligned.true[kept] + n_labels])
    return Counts(count_matrix(rows, columns, (aligned.n_sequences, 2 * n_labels)), _macro_recall)


def sequence_accuracy_counts(
    y_true: Any, y_pred: Any, *, lengths: ArrayLike | None = None
) -> Counts:
    """Count 1 for each right sequence, and 1 for each sequence."""
    aligned = align(y_true, y_pred, lengths=lengths)
    wrong = np.bincount(
        aligned.sequence[aligned.true != aligned.pred], minlength=aligned.n_sequences
    )
    parts = (np.flatnonzero(wrong == 0), np.arange(aligned.n_sequences))
    return Counts(count_columns(parts, aligned.n_sequences), _ratio)


def label_counts(aligned: Aligned) -> Any:
    """Count right, predicted and gold steps of each label: CSR matrix (n_sequences, 3 n_labels)."""
    right = aligned.true == aligned.pred
    sequence = aligned.sequence
    rows = np.concatenate([sequence[right], sequence, sequence])
    columns = np.concatenate([3 * aligned.true[right], 3 * aligned.pred + 1, 3 * aligned.true + 2])
    return count_matrix(rows, columns, (aligned.n_sequences, 3 * len(aligned.labels)))


def _evaluate(counts: Counts, sample_weight: ArrayLike | None, unit: str) -> float:
    if not counts.total(sample_weight).any():
        raise InputError(f"there is no {unit} to score")
    return counts.evaluate(sample_weight)


def _ratio(totals: Floats) -> Floats:
    return divide(totals[..., 0], totals[..., 1])


def _macro_recall(totals: Floats) -> Floats:
    right, gold = np.split(totals, 2, axis=-1)
    present = np.count_nonzero(gold, axis=-1)
    return divide(divide(right, gold).sum(axis=-1), present)
