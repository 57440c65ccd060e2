"""Forward-backward for eight chains at a time, one in each lane of a vector register.

The same scaled recursion as `forward_backward`, for constant transition scores. A step of one chain is a
short vector-matrix product whose sums depend on each other; eight chains side by side fill the vector
units with independent work: on text with 22 labels this is more than twice as fast.

Chains of a group should have about the same length: a lane whose chain has ended idles. In the steps
after its end its weights are 1, its ``beta`` is held at 1 and it adds nothing to the transition sums.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.forward_backward import MAX_RANGE
from seqlab.inference.kernels.lane_loading import bound_lanes, exp_lanes, turn_over
from seqlab.inference.kernels.vectors import (
    LANES,
    ROWS,
    add_outer_lanes,
    dot_lanes,
    matrix_times_lanes,
    multiply_lanes,
    scale_lanes,
    weigh_lanes,
)
from seqlab.inference.scores import Floats

# Numbers that one array of a group may hold (8 MB of doubles).
MAX_GROUP = 1 << 20
# `MAX_RANGE` of single precision. Scaled numbers stay above exp(-64) / n_labels = 1e-28 / n_labels; what a
# product of them loses below 1e-38 is, times the largest possible ``beta``, a probability of less than 1e-10.
MAX_RANGE_SINGLE = 64.0
# Steps whose outer products are summed in single precision before they join the sum in doubles.
STRETCH_SINGLE = 64


@njit(nogil=True, cache=True)
def fill_lanes(x: Floats, value: float) -> None:
    """Set every entry; assignment to a slice would take the compiler seconds longer."""
    for i in range(x.shape[0]):
        for c in range(LANES):
            x[i, c] = value


@njit(nogil=True, cache=True)
def forward_backward_lanes(
    weights: Floats,
    alpha: Floats,
    node: Floats,
    lengths: NDArray[np.int64],
    lane_weights: Floats,
    n_steps: int,
    exp_pairwise: Floats,
    exp_transposed: Floats,
    beta: Floats,
    lane: Floats,
    products: Floats,
    log_z: Floats,
) -> None:
    """Node marginals of up to eight chains; transition sums are added.

    Parameters
    ----------
    weights : array of shape (n_rows, width, LANES)
        Exponentials of the unary scores, each row of a chain divided by its maximum; 1 in the steps
        after a chain's end. Overwritten.
    alpha, node : arrays of shape (n_rows, width, LANES)
        ``node`` receives the marginals; its steps after a chain's end mean nothing.
    lengths : int64 array of shape (LANES,)
        Steps of each chain; 0 for an idle lane.
    lane_weights : array of shape (LANES,)
        Weight of each chain in ``products``.
    n_steps : int
        The longest of the chains.
    exp_pairwise, exp_transposed : arrays of shape (width, width)
        Exponentials of the transition scores, divided by the largest; zero in the padding.
    beta : array of shape (width, LANES)
    lane : array of shape (2, LANES)
    products : array of shape (width * width, LANES)
        ``sum_t alpha[t-1, i] right[t, j]`` is added to row ``i * width + j``: times ``exp_pairwise[i, j]``
        these are the expected transitions.
    log_z : array of shape (LANES,)
        Receives log Z up to the maxima that were divided out.
    """
    width = exp_pairwise.shape[0]
    scale = np.ones(LANES)
    for c in range(LANES):
        log_z[c] = 0.0
    for t in range(n_steps):
        row = alpha[t]
        if t == 0:
            fill_lanes(row, 1.0)
        else:
            matrix_times_lanes(exp_transposed, alpha[t - 1], row, width)
        weigh_lanes(row, weights[t], lane, width)
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
    for j in range(width):
        for c in range(LANES):
            node[n_steps - 1, j, c] = alpha[n_steps - 1, j, c]
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
        multiply_lanes(left, beta, node[t - 1], width)
    stretch = n_steps if weights.itemsize == 8 else STRETCH_SINGLE
    for begin in range(0, n_steps - 1, stretch):
        n = min(stretch, n_steps - 1 - begin)
        for i in range(0, width, ROWS):
            for j in range(0, width, ROWS):
                add_outer_lanes(alpha, weights, products, begin, n, i, j)


@njit(nogil=True, cache=True)
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
    """Exponentials of the rows of up to eight chains into their lanes; 1 after the end of a chain.

    ``shifts`` (LANES,), which should be zero, receives the sum of each chain's maxima. ``scores``
    (width, LANES) and ``lane`` (2, LANES) are workspace. Returns the largest range of a row.
    """
    width, spread = unary.shape[1], 0.0
    for t in range(n_steps):
        turn_over(unary, scores, bounds, lengths, t, width)
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
    """Forward-backward of up to eight chains, constant transition scores; False where it cannot be done.

    That is where a chain is too long for the workspace, or scores range too far for scaled numbers. Such
    chains are rare, and going on with them here would double the time of compilation.

    Parameters
    ----------
    unary : array of shape (n_rows, width)
        Scores of the chains one below the other, boundary scores included, ``-inf`` in the padding; the last
        row is zero: what lanes without a chain read.
    bounds : int64 array of shape (LANES + 1,)
        Chain ``c`` is rows ``bounds[c]:bounds[c + 1]``.
    n_chains : int
    exp_pairwise, exp_transposed, pair_shift, pair_spread
        Exponentials of the transition scores, shift and range as `exp_matrix` gives them.
    lane_weights : array of shape (LANES,)
        Weight of each chain in the transition sums.
    space : array of shape (3, n, width, LANES)
        Workspace; no chain may be longer than ``n``.
    products : array of shape (width * width, LANES)
        Transition sums are added here (see `forward_backward_lanes`).
    node : array of shape (n_rows, width)
        Receives the node marginals.
    log_z : array of shape (LANES,)
    """
    width = unary.shape[1]
    lengths = np.zeros(LANES, dtype=np.int64)
    shifts = np.zeros(LANES)
    beta = np.empty((width, LANES), dtype=unary.dtype)
    lane = np.empty((2, LANES), dtype=unary.dtype)
    # Not a literal 0: that would be one more type to compile for.
    n_steps: int = np.int64(0)  # type: ignore[assignment]
    for c in range(n_chains):
        lengths[c] = bounds[c + 1] - bounds[c]
        n_steps = max(n_steps, lengths[c])
    together = n_steps <= space.shape[1]
    if together:
        weights, alpha, marginals = space[0], space[1], space[2]
        spread = load_lanes(unary, bounds, lengths, n_steps, beta, lane, shifts, weights)
        reach = MAX_RANGE if unary.itemsize == 8 else MAX_RANGE_SINGLE
        together = spread + pair_spread <= reach
    if not together:
        return False
    forward_backward_lanes(
        weights, alpha, marginals, lengths, lane_weights, n_steps, exp_pairwise, exp_transposed,
        beta, lane, products, log_z,
    )  # fmt: skip
    for c in range(n_chains):
        log_z[c] += shifts[c] + pair_shift * (lengths[c] - 1)
        for t in range(lengths[c]):
            target = node[bounds[c] + t]
            for j in range(width):
                target[j] = marginals[t, j, c]
    return True


@njit(nogil=True, cache=True)
def fold_products(products: Floats, exp_pairwise: Floats, transitions: Floats) -> None:
    """Add the transition sums of all lanes to ``transitions`` and clear ``products``."""
    width = exp_pairwise.shape[0]
    for i in range(width):
        for j in range(width):
            total = 0.0
            for c in range(LANES):
                total += products[i * width + j, c]
                products[i * width + j, c] = 0.0
            transitions[i, j] += exp_pairwise[i, j] * total


@njit(nogil=True, cache=True)
def group_space(longest: int, unary: Floats) -> Floats:
    """Workspace of `group_marginals` for chains of up to ``longest`` steps, as far as memory allows."""
    width = unary.shape[1]
    n = min(longest, max(MAX_GROUP // (width * LANES), 1))
    return np.empty((3, n, width, LANES), dtype=unary.dtype)
