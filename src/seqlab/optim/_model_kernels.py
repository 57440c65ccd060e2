"""Kernels of the quadratic model of the proximal quasi-Newton solver.

Pairs are stored weight by weight: row ``j`` of ``pairs`` holds the entries ``j`` of all steps, then those of
all gradient changes, because coordinate descent visits one weight after the other.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.optim.state import Vector
from seqlab.utils.linalg import axpy


@njit(nogil=True, cache=True)
def soft_threshold(value: float, threshold: float) -> float:
    """Return the number nearest to zero at a distance of at most ``threshold``."""
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return 0.0


@njit(nogil=True, cache=True)
def store_rows(
    w: Vector,
    w_new: Vector,
    gradient: Vector,
    gradient_new: Vector,
    diagonal: Vector,
    pairs: Vector,
    last_moved: NDArray[np.int64],
    n_updates: int,
    place: int,
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Store the entries ``begin:stop`` of a new pair; add their part of its inner products to ``out``.

    ``out[0, k]`` receives new step . D step k, ``out[1, k]`` new step . change k, ``out[2, k]`` step k . new
    change, ``out[3, 0]`` new change . D^-1 new change. ``last_moved`` is the number of the update, counted by
    ``n_updates``, in which a weight last moved.
    """
    memory = pairs.shape[1] // 2
    for j in range(begin, stop):
        step, change = w_new[j] - w[j], gradient_new[j] - gradient[j]
        row = pairs[j]
        row[memory + place] = change
        out[3, 0] += change * change / diagonal[j]
        if step != 0.0:
            last_moved[j] = n_updates
        elif n_updates - last_moved[j] > memory:
            # Most weights are zero and have not moved: their steps and products are zero.
            continue
        row[place] = step
        scaled = diagonal[j] * step
        for k in range(memory):
            out[0, k] += scaled * row[k]
            out[1, k] += step * row[memory + k]
            out[2, k] += row[k] * change


@njit(nogil=True, cache=True)
def separable_decrease(w: Vector, gradient: Vector, c1: Vector, curvature: Vector) -> float:
    """Return the maximum of ``-(g'd + sum curvature d^2 / 2 + sum c1 (|w + d| - |w|))`` over ``d``."""
    total = 0.0
    for j in range(w.size):
        if w[j] == 0.0 and abs(gradient[j]) <= c1[j]:
            continue  # stays zero: most weights, and divisions are slow
        bend = curvature[j]
        after = w[j] - gradient[j] / bend
        after = soft_threshold(after, c1[j] / bend)
        change = after - w[j]
        if change != 0.0:
            total -= change * (gradient[j] + 0.5 * bend * change)
            total -= c1[j] * (abs(after) - abs(w[j]))
    return total


@njit(nogil=True, cache=True)
def linear_change(w: Vector, gradient: Vector, c1: Vector, direction: Vector) -> float:
    """Return ``g'd + sum c1 (|w + d| - |w|)``: the change of gradient and penalty along a direction."""
    linear = penalty = 0.0
    for j in range(w.size):
        change = direction[j]
        if change != 0.0:
            linear += gradient[j] * change
            penalty += c1[j] * (abs(w[j] + change) - abs(w[j]))
    return linear + penalty


@njit(nogil=True, cache=True)
def diagonal_quadratic(diagonal: Vector, direction: Vector) -> float:
    """Return ``d'Dd``."""
    total = 0.0
    for j in range(direction.size):
        if direction[j] != 0.0:
            total += diagonal[j] * direction[j] * direction[j]
    return total


@njit(nogil=True, cache=True)
def least_subgradient(w: Vector, gradient: Vector, c1: Vector) -> float:
    """Return the squared norm of the smallest subgradient of ``f(w) + sum c1 |w|``."""
    total = 0.0
    for j in range(w.size):
        if w[j] > 0.0:
            slope = gradient[j] + c1[j]
        elif w[j] < 0.0:
            slope = gradient[j] - c1[j]
        else:
            slope = max(abs(gradient[j]) - c1[j], 0.0)
        total += slope * slope
    return total


