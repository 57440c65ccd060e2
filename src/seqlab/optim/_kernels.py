"""Vector arithmetic of the batch solvers, with the same bits on every machine setting.

BLAS splits long dot products over its own threads and so changes the last bits with the number of
threads; here a dot product is a fixed tree: eight running sums over blocks of fixed size. Bound: memory
bandwidth, one or two streams of doubles.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BLOCK = 4096


@njit(nogil=True, cache=True)
def dot(a: Vector, b: Vector) -> float:
    """Inner product by fixed blocks, each with eight partial sums (which LLVM keeps in a vector)."""
    total = 0.0
    n = a.size
    for begin in range(0, n, BLOCK):
        stop = min(begin + BLOCK, n)
        whole = begin + (stop - begin) // 8 * 8
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for i in range(begin, whole, 8):
            s0 += a[i] * b[i]
            s1 += a[i + 1] * b[i + 1]
            s2 += a[i + 2] * b[i + 2]
            s3 += a[i + 3] * b[i + 3]
            s4 += a[i + 4] * b[i + 4]
            s5 += a[i + 5] * b[i + 5]
            s6 += a[i + 6] * b[i + 6]
            s7 += a[i + 7] * b[i + 7]
        block = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
        for i in range(whole, stop):
            block += a[i] * b[i]
        total += block
    return total


@njit(nogil=True, cache=True)
def scaled_norm2(a: Vector, divisor: Vector) -> float:
    """``sum a^2 / divisor``, by fixed blocks as in `dot`."""
    total = 0.0
    for begin in range(0, a.size, BLOCK):
        block = 0.0
        for i in range(begin, min(begin + BLOCK, a.size)):
            block += a[i] * a[i] / divisor[i]
        total += block
    return total


@njit(nogil=True, cache=True)
def axpy(alpha: float, x: Vector, y: Vector) -> None:
    """``y += alpha * x`` in place."""
    for i in range(x.size):
        y[i] += alpha * x[i]


@njit(nogil=True, cache=True)
def two_loop(
    gradient: Vector,
    steps: Vector,
    changes: Vector,
    curvatures: Vector,
    n_pairs: int,
    newest: int,
    scale: float,
    preconditioner: Vector,
    out: Vector,
) -> None:
    """``out = H g`` for the limited-memory inverse Hessian ``H`` of the stored pairs.

    ``steps[k]``, ``changes[k]`` are past differences of points and gradients in a ring buffer whose
    youngest row is ``newest``; ``curvatures[k]`` their inner products. The initial inverse Hessian is
    ``scale / preconditioner``, or ``scale`` alone where ``preconditioner`` has size 0.
    """
    memory = steps.shape[0]
    alphas = np.empty(memory)
    for i in range(gradient.size):
        out[i] = gradient[i]
    for age in range(n_pairs):
        k = (newest - age) % memory
        alphas[k] = dot(steps[k], out) / curvatures[k]
        axpy(-alphas[k], changes[k], out)
    if preconditioner.size > 0:
        for i in range(out.size):
            out[i] *= scale / preconditioner[i]
    else:
        for i in range(out.size):
            out[i] *= scale
    for age in range(n_pairs - 1, -1, -1):
        k = (newest - age) % memory
        beta = dot(changes[k], out) / curvatures[k]
        axpy(alphas[k] - beta, steps[k], out)
