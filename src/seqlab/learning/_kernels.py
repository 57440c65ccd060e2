"""Compiled loops of the learners."""

from __future__ import annotations

from numba import njit

from seqlab.utils.linalg import BLOCK, Vector, axpy, dot


@njit(nogil=True, cache=True)
def add_parts(
    parts: Vector, observed: Vector, w: Vector, begin: int, stop: int, out: Vector
) -> float:
    """``out += sum of parts - observed`` for entries begin..stop; returns their share of ``w . observed``."""
    total = 0.0
    for first in range(begin, stop, BLOCK):
        last = min(first + BLOCK, stop)
        part = out[first:last]
        if observed.size > 0:
            axpy(-1.0, observed[first:last], part)
            total += dot(w[first:last], observed[first:last])
        for k in range(parts.shape[0]):
            axpy(1.0, parts[k, first:last], part)
    return total
