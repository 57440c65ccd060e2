"""Vector arithmetic of the batch solvers; results are bitwise identical for any number of threads.

The time is limited by memory bandwidth: one or two arrays of doubles are read in sequence.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.utils.linalg import BLOCK, axpy, dot

Vector = NDArray[np.float64]


@njit(nogil=True, cache=True)
def store_pair(
    w: Vector,
    w_new: Vector,
    gradient: Vector,
    gradient_new: Vector,
    inverse: Vector,
    steps: Vector,
    changes: Vector,
    place: int,
    used: NDArray[np.bool_],
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Store the entries ``begin:stop`` of a new pair; add their part of its inner products to ``out``.

    Row ``place`` of ``steps`` and ``changes`` receives the differences. ``out[:, k]`` receives, for each pair
    ``k`` in use: step k . new change, new step . change k, and change k . new change in the metric
    ``inverse``; for the new pair also the last product without the metric.
    """
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        step, change = steps[place, first:last], changes[place, first:last]
        for i in range(last - first):
            step[i] = w_new[first + i] - w[first + i]
            change[i] = gradient_new[first + i] - gradient[first + i]
        scaled = change * inverse[first:last] if inverse.size > 0 else change.copy()
        for k in range(steps.shape[0]):
            if used[k]:
                out[0, k] += dot(steps[k, first:last], change)
                out[1, k] += dot(step, changes[k, first:last])
                out[2, k] += dot(changes[k, first:last], scaled)
                if k == place:
                    out[3, k] += dot(change, change)


@njit(nogil=True, cache=True)
def history_dots(
    gradient: Vector,
    inverse: Vector,
    steps: Vector,
    changes: Vector,
    used: NDArray[np.bool_],
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Add the part of the entries ``begin:stop`` to the inner products of a gradient and all pairs in use.

    ``out[0, k]`` receives step k . gradient, ``out[1, k]`` change k . gradient in the metric ``inverse``.
    """
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        part = gradient[first:last]
        scaled = part * inverse[first:last] if inverse.size > 0 else part.copy()
        for k in range(steps.shape[0]):
            if used[k]:
                out[0, k] += dot(steps[k, first:last], part)
                out[1, k] += dot(changes[k, first:last], scaled)


@njit(nogil=True, cache=True)
def combine(
    gradient: Vector,
    inverse: Vector,
    steps: Vector,
    changes: Vector,
    used: NDArray[np.bool_],
    scale: float,
    of_steps: Vector,
    of_changes: Vector,
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Set ``out = scale * inverse * (gradient - sum of_changes[k] change k) + sum of_steps[k] step k``."""
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        part = out[first:last]
        for i in range(last - first):
            part[i] = gradient[first + i]
        for k in range(steps.shape[0]):
            if used[k]:
                axpy(-of_changes[k], changes[k, first:last], part)
        if inverse.size > 0:
            for i in range(last - first):
                part[i] *= scale * inverse[first + i]
        else:
            for i in range(last - first):
                part[i] *= scale
        for k in range(steps.shape[0]):
            if used[k]:
                axpy(of_steps[k], steps[k, first:last], part)
