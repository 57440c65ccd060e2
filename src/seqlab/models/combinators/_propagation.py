"""What a Markov chain says of each position before anything is observed.

``P_1 = start``, ``P_t = P_{t-1} P``: how probable, and whether possible at all, each label is at each step.
Neither depends on the data, and both settle after some steps: they are computed until they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Below this a prior is no longer followed down: the logarithm stays finite for a reachable label.
SMALLEST = 1e-300
# Relative change at which a prior counts as settled.
SETTLED = 1e-13


class ByPosition:
    """Something of each position: a table, whose last ``period`` rows repeat for ever."""

    def __init__(self, table: NDArray[Any], period: int) -> None:
        self.table = table
        self.period = period

    def at(self, position: NDArray[np.int64]) -> NDArray[Any]:
        """Rows of the given positions, shape (n, n_labels)."""
        n_rows = self.table.shape[0]
        settled = n_rows - self.period + (position - n_rows) % self.period
        return self.table[np.where(position < n_rows, position, settled)]


def propagate(
    start: NDArray[np.float64], transitions: NDArray[np.float64], longest: int
) -> ByPosition:
    """Logarithms of ``P_1 = start``, ``P_t = P_{t-1} transitions``, up to the longest sequence.

    A chain that comes back to the same labels only at every second step (open, close, open, ...)
    settles to two distributions in turn, so the comparison is with two steps before.

    Parameters
    ----------
    start : array of shape (n_labels,)
    transitions : array of shape (n_labels, n_labels)
        Rows sum to 1.
    longest : int
        Positions wanted.

    Returns
    -------
    ByPosition
        Rows of shape (n_labels,), ``-inf`` exactly where no path of the chain leads.
    """
    rows = [start]
    # Whether a label can be reached is followed apart, lest a small probability underflow to "no".
    possible = reachable(start > 0, transitions > 0, longest)
    for t in range(1, longest):
        further = np.maximum(rows[-1] @ transitions, SMALLEST)
        rows.append(np.where(possible.at(np.array([t]))[0], further, 0.0))
        if t >= 3 and all(_settled(rows[-1 - k], rows[-3 - k]) for k in (0, 1)):
            break
    with np.errstate(divide="ignore"):
        return ByPosition(np.log(np.array(rows)), period=min(2, len(rows)))


def reachable(start: NDArray[np.bool_], transitions: NDArray[np.bool_], longest: int) -> ByPosition:
    """Whether some path leads to each label at each position, up to the longest sequence."""
    rows: list[Any] = [start]
    for t in range(1, longest):
        rows.append(np.any(rows[-1][:, np.newaxis] & transitions, axis=0))
        # A row that equals the one two before repeats for ever, the next one with it.
        if t >= 2 and (rows[-1] == rows[-3]).all():
            break
    return ByPosition(np.array(rows), period=min(2, len(rows)))


def alternates(start: NDArray[np.bool_], transitions: NDArray[np.bool_]) -> bool:
    """Whether no label can stand both at an even and at an odd position (open, close, open, ...)."""
    # The labels met at even positions, and at odd ones, are complete after a step for each label.
    even, odd = start, np.any(start[:, np.newaxis] & transitions, axis=0)
    for _ in range(start.size):
        even = even | np.any(odd[:, np.newaxis] & transitions, axis=0)
        odd = odd | np.any(even[:, np.newaxis] & transitions, axis=0)
    return bool(odd.any() and not (even & odd).any())


def _settled(now: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    return bool((np.abs(now - before) <= SETTLED * before).all())
