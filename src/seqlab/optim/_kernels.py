"""Vector arithmetic of the batch solvers; results are bitwise identical for any number of threads.

The time is limited by memory bandwidth. So the pairs of L-BFGS are stored in blocks of `BLOCK` entries: row
``k`` of ``pairs[b]`` is block ``b`` of step ``k``, row ``memory + k`` that of gradient change ``k``. All rows
of a block lie next to each other, and one part of a gradient, which stays in the cache, is used with all of
them.
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
    pairs: Vector,
    place: int,
    used: NDArray[np.bool_],
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Store the entries ``begin:stop`` of a new pair; add their part of its inner products to ``out``.

    Step and change ``place`` receive the differences. ``out[:, k]`` receives, for each pair ``k`` in use:
    step k . new change, new step . change k, change k . new change in the metric ``inverse``, step k . new
    step, change k . new change, and the two products of `history_dots` with the new gradient, which would
    otherwise read all pairs once more. ``begin`` is a multiple of `BLOCK`.
    """
    memory, products = used.size, np.empty((2, BLOCK))
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        block = pairs[first // BLOCK]
        size = last - first
        scaled, scaled_gradient = products[0, :size], products[1, :size]
        step, change = block[place, :size], block[memory + place, :size]
        part = gradient_new[first:last]
        for i in range(size):
            step[i] = w_new[first + i] - w[first + i]
            change[i] = part[i] - gradient[first + i]
            factor = inverse[first + i] if inverse.size > 0 else 1.0
            scaled[i], scaled_gradient[i] = change[i] * factor, part[i] * factor
        for k in range(memory):
            if used[k]:
                out[0, k] += dot(block[k, :size], change)
                out[1, k] += dot(step, block[memory + k, :size])
                out[2, k] += dot(block[memory + k, :size], scaled)
                out[3, k] += dot(block[k, :size], step)
                out[4, k] += dot(block[memory + k, :size], change)
                out[5, k] += dot(block[k, :size], part)
                out[6, k] += dot(block[memory + k, :size], scaled_gradient)


@njit(nogil=True, cache=True)
def history_dots(
    gradient: Vector,
    inverse: Vector,
    pairs: Vector,
    used: NDArray[np.bool_],
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Add the part of the entries ``begin:stop`` to the inner products of a gradient and all pairs in use.

    ``out[0, k]`` receives step k . gradient, ``out[1, k]`` change k . gradient in the metric ``inverse``.
    """
    memory, products = used.size, np.empty(BLOCK)
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        block = pairs[first // BLOCK]
        size = last - first
        part, scaled = gradient[first:last], products[:size]
        for i in range(size):
            scaled[i] = part[i] * (inverse[first + i] if inverse.size > 0 else 1.0)
        for k in range(memory):
            if used[k]:
                out[0, k] += dot(block[k, :size], part)
                out[1, k] += dot(block[memory + k, :size], scaled)


@njit(nogil=True, cache=True)
def combine(
    gradient: Vector,
    inverse: Vector,
    pairs: Vector,
    used: NDArray[np.bool_],
    scale: float,
    of_steps: Vector,
    of_changes: Vector,
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Set ``out = scale * inverse * (gradient - sum of_changes[k] change k) + sum of_steps[k] step k``."""
    memory = used.size
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        block = pairs[first // BLOCK]
        size = last - first
        part = out[first:last]
        for i in range(size):
            part[i] = gradient[first + i]
        for k in range(memory):
            if used[k]:
                axpy(-of_changes[k], block[memory + k, :size], part)
        if inverse.size > 0:
            for i in range(size):
                part[i] *= scale * inverse[first + i]
        else:
            for i in range(size):
                part[i] *= scale
        for k in range(memory):
            if used[k]:
                axpy(of_steps[k], block[k, :size], part)
