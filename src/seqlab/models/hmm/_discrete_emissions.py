"""Categorical, Bernoulli and multinomial emissions, estimated by counting.

With c(s, o) the count of symbol o at label s, c(s) their sum, V symbols and smoothing e:

- categorical: ``P(o | s) = (c(s, o) + e) / (c(s) + e (V + 1))``, one more symbol standing for all that were
  never seen; several columns are independent given the label;
- Bernoulli: ``P(f on | s) = (c(s, f) + e) / (c(s) + 2 e)``, features independent given the label;
- multinomial: ``P(f | s) = (c(s, f) + e) / (c(s) + e V)`` for each of the events that a step counts.

A label without any count, and without smoothing, gets the frequencies of all labels together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.models.hmm._emission_kernels import (
    MISSING,
    add_multinomial,
    add_present,
    count_looked_up,
    count_present,
    count_values,
    encode_column,
    look_up,
)
from seqlab.models.hmm._emissions import (
    Floats,
    Scorer,
    Statistics,
    ones_per_row,
    refuse,
    refuse_infinite,
)
from seqlab.structures.chain import as_csr


@dataclass
class CategoricalEmissions:
    """Columns of symbols, independent given the label.

    Parameters
    ----------
    n_labels : int
    smoothing : float
    indicators : bool
        Whether a step is a row of zeros with a single 1 (one column of symbols), rather than a number
        per column.
    categories : list of arrays
        The symbols of each column: numbers, or columns of X for indicators.
    probabilities : list of arrays of shape (n_labels, n_symbols + 1)
        For each column; the last symbol is the unseen one.
    """

    n_labels: int
    smoothing: float
    indicators: bool
    categories: list[Floats]
    probabilities: list[Floats] = field(default_factory=list)

    @classmethod
    def for_data(
        cls, X: Sequences, n_labels: int, smoothing: float, *, symbols: list[int] | None = None
    ) -> CategoricalEmissions:
        """The distribution that fits X; ``symbols`` are their numbers where X holds codes already."""
        matrix = X.matrix
        if symbols is not None:
            categories = [np.arange(n, dtype=np.float64) for n in symbols]
            return cls(n_labels, smoothing, False, categories)
        if X.is_sparse or (X.n_features > 1 and _one_hot(matrix)):
            return cls(n_labels, smoothing, True, [np.arange(X.n_features, dtype=np.float64)])
        columns = [np.unique(column[~np.isnan(column)]) for column in matrix.T]
        return cls(n_labels, smoothing, False, columns)

    def prepare(self, X: Sequences, *, training: bool) -> NDArray[np.int32]:
        """Codes (n_steps, n_columns); `MISSING`, or the number of symbols for an unseen one."""
        if self.indicators:
            return self._from_indicators(X, training)
        dense = X.matrix.toarray() if X.is_sparse else X.matrix
        codes = np.empty(dense.shape, dtype=np.int32)
        if not all(
            encode_column(dense, k, categories, codes)
            for k, categories in enumerate(self.categories)
        ):
            refuse_infinite(X)
            refuse(X, lambda v: ~np.isnan(v) & (v != np.floor(v)), _WHOLE)
        return codes

    def _from_indicators(self, X: Sequences, training: bool) -> NDArray[np.int32]:
        refuse(X, lambda v: (v != 0) & (v != 1), "a row of indicators holds a single 1, else zeros")
        n_ones = ones_per_row(X.matrix)
        if (n_ones > 1).any():
            step = int(np.argmax(n_ones > 1))
            sequence, position = X.locate(step)
            raise InputError(
                f"X[{sequence}] position {position} has {n_ones[step]} indicators, but a categorical "
                "step is one symbol; set emissions='bernoulli' for many binary features"
            )
        # An empty row is a missing symbol in training; later it is one that has no column.
        nothing = MISSING if training else X.n_features
        codes = np.full((X.n_steps, 1), nothing, dtype=np.int32)
        rows, columns = X.matrix.nonzero()
        codes[rows, 0] = columns
        return codes

    def scorer(self) -> Scorer:
        with np.errstate(divide="ignore"):
            table = np.log(np.concatenate([p.T for p in self.probabilities]))
        if len(self.categories) == 1:  # what is missing, -1, finds a last row of zeros
            table = np.concatenate([table, np.zeros((1, self.n_labels))])
            return lambda codes, begin, stop: np.take(
                table, codes[begin:stop, 0], axis=0, mode="wrap"
            )
        first = self._first()

        def scores(codes: Any, begin: int, stop: int) -> Floats:
            out = np.empty((stop - begin, self.n_labels))
            look_up(codes[begin:stop], first, table, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, shares: Floats) -> Statistics:
        first = self._first()
        counts = np.zeros((sum(c.size + 1 for c in self.categories), self.n_labels))
        count_looked_up(matrix[begin:stop], first, shares, counts)
        return (counts,)

    def estimated(self, statistics: Statistics) -> CategoricalEmissions:
        pieces = np.split(statistics[0], self._first()[1:])
        found = [_frequencies(counts, self.smoothing).T for counts in pieces]
        return replace(self, probabilities=[np.ascontiguousarray(p) for p in found])

    def with_smoothing(self, smoothing: float) -> CategoricalEmissions:
        return replace(self, smoothing=smoothing)

    def log_prior(self) -> float:
        return _dirichlet(self.smoothing, *self.probabilities)

    def draw(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        """Numbers or indicators; never the unseen symbol, which has no form."""
        drawn = [
            categories[_draw_columns(p[:, :-1], codes, random)]
            for categories, p in zip(self.categories, self.probabilities, strict=True)
        ]
        numbers = np.column_stack(drawn)
        if not self.indicators:
            return numbers
        n_steps = codes.size
        parts = (np.ones(n_steps), numbers[:, 0].astype(np.int32), np.arange(n_steps + 1))
        return sp.csr_matrix(parts, shape=(n_steps, self.categories[0].size))

    def _first(self) -> NDArray[np.int64]:
        """Row of the stacked table where each column begins."""
        sizes = [categories.size + 1 for categories in self.categories]
        return np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)


_WHOLE = "categorical columns hold whole numbers"


@dataclass
class BernoulliEmissions:
    """Binary features, independent given the label; a feature is on where its value is not 0.

    Parameters
    ----------
    n_labels : int
    smoothing : float
    probabilities : array of shape (n_labels, n_features)
        Of each feature being on.
    """

    n_labels: int
    smoothing: float
    probabilities: Any = None

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        refuse_infinite(X)
        return as_csr(X).matrix

    def scorer(self) -> Scorer:
        p = np.ascontiguousarray(self.probabilities.T)
        certain = p == 1.0
        with np.errstate(divide="ignore"):
            absent = np.log1p(-np.where(certain, 0.0, p))
            present = np.where(certain, 0.0, np.log(p) - absent)
        off = absent.sum(axis=0)

        def scores(matrix: Any, begin: int, stop: int) -> Floats:
            out = np.tile(off, (stop - begin, 1))
            rows = matrix.indptr[begin : stop + 1]
            add_present(rows, matrix.indices, matrix.data, present, absent, certain, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, shares: Floats) -> Statistics:
        present = np.zeros((matrix.shape[1], self.n_labels))
        missing = np.zeros_like(present)
        rows = matrix.indptr[begin : stop + 1]
        count_present(rows, matrix.indices, matrix.data, shares, present, missing)
        return present, missing, shares.sum(axis=0)

    def estimated(self, statistics: Statistics) -> BernoulliEmissions:
        present, missing, steps = statistics
        n, e = steps - missing, self.smoothing
        together = present.sum(axis=1, keepdims=True) / np.maximum(
            n.sum(axis=1, keepdims=True), 1e-300
        )
        counted = n + 2 * e > 0
        p = np.where(counted, (present + e) / np.where(counted, n + 2 * e, 1.0), together)
        # What is left after taking away the missing ones may round below the count.
        return replace(self, probabilities=np.ascontiguousarray(np.minimum(p, 1.0).T))

    def with_smoothing(self, smoothing: float) -> BernoulliEmissions:
        return replace(self, smoothing=smoothing)

    def log_prior(self) -> float:
        return _dirichlet(self.smoothing, self.probabilities, 1.0 - self.probabilities)

    def draw(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        pieces = []
        for begin in range(0, codes.size, 1000):  # never all steps x features at once
            p = self.probabilities[codes[begin : begin + 1000]]
            pieces.append(sp.csr_matrix((random.random_sample(p.shape) < p).astype(np.float64)))
        if not pieces:
            return sp.csr_matrix((0, self.probabilities.shape[1]))
        return sp.vstack(pieces, format="csr")


@dataclass
class MultinomialEmissions:
    """Counts of events; how many there are in a step is not modelled.

    Parameters
    ----------
    n_labels : int
    smoothing : float
    totals, total_shares : arrays
        Numbers of events per step in training, and how often each came: for drawing.
    probabilities : array of shape (n_labels, n_features)
    """

    n_labels: int
    smoothing: float
    totals: Any = None
    total_shares: Any = None
    probabilities: Any = None

    @classmethod
    def for_data(cls, X: Sequences, n_labels: int, smoothing: float) -> MultinomialEmissions:
        """The distribution that fits X."""
        sums = np.asarray(X.matrix.sum(axis=1)).ravel()
        totals, counts = np.unique(sums, return_counts=True)
        return cls(n_labels, smoothing, totals, counts / counts.sum())

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        refuse(
            X, lambda v: ~(v >= 0), "multinomial emissions are counts: not negative, none missing"
        )
        refuse_infinite(X)
        return as_csr(X).matrix

    def scorer(self) -> Scorer:
        with np.errstate(divide="ignore"):
            table = np.log(np.ascontiguousarray(self.probabilities.T))

        def scores(matrix: Any, begin: int, stop: int) -> Floats:
            out = np.zeros((stop - begin, self.n_labels))
            rows = matrix.indptr[begin : stop + 1]
            add_multinomial(rows, matrix.indices, matrix.data, table, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, shares: Floats) -> Statistics:
        counts = np.zeros((matrix.shape[1], self.n_labels))
        rows = matrix.indptr[begin : stop + 1]
        count_values(rows, matrix.indices, matrix.data, shares, counts)
        return (counts,)

    def estimated(self, statistics: Statistics) -> MultinomialEmissions:
        found = _frequencies(statistics[0], self.smoothing)
        return replace(self, probabilities=np.ascontiguousarray(found.T))

    def with_smoothing(self, smoothing: float) -> MultinomialEmissions:
        return replace(self, smoothing=smoothing)

    def log_prior(self) -> float:
        return _dirichlet(self.smoothing, self.probabilities)

    def draw(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        if (self.totals != np.floor(self.totals)).any():
            raise InputError("cannot draw: the counts of training were not whole numbers")
        totals = self.totals[random.choice(self.totals.size, codes.size, p=self.total_shares)]
        rows = [
            sp.csr_matrix(random.multinomial(int(n), self.probabilities[s]).astype(np.float64))
            for n, s in zip(totals, codes, strict=True)
        ]
        n_features = self.probabilities.shape[1]
        return sp.vstack(rows, format="csr") if rows else sp.csr_matrix((0, n_features))


def _one_hot(matrix: Floats) -> bool:
    return bool(((matrix == 0) | (matrix == 1)).all() and (ones_per_row(matrix) == 1).all())


def _frequencies(counts: Floats, smoothing: float) -> Floats:
    """Smoothed relative frequencies of each column of ``counts`` (n_symbols, n_labels)."""
    smoothed = counts + smoothing
    totals = smoothed.sum(axis=0)
    if (totals > 0).all():
        return smoothed / totals
    together = counts.sum(axis=1, keepdims=True)
    whole = together.sum()
    together = together / whole if whole > 0 else np.full_like(together, 1 / together.size)
    return np.where(totals > 0, smoothed / np.where(totals > 0, totals, 1.0), together)


def _dirichlet(smoothing: float, *probabilities: Floats) -> float:
    if smoothing == 0:
        return 0.0
    return smoothing * sum(float(np.log(p).sum()) for p in probabilities)


def _draw_columns(
    probabilities: Floats, codes: NDArray[np.int64], random: np.random.RandomState
) -> NDArray[np.int64]:
    """One column per code, drawn from its row of ``probabilities`` (up to a factor)."""
    uniforms = random.random_sample(codes.size)
    found = np.zeros(codes.size, dtype=np.int64)
    for s in range(probabilities.shape[0]):
        mine = codes == s
        ends = np.cumsum(probabilities[s])
        found[mine] = np.searchsorted(ends, uniforms[mine] * ends[-1], side="right")
    return np.minimum(found, probabilities.shape[1] - 1)
