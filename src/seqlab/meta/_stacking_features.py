"""What a stacked learner is told about the first learner's opinion: scores, windows, standardised columns.

For each step u and label c a number g(u, c) says how much the first learner prefers c there:

* from probabilities, the log-odds ``log p_c / (1 - p_c)``;
* from scores (max-marginals, decision values), the margin ``s_c - max_{c' != c} s_c'``, divided by the
  root mean square of all margins, because scores have no unit;
* from bare predictions, 1 and -1.

Two labels need one column (the second is its negative). Numbers are clipped, then standardised, so that a
penalty treats them like any other feature. The row of step t gets ``g(t - h), ..., g(t + f)`` with zeros
outside the sequence (the mean of a standardised column) and, for each distance, a column that is 1 there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features.window import Window

Floats = NDArray[np.float64]


class Opinion(NamedTuple):
    """What a labeler says about each step.

    Attributes
    ----------
    kind : {"log_odds", "margin", "vote"}
    values : array of shape (n_steps, n_labels)
        One column per class of the whole problem; not clipped, maybe infinite.
    """

    kind: str
    values: Floats


def opinion_of(labeler: Any, X: Sequences, classes: NDArray[Any]) -> Opinion:
    """Ask a fitted labeler about every step, its columns put in the order of ``classes``.

    A class that the labeler has never seen is impossible for it.
    """
    if hasattr(labeler, "predict_proba"):
        kind, known, impossible = "log_odds", labeler.predict_proba(X), 0.0
    elif hasattr(labeler, "decision_function"):
        kind, known, impossible = "margin", labeler.decision_function(X), -np.inf
    else:
        labels = np.concatenate([classes[:0], *labeler.predict(X)])
        votes = labels[:, None] == classes
        return Opinion("vote", np.where(votes, 1.0, -1.0))
    table = np.full((X.n_steps, classes.size), impossible)
    table[:, np.searchsorted(classes, labeler.classes_)] = np.concatenate(
        [np.zeros((0, len(labeler.classes_))), *known]
    )
    return Opinion(kind, log_odds(table) if kind == "log_odds" else margins(table))


def certain_opinion(kind: str, label: Any, n_steps: int, classes: NDArray[Any]) -> Opinion:
    """The opinion of one who has only ever seen one label."""
    certainty = 1.0 if kind == "vote" else np.inf
    row = np.where(classes == label, certainty, -certainty)
    return Opinion(kind, np.tile(row, (n_steps, 1)))


def log_odds(probabilities: Floats) -> Floats:
    """``log p / (1 - p)``, infinite where a label is certain or impossible."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities) - np.log1p(-np.minimum(probabilities, 1.0))


def margins(scores: Floats) -> Floats:
    """Each score less the best of the others, shape (n_steps, n_labels); infinite without others."""
    n_steps, n_labels = scores.shape
    if n_labels < 2:
        return np.full(scores.shape, np.inf)
    order = np.sort(scores, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    rows, winner = np.arange(n_steps), np.argmax(scores, axis=1)
    rival = np.repeat(best, n_labels, axis=1)
    rival[rows, winner] = second[:, 0]
    with np.errstate(invalid="ignore"):
        found = scores - rival
    return np.where(np.isnan(found), -np.inf, found)  # impossible beside impossible


class OpinionScale(NamedTuple):
    """How opinions become columns; learned from cross-validated opinions on the training data.

    Attributes
    ----------
    unit : float
        What margins are divided by.
    mean, deviation : arrays of shape (n_columns,)
        Of the clipped columns.
    """

    unit: float
    mean: Floats
    deviation: Floats

    @classmethod
    def learn(cls, opinion: Opinion, clip: float, *, standardise: bool) -> OpinionScale:
        """Take the unit, the means and the deviations from an opinion."""
        unit = 1.0
        if opinion.kind == "margin":
            finite = opinion.values[np.isfinite(opinion.values)]
            unit = float(np.sqrt(np.mean(finite**2))) if finite.size else 1.0
            unit = unit or 1.0
        n_columns = _n_columns(opinion.values.shape[1])
        plain = cls(unit, np.zeros(n_columns), np.ones(n_columns))
        if not standardise:
            return plain
        columns = plain.columns(opinion, clip)
        deviation = columns.std(axis=0)
        # A column that never changes says nothing, and stays zero.
        return cls(unit, columns.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def columns(self, opinion: Opinion, clip: float) -> Floats:
        """Clipped and standardised columns, shape (n_steps, n_columns)."""
        chosen = opinion.values[:, -self.mean.size :]
        clipped = np.clip(chosen / self.unit, -clip, clip)
        return (clipped - self.mean) / self.deviation


def _n_columns(n_labels: int) -> int:
    """Two labels say the same twice, with opposite signs."""
    return 1 if n_labels == 2 else n_labels


class OpinionWindow(NamedTuple):
    """Which neighbours' opinions a step sees.

    Attributes
    ----------
    before, after : int
        Steps back and ahead.
    include_self : bool
        Whether the opinion on the step itself is among them.
    """

    before: int
    after: int
    include_self: bool

    @classmethod
    def of(cls, window: Any, include_self: bool) -> OpinionWindow:
        """Check what the user gave as ``window=``."""
        try:
            before, after = window
            whole = [int(before) == before, int(after) == after]
        except (TypeError, ValueError):
            whole = [False]
        if not all(whole) or before < 0 or after < 0:
            raise InputError(
                f"window must be two counts, steps back and ahead such as (5, 5), or None; got {window!r}"
            )
        if before == after == 0 and not include_self:
            raise InputError("window=(0, 0) with include_self=False leaves nothing to look at")
        return cls(int(before), int(after), bool(include_self))

    def extend(self, X: Sequences, columns: Floats) -> Sequences:
        """X with the opinions around each step appended; sparse where X is."""
        around = self._window().fit_transform(Sequences(columns, X.offsets)).matrix
        if not self.include_self:
            around = around[:, columns.shape[1] :]
        if X.is_sparse:
            return Sequences(sp.hstack([X.matrix, sp.csr_matrix(around)], format="csr"), X.offsets)
        return Sequences(np.hstack([X.matrix, around]), X.offsets)

    def names(self, column_names: list[str]) -> list[str]:
        """Names of the appended columns: ``sig?[-1]``, ``__BOS__[-1]``."""
        window = self._window().fit([np.zeros((1, len(column_names)))])
        every = window.get_feature_names_out(column_names).tolist()
        return every if self.include_self else every[len(column_names) :]

    def _window(self) -> Window:
        return Window(before=self.before, after=self.after)


def column_names(classes: NDArray[Any]) -> list[str]:
    """Names of the opinion columns, by the label they speak for: ``sig?``."""
    return [f"{label}?" for label in classes.tolist()[-_n_columns(classes.size) :]]
