"""Kernels of the quadratic model of the proximal quasi-Newton solver.

Pairs are stored weight by weight: row ``j`` of ``pairs`` holds the entries ``j`` of all steps, then those of
all gradient changes, because coordinate descent visits one weight after the other.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.optim.state import Vector


@njit(nogil=True, cache=True)
def store_rows(
    w: Vector,
    w_new: Vector,
    gradient: Vector,
    gradient_new: Vector,
    diagonal: Vector,
    pairs: Vector,
    place: int,
    begin: int,
    stop: int,
    out: Vector,
) -> None:
    """Store the entries ``begin:stop`` of a new pair; add their part of its inner products to ``out``.

    ``out[0, k]`` receives new step . D step k, ``out[1, k]`` new step . change k, ``out[2, k]`` step k . new
    change; ``out[3, :2]`` new change . D^-1 new change, and the last product without D.
    """
    memory = pairs.shape[1] // 2
    for j in range(begin, stop):
        step, change = w_new[j] - w[j], gradient_new[j] - gradient[j]
        row = pairs[j]
        row[place], row[memory + place] = step, change
        scaled = diagonal[j] * step
        for k in range(memory):
            out[0, k] += scaled * row[k]
            out[1, k] += step * row[memory + k]
            out[2, k] += row[k] * change
        out[3, 0] += change * change / diagonal[j]
        out[3, 1] += change * change


@njit(nogil=True, cache=True)
def separable_minimum(
    w: Vector,
    gradient: Vector,
    c1: Vector,
    active: NDArray[np.int64],
    diagonal: Vector,
    scale: float,
    pairs: Vector,
    shift: Vector,
    begin: int,
    stop: int,
    signs: NDArray[np.int8],
    direction: Vector,
    products: Vector,
    gram: Vector,
) -> int:
    """Minimise ``(g - Q u)'d + s d'Dd / 2 + sum c1 |w + d|`` over the active weights ``begin:stop``.

    Sets their ``direction`` d and ``signs`` of ``w + d``. Adds their part of ``Q'd`` to ``products``, and
    that of ``Q'(s D)^-1 Q``, over the weights that are not zero, to the lower half of ``gram``. Returns how
    many signs have changed. ``shift`` is u.
    """
    size = pairs.shape[1]
    memory = size // 2
    n_changed = 0
    q = np.empty(size)
    for i in range(begin, stop):
        j = active[i]
        base = scale * diagonal[j]
        row = pairs[j]
        slope = gradient[j]
        for k in range(memory):
            q[k] = base * row[k]
        for k in range(memory, size):
            q[k] = row[k]
        for k in range(size):
            slope -= q[k] * shift[k]
        after = w[j] - slope / base
        threshold = c1[j] / base
        if after > threshold:
            after -= threshold
            sign = 1
        elif after < -threshold:
            after += threshold
            sign = -1
        else:
            after = 0.0
            sign = 0
        if sign != signs[i]:
            signs[i] = sign
            n_changed += 1
        change = after - w[j]
        direction[j] = change
        for k in range(size):
            products[k] += q[k] * change
        if sign != 0:
            for k in range(size):
                value = q[k] / base
                for other in range(k + 1):
                    gram[k, other] += value * q[other]
    return n_changed


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
    max_sweeps: int,
    tol: float,
    direction: Vector,
) -> float:
    """Minimise ``g'd + d'Bd / 2 + sum c1 |w + d|`` over the active weights by coordinate descent.

    ``direction`` is set to ``d``. Sweeps end if one gains less than ``tol`` times the gain of all so far.
    Returns the decrease of the model.
    """
    size = pairs.shape[1]
    memory = size // 2
    direction[:] = 0.0
    products = np.zeros(size)  # Q'd
    total = 0.0
    for _ in range(max_sweeps):
        gain = 0.0
        for i in range(active.size):
            j = active[i]
            row, bend = rows[i], curvature[i]
            slope = gradient[j] + scale * diagonal[j] * direction[j]
            for k in range(size):
                slope -= row[k] * products[k]
            before = w[j] + direction[j]
            after = before - slope / bend
            threshold = c1[j] / bend
            if after > threshold:
                after -= threshold
            elif after < -threshold:
                after += threshold
            else:
                after = 0.0
            change = after - before
            if change != 0.0:
                direction[j] += change
                base = change * scale * diagonal[j]
                pair = pairs[j]
                for k in range(memory):
                    products[k] += base * pair[k]
                    products[memory + k] += change * pair[memory + k]
                gain -= change * (slope + 0.5 * bend * change) + c1[j] * (abs(after) - abs(before))
        total += gain
        if gain <= tol * total:
            break
    return total
