"""Reports: precision, recall and F1 of every class, as text, dict or data frame.

Rows are the classes (phrase types or labels), then three averages:

- micro: of the summed counts. Over all labels of all steps it is the token accuracy.
- macro: mean over classes that occur in gold or prediction.
- weighted: mean weighted by gold counts.

With ``confidence`` every number has a percentile bootstrap interval over sequences. Resamples in which
a class does not occur are ignored in its interval.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.metrics._align import align, is_kept
from seqlab.metrics._bootstrap import generator, percentile_interval, resampled_totals
from seqlab.metrics._counts import AVERAGES, Floats, averaged, precision_recall_f1
from seqlab.metrics.spans import span_counts
from seqlab.metrics.token import label_counts

MEASURES = ("precision", "recall", "f1")


@dataclass(frozen=True, eq=False)
class Report:
    """Scores of every class and their averages.

    Attributes
    ----------
    classes : list
        Phrase types or labels, sorted.
    scores : array of shape (n_classes + 3, 3)
        Precision, recall and F1 of the classes, then of the micro, macro and weighted averages.
    support : array of shape (n_classes + 3,)
        Gold phrases or steps.
    intervals : array of shape (2, n_classes + 3, 3) or None
        Lower and upper bounds of the scores.
    confidence : float or None
        Level of the intervals.

    Examples
    --------
    >>> from seqlab.metrics import span_report
    >>> report = span_report([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "O"]])
    >>> print(report)
                  precision  recall      f1  support
    NP               1.0000  1.0000  1.0000        1
    VP               0.0000  0.0000  0.0000        1
    <BLANKLINE>
    micro avg        1.0000  0.5000  0.6667        2
    macro avg        0.5000  0.5000  0.5000        2
    weighted avg     0.5000  0.5000  0.5000        2
    >>> report.to_dict()["NP"]
    {'precision': 1.0, 'recall': 1.0, 'f1': 1.0, 'support': 1}
    """

    classes: list[Any]
    scores: Floats
    support: NDArray[np.int64]
    intervals: Floats | None = None
    confidence: float | None = None
    names: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        averages = [f"{average} avg" for average in AVERAGES]
        object.__setattr__(self, "names", [*self.classes, *averages])

    def to_dict(self) -> dict[Any, dict[str, Any]]:
        """Convert to a dict from row names to dicts of precision, recall, f1 and support.

        Intervals, if there are any, are pairs under ``"f1_interval"`` and so on.
        """
        rows: dict[Any, dict[str, Any]] = {}
        for i, name in enumerate(self.names):
            row: dict[str, Any] = dict(zip(MEASURES, self.scores[i].tolist(), strict=True))
            row["support"] = int(self.support[i])
            if self.intervals is not None:
                for j, measure in enumerate(MEASURES):
                    row[f"{measure}_interval"] = tuple(self.intervals[:, i, j].tolist())
            rows[name] = row
        return rows

    def to_frame(self) -> Any:
        """Convert to a data frame with a row per class and average; bounds in ``f1_low``, ``f1_high``, ..."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install 'seqlab[frame]', or use to_dict"
            ) from error
        columns: dict[str, Any] = dict(zip(MEASURES, self.scores.T, strict=True))
        columns["support"] = self.support
        if self.intervals is not None:
            for j, measure in enumerate(MEASURES):
                columns[f"{measure}_low"] = self.intervals[0, :, j]
                columns[f"{measure}_high"] = self.intervals[1, :, j]
        return pd.DataFrame(columns, index=pd.Index(self.names, name="class"))

    def to_text(self, digits: int = 4) -> str:
        """Convert to a table of plain text, as ``str`` does; of the intervals, that of F1 is shown."""
        width = max(len("recall"), digits + 2)
        name_width = max(len(str(name)) for name in self.names)
        header = f"{'':{name_width}}  precision  {'recall':>{width}}  {'f1':>{width}}"
        if self.confidence is not None:
            header += f"  {f'f1 {self.confidence:.4g} interval':^{2 * width + 4}}"
        count_width = max(len("support"), len(str(self.support.max(initial=0))))
        lines = [header + f"  {'support':>{count_width}}"]
        for i, name in enumerate(self.names):
            if i == len(self.classes):
                lines.append("")
            precision, recall, f1 = self.scores[i]
            line = f"{name!s:{name_width}}  {precision:9.{digits}f}"
            line += f"  {recall:{width}.{digits}f}  {f1:{width}.{digits}f}"
            if self.intervals is not None:
                low, high = self.intervals[:, i, 2]
                line += f"  [{low:{width}.{digits}f}, {high:{width}.{digits}f}]"
            lines.append(line + f"  {self.support[i]:{count_width}d}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self.to_text()


def span_report(
    y_true: Any,
    y_pred: Any,
    scheme: str = "IOB2",
    strict: bool = False,
    *,
    lengths: ArrayLike | None = None,
    confidence: float | None = None,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> Report:
    """Report on phrases, one row per type.

    Parameters
    ----------
    y_true, y_pred, scheme, strict, lengths
        As in `span_precision_recall_f1`.
    confidence : float, optional
        Level of bootstrap intervals, for example 0.95; None for no intervals.
    n_resamples : int
        Number of bootstrap resamples.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Report

    Examples
    --------
    >>> from seqlab.metrics import span_report
    >>> y_true = [["B-NP", "O"], ["B-NP", "I-NP"], ["O", "B-NP"]]
    >>> y_pred = [["B-NP", "O"], ["B-NP", "O"], ["O", "B-NP"]]
    >>> report = span_report(y_true, y_pred, confidence=0.9, random_state=0)
    >>> low, high = report.to_dict()["micro avg"]["f1_interval"]
    >>> bool(low <= 2 / 3 <= high)
    True
    """
    counts = span_counts(y_true, y_pred, scheme, strict, lengths=lengths)
    return _report(counts.types, counts.matrix, confidence, n_resamples, random_state)


def token_report(
    y_true: Any,
    y_pred: Any,
    *,
    ignore: Any = (),
    lengths: ArrayLike | None = None,
    confidence: float | None = None,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> Report:
    """Report on steps, one row per label.

    Parameters
    ----------
    y_true, y_pred, lengths
        As in `token_accuracy`.
    ignore : label or collection of labels
        Labels without a row, which the averages do not include. If the gold label of a step is
        ignored, the step still counts against the precision of its predicted label.
    confidence, n_resamples, random_state
        As in `span_report`.

    Returns
    -------
    Report

    Examples
    --------
    >>> from seqlab.metrics import token_report
    >>> report = token_report([["N", "V"], ["D", "N"]], [["N", "V"], ["D", "V"]])
    >>> report.to_dict()["N"]["recall"], report.to_dict()["micro avg"]["f1"]
    (0.5, 0.75)
    """
    aligned = align(y_true, y_pred, lengths=lengths)
    kept = np.flatnonzero(is_kept(aligned.labels, ignore))
    columns = (3 * kept[:, None] + np.arange(3)).ravel()
    matrix = label_counts(aligned)[:, columns]
    labels = [aligned.labels[k] for k in kept]
    return _report(labels, matrix, confidence, n_resamples, random_state)


def _report(
    classes: list[Any], matrix: Any, confidence: float | None, n_resamples: int, random_state: Any
) -> Report:
    total = np.asarray(matrix.T @ np.ones(matrix.shape[0]))
    by_class = total.reshape(-1, 3)
    gold = by_class[:, 2].astype(np.int64)
    support = np.concatenate([gold, np.repeat(gold.sum(), len(AVERAGES))])
    intervals = None
    if confidence is not None:
        (samples,) = resampled_totals([matrix], n_resamples, generator(random_state))
        intervals = percentile_interval(_rows_with_counts(samples), confidence)
    return Report(classes, _all_rows(total), support, intervals, confidence)


def _all_rows(totals: Floats) -> Floats:
    """Compute scores (..., n_classes + 3, 3) of classes and averages from counts (..., 3 n_classes)."""
    by_class = totals.reshape(*totals.shape[:-1], totals.shape[-1] // 3, 3)
    averages = np.stack([averaged(by_class, average) for average in AVERAGES], axis=-2)
    return np.concatenate([precision_recall_f1(by_class), averages], axis=-2)


def _rows_with_counts(totals: Floats) -> Floats:
    """As `_all_rows`, but NaN for a class that is in neither labeling of a resample."""
    by_class = totals.reshape(*totals.shape[:-1], totals.shape[-1] // 3, 3)
    occurs = by_class.any(axis=-1)
    any_occurs = np.repeat(occurs.any(axis=-1, keepdims=True), len(AVERAGES), axis=-1)
    is_defined = np.concatenate([occurs, any_occurs], axis=-1)
    return np.where(is_defined[..., None], _all_rows(totals), np.nan)
