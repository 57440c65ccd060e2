"""The margin-based generalisation bound of max-margin Markov networks, on a sample.

With probability ``1 - delta`` the expected proportion of wrong labels is at most

    margin_loss(gamma) + sqrt( (K / m) [ (R^2 |w|^2 q^2 / gamma^2) (ln m + ln l + ln q + ln k) + ln(1 /
    delta) ] )

for m sequences of up to l steps, k labels, nodes of degree at most q (2 in a chain), edge features of norm at
most R and an unspecified constant K (Taskar, Guestrin & Koller 2003, theorem 6.1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.inference import ChainScores, Mask, error_count_scores

Floats = NDArray[np.float64]


class MarginBound(NamedTuple):
    """The two terms of the generalisation bound; the bound is their sum."""

    margin_loss: float
    complexity: float


class MarginBoundMixin:
    """Margin loss and generalisation bound, for max-margin labelers."""

    def margin_loss(self, X: Any, y: Any, gamma: float, *, lengths: Any = None) -> float:
        """Return the mean proportion of wrong labels in the worst case of perturbed scores.

        The score of every labeling may change by up to ``gamma`` times its number of wrong labels; of all
        labelings that can win then, the one with the most wrong labels counts. It is computed exactly. For
        ``gamma = 0`` it is the proportion of wrong labels, with ties counted as wrong.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences
        gamma : float
            Not negative.

        Returns
        -------
        float
            The mean over sequences.
        """
        gamma = _as_positive(gamma, "gamma", zero_allowed=True)
        sequences, layout = self._read(X, lengths)  # type: ignore[attr-defined]
        codes = self._read_labels(y, sequences, layout).codes  # type: ignore[attr-defined]

        def answer(scores: ChainScores, _: Mask | None, steps: slice) -> list[float]:
            best = error_count_scores(scores, codes[steps])
            return [_worst_share(values, gamma) for values in best if values.size > 1]

        shares = [share for block in self._run(sequences, answer, None) for share in block]  # type: ignore[attr-defined]
        if not shares:
            raise InputError("X has no steps")
        return float(np.mean(shares))

    def margin_bound(
        self,
        X: Any,
        y: Any,
        gamma: float,
        *,
        delta: float = 0.05,
        constant: float = 1.0,
        lengths: Any = None,
    ) -> MarginBound:
        """Return the two terms of the generalisation bound on training data.

        Parameters
        ----------
        X, y, lengths : see `margin_loss`
            The training data.
        gamma : float
            Margin, positive. The first term grows with it, the second one decreases.
        delta : float, default=0.05
            Probability with which the bound may fail.
        constant : float, default=1.0
            The constant K of the theorem, which is not known: compare values, do not read them as errors.

        Returns
        -------
        MarginBound
            ``margin_loss`` and ``complexity``.
        """
        gamma = _as_positive(gamma, "gamma")
        delta = _as_positive(delta, "delta")
        if delta >= 1.0:
            raise InputError(f"delta is a probability below 1, got {delta!r}")
        constant = _as_positive(constant, "constant")
        loss = self.margin_loss(X, y, gamma, lengths=lengths)
        sequences, _ = self._read(X, lengths)  # type: ignore[attr-defined]
        m, longest = len(sequences), int(sequences.lengths.max())
        n_labels, degree = self.classes_.size, min(2, longest - 1)  # type: ignore[attr-defined]
        radius = self._squared_radius(sequences)
        logs = np.log(m) + np.log(longest) + np.log(max(degree, 1)) + np.log(n_labels)
        growth = radius * self.squared_norm_ * max(degree, 1) ** 2 * logs  # type: ignore[attr-defined]
        if growth > gamma**2 * np.finfo(np.float64).max:
            raise InputError(f"gamma={gamma!r} is too small: the bound is not finite")
        inner = growth / gamma**2 if growth > 0.0 else 0.0
        complexity = np.sqrt(constant / m * (inner + np.log(1.0 / delta)))
        return MarginBound(loss, float(complexity))

    def _squared_radius(self, X: Sequences) -> float:
        """Return the largest squared norm of the features of an edge, of both its steps and the pair."""
        own = self._own_similarities(X)  # type: ignore[attr-defined]
        largest = float(own.max(initial=0.0))
        inside = np.ones(own.size, dtype=bool)
        inside[X.offsets[:-1][X.lengths > 0]] = False
        pairs = np.flatnonzero(inside)
        if pairs.size:
            largest = max(largest, float((own[pairs] + own[pairs - 1]).max()) + 1.0)
        return largest


def _worst_share(best: Floats, gamma: float) -> float:
    """Return the largest share of errors of a labeling that can win, given the best score by errors."""
    counts = np.arange(best.size)
    can_win = best + gamma * counts >= (best - gamma * counts).max()
    return float(counts[can_win].max()) / (best.size - 1)


def _as_positive(value: Any, name: str, *, zero_allowed: bool = False) -> float:
    is_valid = isinstance(value, int | float | np.number) and np.isfinite(value)
    if not is_valid or value < 0 or (value == 0 and not zero_allowed):
        wanted = "a number of at least 0" if zero_allowed else "a positive number"
        raise InputError(f"{name} must be {wanted}, got {value!r}")
    return float(value)
