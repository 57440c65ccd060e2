"""Scores per phrase: exact match of start, stop and type.

With ``right`` the number of phrases in both gold and prediction, over the whole corpus::

    P = right / predicted      R = right / gold      F1 = 2 P R / (P + R)

Tags are read by `seqlab.data.tags_to_phrases`: by default with the rules of ``conlleval``, as in the
CoNLL shared tasks; with ``strict=True`` only well-formed phrases count. Both modes agree with seqeval
(default mode; ``mode="strict"``).

Without predicted (or gold) phrases, P (or R) and F1 are 0, without a warning. Tags that were not seen in
training, in gold or prediction, are phrases like the others and count as errors.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.data.tags import StackedPhrases, find_phrases, get_scheme, parse_tag
from seqlab.metrics._align import Aligned, align
from seqlab.metrics._counts import (
    Counts,
    Floats,
    averaged,
    check_average,
    count_matrix,
    precision_recall_f1,
)


class SpanScores(NamedTuple):
    """Precision, recall, F1 and support.

    Attributes
    ----------
    precision, recall, f1 : float, or arrays of shape (n_types,) with ``average=None``
    support : float or array
        Number of gold phrases, or the sum of their weights if weights are given.
    """

    precision: Any
    recall: Any
    f1: Any
    support: Any


class SpanCounts(NamedTuple):
    """Right, predicted and gold phrases of each sequence and type.

    Attributes
    ----------
    types : list of str
        Types in either labeling, sorted; tags without a type count as type ``"_"``.
    matrix : CSR matrix of shape (n_sequences, 3 * n_types)
        Columns ``3 k``, ``3 k + 1``, ``3 k + 2``: right, predicted and gold phrases of type ``k``.
    """

    types: list[str]
    matrix: Any


def span_precision_recall_f1(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    average: str | None = "micro",
    *,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> SpanScores:
    """Precision, recall and F1 of phrases.

    Parameters
    ----------
    y_true, y_pred : lists of tag sequences, or flat (stacked) sequences of tags
    scheme : {"IO", "IOB1", "IOB2", "IOBES", "BILOU"}
        Tag scheme.
    strict : bool
        Whether only well-formed phrases count; see `seqlab.data.tags_to_phrases`.
    average : {"micro", "macro", "weighted"} or None
        Counts summed over types; mean over the types that occur in either labeling; mean weighted
        by gold phrases; or one score per type, types sorted by name (`span_report` gives the
        names).
    lengths : array of shape (n_sequences,), optional
        Steps per sequence, for stacked tags, which are one sequence by default.
    sample_weight : array of shape (n_sequences,), optional
        Weight of each sequence.

    Returns
    -------
    SpanScores
        Named tuple (precision, recall, f1, support).

    Notes
    -----
    Linear in the number of steps, without a Python loop over them. Equal to ``conlleval`` on IOB1
    and IOB2, and to seqeval on these and IOBES, except that a type is everything after the first
    hyphen in both modes (the strict mode of seqeval also strips hyphens at the ends).

    Examples
    --------
    >>> from seqlab.metrics import span_precision_recall_f1
    >>> y_true = [["B-NP", "I-NP", "O", "B-VP"]]
    >>> y_pred = [["B-NP", "I-NP", "O", "O"]]
    >>> span_precision_recall_f1(y_true, y_pred)
    SpanScores(precision=1.0, recall=0.5, f1=0.6666666666666666, support=2)
    >>> span_precision_recall_f1(y_true, y_pred, average=None).f1
    array([1., 0.])
    """
    check_average(average, none_allowed=True)
    counts = span_counts(y_true, y_pred, scheme, strict, lengths=lengths)
    total = Counts(counts.matrix, _flat_score).total(sample_weight).reshape(-1, 3)
    support = total[:, 2] if sample_weight is not None else total[:, 2].astype(np.int64)
    if average is None:
        precision, recall, f1 = np.moveaxis(precision_recall_f1(total), -1, 0)
        return SpanScores(precision, recall, f1, support)
    precision, recall, f1 = averaged(total, average).tolist()
    return SpanScores(precision, recall, f1, support.sum().item())


def span_f1(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    average: str = "micro",
    *,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """F1 of phrases; parameters as in `span_precision_recall_f1`.

    Examples
    --------
    >>> from seqlab.metrics import span_f1
    >>> span_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-NP", "B-VP"]])
    0.8
    """
    counts = span_score_counts(y_true, y_pred, scheme, strict, average, lengths=lengths)
    return counts.evaluate(sample_weight)


def span_precision(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    average: str = "micro",
    *,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the predicted phrases that are right; parameters as in `span_precision_recall_f1`.

    Examples
    --------
    >>> from seqlab.metrics import span_precision
    >>> span_precision([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-NP"]])
    0.5
    """
    counts = span_score_counts(
        y_true, y_pred, scheme, strict, average, lengths=lengths, measure="precision"
    )
    return counts.evaluate(sample_weight)


