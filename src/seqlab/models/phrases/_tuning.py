"""The threshold of phrase costs, and the weight of decisions inside, tuned for F1 on held-out posteriors.

F1 as a function of the threshold is a step function with many small steps, cheap to evaluate (one shortest
path over all sequences), so a grid is searched: a coarse one, then a fine one around its best point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from seqlab.data.tags import StackedPhrases
from seqlab.inference import PhraseCosts, best_phrases

Floats = NDArray[np.float64]

# Products of two probabilities: the best thresholds are small, so the grid is finest near 0.
PRODUCT_THRESHOLDS = (np.arange(50) / 50.0) ** 2
# Logarithms: a factor of 400 either way.
LOG_THRESHOLDS = np.arange(-6.0, 6.5)
LOG_STEPS = np.arange(-0.75, 1.0, 0.25)
# The first of equally good ones is taken: all decisions count, unless counting them less is better.
INSIDE_WEIGHTS = np.array([1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.0])


@dataclass(slots=True)
class Tuning:
    """Points that were tried, and the best of them."""

    threshold: float = 0.0
    inside_weight: float = 1.0
    f1: float = -1.0
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"inside_weight": [], "threshold": [], "f1": []}
    )


def phrase_f1(
    gold: StackedPhrases, found: StackedPhrases, n_steps: int, weights: Floats | None = None
) -> float:
    """F1 of exact phrases; ``weights`` (n_steps,) is the weight of a phrase by its first step."""
    stop_at = np.full(n_steps, -1, dtype=np.int64)
    type_at = np.full(n_steps, -1, dtype=np.int64)
    stop_at[gold.start], type_at[gold.start] = gold.stop, gold.type
    right = (stop_at[found.start] == found.stop) & (type_at[found.start] == found.type)
    if weights is None:
        weights = np.ones(n_steps)
    both = weights[gold.start].sum() + weights[found.start].sum()
    return float(2.0 * weights[found.start][right].sum() / both) if both else 0.0


def tune(
    costs_of: Callable[[float], PhraseCosts],
    gold: StackedPhrases,
    *,
    logarithmic: bool,
    inside_weights: Floats,
    thresholds: Floats | None = None,
    weights: Floats | None = None,
    n_jobs: int | None = None,
) -> Tuning:
    """Search the threshold, and one of several weights of decisions inside.

    Parameters
    ----------
    costs_of : callable
        Costs of the held-out posteriors, with a threshold of 0, for a weight of decisions inside.
    gold : StackedPhrases
    logarithmic : bool
        Whether costs are logarithms rather than products.
    inside_weights : array
        Those to try.
    thresholds : array, optional
        Those to try, where they are not to be searched.
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
            at = middle_of_best(values)
            tuning.threshold, tuning.f1 = float(grid[at]), float(values[at])
            tuning.inside_weight = inside_weight

    searched = thresholds is None
    grid = thresholds
    if grid is None:
        grid = LOG_THRESHOLDS if logarithmic else PRODUCT_THRESHOLDS
    for inside_weight in inside_weights.tolist():
        search(costs_of(inside_weight), inside_weight, grid)
    if logarithmic and searched:
        # The coarse grid may misjudge weights that are close: the fine one looks at the neighbours too.
        place = int(np.flatnonzero(inside_weights == tuning.inside_weight)[0])
        for inside_weight in inside_weights[max(place - 1, 0) : place + 2].tolist():
            best = _best_of(tuning, inside_weight)
            search(costs_of(inside_weight), inside_weight, best + LOG_STEPS)
    return tuning


def middle_of_best(values: Floats) -> int:
    """The middle of the longest run of best values: as far as can be from where it gets worse."""
    best = np.flatnonzero(values == values.max())
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(runs, key=len)
    return int(longest[(len(longest) - 1) // 2])


def _best_of(tuning: Tuning, inside_weight: float) -> float:
    """The best threshold so far at one weight."""
    columns = (np.array(tuning.history[name]) for name in ("inside_weight", "threshold", "f1"))
    weight, threshold, f1 = columns
    mine = weight == inside_weight
    return float(threshold[mine][middle_of_best(f1[mine])])
