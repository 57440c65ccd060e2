"""Pair sums of chains with two labels: one pass for log-likelihood, gradient and curvature.

The same quantities as forward-backward followed by `seqlab.structures.pair_sums.add_block_sums`, with all
loops over labels written out. The exponentials are taken once per row of the tables, not once per step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.simd.exponential import exp_nonpositive

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

# Rows with a larger range of scores need log space.
MAX_RANGE = 300.0
# The product of the normalisers is turned into a logarithm before it leaves the double range.
SMALL, LARGE = 1e-150, 1e150


@njit(nogil=True, cache=True)
def exponentials(node: Floats, pair: Floats, weights: Floats, shifts: Floats) -> bool:
    """Set the exponentials of all rows; returns False if a range of scores is too large.

    ``weights[row]`` holds the four pairs ``(c, k)`` and the two labels of a first step, divided by the
    exponentials of ``shifts[row]``, the maxima of both groups.
    """
    for row in range(node.shape[1]):
        n0, n1 = node[0, row], node[1, row]
        s00, s10 = n0 + pair[0, row, 0], n0 + pair[0, row, 1]
        s01, s11 = n1 + pair[1, row, 0], n1 + pair[1, row, 1]
        high, low = max(max(s00, s01), max(s10, s11)), min(min(s00, s01), min(s10, s11))
        f0, f1 = n0 + pair[0, row, 2], n1 + pair[1, row, 2]
        top = max(f0, f1)
        if not (high - low <= MAX_RANGE and abs(f0 - f1) <= MAX_RANGE):
            return False
        weights[row, 0], weights[row, 1] = exp_nonpositive(s00 - high), exp_nonpositive(s01 - high)
        weights[row, 2], weights[row, 3] = exp_nonpositive(s10 - high), exp_nonpositive(s11 - high)
        weights[row, 4], weights[row, 5] = exp_nonpositive(f0 - top), exp_nonpositive(f1 - top)
        shifts[row, 0], shifts[row, 1] = high, top
    return True


@njit(nogil=True, cache=True)
def add_two_label_sums(
    node: Floats,
    pair: Floats,
    codes: Ints,
    rows: Rows,
    sequence_weights: Floats,
    offsets: Ints,
    scale: float,
    gradient: Ints,
    curvature: Ints,
    log_likelihood: Floats,
) -> bool:
    """Set log-likelihoods and add the sums; returns False if a range of scores is too large."""
    n_rows = node.shape[1]
    weights, shifts = np.empty((n_rows, 6)), np.empty((n_rows, 2))
    if not exponentials(node, pair, weights, shifts):
        return False
    with_curvature = curvature.shape[1] > 0
    n_sequences, n_longest = offsets.size - 1, 0
    for i in range(n_sequences):
        n_longest = max(n_longest, offsets[i + 1] - offsets[i])
    alpha = np.empty((n_longest, 2))
    for i in range(n_sequences):
        t0, t1 = offsets[i], offsets[i + 1]
        if t0 == t1:
            log_likelihood[i] = 0.0
            continue
        row, y = rows[t0], codes[t0]
        a0, a1 = weights[row, 4], weights[row, 5]
        value = node[y, row] + pair[y, row, 2] - shifts[row, 1]
        total = a0 + a1
        product = total
        a0, a1 = a0 / total, a1 / total
        alpha[0, 0], alpha[0, 1] = a0, a1
        for t in range(t0 + 1, t1):
            row = rows[t]
            b0 = a0 * weights[row, 0] + a1 * weights[row, 2]
            b1 = a0 * weights[row, 1] + a1 * weights[row, 3]
            total = b0 + b1
            product *= total
            if product < SMALL or product > LARGE:
                value -= math.log(product)
                product = 1.0
            inverse = 1.0 / total
            a0, a1 = b0 * inverse, b1 * inverse
            alpha[t - t0, 0], alpha[t - t0, 1] = a0, a1
            before, y = y, codes[t]
            value += node[y, row] + pair[y, row, before] - shifts[row, 0]
        log_likelihood[i] = value - math.log(product)
        factor = sequence_weights[i] * scale
        if factor == 0.0:
            continue
        one = int(factor + 0.5)
        beta0, beta1 = 1.0, 1.0
        for t in range(t1 - 1, t0, -1):
            row = rows[t]
            a0, a1 = alpha[t - 1 - t0, 0], alpha[t - 1 - t0, 1]
            p00, p01 = weights[row, 0] * beta0, weights[row, 1] * beta1
            p10, p11 = weights[row, 2] * beta0, weights[row, 3] * beta1
            beta0, beta1 = p00 + p01, p10 + p11
            inverse = 1.0 / (a0 * beta0 + a1 * beta1)
            beta0, beta1 = beta0 * inverse, beta1 * inverse
            a0, a1 = a0 * inverse, a1 * inverse
            p00, p01, p10, p11 = p00 * a0, p01 * a0, p10 * a1, p11 * a1
            gradient[codes[t], row, codes[t - 1]] += one
            gradient[0, row, 0] -= int(p00 * factor + 0.5)
            gradient[1, row, 0] -= int(p01 * factor + 0.5)
            gradient[0, row, 1] -= int(p10 * factor + 0.5)
            gradient[1, row, 1] -= int(p11 * factor + 0.5)
            if with_curvature:
                curvature[0, row, 0] += int(p00 * (1.0 - p00) * factor + 0.5)
                curvature[1, row, 0] += int(p01 * (1.0 - p01) * factor + 0.5)
                curvature[0, row, 1] += int(p10 * (1.0 - p10) * factor + 0.5)
                curvature[1, row, 1] += int(p11 * (1.0 - p11) * factor + 0.5)
        row = rows[t0]
        p0, p1 = alpha[0, 0] * beta0, alpha[0, 1] * beta1
        gradient[codes[t0], row, 2] += one
        gradient[0, row, 2] -= int(p0 * factor + 0.5)
        gradient[1, row, 2] -= int(p1 * factor + 0.5)
        if with_curvature:
            curvature[0, row, 2] += int(p0 * (1.0 - p0) * factor + 0.5)
            curvature[1, row, 2] += int(p1 * (1.0 - p1) * factor + 0.5)
    return True
