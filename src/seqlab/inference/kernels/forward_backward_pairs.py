"""Forward-backward with pair marginals for scores per step, which take one exponential per entry.

The general kernel computes the exponentials of a step's pairwise scores three times, with their transpose,
and needs memory for one step only. Here they are computed once, into the array that receives the pair
marginals: with 19 labels this takes less than half of the time.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import exp_shifted, finite_bounds
from seqlab.inference.kernels.forward_backward import (
    MAX_RANGE,
    TINY,
    Space,
    load_rows,
    make_space,
    normalise,
)
from seqlab.inference.kernels.forward_backward_log import (
    PAIR,
    clear_rows,
    forward_backward_log_one,
)
from seqlab.inference.scores import ChainArrays, Floats


@njit(nogil=True, cache=True)
def multiply_and_sum(row: Floats, factors: Floats) -> float:
    """Multiply a row by factors and return its sum, in four series of additions."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = row.shape[0]
    whole = n // 4 * 4
    for j in range(n):
        row[j] *= factors[j]
    for j in range(0, whole, 4):
        a += row[j]
        b += row[j + 1]
        c += row[j + 2]
        d += row[j + 3]
    for j in range(whole, n):
        a += row[j]
    return (a + b) + (c + d)


@njit(nogil=True, cache=True)
def pairs_one(chain: ChainArrays, sequence: int, space: Space, node: Floats, pair: Floats) -> float:
    """Write the node and pair marginals of one sequence and return its log Z.

    Returns NaN if the scaled form is not exact, ``-inf`` if no labeling is legal. See `forward_backward`.
    """
    _, pairwise3, _, _, _, offsets = chain
    t0, n_steps = offsets[sequence], offsets[sequence + 1] - offsets[sequence]
    weights, alpha, _, _, beta, right = space
    n_labels = node.shape[1]
    log_z, spread = load_rows(chain, sequence, space)
    if not spread <= MAX_RANGE:
        return np.nan
    for j in range(n_labels):
        alpha[0, j] = 1.0
        for i in range(n_labels):
            pair[t0, i, j] = 0.0
    for t in range(n_steps):
        if t > 0:
            matrix, row, before = pair[t0 + t], alpha[t], alpha[t - 1]
            high, low = finite_bounds(pairwise3[t0 + t].ravel())
            if not spread + high - low <= MAX_RANGE:
                return np.nan
            log_z += high
            for j in range(n_labels):
                row[j] = 0.0
            for i in range(n_labels):
                exp_shifted(pairwise3[t0 + t, i], high, matrix[i])
                for j in range(n_labels):
                    row[j] += before[i] * matrix[i, j]
        total = normalise(alpha[t], weights[t])
        if total == 0.0:
            return -np.inf
        log_z += math.log(total)
    for j in range(n_labels):
        node[t0 + n_steps - 1, j] = alpha[n_steps - 1, j]
        beta[j] = 1.0
    for t in range(n_steps - 1, 0, -1):
        matrix, left = pair[t0 + t], alpha[t - 1]
        for j in range(n_labels):
            right[j] = weights[t, j] * beta[j]
        total = 0.0
        for i in range(n_labels):
            # The beta of labels that no path reaches could grow without bound: set it to 0.
            beta[i] = multiply_and_sum(matrix[i], right) if left[i] > 0.0 else 0.0
            total += left[i] * beta[i]
        inverse = 1.0 / total
        for i in range(n_labels):
            factor = left[i] * inverse
            beta[i] *= inverse
            if beta[i] < TINY and beta[i] > 0.0:
                return np.nan
            for j in range(n_labels):
                matrix[i, j] *= factor
            node[t0 + t - 1, i] = left[i] * beta[i]
    return log_z


@njit(nogil=True, cache=True)
def pair_marginals_block(
    chain: ChainArrays, first: int, last: int, log_z: Floats, node: Floats, pair: Floats
) -> None:
    """Do the same as `forward_backward_block` with `PAIR`, for pairwise scores per step."""
    space = make_space(chain, first, last)
    weights, alpha, _, _, beta, workspace = space
    offsets = chain[5]
    for i in range(first, last):
        if offsets[i] == offsets[i + 1]:
            log_z[i] = 0.0
            continue
        log_z[i] = pairs_one(chain, i, space, node, pair)
        if math.isnan(log_z[i]):
            log_z[i] = forward_backward_log_one(
                chain, i, 1.0, PAIR, weights, alpha, beta, workspace, node, pair, None
            )
        elif log_z[i] == -np.inf:
            clear_rows(offsets[i], offsets[i + 1], PAIR, node, pair)
