"""Kernels: the part of one dense block in the quadratic model of the proximal quasi-Newton solver.

A block has a few hundred weights at most, and often a few dozen: calls of NumPy would take longer than the
arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.optim._model_kernels import soft_threshold
from seqlab.optim.state import Vector
from seqlab.utils.cholesky import WIDTH, factorise, solve_cholesky, solve_lower
from seqlab.utils.linalg import axpy, dot

# Relative amount by which a slope must exceed the penalty: rounding errors are smaller.
MARGIN = 1e-9


@njit(nogil=True, cache=True)
def descend_block(
    block: Vector,
    slopes: Vector,
    w: Vector,
    c1: Vector,
    scale: float,
    is_active: NDArray[np.bool_],
    n_sweeps: int,
    direction: Vector,
) -> NDArray[np.int8]:
    """Reduce ``slopes'd + scale d'Hd / 2 + sum c1 |w + d|`` by coordinate descent over the active weights.

    ``block`` is H; ``direction`` is d. Returns the signs of ``w + d``, 0 for a weight that is not active.
    """
    n = direction.size
    gradient = slopes.copy()
    for j in range(n):
        if direction[j] != 0.0:
            axpy(scale * direction[j], block[j], gradient)
    for _ in range(n_sweeps):
        for j in range(n):
            if not is_active[j]:
                continue
            bend = scale * block[j, j]
            before = w[j] + direction[j]
            after = before - gradient[j] / bend
            after = soft_threshold(after, c1[j] / bend)
            change = after - before
            if change != 0.0:
                direction[j] = after - w[j]
                axpy(scale * change, block[j], gradient)
    signs = np.zeros(n, dtype=np.int8)
    for j in range(n):
        if is_active[j]:
            signs[j] = np.sign(w[j] + direction[j])
    return signs


@njit(nogil=True, cache=True)
def correct_signs(
    block: Vector,
    slopes: Vector,
    w: Vector,
    c1: Vector,
    scale: float,
    is_active: NDArray[np.bool_],
    max_corrections: int,
    signs: NDArray[np.int8],
    factor: Vector,
    members: NDArray[np.int64],
    direction: Vector,
) -> bool:
    """Minimise ``slopes'd + scale d'Hd / 2 + sum c1 |w + d|`` given the signs of ``w + d``, and correct them.

    Weights whose sign would change become zero, and those at zero whose slope exceeds the penalty move.
    Returns whether this ends after at most ``max_corrections`` solutions: then ``direction`` and ``signs``
    are those of the minimum, and otherwise ``direction`` is unchanged. ``factor`` and ``members`` are kept
    from one call to the next; see `factorise_part`.
    """
    n = w.size
    exact, slope = np.empty(n), np.empty(n)
    for j in range(n):
        if not is_active[j]:
            signs[j] = 0
    for _ in range(max_corrections):
        any_leaves = False
        for j in range(n):
            exact[j] = 0.0
            if is_active[j] and signs[j] == 0:
                exact[j] = -w[j]
                any_leaves = any_leaves or w[j] != 0.0
        lower = factorise_part(block, signs, factor, members)
        m = lower.shape[0]
        if m < members[n]:
            return False
        right = np.empty(m)
        for i in range(m):
            j = members[i]
            right[i] = -(slopes[j] + c1[j] * signs[j]) / scale
            if any_leaves:
                right[i] -= dot(block[j], exact)
        solved = solve_cholesky(lower, right)
        for i in range(m):
            exact[members[i]] = solved[i]
        is_minimum = True
        for j in range(n):
            if is_active[j] and signs[j] == 0:
                slope[j] = slopes[j] + scale * dot(block[j], exact)
        for j in range(n):
            if not is_active[j]:
                continue
            if signs[j] == 0:
                if abs(slope[j]) > c1[j] * (1.0 + MARGIN):
                    signs[j] = -np.sign(slope[j])
                    is_minimum = False
            elif np.sign(w[j] + exact[j]) != signs[j]:
                signs[j] = 0
                is_minimum = False
        if is_minimum:
            direction[:] = exact
            return True
    return False


@njit(nogil=True, cache=True)
def factorise_part(
    block: Vector, signs: NDArray[np.int8], factor: Vector, members: NDArray[np.int64]
) -> Vector:
    """Return the Cholesky factor of a block for the weights whose sign is not 0.

    ``factor`` holds the last one, and the first entries of ``members`` its weights; the last entry of
    ``members`` is their number, -1 before the first factor. If they are still the same, the factor is
    returned as it is. The result is empty if the part is not positive definite; the first entry of
    ``factor`` is then NaN.
    """
    n, m = signs.size, 0
    is_same = True
    for j in range(n):
        if signs[j] != 0:
            is_same = is_same and members[m] == j
            members[m] = j
            m += 1
    is_same = is_same and members[n] == m
    lower = factor[: m * m].reshape((m, m))
    if not is_same:
        members[n] = m
        for i in range(m):
            row = block[members[i]]
            for k in range(i + 1):
                lower[i, k] = row[members[k]]
        if not factorise(lower):
            lower[0, 0] = np.nan
    if m > 0 and np.isnan(lower[0, 0]):
        return factor[:0].reshape((0, 0))
    return lower


@njit(nogil=True, cache=True)
def gram_of_part(lower: Vector, members: NDArray[np.int64], rows: Vector) -> Vector:
    """Return ``Q'H^-1 Q`` over the first weights of ``members``; ``lower`` is the factor of their H."""
    m, size = lower.shape[0], rows.shape[1]
    part = np.zeros((m + -m % WIDTH, size))  # rows of zeros at the end
    for i in range(m):
        row, out = rows[members[i]], part[i]
        for k in range(size):
            out[k] = row[k]
    solve_lower(lower, part[:m])
    gram = np.zeros((size, size))
    for i in range(0, m, WIDTH):
        p, q, r, s = part[i], part[i + 1], part[i + 2], part[i + 3]
        for k in range(size):
            out = gram[k]
            a, b, c, d = p[k], q[k], r[k], s[k]
            for other in range(size):
                out[other] += (a * p[other] + b * q[other]) + (c * r[other] + d * s[other])
    return gram
