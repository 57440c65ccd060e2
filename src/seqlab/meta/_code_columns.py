"""The binary problems of an output code: fitting them, and the probabilities of their bits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from seqlab.data.sequences import Sequences
from seqlab.learning import ProgressBar, TrainingData
from seqlab.meta._cascade import CascadeWindow, cascade_bits
from seqlab.meta._code_matrix import Bits
from seqlab.models.base import BaseLabeler, fit_prepared
from seqlab.models.chain_labeler import ChainLabeler
from seqlab.utils.signals import check_signals, has_waiting_signal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BITS = np.array([0, 1])
# Types of parameters that columns may share.
PLAIN_TYPES = bool, int, float, str, NoneType
# Tasks for independent columns: enough for threads to end at about the same time. To start a task takes a
# few tenths of a millisecond, in which no other thread can run Python code.
MAX_TASKS = 50


class ColumnFitter:
    """Fits the labelers of the columns.

    Parameters
    ----------
    labeler : labeler
        Not fitted; cloned for every column.
    window : CascadeWindow
    rounded : bool
        Whether cascade features are rounded bits, not probabilities.
    seeds : int64 array of shape (n_columns, n_seeded)
        Values of the ``random_state`` parameters of each column's labeler.
    seeded : list of str
        Names of these parameters.
    n_jobs : int or None
        Threads, through joblib.
    verbose : int
        Show a progress bar.
    """

    def __init__(
        self,
        labeler: Any,
        window: CascadeWindow,
        *,
        rounded: bool,
        seeds: Ints,
        seeded: list[str],
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.labeler, self.window, self.rounded = clone(labeler), window, rounded
        # Parameters are checked once: the columns differ in their seeds alone.
        if isinstance(labeler, BaseLabeler):
            labeler._validate_params()
        self._params = self.labeler.get_params(deep=False)
        self._is_plain = all(isinstance(value, PLAIN_TYPES) for value in self._params.values())
        self.seeds, self.seeded = seeds, seeded
        # Threads: kernels release the interpreter lock, and the data are not copied. A joblib backend
        # chosen by the user (processes, Dask) takes precedence over this preference.
        self.parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        self.verbose = verbose

    def fit(
        self, data: TrainingData, code: Bits, folds: Sequence[tuple[Ints, Ints]] | None = None
    ) -> list[Any]:
        """Return the fitted labelers of all columns.

        Parameters
        ----------
        data : TrainingData
        code : array of shape (n_labels, n_columns)
            Rows in the order of ``data.classes``.
        folds : list of (train, test), optional
            Indices of sequences, for cascade features that are out-of-fold predictions; without them the
            cascade features are predictions for the data on which a column was trained.
        """
        n_seen = self.window.n_columns
        title = f"Columns that see {n_seen} others" if n_seen else "Columns"
        with ProgressBar(title, code.shape[1], self.verbose) as bar:
            if n_seen == 0:
                return self._fit_independent(data, code, bar)
            return self._fit_cascade(data, code, folds, bar)

    def _fit_independent(self, data: TrainingData, code: Bits, bar: ProgressBar) -> list[Any]:
        n_columns = code.shape[1]
        bounds = np.linspace(0, n_columns, min(n_columns, MAX_TASKS) + 1).astype(int).tolist()
        ranges = list(itertools.pairwise(bounds))
        parts = self.parallel(delayed(self._fit_range)(data, code, *ends) for ends in ranges)
        columns: list[Any] = []
        for part, (_, last) in zip(parts, ranges, strict=True):
            columns += part
            try:
                check_signals()
            except BaseException as error:
                parts.throw(error)  # joblib drops the tasks that have not begun
            # The handler of a signal may let training go on.
            columns += [self._fit_column(data, code, k) for k in range(len(columns), last)]
            bar.advance(last - bar.n_done)
        return columns

    def _fit_cascade(
        self,
        data: TrainingData,
        code: Bits,
        folds: Sequence[tuple[Ints, Ints]] | None,
        bar: ProgressBar,
    ) -> list[Any]:
        n_columns = code.shape[1]
        bits = np.empty((data.X.n_steps, n_columns))
        columns: list[Any] = []
        for k in range(n_columns):
            extended = data.with_features(self.window.extend(data.X, bits, k))
            if folds is None:
                columns.append(self._fit_column(extended, code, k))
                found = bit_probabilities(columns[-1], extended.X)
            else:
                jobs = [delayed(self._fit_fold)(extended, code, k, *fold) for fold in folds]
                *parts, column = self.parallel(
                    [*jobs, delayed(self._fit_column)(extended, code, k)]
                )
                columns.append(column)
                found = np.empty(data.X.n_steps)
                for (_, test), part in zip(folds, parts, strict=True):
                    found[_steps_of(data.X.offsets, test)] = part
            bits[:, k] = cascade_bits(found, rounded=self.rounded)
            check_signals()
            bar.advance()
        return columns

    def _fit_fold(self, data: TrainingData, code: Bits, k: int, train: Ints, test: Ints) -> Floats:
        """Return the probabilities of the bits of one column, for the test part of a fold."""
        part = data.part(train)
        rows = np.searchsorted(data.classes, part.classes)
        return bit_probabilities(self._fit_column(part, code[rows], k), data.X[test])

    def _fit_range(self, data: TrainingData, code: Bits, first: int, last: int) -> list[Any]:
        """Return the fitted labelers of the columns ``first <= k < last``; fewer after an interrupt."""
        columns = []
        for k in range(first, last):
            if has_waiting_signal():
                break
            columns.append(self._fit_column(data, code, k))
        return columns

    def _fit_column(self, data: TrainingData, code: Bits, k: int) -> Any:
        """Return the fitted labeler of one column; its only bit if the labels of the data have just one."""
        if code[:, k].min() == code[:, k].max():
            return float(code[0, k])
        bits = code[:, k].astype(np.int64)[data.codes]
        return fit_prepared(self._new_labeler(k), data.with_labels(bits, BITS), validate=False)

    def _new_labeler(self, k: int) -> Any:
        """Return the labeler of a column, not fitted, with its seeds."""
        seeds = dict(zip(self.seeded, self.seeds[k].tolist(), strict=False))
        if not self._is_plain:
            return clone(self.labeler).set_params(**seeds)
        # Parameters that cannot change need no deep copy: `clone` takes longer than a round of boosting.
        return type(self.labeler)(**{**self._params, **seeds})


def predict_bits(
    columns: Sequence[Any], window: CascadeWindow, X: Sequences, *, rounded: bool
) -> Floats:
    """Return the probability that each bit is 1, shape (n_steps, n_columns)."""
    found, bits = np.empty((2, X.n_steps, len(columns)))
    for k, column in enumerate(columns):
        found[:, k] = bit_probabilities(column, window.extend(X, bits, k))
        bits[:, k] = cascade_bits(found[:, k], rounded=rounded)
    return found


def bit_probabilities(column: Any, X: Sequences) -> Floats:
    """Return the probability that the bit is 1 at each step: the marginals of the labeler.

    A labeler without probabilities predicts 0 or 1.
    """
    if isinstance(column, float):
        return np.full(X.n_steps, column)
    if X.n_steps == 0:
        return np.zeros(0)
    if not hasattr(column, "predict_proba"):
        return np.concatenate(column.predict(X)).astype(np.float64)
    if isinstance(column, ChainLabeler):
        return column._predict_marginals(X)[:, 1]
    return np.concatenate(column.predict_proba(X))[:, 1]


def _steps_of(offsets: Ints, sequences: Ints) -> Ints:
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in sequences])
