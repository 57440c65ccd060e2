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

from seqlab.inference._kernels.dense import exp_shifted, finite_bounds
from seqlab.inference._kernels.forward_backward import MAX_RANGE
from seqlab.inference._kernels.vectors import (
    LANES,
    ROWS,
    add_outer_lanes,
    dot_lanes,
    multiply_lanes,
    rows_times_lanes,
    scale_lanes,
    weigh_lanes,
)
from seqlab.inference.scores import Floats

# Doubles that one array of a group may hold (8 MB).
MAX_GROUP = 1 << 20


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
    lane : array of shape (1, LANES)
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
            for first in range(0, width, ROWS):
                rows_times_lanes(exp_transposed, alpha[t - 1], row, first, width)
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
        for first in range(0, width, ROWS):
            rows_times_lanes(exp_pairwise, right, beta, first, width)
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
    for i in range(0, width, ROWS):
        for j in range(0, width, ROWS):
            add_outer_lanes(alpha, weights, products, n_steps, i, j)


@njit(nogil=True, cache=True)
def load_lane(
    unary: Floats, begin: int, n_steps: int, lane: int, row: Floats, out: Floats
) -> tuple[float, float]:
    """Exponentials of the rows of one chain into its lane; returns sum of maxima and largest range."""
    width = unary.shape[1]
    shift, spread = 0.0, 0.0
    for t in range(n_steps):
        high, low = finite_bounds(unary[begin + t])
        exp_shifted(unary[begin + t], high, row)
        for j in range(width):
            out[t, j, lane] = row[j]
        shift += high
        spread = max(spread, high - low)
    return shift, spread


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
        Scores of the chains one below the other, boundary scores included, ``-inf`` in the padding.
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
    shifts, row = np.zeros(LANES), np.zeros(width)
    # Not a literal 0: that would be one more type to compile for.
    n_steps: int = np.int64(0)  # type: ignore[assignment]
    spread = 0.0
    for c in range(n_chains):
        lengths[c] = bounds[c + 1] - bounds[c]
        n_steps = max(n_steps, lengths[c])
    together = n_steps <= space.shape[1]
    if together:
        weights, alpha, marginals = space[0], space[1], space[2]
        for c in range(LANES):
            for t in range(lengths[c], n_steps):
                for j in range(width):
                    weights[t, j, c] = 1.0
        for c in range(n_chains):
            shifts[c], one = load_lane(unary, bounds[c], lengths[c], c, row, weights)
            spread = max(spread, one)
        together = spread + pair_spread <= MAX_RANGE
    if not together:
        return False
    beta, lane = np.empty((width, LANES)), np.empty((1, LANES))
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
def group_space(longest: int, width: int) -> Floats:
    """Workspace of `group_marginals` for chains of up to ``longest`` steps, as far as memory allows."""
    n = min(longest, max(MAX_GROUP // (width * LANES), 1))
    return np.empty((3, n, width, LANES))
