"""Interior-point method for the quadratic program of cutting planes.

    minimise  |v|^2 / 2 + sum_g limit_g xi_g    subject to  s_k = xi_g(k) + f_k . v - l_k >= 0

with one row ``f_k`` and one loss ``l_k`` per plane. The multipliers ``a_k`` of the planes solve the dual,
``max sum_k a_k l_k - |sum_k a_k f_k|^2 / 2`` with weights of sum ``limit_g`` in every group. Mehrotra's
predictor and corrector steps follow the central path, on which all ``a_k s_k`` are equal. Planes of very
different length and almost parallel planes slow coordinate steps down, but not these.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Shares of a step to the boundary, and of the weight that a plane has at the start at least.
TO_BOUNDARY = 0.99
START_WEIGHT = 1e-3
# A pivot below this share of its diagonal entry is rounding error.
SMALLEST_PIVOT = 1e-14


@njit(nogil=True, cache=True)
def factor_gram(gram: Floats) -> Floats:
    """Return rows ``f`` with ``gram = f f'``, by Cholesky's method with pivots, as few columns as possible.

    Columns that would only hold rounding errors, compared with the length of each row, are left out.
    """
    n = gram.shape[0]
    scale = np.empty(n)
    for k in range(n):
        scale[k] = np.sqrt(gram[k, k]) if gram[k, k] > 0.0 else 0.0
    rest = np.ones(n)
    columns = np.zeros((n, n))  # of the factor, by rows
    rank = 0
    while rank < n:
        pivot = -1
        for k in range(n):
            if scale[k] > 0.0 and (pivot < 0 or rest[k] > rest[pivot]):
                pivot = k
        if pivot < 0 or rest[pivot] <= SMALLEST_PIVOT:
            break
        column = columns[rank]
        for k in range(n):
            if scale[k] > 0.0:
                column[k] = gram[pivot, k] / (scale[pivot] * scale[k])
        for j in range(rank):
            factor = columns[j, pivot]
            for k in range(n):
                column[k] -= factor * columns[j, k]
        length = np.sqrt(rest[pivot])
        for k in range(n):
            column[k] /= length
            rest[k] -= column[k] * column[k]
        rest[pivot] = 0.0
        rank += 1
    out = np.empty((n, rank))
    for k in range(n):
        for j in range(rank):
            out[k, j] = scale[k] * columns[j, k]
    return out


@njit(nogil=True, cache=True)
def _decompose(matrix: Floats) -> None:
    """Replace the lower triangle by its Cholesky factor; directions of rounding errors are blocked."""
    n = matrix.shape[0]
    for i in range(n):
        row = matrix[i]
        diagonal = row[i]
        for j in range(i):
            other = matrix[j]
            total = row[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = total / other[j]
        rest = diagonal
        for j in range(i):
            rest -= row[j] * row[j]
        row[i] = np.sqrt(rest) if rest > SMALLEST_PIVOT * diagonal else 1e15 * np.sqrt(diagonal)


@njit(nogil=True, cache=True)
def _solve(root: Floats, out: Floats) -> None:
    """Solve ``root root' x = out`` in place."""
    n = out.size
    for i in range(n):
        for j in range(i):
            out[i] -= root[i, j] * out[j]
        out[i] /= root[i, i]
    for i in range(n - 1, -1, -1):
        out[i] /= root[i, i]
        for j in range(i):
            out[j] -= root[i, j] * out[i]


@njit(nogil=True, cache=True)
def _combine(rows: Floats, weights: Floats) -> Floats:
    """Return ``rows' weights``."""
    out = np.zeros(rows.shape[1])
    for k in range(rows.shape[0]):
        weight = weights[k]
        if weight != 0.0:
            for j in range(out.size):
                out[j] += weight * rows[k, j]
    return out


@njit(nogil=True, cache=True)
def _heights(rows: Floats, v: Floats) -> Floats:
    """Return ``rows v``."""
    out = np.empty(rows.shape[0])
    for k in range(out.size):
        total = 0.0
        for j in range(v.size):
            total += rows[k, j] * v[j]
        out[k] = total
    return out


@njit(nogil=True, cache=True)
def _group_sums(group: NDArray[np.int64], values: Floats, n_groups: int) -> Floats:
    out = np.zeros(n_groups)
    for k in range(values.size):
        out[group[k]] += values[k]
    return out


@njit(nogil=True, cache=True)
def _step_length(values: Floats, change: Floats) -> float:
    """Return the largest step of at most 1 that keeps the values positive."""
    out = 1.0
    for k in range(values.size):
        if change[k] < 0.0:
            out = min(out, -values[k] / change[k])
    return out


@njit(nogil=True, cache=True)
def _start(rows: Floats, group: NDArray[np.int64], limits: Floats, alpha: Floats) -> None:
    """Move the weights into the interior; each group keeps its sum."""
    counts = _group_sums(group, np.ones(alpha.size), limits.size)
    for k in range(alpha.size):
        length = 0.0
        for j in range(rows.shape[1]):
            length += rows[k, j] * rows[k, j]
        least = limits[group[k]] / counts[group[k]]
        if length > 0.0:
            least = min(least, 1.0 / np.sqrt(length))
        alpha[k] = max(alpha[k], START_WEIGHT * least)
    _normalize(group, limits, alpha)


