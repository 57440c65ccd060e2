"""Scores of runs, for tasks that divide a sequence into long parts: mails, logs, days of sensor data.

A run is a maximal sequence of steps with one label. If runs are long, token accuracy hides errors that users
notice: if one of a hundred lines is wrong, accuracy is 99 %, but there are three runs instead of one.

* `run_f1`: F1 of predicted runs that overlap a gold run of the same label;
* `border_f1`: F1 of the steps at which a new run begins, with a tolerance of some steps;
* `run_report`: number and length of runs, and runs found, for each label.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.metrics._align import Aligned, Ints, align, is_kept
from seqlab.metrics._counts import Counts, Floats, count_columns, precision_recall_f1


class Run(NamedTuple):
    """Consecutive steps with one label.

    Attributes
    ----------
    label : label
    start, stop : int
        Steps ``start`` to ``stop - 1`` of the sequence.
    """

    label: Any
    start: int
    stop: int


def label_runs(labels: Any) -> list[Run]:
    """Return the runs of one sequence of labels, from left to right.

    Parameters
    ----------
    labels : sequence of labels

    Examples
    --------
    >>> from seqlab.metrics import label_runs
    >>> label_runs(["text", "text", "sig"])
    [Run(label='text', start=0, stop=2), Run(label='sig', start=2, stop=3)]
    """
    runs, start = [], 0
    for label, group in groupby(np.asarray(labels, dtype=object).tolist()):
        stop = start + sum(1 for _ in group)
        runs.append(Run(label, start, stop))
        start = stop
    return runs


def run_f1(
    y_true: Any,
    y_pred: Any,
    *,
    overlap: float = 1.0,
    ignore: Any = (),
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """F1 of runs: a predicted run is right if it overlaps a gold run of the same label enough.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences, or flat (stacked) sequences of labels
    overlap : float, default=1.0
        Required size of the intersection of both runs, as a share of their union: above 0.5, so that
        no run is found twice. 1 requires the same borders.
    ignore : label or collection of labels
        Runs of these labels do not count, for example background text.
    lengths : array of shape (n_sequences,), optional
        Steps per sequence, for stacked labels.
    sample_weight : array of shape (n_sequences,), optional

    Returns
    -------
    float
        Between 0 and 1; 0 if there are no runs.

    Examples
    --------
    >>> from seqlab.metrics import run_f1
    >>> gold, found = [["text", "text", "text", "sig", "sig"]], [["text", "text", "sig", "sig", "sig"]]
    >>> run_f1(gold, found), run_f1(gold, found, overlap=0.6)
    (0.0, 1.0)
    """
    counts = run_f1_counts(y_true, y_pred, overlap=overlap, ignore=ignore, lengths=lengths)
    return counts.evaluate(sample_weight)


def border_f1(
    y_true: Any,
    y_pred: Any,
    *,
    tolerance: int = 0,
    lengths: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """F1 of borders: the steps at which a label follows a different one.

    A predicted border is right if a gold border to the same label is at most ``tolerance`` steps away;
    each border is matched once. The score is 1 if there is no border in either labeling.

    Parameters
    ----------
    y_true, y_pred, lengths, sample_weight
        As in `run_f1`.
    tolerance : int, default=0

    Examples
    --------
    >>> from seqlab.metrics import border_f1
    >>> gold, found = [["text", "text", "text", "sig", "sig"]], [["text", "text", "sig", "sig", "sig"]]
    >>> border_f1(gold, found), border_f1(gold, found, tolerance=1)
    (0.0, 1.0)
    """
    counts = border_f1_counts(y_true, y_pred, tolerance=tolerance, lengths=lengths)
    return counts.evaluate(sample_weight)


class LabelRuns(NamedTuple):
    """Runs of one label.

    Attributes
    ----------
    gold, predicted : int
        Number of runs.
    gold_length, predicted_length : float
        Mean number of steps of a run; 0 without runs.
    found : int
        Number of gold runs that a predicted run overlaps enough.
    f1 : float
    """

    gold: int
    predicted: int
    gold_length: float
    predicted_length: float
    found: int
    f1: float


@dataclass(frozen=True)
class RunReport:
    """Runs of two labelings for each label; ``print`` shows a table.

    Parameters
    ----------
    labels : dict of label to LabelRuns
    total : LabelRuns
        Of all runs.
    border_f1 : float
        At the report's tolerance.
    overlap : float
    tolerance : int
    """

    labels: dict[Any, LabelRuns]
    total: LabelRuns
    border_f1: float
    overlap: float
    tolerance: int

    def __str__(self) -> str:
        head = ["", "gold runs", "predicted", "mean gold", "mean pred.", "found", "run F1"]
        rows = [*self.labels.items(), ("all", self.total)]
        cells = [head] + [
            [
                str(name),
                f"{one.gold:,}",
                f"{one.predicted:,}",
                f"{one.gold_length:.1f}",
                f"{one.predicted_length:.1f}",
                f"{one.found:,}",
                f"{one.f1:.3f}",
            ]
            for name, one in rows
        ]
        widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
        lines = [
            "  ".join([row[0].rjust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in cells
        ]
        steps = f"{self.tolerance} step" + "s" * (self.tolerance != 1)
        criterion = "the same borders" if self.overlap == 1 else f"overlap of {self.overlap:g}"
        note = f"found: {criterion}; border F1 within {steps}: {self.border_f1:.3f}"
        return "\n".join([*lines, "", note])


def run_report(
    y_true: Any,
    y_pred: Any,
    *,
    overlap: float = 0.8,
    tolerance: int = 1,
    lengths: ArrayLike | None = None,
) -> RunReport:
    """Report the number and length of runs, and the number of gold runs found.

    More and shorter runs than in the gold labels mean that the labeling changes labels too often; fewer
    runs mean that it changes them too rarely.

    Parameters
    ----------
    y_true, y_pred, lengths
        As in `run_f1`.
    overlap : float, default=0.8
        See `run_f1`.
    tolerance : int, default=1
        See `border_f1`.

    Examples
    --------
    >>> from seqlab.metrics import run_report
    >>> gold = [["text"] * 20 + ["sig"] * 5]
    >>> predicted = [["text"] * 9 + ["sig"] + ["text"] * 10 + ["sig"] * 5]
    >>> print(run_report(gold, predicted))
          gold runs  predicted  mean gold  mean pred.  found  run F1
     sig          1          2        5.0         3.0      1   0.667
    text          1          2       20.0         9.5      0   0.000
     all          2          4       12.5         6.2      1   0.333
    <BLANKLINE>
    found: overlap of 0.8; border F1 within 1 step: 0.500
    """
    _check_overlap(overlap)
    aligned = align(y_true, y_pred, lengths=lengths)
    gold, predicted = _find_runs(aligned)
    found = _find_matches(gold, predicted, overlap)
    rows = {
        label: _summarize(gold, predicted, found, np.array([code]))
        for code, label in enumerate(aligned.labels)
    }
    everything = _summarize(gold, predicted, found, np.arange(len(aligned.labels)))
    borders = border_f1(y_true, y_pred, tolerance=tolerance, lengths=lengths)
    return RunReport(rows, everything, borders, float(overlap), int(tolerance))


def run_f1_counts(
    y_true: Any,
    y_pred: Any,
    *,
    overlap: float = 1.0,
    ignore: Any = (),
    lengths: ArrayLike | None = None,
) -> Counts:
    """Count the found, predicted and gold runs of each sequence."""
    _check_overlap(overlap)
    aligned = align(y_true, y_pred, lengths=lengths)
    kept = is_kept(aligned.labels, ignore)
    gold, predicted = _find_runs(aligned)
    found = _find_matches(gold, predicted, overlap) & kept[gold.label]
    parts = (
        gold.sequence[found],
        predicted.sequence[kept[predicted.label]],
        gold.sequence[kept[gold.label]],
    )
    return Counts(count_columns(parts, aligned.n_sequences), _f1)


def border_f1_counts(
    y_true: Any, y_pred: Any, *, tolerance: int = 0, lengths: ArrayLike | None = None
) -> Counts:
    """Count the matched, predicted and gold borders of each sequence."""
    if not isinstance(tolerance, Integral) or tolerance < 0:
        raise InputError(f"tolerance must be a number of steps, got {tolerance!r}")
    aligned = align(y_true, y_pred, lengths=lengths)
    gold, predicted = (runs.borders(aligned) for runs in _find_runs(aligned))
    matched = _match(gold, predicted, int(tolerance))
    parts = (gold.sequence[matched], predicted.sequence, gold.sequence)
    return Counts(count_columns(parts, aligned.n_sequences), _border_f1)


class _Runs(NamedTuple):
    """Runs of all sequences, as positions in the stacked steps."""

    label: Ints
    start: Ints
    stop: Ints
    sequence: Ints
    of_step: Ints  # number of the run of each step

    @classmethod
    def from_codes(cls, codes: Ints, aligned: Aligned) -> _Runs:
        first = np.ones(codes.size, dtype=bool)
        first[1:] = codes[1:] != codes[:-1]
        begins = aligned.offsets[:-1]
        first[begins[begins < codes.size]] = True  # the offset of a last empty sequence is n_steps
        start = np.flatnonzero(first)
        stop = np.append(start[1:], codes.size)[: start.size]
        of_step = np.cumsum(first) - 1
        return cls(codes[start], start, stop, aligned.sequence[start], of_step)

    def borders(self, aligned: Aligned) -> _Runs:
        """The runs that follow another one, without the first run of each sequence."""
        inner = self.start != aligned.offsets[self.sequence]
        label, start, stop, sequence = (part[inner] for part in self[:4])
        return _Runs(label, start, stop, sequence, self.of_step)


def _find_runs(aligned: Aligned) -> tuple[_Runs, _Runs]:
    """The runs of the gold and of the predicted labels."""
    return _Runs.from_codes(aligned.true, aligned), _Runs.from_codes(aligned.pred, aligned)


def _check_overlap(overlap: float) -> None:
    if not 0.5 < overlap <= 1:
        raise InputError(f"overlap must be above 0.5 and at most 1, got {overlap!r}")


def _find_matches(gold: _Runs, predicted: _Runs, overlap: float) -> NDArray[np.bool_]:
    """Find the gold runs that a predicted run of the same label overlaps enough."""
    if gold.start.size == 0:
        return np.zeros(0, dtype=bool)
    # A run that shares more than half of the steps covers the middle one, so there is one candidate.
    other = predicted.of_step[(gold.start + gold.stop - 1) // 2]
    intersection = np.minimum(gold.stop, predicted.stop[other]) - np.maximum(
        gold.start, predicted.start[other]
    )
    union = np.maximum(gold.stop, predicted.stop[other]) - np.minimum(
        gold.start, predicted.start[other]
    )
    # Division rounds 14 / 25 to the same float as the literal 0.56; the product 0.56 * 25 is above 14.
    return (gold.label == predicted.label[other]) & (intersection / union >= overlap)


def _match(gold: _Runs, predicted: _Runs, tolerance: int) -> NDArray[np.int64]:
    """Match gold borders one to one with predicted ones, as many as possible.

    Within one sequence and label, a greedy match from left to right with the earliest free border in range is
    optimal.
    """

    def places(runs: _Runs) -> Iterator[tuple[int, int, int]]:
        return zip(runs.sequence.tolist(), runs.label.tolist(), runs.start.tolist(), strict=True)

    free: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    for sequence, label, at in places(predicted):
        free[sequence, label].append(at)
    matched = []
    for number, (sequence, label, at) in enumerate(places(gold)):
        candidates = free[sequence, label]
        while candidates and candidates[0] < at - tolerance:
            candidates.popleft()
        if candidates and candidates[0] <= at + tolerance:
            matched.append(number)
            candidates.popleft()
    return np.array(matched, dtype=np.int64)


def _f1(totals: Floats) -> Floats:
    return precision_recall_f1(totals)[..., 2]


def _border_f1(totals: Floats) -> Floats:
    return np.where(totals.any(axis=-1), _f1(totals), 1.0)  # no border in either labeling: 1


def _summarize(gold: _Runs, predicted: _Runs, found: NDArray[np.bool_], codes: Ints) -> LabelRuns:
    of_gold, of_predicted = np.isin(gold.label, codes), np.isin(predicted.label, codes)
    n_gold, n_predicted = int(of_gold.sum()), int(of_predicted.sum())
    n_found = int((found & of_gold).sum())
    gold_length = (gold.stop - gold.start)[of_gold].sum() / max(n_gold, 1)
    predicted_length = (predicted.stop - predicted.start)[of_predicted].sum() / max(n_predicted, 1)
    f1 = 2 * n_found / max(n_gold + n_predicted, 1)
    return LabelRuns(
        n_gold, n_predicted, float(gold_length), float(predicted_length), n_found, float(f1)
    )
