"""Prior distribution of the labels at each position of a Markov chain.

``P_1 = start``, ``P_t = P_{t-1} P``: how probable, and whether possible at all, each label is at each
position. Neither depends on the data, and both converge: only rows up to convergence are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Lower bound on the prior of a reachable label, so that its logarithm stays finite.
MIN_PRIOR = 1e-300
# Relative change below which a prior has converged. Larger: shorter tables, less exact rows.
RELATIVE_CHANGE = 1e-13


class PositionTable:
    """One row per position: a table whose last ``period`` rows repeat for all later positions."""

    def __init__(self, table: NDArray[Any], period: int) -> None:
        self.table = table
        self.period = period

    def at(self, position: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of the given positions, shape (n, n_labels)."""
        n_rows = self.table.shape[0]
        repeated = n_rows - self.period + (position - n_rows) % self.period
        return self.table[np.where(position < n_rows, position, repeated)]


def propagate_prior(
    start: NDArray[np.float64], transitions: NDArray[np.float64], longest: int
) -> PositionTable:
    """Compute the logarithms of ``P_1 = start``, ``P_t = P_{t-1} transitions``.

    A chain that returns to the same labels only at every second step (open, close, open, ...)
    converges to two alternating distributions, so a row is compared with the one two steps before.

    Parameters
    ----------
    start : array of shape (n_labels,)
    transitions : array of shape (n_labels, n_labels)
        Rows sum to 1.
    longest : int
        Length of the longest sequence.

    Returns
    -------
    PositionTable
        Rows of shape (n_labels,), ``-inf`` exactly for labels that no path of the chain reaches.
    """
    rows = [start]
    # Computed separately, because the probability of a reachable label may underflow to 0.
    possible = find_reachable(start > 0, transitions > 0, longest)
    for t in range(1, longest):
        prior = np.maximum(rows[-1] @ transitions, MIN_PRIOR)
        rows.append(np.where(possible.at(np.array([t]))[0], prior, 0.0))
        if t >= 3 and all(_has_converged(rows[-1 - k], rows[-3 - k]) for k in (0, 1)):
            break
    with np.errstate(divide="ignore"):
        return PositionTable(np.log(np.array(rows)), period=min(2, len(rows)))


def find_reachable(
    start: NDArray[np.bool_], transitions: NDArray[np.bool_], longest: int
) -> PositionTable:
    """Find which labels some path reaches at each position, up to the longest sequence."""
    rows: list[Any] = [start]
    for t in range(1, longest):
        rows.append(np.any(rows[-1][:, np.newaxis] & transitions, axis=0))
        # If a row equals the one two before, the last two rows repeat from here on.
        if t >= 2 and (rows[-1] == rows[-3]).all():
            break
    return PositionTable(np.array(rows), period=min(2, len(rows)))


def is_alternating(start: NDArray[np.bool_], transitions: NDArray[np.bool_]) -> bool:
    """Return whether no label is possible both at even and at odd positions (open, close, open, ...)."""
    # n_labels steps are enough to reach every label that can be reached at all.
    even, odd = start, np.any(start[:, np.newaxis] & transitions, axis=0)
    for _ in range(start.size):
        even = even | np.any(odd[:, np.newaxis] & transitions, axis=0)
        odd = odd | np.any(even[:, np.newaxis] & transitions, axis=0)
    return bool(odd.any() and not (even & odd).any())


def _has_converged(now: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    return bool((np.abs(now - before) <= RELATIVE_CHANGE * before).all())
