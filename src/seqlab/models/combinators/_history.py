"""The local model of an MEMM: a classifier of a step given the previous labels.

The k previous labels become columns appended to the features: per lag one column for each label and one for
"before the first step", and optionally one for each combination of all k that training shows. With one
model per previous label, the latest label selects the model, and the columns encode the earlier ones.

Histories are encoded as integers, see `seqlab.inference.history_beam.history_codes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from seqlab.data import state_checks
from seqlab.models._posteriors import MIN_POSTERIOR, StepPosteriors, apply_floor
from seqlab.models._structural_zeros import log_or_forbidden
from seqlab.models.combinators._projections import Projections

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
LocalScores = Callable[[Codes, Codes], Floats]


class HistoryColumns:
    """Columns that encode the previous labels.

    Parameters
    ----------
    n_labels, history : int
    first_lag : int
        Lags below have no columns: 2 if the latest label selects the model.
    combinations : int array
        Sorted histories that have their own column; may be empty.
    """

    def __init__(self, n_labels: int, history: int, first_lag: int, combinations: Codes) -> None:
        self.n_labels = n_labels
        self.history = history
        self.first_lag = first_lag
        self.combinations = combinations

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        n_labels = state_checks.check_int(self.n_labels, "n_labels", 1)
        # Histories are numbers in base n_labels + 1, which must fit into 63 bits.
        history = state_checks.check_int(self.history, "history", 0, 63)
        state_checks.require((n_labels + 1) ** history < 2**63, "history")
        state_checks.check_int(self.first_lag, "first_lag", 1, 3)
        codes = state_checks.check_array(self.combinations, "combinations", (None,), "i", low=0)
        state_checks.require((np.diff(codes) > 0).all(), "combinations")

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        n_lags = max(self.history - self.first_lag + 1, 0)
        return n_lags * (self.n_labels + 1) + self.combinations.size

    def active(self, histories: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the column numbers of each history, (n, n_active), and which of them exist."""
        base = self.n_labels + 1
        columns = [
            histories // base ** (lag - 1) % base + (lag - self.first_lag) * base
            for lag in range(self.first_lag, self.history + 1)
        ]
        exists = [np.ones(histories.size, dtype=bool)] * len(columns)
        if self.combinations.size:
            place = np.searchsorted(self.combinations, histories)
            place = np.minimum(place, self.combinations.size - 1)
            columns.append(place + self.n_columns - self.combinations.size)
            exists.append(self.combinations[place] == histories)
        if not columns:
            return np.zeros((histories.size, 0), np.int64), np.zeros((histories.size, 0), bool)
        return np.column_stack(columns), np.column_stack(exists)

    def append_to(self, matrix: Any, histories: Codes) -> Any:
        """Append these columns to the features: CSR for CSR, dense for dense."""
        columns, exists = self.active(histories)
        rows = np.broadcast_to(np.arange(histories.size)[:, np.newaxis], columns.shape)[exists]
        if sp.issparse(matrix):
            shape = (histories.size, self.n_columns)
            ones = np.ones(rows.size)
            appended = sp.csr_matrix((ones, (rows, columns[exists])), shape=shape)
            return sp.hstack([matrix, appended], format="csr")
        wide = np.zeros((histories.size, matrix.shape[1] + self.n_columns))
        wide[:, : matrix.shape[1]] = matrix
        wide[rows, matrix.shape[1] + columns[exists]] = 1.0
        return wide


