"""Features of the second learner in stacking, computed from the prediction scores of the first one.

The prediction score g(u, c) of step u and label c is

* from probabilities, the log-odds ``log p_c / (1 - p_c)``;
* from scores (max-marginals, decision values), the margin ``s_c - max_{c' != c} s_c'``, divided by the
  root mean square of all margins, because scores have no unit;
* from labels alone, 1 for the predicted label and -1 for the others.

Two labels need one column (the second is its negative). Scores are clipped, then standardised, so that a
penalty treats them like any other feature. The row of step t gets ``g(t - h), ..., g(t + f)``. Outside the
sequence these are 0 (the mean of a standardised column), and an indicator column for each distance is 1.
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


class StepScores(NamedTuple):
    """Prediction scores of a labeler for each step.

    Attributes
    ----------
    kind : {"log_odds", "margin", "vote"}
    values : array of shape (n_steps, n_labels)
        One column per class of the whole problem; not clipped, may be infinite.
    """

    kind: str
    values: Floats


def score_steps(labeler: Any, X: Sequences, classes: NDArray[Any]) -> StepScores:
    """Return the prediction scores of a fitted labeler, with columns in the order of ``classes``.

    A class that the labeler has not seen in training gets probability 0, or score ``-inf``.
    """
    if hasattr(labeler, "predict_proba"):
        kind, known, impossible = "log_odds", labeler.predict_proba(X), 0.0
    elif hasattr(labeler, "decision_function"):
        kind, known, impossible = "margin", labeler.decision_function(X), -np.inf
    else:
        labels = np.concatenate([classes[:0], *labeler.predict(X)])
        votes = labels[:, None] == classes
        return StepScores("vote", np.where(votes, 1.0, -1.0))
    table = np.full((X.n_steps, classes.size), impossible)
    table[:, np.searchsorted(classes, labeler.classes_)] = np.concatenate(
        [np.zeros((0, len(labeler.classes_))), *known]
    )
    return StepScores(kind, log_odds(table) if kind == "log_odds" else margins(table))


def score_single_label(kind: str, label: Any, n_steps: int, classes: NDArray[Any]) -> StepScores:
    """Return the prediction scores of a learner that was trained on one label only."""
    certainty = 1.0 if kind == "vote" else np.inf
    row = np.where(classes == label, certainty, -certainty)
    return StepScores(kind, np.tile(row, (n_steps, 1)))


def log_odds(probabilities: Floats) -> Floats:
    """Return ``log p / (1 - p)``, which is infinite if p is 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities) - np.log1p(-np.minimum(probabilities, 1.0))


def margins(scores: Floats) -> Floats:
    """Return each score minus the best of the others, shape (n_steps, n_labels); infinite without others."""
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
    return np.where(np.isnan(found), -np.inf, found)  # -inf minus -inf is NaN


class ScoreScaler(NamedTuple):
    """Scale that turns prediction scores into feature columns; fitted on out-of-fold predictions.

    Attributes
    ----------
    unit : float
        Divisor of the margins.
    mean, deviation : arrays of shape (n_columns,)
        Mean and standard deviation of the clipped columns.
    """

    unit: float
    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, scores: StepScores, clip: float, *, standardise: bool) -> ScoreScaler:
        """Compute the unit, the means and the standard deviations of prediction scores."""
        unit = 1.0
        if scores.kind == "margin":
            finite = scores.values[np.isfinite(scores.values)]
            unit = float(np.sqrt(np.mean(finite**2))) if finite.size else 1.0
            unit = unit or 1.0
        n_columns = _n_columns(scores.values.shape[1])
        plain = cls(unit, np.zeros(n_columns), np.ones(n_columns))
        if not standardise:
            return plain
        columns = plain.columns(scores, clip)
        deviation = columns.std(axis=0)
        # A constant column carries no information and becomes zero.
        return cls(unit, columns.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def columns(self, scores: StepScores, clip: float) -> Floats:
        """Return clipped and standardised columns, shape (n_steps, n_columns)."""
        chosen = scores.values[:, -self.mean.size :]
        clipped = np.clip(chosen / self.unit, -clip, clip)
        return (clipped - self.mean) / self.deviation


def _n_columns(n_labels: int) -> int:
    """Return the number of score columns: with two labels one column is the negative of the other."""
    return 1 if n_labels == 2 else n_labels


class ScoreWindow(NamedTuple):
    """Window of neighbouring steps whose prediction scores become features of a step.

    Attributes
    ----------
    before, after : int
        Number of steps before and after.
    include_self : bool
        Whether the window includes the step itself.
    """

    before: int
    after: int
    include_self: bool

    @classmethod
    def from_params(cls, window: Any, include_self: bool) -> ScoreWindow:
        """Return the window of the parameters ``window`` and ``include_self``, after checking them."""
        try:
            before, after = window
            whole = [int(before) == before, int(after) == after]
        except (TypeError, ValueError):
            whole = [False]
        if not all(whole) or before < 0 or after < 0:
            raise InputError(
                f"window must be the numbers of steps before and after, as in (5, 5), or None; got {window!r}"
            )
        if before == after == 0 and not include_self:
            raise InputError("window=(0, 0) with include_self=False is an empty window")
        return cls(int(before), int(after), bool(include_self))

    def extend(self, X: Sequences, columns: Floats) -> Sequences:
        """Return X with the scores in the window of each step appended; sparse if X is sparse."""
        around = self._window().fit_transform(Sequences(columns, X.offsets)).matrix
        if not self.include_self:
            around = around[:, columns.shape[1] :]
        if X.is_sparse:
            return Sequences(sp.hstack([X.matrix, sp.csr_matrix(around)], format="csr"), X.offsets)
        return Sequences(np.hstack([X.matrix, around]), X.offsets)

    def names(self, column_names: list[str]) -> list[str]:
        """Return the names of the appended columns, such as ``sig?[-1]`` and ``__BOS__[-1]``."""
        window = self._window().fit([np.zeros((1, len(column_names)))])
        every = window.get_feature_names_out(column_names).tolist()
        return every if self.include_self else every[len(column_names) :]

    def _window(self) -> Window:
        return Window(before=self.before, after=self.after)


def column_names(classes: NDArray[Any]) -> list[str]:
    """Return the names of the score columns: the label and a question mark, such as ``sig?``."""
    return [f"{label}?" for label in classes.tolist()[-_n_columns(classes.size) :]]
