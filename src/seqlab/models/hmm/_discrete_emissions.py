"""Categorical, Bernoulli and multinomial emissions, estimated by counting.

With c(s, o) the count of symbol o at label s, c(s) their sum, V symbols and smoothing e:

- categorical: ``P(o | s) = (c(s, o) + e) / (c(s) + e (V + 1))``, with one additional symbol for all symbols
  that training does not show; several columns are independent given the label;
- Bernoulli: ``P(f on | s) = (c(s, f) + e) / (c(s) + 2 e)``, features independent given the label;
- multinomial: ``P(f | s) = (c(s, f) + e) / (c(s) + e V)`` for each of the events of a step.

Without smoothing, a label without counts has the frequencies of all labels together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.models.hmm import _kernels
from seqlab.models.hmm._emissions import (
    Emissions,
    Floats,
    Scorer,
    Statistics,
    check_entries,
    check_not_infinite,
    count_nonzero_per_row,
    csr_rows,
)
from seqlab.models.hmm._kernels import MISSING
from seqlab.structures import chain


@dataclass
class SmoothedEmissions(Emissions):
    """What the discrete distributions have in common.

    Parameters
    ----------
    n_labels : int
    smoothing : float
    """

    n_labels: int
    smoothing: float

    def with_smoothing(self, smoothing: float) -> Self:
        return replace(self, smoothing=smoothing)


@dataclass
class CategoricalEmissions(SmoothedEmissions):
    """Columns of symbols, independent given the label.

    Parameters
    ----------
    n_labels, smoothing : see `SmoothedEmissions`
    indicators : bool
        Whether a step is a row of zeros with a single 1 (one column of symbols) instead of one number per
        column.
    categories : list of arrays
        The symbols of each column: numbers, or columns of X for indicators.
    probabilities : list of arrays of shape (n_labels, n_symbols + 1)
        One per column; the last symbol stands for unseen ones.
    """

    indicators: bool
    categories: list[Floats]
    probabilities: list[Floats] = field(default_factory=list)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.categories[0].size if self.indicators else len(self.categories)

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        n_labels = state_checks.check_int(self.n_labels, "n_labels", 1)
        state_checks.check_type(self.indicators, "indicators", bool)
        state_checks.check_list(self.categories, "categories", np.ndarray)
        n_columns = len(self.categories)
        state_checks.require(n_columns == 1 or (n_columns and not self.indicators), "categories")
        state_checks.check_list(self.probabilities, "probabilities", np.ndarray, n_columns)
        for values, table in zip(self.categories, self.probabilities, strict=True):
            state_checks.check_array(values, "categories", (None,), dtype=np.float64)
            state_checks.require((np.diff(values) > 0).all(), "categories")
            shape = (n_labels, values.size + 1)
            state_checks.check_array(table, "probabilities", shape, low=0, high=1 + 1e-6)

    @classmethod
    def for_data(
        cls, X: Sequences, n_labels: int, smoothing: float, *, n_symbols: list[int] | None = None
    ) -> CategoricalEmissions:
        """Return the distribution for X; ``n_symbols`` per column if X holds codes of symbols."""
        matrix = X.matrix
        if n_symbols is not None:
            categories = [np.arange(n, dtype=np.float64) for n in n_symbols]
            return cls(n_labels, smoothing, False, categories)
        if X.is_sparse or (X.n_features > 1 and _is_one_hot(matrix)):
            return cls(n_labels, smoothing, True, [np.arange(X.n_features, dtype=np.float64)])
        columns = [np.unique(column[~np.isnan(column)]) for column in matrix.T]
        return cls(n_labels, smoothing, False, columns)

    def prepare(self, X: Sequences, *, training: bool) -> NDArray[np.int32]:
        """Return codes (n_steps, n_columns): `MISSING`, or the number of symbols for an unseen one."""
        if self.indicators:
            return self._from_indicators(X, training)
        dense = X.matrix.toarray() if X.is_sparse else X.matrix
        codes = np.empty(dense.shape, dtype=np.int32)
        if not all(
            _kernels.encode_column(dense, k, categories, codes)
            for k, categories in enumerate(self.categories)
        ):
            check_not_infinite(X)
            check_entries(X, lambda v: ~np.isnan(v) & (v != np.floor(v)), _WHOLE)
        return codes

    def _from_indicators(self, X: Sequences, training: bool) -> NDArray[np.int32]:
        check_entries(X, lambda v: (v != 0) & (v != 1), "a row of indicators is zeros and one 1")
        n_ones = count_nonzero_per_row(X.matrix)
        if (n_ones > 1).any():
            step = int(np.argmax(n_ones > 1))
            sequence, position = X.locate(step)
            raise InputError(
                f"X[{sequence}] position {position} has {n_ones[step]} indicators, but a categorical "
                "step is one symbol; set emissions='bernoulli' for many binary features"
            )
        # An empty row is a missing symbol in training, and a symbol without a column in prediction.
        empty_code = MISSING if training else X.n_features
        codes = np.full((X.n_steps, 1), empty_code, dtype=np.int32)
        rows, columns = X.matrix.nonzero()
        codes[rows, 0] = columns
        return codes

    def make_scorer(self) -> Scorer:
        with np.errstate(divide="ignore"):
            table = np.log(np.concatenate([p.T for p in self.probabilities]))
        if len(self.categories) == 1:  # the code -1 of missing symbols selects the last row, zeros
            table = np.concatenate([table, np.zeros((1, self.n_labels))])
            return lambda codes, begin, stop: np.take(
                table, codes[begin:stop, 0], axis=0, mode="wrap"
            )
        starts = self._column_starts()

        def scores(codes: Any, begin: int, stop: int) -> Floats:
            out = np.empty((stop - begin, self.n_labels))
            _kernels.sum_table_rows(codes[begin:stop], starts, table, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, weights: Floats) -> Statistics:
        starts = self._column_starts()
        counts = np.zeros((sum(c.size + 1 for c in self.categories), self.n_labels))
        _kernels.count_table_rows(matrix[begin:stop], starts, weights, counts)
        return (counts,)

    def estimate(self, statistics: Statistics) -> CategoricalEmissions:
        pieces = np.split(statistics[0], self._column_starts()[1:])
        found = [_frequencies(counts, self.smoothing).T for counts in pieces]
        return replace(self, probabilities=[np.ascontiguousarray(p) for p in found])

    def log_prior(self) -> float:
        return _dirichlet_log_prior(self.smoothing, *self.probabilities)

    def sample(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        """Draw numbers or indicators; never the symbol for unseen ones."""
        drawn = [
            categories[_sample_columns(p[:, :-1], codes, random)]
            for categories, p in zip(self.categories, self.probabilities, strict=True)
        ]
        numbers = np.column_stack(drawn)
        if not self.indicators:
            return numbers
        n_steps = codes.size
        parts = (np.ones(n_steps), numbers[:, 0].astype(np.int32), np.arange(n_steps + 1))
        return sp.csr_matrix(parts, shape=(n_steps, self.categories[0].size))

    def _column_starts(self) -> NDArray[np.int64]:
        """Return the first row of each column in the stacked table."""
        sizes = [categories.size + 1 for categories in self.categories]
        return np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)


_WHOLE = "categorical columns hold whole numbers"


@dataclass
class BernoulliEmissions(SmoothedEmissions):
    """Binary features, independent given the label; a feature is on if its value is not 0.

    Parameters
    ----------
    n_labels, smoothing : see `SmoothedEmissions`
    probabilities : array of shape (n_labels, n_features)
        Probability that each feature is on.
    """

    probabilities: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.probabilities.shape[1])

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        shape = (state_checks.check_int(self.n_labels, "n_labels", 1), None)
        state_checks.check_array(self.probabilities, "probabilities", shape, low=0, high=1 + 1e-6)

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        check_not_infinite(X)
        return chain.as_csr(X).matrix

    def make_scorer(self) -> Scorer:
        p = np.ascontiguousarray(self.probabilities.T)
        certain = p == 1.0
        with np.errstate(divide="ignore"):
            absent = np.log1p(-np.where(certain, 0.0, p))
            present = np.where(certain, 0.0, np.log(p) - absent)
        off = absent.sum(axis=0)

        def scores(matrix: Any, begin: int, stop: int) -> Floats:
            out = np.tile(off, (stop - begin, 1))
            _kernels.add_present(csr_rows(matrix, begin, stop), present, absent, certain, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, weights: Floats) -> Statistics:
        present = np.zeros((matrix.shape[1], self.n_labels))
        missing = np.zeros_like(present)
        _kernels.count_present(csr_rows(matrix, begin, stop), weights, present, missing)
        return present, missing, weights.sum(axis=0)

    def estimate(self, statistics: Statistics) -> BernoulliEmissions:
        present, missing, steps = statistics
        n, e = steps - missing, self.smoothing
        together = present.sum(axis=1, keepdims=True) / np.maximum(
            n.sum(axis=1, keepdims=True), 1e-300
        )
        counted = n + 2 * e > 0
        p = np.where(counted, (present + e) / np.where(counted, n + 2 * e, 1.0), together)
        # Rounding of n may make the ratio exceed 1.
        return replace(self, probabilities=np.ascontiguousarray(np.minimum(p, 1.0).T))

    def log_prior(self) -> float:
        return _dirichlet_log_prior(self.smoothing, self.probabilities, 1.0 - self.probabilities)

    def sample(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        pieces = [sp.csr_matrix((0, self.probabilities.shape[1]))]
        for begin in range(0, codes.size, 1000):  # bounds the memory
            p = self.probabilities[codes[begin : begin + 1000]]
            pieces.append(sp.csr_matrix((random.random_sample(p.shape) < p).astype(np.float64)))
        return sp.vstack(pieces, format="csr")


@dataclass
class MultinomialEmissions(SmoothedEmissions):
    """Counts of events; their total in a step is not modelled.

    Parameters
    ----------
    n_labels, smoothing : see `SmoothedEmissions`
    totals, total_shares : arrays
        Totals of the training steps and their relative frequencies, for `sample`.
    probabilities : array of shape (n_labels, n_features)
    """

    totals: Any = None
    total_shares: Any = None
    probabilities: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.probabilities.shape[1])

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        shape = (state_checks.check_int(self.n_labels, "n_labels", 1), None)
        state_checks.check_array(self.probabilities, "probabilities", shape, low=0, high=1 + 1e-6)

    @classmethod
    def for_data(cls, X: Sequences, n_labels: int, smoothing: float) -> MultinomialEmissions:
        """Return the distribution for X."""
        sums = np.asarray(X.matrix.sum(axis=1)).ravel()
        totals, counts = np.unique(sums, return_counts=True)
        return cls(n_labels, smoothing, totals, counts / counts.sum())

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        check_entries(
            X, lambda v: ~(v >= 0), "multinomial emissions are counts: not negative and not missing"
        )
        check_not_infinite(X)
        return chain.as_csr(X).matrix

    def make_scorer(self) -> Scorer:
        with np.errstate(divide="ignore"):
            table = np.log(np.ascontiguousarray(self.probabilities.T))

        def scores(matrix: Any, begin: int, stop: int) -> Floats:
            out = np.zeros((stop - begin, self.n_labels))
            _kernels.add_multinomial(csr_rows(matrix, begin, stop), table, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, weights: Floats) -> Statistics:
        counts = np.zeros((matrix.shape[1], self.n_labels))
        _kernels.count_values(csr_rows(matrix, begin, stop), weights, counts)
        return (counts,)

    def estimate(self, statistics: Statistics) -> MultinomialEmissions:
        found = _frequencies(statistics[0], self.smoothing)
        return replace(self, probabilities=np.ascontiguousarray(found.T))

    def log_prior(self) -> float:
        return _dirichlet_log_prior(self.smoothing, self.probabilities)

    def sample(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        if (self.totals != np.floor(self.totals)).any():
            raise InputError("cannot sample: the training counts are not whole numbers")
        totals = self.totals[random.choice(self.totals.size, codes.size, p=self.total_shares)]
        rows = [
            sp.csr_matrix(random.multinomial(int(n), self.probabilities[s]).astype(np.float64))
            for n, s in zip(totals, codes, strict=True)
        ]
        no_rows = sp.csr_matrix((0, self.probabilities.shape[1]))
        return sp.vstack([no_rows, *rows], format="csr")


def _is_one_hot(matrix: Floats) -> bool:
    is_binary = ((matrix == 0) | (matrix == 1)).all()
    return bool(is_binary and (count_nonzero_per_row(matrix) == 1).all())


def _frequencies(counts: Floats, smoothing: float) -> Floats:
    """Return smoothed relative frequencies of each column of ``counts`` (n_symbols, n_labels)."""
    smoothed = counts + smoothing
    totals = smoothed.sum(axis=0)
    if (totals > 0).all():
        return smoothed / totals
    together = counts.sum(axis=1, keepdims=True)
    whole = together.sum()
    together = together / whole if whole > 0 else np.full_like(together, 1 / together.size)
    return np.where(totals > 0, smoothed / np.where(totals > 0, totals, 1.0), together)


def _dirichlet_log_prior(smoothing: float, *probabilities: Floats) -> float:
    if smoothing == 0:
        return 0.0
    return smoothing * sum(float(np.log(p).sum()) for p in probabilities)


def _sample_columns(
    probabilities: Floats, codes: NDArray[np.int64], random: np.random.RandomState
) -> NDArray[np.int64]:
    """Draw one column per code from its row of ``probabilities``, which need not sum to 1."""
    uniforms = random.random_sample(codes.size)
    found = np.zeros(codes.size, dtype=np.int64)
    for s in range(probabilities.shape[0]):
        rows = codes == s
        cumulative = np.cumsum(probabilities[s])
        uniform = uniforms[rows] * cumulative[-1]
        found[rows] = np.searchsorted(cumulative, uniform, side="right")
    return np.minimum(found, probabilities.shape[1] - 1)
