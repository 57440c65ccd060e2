"""Tuning of the threshold and the inside weight of phrase costs for F1 on out-of-fold posteriors.

F1 as a function of the threshold is a step function with many small steps and cheap to evaluate (one
shortest path over all sequences), so a grid is searched: a coarse one, then a fine one around its best point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from seqlab.data.tags import StackedPhrases
from seqlab.inference import PhraseCosts, best_phrases

Floats = NDArray[np.float64]

# For products of two probabilities: the best thresholds are small, so the grid is finest near 0.
PRODUCT_THRESHOLDS = (np.arange(50) / 50.0) ** 2
# For logarithms: from exp(-6) to exp(6), a factor of 400 in both directions.
LOG_THRESHOLDS = np.arange(-6.0, 6.5)
LOG_STEPS = np.arange(-0.75, 1.0, 0.25)
# The first of equally good values is chosen, so 1.0, the plain sum, comes first.
INSIDE_WEIGHTS = np.array([1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.0])


@dataclass(slots=True)
class Tuning:
    """The points that were tried, and the best of them."""

    threshold: float = 0.0
    inside_weight: float = 1.0
    f1: float = -1.0
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"inside_weight": [], "threshold": [], "f1": []}
    )


def phrase_f1(
    gold: StackedPhrases, found: StackedPhrases, n_steps: int, weights: Floats | None = None
) -> float:
    """Return the F1 of exact phrases; ``weights`` (n_steps,) weights a phrase by its first step."""
    stop_at = np.full(n_steps, -1, dtype=np.int64)
    type_at = np.full(n_steps, -1, dtype=np.int64)
    stop_at[gold.start], type_at[gold.start] = gold.stop, gold.type
    right = (stop_at[found.start] == found.stop) & (type_at[found.start] == found.type)
    if weights is None:
        weights = np.ones(n_steps)
    total = weights[gold.start].sum() + weights[found.start].sum()
    return float(2.0 * weights[found.start][right].sum() / total) if total else 0.0


def tune_costs(
    costs_of: Callable[[float], PhraseCosts],
    gold: StackedPhrases,
    *,
    logarithmic: bool,
    inside_weights: Floats,
    thresholds: Floats | None = None,
    weights: Floats | None = None,
    n_jobs: int | None = None,
) -> Tuning:
    """Search for the threshold and inside weight with the best F1.

    Parameters
    ----------
    costs_of : callable
        Returns the costs of the out-of-fold posteriors for an inside weight, with a threshold of 0.
    gold : StackedPhrases
    logarithmic : bool
        Whether costs are logarithms instead of products.
    inside_weights : array
        Values to try.
    thresholds : array, optional
        Values to try instead of the default grid.
    weights : array of shape (n_steps,), optional
        Weight of a phrase by its first step.
    n_jobs : int, optional
    """
    tuning = Tuning()

    def evaluate(costs: PhraseCosts, threshold: float) -> float:
        found = best_phrases(costs.with_threshold(threshold), n_jobs=n_jobs).phrases
        return phrase_f1(gold, found, costs.outside.size, weights)

    def search(costs: PhraseCosts, inside_weight: float, grid: Floats) -> None:
        values = np.array([evaluate(costs, threshold) for threshold in grid.tolist()])
        tuning.history["inside_weight"] += [inside_weight] * grid.size
        tuning.history["threshold"] += grid.tolist()
        tuning.history["f1"] += values.tolist()
        if values.max() > tuning.f1:
            at = find_middle_of_best_run(values)
            tuning.threshold, tuning.f1 = float(grid[at]), float(values[at])
            tuning.inside_weight = inside_weight

    searched = thresholds is None
    grid = thresholds
    if grid is None:
        grid = LOG_THRESHOLDS if logarithmic else PRODUCT_THRESHOLDS
    for inside_weight in inside_weights.tolist():
        search(costs_of(inside_weight), inside_weight, grid)
    if logarithmic and searched:
        # The coarse grid is not exact enough to compare neighbouring weights; try them on the fine one.
        place = int(np.flatnonzero(inside_weights == tuning.inside_weight)[0])
        for inside_weight in inside_weights[max(place - 1, 0) : place + 2].tolist():
            best = _best_threshold(tuning, inside_weight)
            search(costs_of(inside_weight), inside_weight, best + LOG_STEPS)
    return tuning


def find_middle_of_best_run(values: Floats) -> int:
    """Return the middle of the longest run of best values, far from where the values get worse."""
    best = np.flatnonzero(values == values.max())
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(runs, key=len)
    return int(longest[(len(longest) - 1) // 2])


def _best_threshold(tuning: Tuning, inside_weight: float) -> float:
    """Return the best threshold so far for one inside weight."""
    columns = (np.array(tuning.history[name]) for name in ("inside_weight", "threshold", "f1"))
    weight, threshold, f1 = columns
    rows = weight == inside_weight
    return float(threshold[rows][find_middle_of_best_run(f1[rows])])