class LocalModel:
    """``log P(label | step, history)``.

    Parameters
    ----------
    columns : HistoryColumns
    model : StepPosteriors or Projections
        One model for all steps, or one per previous label.
    """

    def __init__(self, columns: HistoryColumns, model: StepPosteriors | Projections) -> None:
        self.columns = columns
        self.model = model

    def check_classifiers(self, n_features: int, n_labels: int, history: int) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        columns = state_checks.check_type(self.columns, "columns", HistoryColumns)
        state_checks.require(columns.n_labels == n_labels, "columns")
        state_checks.require(columns.history == history, "columns")
        state_checks.check_type(self.model, "model", StepPosteriors, Projections)
        if isinstance(self.model, StepPosteriors):
            self.model.check_classifier(n_features + columns.n_columns, n_labels)
        else:
            self.model.check_classifiers(n_features + columns.n_columns, n_labels)

    def bind(self, matrix: Any, offsets: Codes) -> LocalScores:
        """Return the function ``(steps, histories) -> (n, n_labels)`` for the given sequences."""
        if isinstance(self.model, StepPosteriors):
            weights = softmax_weights(self.model.classifier)
            if weights is not None:
                return self._softmax_scores(matrix, *weights)
        return lambda steps, histories: log_or_forbidden(
            self._proba(_select_rows(matrix, steps), steps, histories, offsets)
        )

    def _proba(self, matrix: Any, steps: Codes, histories: Codes, offsets: Codes) -> Floats:
        if self.columns.n_columns:
            matrix = self.columns.append_to(matrix, histories)
        if isinstance(self.model, StepPosteriors):
            return self.model.proba(matrix, steps, offsets)
        out = np.zeros((steps.size, self.columns.n_labels))
        latest = histories % (self.columns.n_labels + 1)
        for context in np.unique(latest):
            rows = np.flatnonzero(latest == context)
            selected = _select_rows(matrix, rows) if rows.size < steps.size else matrix
            out[rows] = self.model.proba(int(context), selected, steps[rows], offsets)
        return out

    def _softmax_scores(self, matrix: Any, coef: Floats, intercept: Floats) -> LocalScores:
        """Return the scores of a softmax: features are scored once per step, histories by a table."""
        assert isinstance(self.model, StepPosteriors)
        n_features, known, n_labels = matrix.shape[1], self.model.columns, self.model.n_labels
        weights = np.ascontiguousarray(coef[:, :n_features].T)
        # Not through BLAS, whose last bits depend on the number of rows and threads.
        from seqlab.utils.linalg import matmul  # here because it imports numba

        product = matrix @ weights if sp.issparse(matrix) else matmul(matrix, weights)
        base = np.asarray(product) + intercept
        table = np.ascontiguousarray(coef[:, n_features:].T)

        def scores(steps: Codes, histories: Codes) -> Floats:
            total = base[steps]
            columns, exists = self.columns.active(histories)
            for lag in range(columns.shape[1]):
                total += table[columns[:, lag]] * exists[:, lag, np.newaxis]
            total -= total.max(axis=1, keepdims=True)
            total -= np.log(np.exp(total).sum(axis=1, keepdims=True))
            low = np.flatnonzero((total < np.log(MIN_POSTERIOR)).any(axis=1))
            if low.size:
                total[low] = np.log(apply_floor(np.exp(total[low])))
            if known.size == n_labels:
                return total[:, np.argsort(known)]
            out = np.full((steps.size, n_labels), -np.inf)
            out[:, known] = total
            return out

        return scores


def softmax_weights(classifier: Any) -> tuple[Floats, Floats] | None:
    """Return weights and intercepts, one row per class, or None if the classifier is not a softmax."""
    if type(classifier) is not LogisticRegression:
        return None
    coef, intercept = classifier.coef_, classifier.intercept_
    multi_class = getattr(classifier, "multi_class", "auto")
    if coef.shape[0] == 1:  # two classes: log-odds of the second
        if multi_class == "multinomial":
            return None
        return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    if multi_class == "ovr" or classifier.solver == "liblinear":
        return None
    return coef, np.broadcast_to(intercept, coef.shape[:1])


def _select_rows(matrix: Any, rows: Codes) -> Any:
    """Select rows; returns the matrix itself if these are all rows, in order."""
    if rows.size == matrix.shape[0] and (rows.size == 0 or (np.diff(rows) == 1).all()):
        return matrix
    return matrix[rows]
