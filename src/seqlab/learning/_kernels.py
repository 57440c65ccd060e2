"""Compiled kernels of the learners."""

from __future__ import annotations

from numba import njit

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
