"""Forward-backward of a group of eight chains at a time, one in each lane of a vector register.

The same scaled recursion as `forward_backward`, for constant transition scores. A step of one chain is a
short vector-matrix product whose sums depend on each other; eight chains side by side give the vector units
independent work, which is more than twice as fast on text with 22 labels.

Chains of a group should have about the same length, because a lane is idle after the end of its chain. In
those steps its weights are 1, its ``beta`` is held at 1 and it adds nothing to the transition sums.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.forward_backward import MAX_RANGE
from seqlab.inference.scores import Floats
from seqlab.simd.aligned import aligned_vector
from seqlab.simd.lane_loading import (
    bound_lanes,
    exp_lanes,
    transpose_from_lanes,
    transpose_to_lanes,
)
from seqlab.simd.lanes import (
    LANES,
    ROWS,
    add_outer_lanes,
    dot_lanes,
    matrix_times_lanes,
    multiply_lanes,
    scale_lanes,
    sum_lanes,
    weight_lanes,
)

# Largest number of doubles in one array of a group (8 MB). With more, longer chains can be grouped, but the
# workspace of each thread grows.
MAX_GROUP = 1 << 20


@njit(nogil=True, cache=True, inline="always")
def fill_lanes(x: Floats, value: float) -> None:
    """Set every entry. A loop, because numba takes seconds to compile the assignment of a slice."""
    for i in range(x.shape[0]):
        for c in range(LANES):
            x[i, c] = value


@njit(nogil=True, cache=True, inline="always")
def forward_backward_lanes(
    weights: Floats,
    alpha: Floats,
    bounds: NDArray[np.int64],
    lengths: NDArray[np.int64],
    lane_weights: Floats,
    n_steps: int,
    exp_pairwise: Floats,
    exp_transposed: Floats,
    beta: Floats,
    marginal: Floats,
    lane: Floats,
    products: Floats,
    node: Floats,
    log_z: Floats,
) -> None:
    """Compute the node marginals of up to eight chains and add up their transition sums.

    Parameters
    ----------
    weights : array of shape (n_rows, width, LANES)
        Exponentials of the unary scores, each row of a chain divided by its maximum; 1 in the steps
        after a chain's end. Overwritten.
    alpha : array of shape (n_rows, width, LANES)
        Workspace.
    bounds, lengths : int64 arrays of shape (LANES + 1,) and (LANES,)
        First row of each chain in ``node``, and its number of steps; 0 for an idle lane.
    lane_weights : array of shape (LANES,)
        Weight of each chain in ``products``.
    n_steps : int
        Length of the longest chain.
    exp_pairwise, exp_transposed : arrays of shape (width, width)
        Exponentials of the transition scores, divided by the largest; zero in the padding.
    beta, marginal : arrays of shape (width, LANES)
        Workspace.
    lane : array of shape (2, LANES)
        Workspace.
    products : array of shape (width * width, LANES)
        ``sum_t alpha[t-1, i] right[t, j]`` is added to row ``i * width + j``; times ``exp_pairwise[i, j]``
        these are the expected transitions.
    node : array of shape (n_rows, width)
        Receives the node marginals. The last row is overwritten.
    log_z : array of shape (LANES,)
        Receives log Z without the maxima that were divided out.
    """
    width = exp_pairwise.shape[0]
    scale = np.empty(LANES)
    for c in range(LANES):
        scale[c], log_z[c] = 1.0, 0.0
    for t in range(n_steps):
        row = alpha[t]
        if t == 0:
            fill_lanes(row, 1.0)
        else:
            matrix_times_lanes(exp_transposed, alpha[t - 1], row, width)
        weight_lanes(row, weights[t], lane, width)
        for c in range(LANES):
            total = lane[0, c]
            lane[0, c] = 1.0 / total
            if t < lengths[c]:
                scale[c] *= total
                if scale[c] < 1e-100 or scale[c] > 1e100:
                    log_z[c] += math.log(scale[c])
                    scale[c] = 1.0
        scale_lanes(row, lane, width)
    for c in range(LANES):
        log_z[c] += math.log(scale[c])
    fill_lanes(beta, 1.0)
    transpose_from_lanes(alpha[n_steps - 1], node, bounds, lengths, n_steps - 1, width)
    for t in range(n_steps - 1, 0, -1):
        right, left = weights[t], alpha[t - 1]
        multiply_lanes(right, beta, right, width)
        matrix_times_lanes(exp_pairwise, right, beta, width)
        dot_lanes(left, beta, lane, width)
        for c in range(LANES):
            lane[0, c] = 1.0 / lane[0, c]
        scale_lanes(beta, lane, width)
        for c in range(LANES):
            lane[0, c] *= lane_weights[c]
            if t >= lengths[c]:
                lane[0, c] = 0.0
                for j in range(width):
                    beta[j, c] = 1.0
        scale_lanes(right, lane, width)
        multiply_lanes(left, beta, marginal, width)
        transpose_from_lanes(marginal, node, bounds, lengths, t - 1, width)
    for i in range(0, width, ROWS):
        for j in range(0, width, ROWS):
            add_outer_lanes(alpha, weights, products, n_steps - 1, i, j)


@njit(nogil=True, cache=True, inline="always")
def load_lanes(
    unary: Floats,
    bounds: NDArray[np.int64],
    lengths: NDArray[np.int64],
    n_steps: int,
    scores: Floats,
    lane: Floats,
    shifts: Floats,
    out: Floats,
) -> float:
    """Write the exponentials of up to eight chains into their lanes; 1 after the end of a chain.

    ``shifts`` (LANES,), which should be zero, receives the sum of each chain's maxima. ``scores``
    (width, LANES) and ``lane`` (2, LANES) are workspace. Returns the largest range of a row.
    """
    width, spread = unary.shape[1], 0.0
    for t in range(n_steps):
        transpose_to_lanes(unary, scores, bounds, lengths, t, width)
        bound_lanes(scores, lane, width)
        exp_lanes(scores, lane, out[t], width)
        for c in range(LANES):
            shifts[c] += lane[0, c]
            spread = max(spread, lane[0, c] - lane[1, c])
    return spread


@njit(nogil=True, cache=True)
def group_marginals(
    unary: Floats,
    bounds: NDArray[np.int64],
    n_chains: int,
    exp_pairwise: Floats,
    exp_transposed: Floats,
    pair_shift: float,
    pair_spread: float,
    lane_weights: Floats,
    space: Floats,
    products: Floats,
    node: Floats,
    log_z: Floats,
) -> bool:
    """Forward-backward of up to eight chains with constant transition scores; False if it is not possible.

    It is not possible if a chain is too long for the workspace or if the range of the scores is too large
    for scaled numbers. Such chains are rare, and handling them here would double the compile time.

    Parameters
    ----------
    unary : array of shape (n_rows, width)
        Scores of the chains one below the other, boundary scores included, ``-inf`` in the padding; the
        last row is zero, for lanes without a chain.
    bounds : int64 array of shape (LANES + 1,)
        Chain ``c`` is rows ``bounds[c]:bounds[c + 1]``.
    n_chains : int
    exp_pairwise, exp_transposed, pair_shift, pair_spread
        Exponentials, shift and range of the transition scores from `exp_matrix`.
    lane_weights : array of shape (LANES,)
        Weight of each chain in the transition sums.
    space : array of shape (2, n, width, LANES)
        Workspace for chains of up to ``n`` steps.
    products : array of shape (width * width, LANES)
        The transition sums are added here (see `forward_backward_lanes`).
    node : array of shape (n_rows, width)
        Receives the node marginals. The last row is overwritten.
    log_z : array of shape (LANES,)
    """
    width = unary.shape[1]
    # Not `np.zeros`, which numba compiles again for each kind of array.
    lengths, shifts = np.empty(LANES, dtype=np.int64), np.empty(LANES)
    beta = aligned_vector(width * LANES).reshape((width, LANES))
    marginal = aligned_vector(width * LANES).reshape((width, LANES))
    lane = aligned_vector(2 * LANES).reshape((2, LANES))
    for c in range(LANES):
        lengths[c], shifts[c] = 0, 0.0
    # Not a literal 0, for which numba would compile `load_lanes` once more.
    n_steps: int = np.int64(0)  # type: ignore[assignment]
    for c in range(n_chains):
        lengths[c] = bounds[c + 1] - bounds[c]
        n_steps = max(n_steps, lengths[c])
    if n_steps > space.shape[1]:
        return False
    weights, alpha = space[0], space[1]
    spread = load_lanes(unary, bounds, lengths, n_steps, beta, lane, shifts, weights)
    if not spread + pair_spread <= MAX_RANGE:
        return False
    forward_backward_lanes(
        weights, alpha, bounds, lengths, lane_weights, n_steps, exp_pairwise, exp_transposed,
        beta, marginal, lane, products, node, log_z,
    )  # fmt: skip
    for c in range(n_chains):
        log_z[c] += shifts[c] + pair_shift * (lengths[c] - 1)
    return True


@njit(nogil=True, cache=True, inline="always")
def fold_products(products: Floats, exp_pairwise: Floats, transitions: Floats) -> None:
    """Add the transition sums of all lanes to ``transitions`` and clear ``products``."""
    width = exp_pairwise.shape[0]
    sums = np.empty(width * width)
    sum_lanes(products, sums, width * width)
    fill_lanes(products, 0.0)
    for i in range(width):
        for j in range(width):
            transitions[i, j] += exp_pairwise[i, j] * sums[i * width + j]


@njit(nogil=True, cache=True, inline="always")
def group_space(longest: int, unary: Floats) -> Floats:
    """Workspace of `group_marginals` for chains of up to ``longest`` steps, within `MAX_GROUP`."""
    width = unary.shape[1]
    n = min(longest, max(MAX_GROUP // (width * LANES), 1))
    return aligned_vector(2 * n * width * LANES).reshape((2, n, width, LANES))