def span_recall(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    average: str = "micro",
    *,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the gold phrases that are found; parameters as in `span_precision_recall_f1`.

    Examples
    --------
    >>> from seqlab.metrics import span_recall
    >>> span_recall([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-NP"]])
    1.0
    """
    counts = span_score_counts(
        y_true, y_pred, scheme, strict, average, lengths=lengths, measure="recall"
    )
    return counts.evaluate(sample_weight)


def span_counts(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    *,
    lengths: ArrayLike | None = None,
) -> SpanCounts:
    """Right, predicted and gold phrases of each sequence and type."""
    get_scheme(scheme)
    aligned = align(y_true, y_pred, lengths=lengths)
    letter_of_label, type_of_label, types = _parse_labels(aligned, scheme)
    gold, predicted = (
        find_phrases(
            letter_of_label[codes], type_of_label[codes], aligned.offsets, scheme, strict=strict
        )
        for codes in (aligned.true, aligned.pred)
    )
    right = _shared(gold, predicted, aligned.true.size)
    parts = (right, predicted, gold)
    starts = np.concatenate([part.start for part in parts])
    rows = np.searchsorted(aligned.offsets, starts, side="right") - 1
    columns = np.concatenate([3 * part.type + i for i, part in enumerate(parts)])
    matrix = count_matrix(rows, columns, (aligned.n_sequences, 3 * len(types)))
    occurs = np.unique(columns // 3)  # strict reading may leave types without a phrase
    kept = (3 * occurs[:, None] + np.arange(3)).ravel()
    return SpanCounts([types[k] for k in occurs], matrix[:, kept])


def span_score_counts(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    average: str = "micro",
    *,
    lengths: ArrayLike | None = None,
    measure: str = "f1",
) -> Counts:
    """Counts of each sequence, and one averaged score as a function of their sum."""
    check_average(average)
    column = ("precision", "recall", "f1").index(measure)
    counts = span_counts(y_true, y_pred, scheme, strict, lengths=lengths)
    return Counts(counts.matrix, partial(_flat_score, average=average, column=column))


def _flat_score(totals: Floats, average: str = "micro", column: int = 2) -> Floats:
    n_types = totals.shape[-1] // 3
    return averaged(totals.reshape(*totals.shape[:-1], n_types, 3), average)[..., column]


def _parse_labels(
    aligned: Aligned, scheme: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Return the letter and type of each distinct label, and the names of the types."""
    letters, names = [], []
    for code, label in enumerate(aligned.labels):
        try:
            letter, type_ = parse_tag(label, scheme)
        except InputError:
            parse_tag(label, scheme, where=f"at {aligned.first_place(code)}")
            raise
        letters.append(letter)
        names.append("_" if type_ is None else type_)
    types = sorted(set(names))
    code_of = {name: code for code, name in enumerate(types)}
    return (
        np.array(letters, dtype=np.int64),
        np.array([code_of[name] for name in names], dtype=np.int64),
        types,
    )


def _shared(gold: StackedPhrases, predicted: StackedPhrases, n_steps: int) -> StackedPhrases:
    """Predicted phrases that are also gold; no two phrases of a labeling have the same start."""
    stop_at = np.zeros(n_steps, dtype=np.int64)
    type_at = np.zeros(n_steps, dtype=np.int64)
    stop_at[gold.start] = gold.stop
    type_at[gold.start] = gold.type
    hit = (stop_at[predicted.start] == predicted.stop) & (
        type_at[predicted.start] == predicted.type
    )
    return StackedPhrases(predicted.start[hit], predicted.stop[hit], predicted.type[hit])
