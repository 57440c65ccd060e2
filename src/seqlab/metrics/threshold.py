"""Error at the best threshold: how well a real-valued score separates two classes.

Steps with ``score >= threshold`` are classified as positive. The error is a step function of the
threshold that changes only at the distinct scores, so that one sort finds its minimum::

    min over theta of 1/N sum_t [(s_t >= theta) != y_t]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqlab.data.errors import InputError
from seqlab.metrics._align import flatten_labels


class MinError(NamedTuple):
    """Smallest error and its threshold.

    Attributes
    ----------
    error : float
        Share of wrong steps at the threshold.
    threshold : float
        Steps with at least this score are positive; ``inf`` if it is best to call none positive.
    """

    error: float
    threshold: float


def min_error_threshold(y_true: Any, scores: Any, *, pos_label: Any = None) -> MinError:
    """Find the threshold on the scores with the smallest error.

    Parameters
    ----------
    y_true : list of label sequences, or flat sequence of labels
        At most two distinct labels.
    scores : list of arrays of scores, or flat array
        One finite number per step; higher means more positive.
    pos_label : label, optional
        The positive label. By default True, 1, or the last of the two labels in sorted order.

    Returns
    -------
    MinError
        If several thresholds are best, the lowest score.

    Examples
    --------
    >>> from seqlab.metrics import min_error_threshold
    >>> min_error_threshold([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    MinError(error=0.25, threshold=0.4)
    """
    flat, lengths = flatten_labels(y_true, "y_true")
    flat_scores, score_lengths = flatten_labels(scores, "scores")
    for i, (a, b) in enumerate(zip(lengths or (), score_lengths or (), strict=False)):
        if a != b:
            raise InputError(f"y_true[{i}] has {a} labels but scores[{i}] has {b}")
    if len(flat) != len(flat_scores) or not flat:
        raise InputError(f"y_true has {len(flat)} labels but there are {len(flat_scores)} scores")
    values = np.asarray(flat_scores, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise InputError(f"score {int(np.argmin(np.isfinite(values)))} is not finite")
    positive = _is_positive(flat, pos_label)

    order = np.argsort(values, kind="stable")
    values, positive = values[order], positive[order]
    # With the threshold at index i, the positives before i and the negatives from i on are wrong.
    missed = np.concatenate([[0], np.cumsum(positive)])
    false_alarms = np.count_nonzero(~positive) - np.concatenate([[0], np.cumsum(~positive)])
    distinct = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]]))
    errors = (missed + false_alarms)[distinct]
    best = int(np.argmin(errors))
    thresholds = np.append(values, np.inf)
    return MinError(float(errors[best] / values.size), float(thresholds[distinct[best]]))


def _is_positive(labels: list[Any], pos_label: Any) -> np.ndarray:
    distinct = set(labels)
    if len(distinct) > 2:
        raise InputError(f"a threshold separates two labels, got {len(distinct)}")
    if pos_label is None:
        if distinct <= {0, 1}:
            pos_label = 1
        elif len(distinct) == 2:
            pos_label = max(distinct)
        else:
            raise InputError(f"y_true holds only {labels[0]!r}: pos_label must be set")
    return np.array([label == pos_label for label in labels], dtype=bool)
