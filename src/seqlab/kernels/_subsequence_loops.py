"""Compiled loops of the subsequence kernel.

For two windows of equal width with ``c[j, q]`` matches of step ``j`` and step ``q``, ``M_n[j, q]`` is the
sum over common subsequences of n steps that end in ``(j, q)``, with the decay of the gaps:

    M_1[j, q]     = c[j, q]
    P_n[j, q]     = M_n[j, q] + decay (P_n[j - 1, q] + P_n[j, q - 1]) - decay^2 P_n[j - 1, q - 1]
    M_{n+1}[j, q] = c[j, q] decay^2 P_n[j - 1, q - 1]

This is the recursion of Lodhi et al. in a form that does not change if the windows are exchanged: every sum
below has terms that only swap places, so that ``k(a, b) == k(b, a)`` bit for bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(nogil=True, cache=True)
def fill_kernel(
    matches: Floats,
    ids_a: Ints,
    ids_b: Ints,
    scales_a: Floats,
    scales_b: Floats,
    pivot: int,
    is_anchored: bool,
    mark: float,
    decay: float,
    out: Floats,
) -> None:
    """Set ``out[a, b]`` to the sum over lengths n of ``K_n(a, b) scales_a[a, n] scales_b[b, n]``.

    ``matches[i, j]`` is the number of matches of the distinct steps i (of a) and j (of b), and ``ids``
    are the distinct steps of each window, shape (n_windows, width). If ``is_anchored``, subsequences must
    contain the step ``pivot`` of both windows. If ``mark > 0``, the matches ``m`` of these two steps
    become ``mark * m + 1``.
    """
    width, max_length = ids_a.shape[1], scales_a.shape[1]
    c, ends, sums = np.empty((width, width)), np.empty((width, width)), np.empty((width, width))
    values, left, right = np.empty(max_length), np.empty(max_length), np.empty(max_length)
    for a in range(ids_a.shape[0]):
        for b in range(ids_b.shape[0]):
            _values(
                matches,
                ids_a[a],
                ids_b[b],
                pivot,
                is_anchored,
                mark,
                decay,
                c,
                ends,
                sums,
                left,
                right,
                values,
            )
            total = 0.0
            for n in range(max_length):
                total += values[n] * (scales_a[a, n] * scales_b[b, n])
            out[a, b] = total


@njit(nogil=True, cache=True)
def fill_own(
    matches: Floats,
    ids: Ints,
    pivot: int,
    is_anchored: bool,
    mark: float,
    decay: float,
    out: Floats,
) -> None:
    """Set ``out[a, n - 1]`` to ``K_n(a, a)``; see `fill_kernel`."""
    width, max_length = ids.shape[1], out.shape[1]
    c, ends, sums = np.empty((width, width)), np.empty((width, width)), np.empty((width, width))
    left, right = np.empty(max_length), np.empty(max_length)
    for a in range(ids.shape[0]):
        _values(
            matches,
            ids[a],
            ids[a],
            pivot,
            is_anchored,
            mark,
            decay,
            c,
            ends,
            sums,
            left,
            right,
            out[a],
        )


@njit(nogil=True, cache=True)
def _values(
    matches: Floats,
    steps_a: Ints,
    steps_b: Ints,
    pivot: int,
    is_anchored: bool,
    mark: float,
    decay: float,
    c: Floats,
    ends: Floats,
    sums: Floats,
    left: Floats,
    right: Floats,
    values: Floats,
) -> None:
    """Set ``values[n - 1] = K_n`` of one pair of windows; the other arrays are workspace."""
    width, max_length = steps_a.size, values.size
    if not is_anchored:
        for j in range(width):
            for q in range(width):
                c[j, q] = matches[steps_a[j], steps_b[q]]
        if mark > 0.0:
            c[pivot, pivot] = mark * c[pivot, pivot] + 1.0
        _plain_values(c, decay, ends, sums, values)
        return
    center = decay * decay * matches[steps_a[pivot], steps_b[pivot]]
    values[:] = 0.0
    if center == 0.0:
        return
    for j in range(pivot):
        for q in range(pivot):
            c[j, q] = matches[steps_a[j], steps_b[q]]
    _side_values(c, pivot, decay, ends, sums, left)
    n_right = width - 1 - pivot
    for j in range(n_right):
        for q in range(n_right):  # reversed, so that the last step is next to the pivot
            c[j, q] = matches[steps_a[width - 1 - j], steps_b[width - 1 - q]]
    _side_values(c, n_right, decay, ends, sums, right)
    for n in range(max_length):
        for k in range(n + 1):
            values[n] += left[k] * right[n - k]
        values[n] *= center


@njit(nogil=True, cache=True)
def _plain_values(c: Floats, decay: float, ends: Floats, sums: Floats, values: Floats) -> None:
    """Set ``values[n - 1]`` to the kernel of subsequences of n steps anywhere in the windows."""
    width = c.shape[0]
    for n in range(values.size):
        _extend(c, width, n, decay, ends, sums)
        total = 0.0
        for j in range(width):
            total += ends[j, j]
            for q in range(j):
                total += ends[j, q] + ends[q, j]
        values[n] = decay * decay * total


@njit(nogil=True, cache=True)
def _side_values(
    c: Floats, width: int, decay: float, ends: Floats, sums: Floats, values: Floats
) -> None:
    """Set ``values[n]`` to the sum over subsequences of n steps, with the decay up to the pivot."""
    values[:] = 0.0
    values[0] = 1.0
    if width == 0:
        return
    for n in range(values.size - 1):
        _extend(c, width, n, decay, ends, sums)
        values[n + 1] = decay * decay * sums[width - 1, width - 1]


@njit(nogil=True, cache=True)
def _extend(c: Floats, width: int, n: int, decay: float, ends: Floats, sums: Floats) -> None:
    """Replace ``M_n`` and ``P_n`` in ``ends`` and ``sums`` by those of ``n + 1``."""
    square = decay * decay
    for j in range(width):
        for q in range(width):
            if n == 0:
                ends[j, q] = c[j, q]
            elif j > 0 and q > 0:
                ends[j, q] = c[j, q] * (square * sums[j - 1, q - 1])
            else:
                ends[j, q] = 0.0
    for j in range(width):
        for q in range(width):
            above = sums[j - 1, q] if j > 0 else 0.0
            before = sums[j, q - 1] if q > 0 else 0.0
            corner = sums[j - 1, q - 1] if j > 0 and q > 0 else 0.0
            sums[j, q] = (ends[j, q] + decay * (above + before)) - square * corner
