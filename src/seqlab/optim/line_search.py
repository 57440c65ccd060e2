"""Line search: a step that satisfies the weak Wolfe conditions.

Along a descent direction d from w with value f and slope g'd < 0, find s with

    f(w + s d) <= f + c_1 s g'd          (sufficient decrease)
    grad f(w + s d)'d >= c_2 g'd         (curvature)

by bracketing, with quadratic interpolation inside the bracket (Nocedal & Wright, chapter 3; the
bracketing for the weak conditions follows Lewis & Overton 2013). The weak curvature condition is
sufficient for a positive-definite quasi-Newton update. A non-finite value counts as "too far", so an
overflow shortens the step instead of ending the search.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from seqlab.optim.state import Objective, Vector
from seqlab.utils.linalg import dot

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
MAX_TRIALS = 40


class SearchResult(NamedTuple):
    """A point that satisfies the conditions, or ``step == 0`` if none was found."""

    step: float
    w: Vector
    objective: float
    gradient: Vector


def weak_wolfe(
    objective: Objective, w: Vector, value: float, gradient: Vector, direction: Vector, step: float
) -> SearchResult:
    """Search along ``direction`` from ``w``, trying ``step`` first."""
    slope = float(dot(gradient, direction))
    low, low_value, low_slope = 0.0, value, slope
    high, high_value = math.inf, math.nan
    for _ in range(MAX_TRIALS):
        w_new = w + step * direction
        value_new, gradient_new = objective.loss_gradient(w_new)
        # Near the optimum the decrease is smaller than the rounding error of the value.
        slack = 1e-14 * abs(value)
        too_far = not math.isfinite(value_new) or (
            value_new > value + SUFFICIENT_DECREASE * step * slope + slack
        )
        if too_far:
            high, high_value = step, value_new
        else:
            slope_new = float(dot(gradient_new, direction))
            if slope_new >= CURVATURE * slope:
                return SearchResult(step, w_new, value_new, gradient_new)
            low, low_value, low_slope = step, value_new, slope_new
        step = _next_step(low, low_value, low_slope, high, high_value)
        if step <= 0.0 or not math.isfinite(step):
            break
    return SearchResult(0.0, w, value, gradient)


def _next_step(
    low: float, low_value: float, low_slope: float, high: float, high_value: float
) -> float:
    if math.isinf(high):
        return 2.0 * low
    width = high - low
    if width <= 1e-16 * high:
        return math.nan
    # Minimiser of the parabola through (low, value, slope) and (high, value), kept away from both ends.
    guess = low + 0.5 * width
    if math.isfinite(high_value):
        bend = high_value - low_value - low_slope * width
        if bend > 0.0:
            guess = low - 0.5 * low_slope * width * width / bend
    return min(max(guess, low + 0.1 * width), high - 0.1 * width)