@njit(nogil=True, cache=True)
def take_step(w: Vector, direction: Vector, step: float, c1: Vector, out: Vector) -> float:
    """Set ``out`` to ``w + step d``; return its penalty."""
    penalty = 0.0
    for j in range(w.size):
        out[j] = w[j] + step * direction[j]
        penalty += c1[j] * abs(out[j])
    return penalty


@njit(nogil=True, cache=True)
def multiply_rows(
    active: NDArray[np.int64],
    diagonal: Vector,
    scale: float,
    pairs: Vector,
    inverse: Vector,
    begin: int,
    stop: int,
    rows: Vector,
    curvature: Vector,
) -> None:
    """Set row ``i`` of ``rows`` to ``q_j M`` for ``j = active[i]``, and ``curvature`` to its entry of B.

    ``B = scale D - Q M Q'`` is the matrix of the model, ``q_j = (scale D_j step_j, change_j)`` a row of Q,
    and M is ``inverse``.
    """
    size = pairs.shape[1]
    memory = size // 2
    q = np.empty(size)
    for i in range(begin, stop):
        j = active[i]
        base = scale * diagonal[j]
        row, out = pairs[j], rows[i]
        for k in range(memory):
            q[k] = base * row[k]
            q[memory + k] = row[memory + k]
        out[:] = 0.0
        for k in range(size):
            value = q[k]
            for other in range(size):
                out[other] += value * inverse[k, other]
        total = 0.0
        for k in range(size):
            total += out[k] * q[k]
        # Positive in exact arithmetic.
        curvature[i] = max(base - total, 1e-10 * base)


@njit(nogil=True, cache=True)
def descend_coordinates(
    w: Vector,
    gradient: Vector,
    c1: Vector,
    active: NDArray[np.int64],
    diagonal: Vector,
    scale: float,
    pairs: Vector,
    rows: Vector,
    curvature: Vector,
    rank: NDArray[np.int64],
    rest: Vector,
    first: NDArray[np.int64],
    max_sweeps: int,
    tol: float,
    direction: Vector,
    products: Vector,
) -> float:
    """Minimise ``g'd + d'(B + R)d / 2 + sum c1 |w + d|`` over the active weights by coordinate descent.

    ``rest`` holds the rows of R, with a diagonal of zeros, each for the weights of one block: from place
    ``first`` in the vector of all weights of blocks. ``rank`` is the row of an active weight, -1 for a weight
    that is not in a block. ``direction`` is set to ``d``, and ``products``, zeros
    before, to ``Q'd``. Sweeps end if one gains less than ``tol`` times the gain of all so far. Returns the
    decrease of the model.
    """
    size = pairs.shape[1]
    memory = size // 2
    direction[:] = 0.0
    width = rest.shape[1]
    offset = np.zeros(rest.shape[0] + width)  # R d, and room for the zeros at the ends of rows
    total = 0.0
    for _ in range(max_sweeps):
        gain = 0.0
        for i in range(active.size):
            j = active[i]
            row, bend = rows[i], curvature[i]
            slope = gradient[j] + scale * diagonal[j] * direction[j]
            for k in range(size):
                slope -= row[k] * products[k]
            if rank[i] >= 0:
                slope += offset[rank[i]]
            before = w[j] + direction[j]
            after = before - slope / bend
            after = soft_threshold(after, c1[j] / bend)
            change = after - before
            if change != 0.0:
                direction[j] += change
                base = change * scale * diagonal[j]
                pair = pairs[j]
                for k in range(memory):
                    products[k] += base * pair[k]
                    products[memory + k] += change * pair[memory + k]
                if rank[i] >= 0:
                    begin = first[rank[i]]
                    axpy(change, rest[rank[i]], offset[begin : begin + width])
                gain -= change * (slope + 0.5 * bend * change) + c1[j] * (abs(after) - abs(before))
        total += gain
        if gain <= tol * total:
            break
    return total
