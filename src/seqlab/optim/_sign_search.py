"""Kernel: a quadratic function with an L1 penalty, minimised by solving for one set of signs after the other.

Coordinate descent takes thousands of sweeps if the matrix is ill-conditioned. Here the minimum for the
present signs is the solution of linear equations, and the search along the line to it may end where a sign
changes (Lee, Battle, Raina & Ng 2007). Weights whose slope exceeds the penalty at zero join in groups.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.optim._block_kernels import MARGIN
from seqlab.optim.state import Vector
from seqlab.utils.cholesky import factorise, solve_cholesky
from seqlab.utils.linalg import axpy, dot


@njit(nogil=True, cache=True)
def search_signs(
    block: Vector,
    slopes: Vector,
    w: Vector,
    c1: Vector,
    scale: float,
    is_active: NDArray[np.bool_],
    max_solves: int,
    tol: float,
    direction: Vector,
) -> bool:
    """Minimise ``slopes'd + scale d'Hd / 2 + sum c1 |w + d|`` over the active weights.

    ``block`` is H, positive definite; ``direction`` is d. Ends at the minimum, or if one step gains less than
    ``tol`` times the gain of all, ``direction`` before the call included. Returns whether this took at most
    ``max_solves`` systems of equations; otherwise d is the best point so far.
    """
    n = w.size
    gradient = slopes.copy()
    for j in range(n):
        if direction[j] != 0.0:
            axpy(scale * direction[j], block[j], gradient)
    sign = np.sign(w + direction)
    members, change, product = np.empty(n, dtype=np.int64), np.zeros(n), np.zeros(n)
    ends, owners = np.empty(n), np.empty(n, dtype=np.int64)
    start, last_value = dot(c1, np.abs(w)), _value(slopes, gradient, w, c1, direction)
    n_rounds, n_joined, only_worst = 0, 0, False
    is_settled = False  # whether the point is the minimum for its signs
    for _ in range(max_solves):
        if is_settled:
            worst, largest, n_joined = -1, 0.0, 0
            for j in range(n):
                excess = abs(gradient[j]) - c1[j] * (1.0 + MARGIN)
                if is_active[j] and sign[j] == 0.0 and excess > 0.0:
                    if excess > largest:
                        worst, largest = j, excess
                    if not only_worst:
                        sign[j] = -np.sign(gradient[j])
                        n_joined += 1
            if worst == -1:
                return True
            if only_worst:
                sign[worst], n_joined = -np.sign(gradient[worst]), 1
            n_rounds += 1
        m = 0
        for j in range(n):
            if is_active[j] and sign[j] != 0.0:
                members[m] = j
                m += 1
        matrix, right = np.empty((m, m)), np.empty(m)
        for i in range(m):
            row = block[members[i]]
            for k in range(i + 1):
                matrix[i, k] = row[members[k]]
            right[i] = -(gradient[members[i]] + c1[members[i]] * sign[members[i]]) / scale
        if not factorise(matrix):
            return False
        solved = solve_cholesky(matrix, right)
        # A weight at zero must not move against its sign: it leaves again. If all weights that joined do,
        # the one with the largest slope is tried alone: it would move with its sign.
        n_left = 0
        for i in range(m):
            j = members[i]
            if w[j] + direction[j] == 0.0 and solved[i] * sign[j] <= 0.0:
                sign[j] = 0.0
                n_left += 1
        if n_left:
            n_joined -= n_left
            is_settled = n_joined == 0
            if is_settled and only_worst:
                return True  # rounding errors
            only_worst = is_settled
            continue
        only_worst = False
        change[:], product[:] = 0.0, 0.0
        slope, n_ends = 0.0, 0
        for i in range(m):
            j = members[i]
            change[j] = solved[i]
            axpy(solved[i], block[j], product)
            slope += solved[i] * (gradient[j] + c1[j] * sign[j])
            before = w[j] + direction[j]
            if before != 0.0 and (before + solved[i]) * sign[j] <= 0.0:
                ends[n_ends], owners[n_ends] = -before / solved[i], j
                n_ends += 1
        bend = scale * dot(change, product)
        if not bend > 0.0:
            is_settled = True
            continue
        # The slope along the line grows linearly, and jumps where a weight is zero.
        length, last = min(1.0, -slope / bend), -1
        for _end in range(n_ends):
            place = np.argmin(ends[:n_ends])
            end, j = ends[place], owners[place]
            if end >= length:
                break
            ends[place] = np.inf
            slope += 2.0 * c1[j] * abs(change[j])
            if slope + end * bend >= 0.0:
                length, last = end, j
                break
            length = min(1.0, -slope / bend)
        is_settled = n_ends == 0
        for i in range(m):
            j = members[i]
            direction[j] += length * change[j]
            after = w[j] + direction[j]
            if j == last or after == 0.0:
                direction[j], after = -w[j], 0.0
            sign[j] = np.sign(after)
        axpy(scale * length, product, gradient)
        value = _value(slopes, gradient, w, c1, direction)
        if n_rounds > 0 and max(last_value - value, 0.0) < tol * (start - value):
            return True
        last_value = value
    return False


@njit(nogil=True, cache=True)
def _value(slopes: Vector, gradient: Vector, w: Vector, c1: Vector, direction: Vector) -> float:
    """Return the function that `search_signs` minimises; ``gradient`` is that of its quadratic part."""
    total = 0.0
    for j in range(w.size):
        total += 0.5 * direction[j] * (slopes[j] + gradient[j]) + c1[j] * abs(w[j] + direction[j])
    return total
