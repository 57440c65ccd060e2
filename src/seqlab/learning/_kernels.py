"""Compiled kernels of the learners."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.utils.linalg import BLOCK, Vector, axpy, dot


@njit(nogil=True, cache=True)
def penalised_sum(
    parts: Vector,
    observed: Vector,
    w: Vector,
    counted: Vector,
    c2: float,
    begin: int,
    stop: int,
    out: Vector,
) -> float:
    """Set ``out = 2 c2 counted - observed + sum of parts`` for the entries ``begin:stop``.

    Returns ``c2 |counted|^2 - w . observed`` of these entries. ``observed`` may have size 0.
    """
    total = 0.0
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        part = out[first:last]
        for i in range(last - first):
            part[i] = 2.0 * c2 * counted[first + i]
        if observed.size > 0:
            axpy(-1.0, observed[first:last], part)
        for k in range(parts.shape[0]):
            axpy(1.0, parts[k, first:last], part)
        total += c2 * dot(counted[first:last], counted[first:last])
        if observed.size > 0:
            total -= dot(w[first:last], observed[first:last])
    return total


@njit(nogil=True, cache=True)
def shift_groups(
    w: Vector, gradient: Vector, c1: Vector, c2: float, firsts: NDArray[np.int64], size: int
) -> float:
    """Subtract from each group of weights the number that minimises ``sum c1 |w| + c2 w^2``.

    Groups have ``size`` consecutive weights, begin at ``firsts``, and have one value of ``c1`` each. The
    gradient of ``c2 w^2`` in ``gradient`` is updated. Returns the decrease.
    """
    total = 0.0
    for first in firsts:
        group, slopes, penalty = w[first : first + size], gradient[first : first + size], c1[first]
        n_zero = n_positive = 0
        total_weight = 0.0
        for k in range(size):
            n_zero += group[k] == 0.0
            n_positive += group[k] > 0.0
            total_weight += group[k]
        # Most groups are at their minimum: the weights at zero balance the slope of the others.
        n_negative = size - n_zero - n_positive
        slope = penalty * (n_positive - n_negative) + 2.0 * c2 * total_weight
        if n_zero > 0 and abs(slope) <= penalty * n_zero:
            continue
        shift = _best_shift(_insertion_sort(group), penalty, c2)
        if shift == 0.0:
            continue
        for k in range(size):
            before, after = group[k], group[k] - shift
            total += penalty * (abs(before) - abs(after)) + c2 * (before - after) * (before + after)
            slopes[k] -= 2.0 * c2 * shift
            group[k] = after
    return total


@njit(nogil=True, cache=True)
def _insertion_sort(values: Vector) -> Vector:
    """Return a sorted copy of a few values: numba takes most of a second to compile `np.sort`."""
    out = values.copy()
    for i in range(1, out.size):
        value, k = out[i], i
        while k > 0 and out[k - 1] > value:
            out[k] = out[k - 1]
            k -= 1
        out[k] = value
    return out


@njit(nogil=True, cache=True)
def _best_shift(ordered: Vector, c1: float, c2: float) -> float:
    """Return the s that minimises ``sum c1 |w - s| + c2 (w - s)^2``; without c2 that nearest to zero."""
    n = ordered.size
    mean = ordered.mean() if c2 > 0.0 else 0.0
    for below in range(n + 1):
        # The minimum if just this number of weights are below it.
        slope = c1 * (n - 2 * below)
        if c2 > 0.0:
            best = mean + slope / (2.0 * c2 * n)
        else:
            best = np.inf * slope if slope != 0.0 else 0.0
        if below < n and best > ordered[below]:
            continue  # more weights are below
        return best if below == 0 else max(best, ordered[below - 1])
    return 0.0