@njit(nogil=True, cache=True)
def _normalize(group: NDArray[np.int64], limits: Floats, alpha: Floats) -> None:
    sums = _group_sums(group, alpha, limits.size)
    for k in range(alpha.size):
        alpha[k] *= limits[group[k]] / sums[group[k]]


@njit(nogil=True, cache=True)
def _newton_matrix(rows: Floats, group: NDArray[np.int64], ratio: Floats, mean: Floats) -> Floats:
    """Return ``I`` plus the scatter of the rows around the mean of their group, lower triangle."""
    n, rank = rows.shape
    out = np.zeros((rank, rank))
    row = np.empty(rank)
    for k in range(n):
        for j in range(rank):
            row[j] = rows[k, j] - mean[group[k], j]
        for i in range(rank):
            factor = ratio[k] * row[i]
            if factor != 0.0:
                target = out[i]
                for j in range(i + 1):
                    target[j] += factor * row[j]
    for i in range(rank):
        out[i, i] += 1.0
    return out


@njit(nogil=True, cache=True)
def solve_planes(
    rows: Floats,
    loss: Floats,
    group: NDArray[np.int64],
    limits: Floats,
    alpha: Floats,
    tol: float,
    max_iter: int,
) -> NDArray[np.bool_]:
    """Maximise the dual over planes to a gap of ``tol`` times the primal objective.

    ``alpha`` (n_planes,) is the start and receives the solution, which is feasible: its sum is the limit,
    which must be positive, in every group. Returns which planes carry weight in the solution.
    """
    n, n_groups = loss.size, limits.size
    _start(rows, group, limits, alpha)
    v = _combine(rows, alpha)
    xi = np.full(n_groups, -np.inf)
    height = loss - _heights(rows, v)
    for k in range(n):
        xi[group[k]] = max(xi[group[k]], height[k])
    largest = np.abs(loss).max()
    xi += 0.1 * np.abs(xi) + 1e-3 * largest + 1e-300
    s = np.empty(n)
    for k in range(n):
        s[k] = xi[group[k]] - height[k]
    a, best, highest = alpha.copy(), alpha.copy(), -np.inf
    is_used = np.ones(n, dtype=np.bool_)
    rhs, ds, da = np.empty(n), np.empty(n), np.empty(n)
    for _ in range(max_iter):
        own = _combine(rows, a)
        primal = 0.5 * (v * v).sum() + (limits * xi).sum()
        trial = a.copy()
        _normalize(group, limits, trial)
        mixed = _combine(rows, trial)
        dual = (loss * trial).sum() - 0.5 * (mixed * mixed).sum()
        if dual > highest:
            best[:], highest = trial, dual
            scale = _group_sums(group, loss * trial, n_groups)
            for k in range(n):
                is_used[k] = trial[k] * scale[group[k]] >= s[k] * limits[group[k]] ** 2
        mu = (a * s).sum() / n
        if primal - highest <= tol * abs(primal) or mu * n <= 1e-14 * abs(primal):
            break
        missing = limits - _group_sums(group, a, n_groups)
        ratio = a / s
        ratio_sums = _group_sums(group, ratio, n_groups)
        mean = np.zeros((n_groups, v.size))
        for k in range(n):
            share = ratio[k] / ratio_sums[group[k]]
            for j in range(v.size):
                mean[group[k], j] += share * rows[k, j]
        root = _newton_matrix(rows, group, ratio, mean)
        _decompose(root)
        height = loss - _heights(rows, v)
        for k in range(n):  # residual of the planes, zero up to rounding
            height[k] = xi[group[k]] - height[k] - s[k]
        dv, dxi = np.zeros(v.size), np.zeros(n_groups)
        target = 0.0
        for corrector in range(2):
            for k in range(n):
                wanted = target - a[k] * s[k]
                if corrector:
                    wanted -= da[k] * ds[k]
                rhs[k] = wanted / s[k] - ratio[k] * height[k]
            sums = _group_sums(group, rhs, n_groups) - missing
            dv = _combine(rows, rhs) - (v - own) - _combine(mean, sums)
            _solve(root, dv)
            dxi = sums / ratio_sums - _heights(mean, dv)
            along = _heights(rows, dv)
            for k in range(n):
                change = dxi[group[k]] + along[k]
                da[k] = rhs[k] - ratio[k] * change
                ds[k] = change + height[k]
            if not corrector:
                dual_step, primal_step = _step_length(a, da), _step_length(s, ds)
                predicted = ((a + dual_step * da) * (s + primal_step * ds)).sum() / n
                target = mu * (predicted / mu) ** 3
        step = TO_BOUNDARY * min(_step_length(a, da), _step_length(s, ds))
        v += step * dv
        xi += step * dxi
        s += step * ds
        a += step * da
    alpha[:] = best
    return is_used
