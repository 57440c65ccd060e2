"""PackedColumns: the marginals of all columns of an output code in one call, if they are linear chains.

A column with two labels needs one score per step, the difference of the scores of its labels. The differences
of all columns from the features of X are one sparse product. A kernel then goes through the columns of each
sequence: it adds the weights of the cascade features, and runs forward-backward on log-odds. With a(t) the
log-odds of a step given the steps before it and b(t) the evidence of the steps after it::

    a(t+1) = d(t+1) + log (e^T01 + e^(a(t) + T11)) / (e^T00 + e^(a(t) + T10))
    b(t)   = log (e^T10 + e^(T11 + d(t+1) + b(t+1))) / (e^T00 + e^(T01 + d(t+1) + b(t+1)))

and the probability of the bit is the logistic function of ``a(t) + b(t)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.meta._cascade import PRECISION, TIE_WIDTH, CascadeWindow
from seqlab.models.linear_chain import LinearChainLabeler
from seqlab.structures.chain import ChainWeights
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PackedColumns:
    """The weights of all columns, as a few arrays.

    Parameters
    ----------
    weights : list of ChainWeights
        Of chains with two labels.
    window : CascadeWindow
    n_features : int
        Number of features without those of the cascade.
    """

    def __init__(
        self, weights: Sequence[ChainWeights], window: CascadeWindow, n_features: int
    ) -> None:
        self.window = window
        n_columns, span = len(weights), 2 * (window.before + window.after)
        self.state = np.zeros((n_features, n_columns))
        # Weights of the features of the latest of the earlier columns come first.
        self.cascade = np.zeros((n_columns, max(window.n_seen(n_columns - 1), 0) * span))
        self.transitions = np.zeros((n_columns, 2, 2))
        self.start, self.end = np.zeros((2, n_columns))
        for k, one in enumerate(weights):
            coef = one.coef.toarray() if sp.issparse(one.coef) else np.asarray(one.coef)
            difference = coef[1] - coef[0]
            self.state[:, k] = difference[:n_features]
            self.cascade[k, : difference.size - n_features] = difference[n_features:]
            self.transitions[k] = one.transitions
            self.start[k] = one.start[1] - one.start[0]
            self.end[k] = one.end[1] - one.end[0]

    @classmethod
    def from_columns(
        cls, columns: Sequence[Any], window: CascadeWindow, n_features: int
    ) -> PackedColumns | None:
        """Return the packed columns; None if a column is not a linear chain with probabilities."""
        weights = []
        for column in columns:
            if not isinstance(column, LinearChainLabeler):
                return None
            found = column._log_potentials()
            if found is None:
                return None
            weights.append(found)
        return cls(weights, window, n_features)

    def predict_bits(self, X: Sequences, *, rounded: bool) -> Floats:
        """Return the probability that each bit is 1, shape (n_steps, n_columns)."""
        if X.is_sparse:
            scores = np.asarray(X.matrix @ self.state)
        else:
            scores = matmul(X.matrix, self.state)
        out = np.empty(scores.shape)
        _predict_all(
            scores, X.offsets, self.cascade, self.transitions, self.start, self.end,
            self.window.n_columns, self.window.before, self.window.after, rounded, out,
        )  # fmt: skip
        return out


@njit(nogil=True, cache=True)
def log_add(a: float, b: float) -> float:
    """Return ``log(e^a + e^b)``."""
    high, low = (a, b) if a > b else (b, a)
    return high + np.log1p(np.exp(low - high))


@njit(nogil=True, cache=True)
def _predict_all(
    scores: Floats,
    offsets: Ints,
    cascade: Floats,
    transitions: Floats,
    start: Floats,
    end: Floats,
    n_seen: int,
    before: int,
    after: int,
    rounded: bool,
    out: Floats,
) -> None:
    """Write the probabilities of all bits; ``scores`` is changed in place."""
    n_columns = scores.shape[1]
    span = 2 * (before + after)
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1]
        if first == last:
            continue
        for k in range(n_columns):
            for c in range(min(n_seen, k)):
                earlier, place = k - 1 - c, c * span
                for shift in range(-before, after + 1):
                    if shift == 0:
                        continue
                    for t in range(max(first, first - shift), min(last, last - shift)):
                        p = out[t + shift, earlier]
                        if rounded:
                            if abs(p - 0.5) <= TIE_WIDTH:
                                continue
                            p = 1.0 if p > 0.5 else 0.0
                        else:
                            p = np.rint(p * PRECISION) / PRECISION
                        one, zero = cascade[k, place], cascade[k, place + 1]
                        scores[t, k] += p * one + (1.0 - p) * zero
                    place += 2
            move = transitions[k]
            scores[first, k] += start[k]
            scores[last - 1, k] += end[k]
            odds = scores[first, k]
            out[first, k] = odds
            for t in range(first + 1, last):
                odds = scores[t, k] + (
                    log_add(move[0, 1], odds + move[1, 1]) - log_add(move[0, 0], odds + move[1, 0])
                )
                out[t, k] = odds
            evidence = 0.0
            for t in range(last - 1, first - 1, -1):
                if t < last - 1:
                    later = scores[t + 1, k] + evidence
                    evidence = log_add(move[1, 0], move[1, 1] + later) - log_add(
                        move[0, 0], move[0, 1] + later
                    )
                out[t, k] = 1.0 / (1.0 + np.exp(-(out[t, k] + evidence)))
