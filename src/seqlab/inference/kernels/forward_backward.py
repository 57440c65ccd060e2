"""Forward-backward for blocks of chains: log-partition, node and pair marginals, transition sums.

With ``psi_t(i, j) = exp(pairwise[t][i, j] + unary[t, j])`` (``start`` is added to the first row of
``unary`` and ``end`` to the last)::

    alpha[t, j] = sum_i alpha[t-1, i] psi_t(i, j)        beta[t-1, i] = sum_j psi_t(i, j) beta[t, j]
    p(y_t = j) = alpha[t, j] beta[t, j] / Z              Z = sum_j alpha[T-1, j]
    p(y_{t-1} = i, y_t = j) = alpha[t-1, i] psi_t(i, j) beta[t, j] / Z

Scaled form (Rabiner, 1989, section V.A): the maximum is subtracted from every row of ``unary``, and from
``pairwise``, before the exponential is taken; every row of ``alpha`` is divided by its sum, and the
logarithms of the sums are added up; every row of ``beta`` is divided by ``sum_i alpha[i] beta[i]``, so that
a marginal is a plain product.

When the scaled form is exact. Let ``R`` be the range of the finite scores in a row of ``unary`` plus the
range of those in ``pairwise``. Without forbidden entries each scaled ``alpha`` is at least ``exp(-R) /
n_labels`` (its weight is at least ``exp(-R)``, the sum at most ``n_labels``), and each ``beta`` lies in
``[exp(-R), exp(R)]`` (two labels' ``beta`` differ by a factor of at most ``exp(R)`` and their
``alpha``-weighted mean is 1). With ``R <= MAX_RANGE = 300`` both stay above 1e-150, and no product of two
of them with one weight can leave the double range. With forbidden entries zeros are true zeros, but the
value of a legal label may shrink step after step. So each row is checked, and a sequence with a positive
entry below `TINY` = 1e-150 is computed in log space instead. As ``TINY * exp(-300) > 1e-281`` is still a
normal number, nothing can underflow between two checks. The choice is made per sequence and depends on its
scores only.

Names of kernels: ``<algorithm>_one`` works on one sequence, ``<algorithm>_block`` on the sequences
``first <= i < last``.

All kernels take the scores as `ChainArrays` or parts of them: ``pairwise3`` is ``(1, L, L)`` with ``stride =
0`` for constant scores, or ``(n_steps, L, L)`` with ``stride = 1`` for scores per step, so the entry of step
``t`` is ``pairwise3[t * stride]``. Sequence ``i`` is the rows ``offsets[i]:offsets[i + 1]`` of ``unary``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import (
    add_outer_products,
    exp_matrix,
    exp_shifted,
    finite_bounds,
    longest,
    padded_width,
    vector_matrix,
)
from seqlab.inference.kernels.forward_backward_log import LOG_Z as LOG_Z
from seqlab.inference.kernels.forward_backward_log import NODE as NODE
from seqlab.inference.kernels.forward_backward_log import PAIR as PAIR
from seqlab.inference.kernels.forward_backward_log import TRANSITIONS as TRANSITIONS
from seqlab.inference.kernels.forward_backward_log import clear_rows, forward_backward_log_one
from seqlab.inference.scores import ChainArrays, Floats

MAX_RANGE = 300.0  # of the scores; sequences with a larger range are computed in log space
TINY = 1e-150  # smallest positive number that a scaled row may hold


# Workspace of one sequence: weights and alpha (n_rows, width); exponentials of the pairwise scores and their
# transpose (width, width); beta and one more vector (width,). The width is padded.
Space: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats, Floats]


@njit(nogil=True, cache=True, inline="always")
def make_space(chain: ChainArrays, first: int, last: int) -> Space:
    """Allocate the workspace for the sequences ``first <= i < last``, filled with zeros."""
    width, n_rows = padded_width(chain[0].shape[1]), longest(chain[5], first, last)
    weights, alpha = np.zeros((n_rows, width)), np.zeros((n_rows, width))
    exp_pairwise, exp_transposed = np.zeros((width, width)), np.zeros((width, width))
    return weights, alpha, exp_pairwise, exp_transposed, np.zeros(width), np.zeros(width)


@njit(nogil=True, cache=True)
def load_rows(chain: ChainArrays, i: int, space: Space) -> tuple[float, float]:
    """Set ``weights[t - t0] = exp(row t - its maximum)`` of sequence ``i``, boundary scores included.

    Returns the sum of the maxima and the largest finite range of a row.
    """
    unary, _, _, start, end, offsets = chain
    out, _, _, _, _, workspace = space
    t0, t1 = offsets[i], offsets[i + 1]
    n_labels = unary.shape[1]
    shift, spread = 0.0, 0.0
    for t in range(t0, t1):
        row = unary[t]
        if t == t0 or t == t1 - 1:
            row = workspace[:n_labels]
            for j in range(n_labels):
                row[j] = unary[t, j]
                row[j] += start[j] if t == t0 else 0.0
                row[j] += end[j] if t == t1 - 1 else 0.0
        high, low = finite_bounds(row)
        exp_shifted(row, high, out[t - t0])
        shift += high
        spread = max(spread, high - low)
    return shift, spread


@njit(nogil=True, cache=True, inline="always")
def normalise(row: Floats, weight: Floats) -> float:
    """Multiply ``row`` by ``weight`` and divide it by its sum, which is returned.

    Returns 0 if the sum is 0, NaN if a positive entry is below `TINY`.
    """
    width = row.shape[0]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(width):
        row[j] *= weight[j]
    for j in range(0, width, 4):
        a += row[j]
        b += row[j + 1]
        c += row[j + 2]
        d += row[j + 3]
    total = (a + b) + (c + d)
    if total == 0.0:
        return 0.0
    inverse = 1.0 / total
    n_tiny = 0
    for j in range(width):
        row[j] *= inverse
        n_tiny += 1 if (row[j] < TINY and row[j] > 0.0) else 0
    if n_tiny > 0 or total < TINY:
        return np.nan
    return total


@njit(nogil=True, cache=True)
def forward_one(chain: ChainArrays, i: int, space: Space, spread: float) -> float:
    """Compute the scaled ``alpha`` of one sequence; returns log Z without the maxima of ``unary``.

    Returns NaN if the scaled form is not exact, ``-inf`` if no labeling is legal.

    The weights come from `load_rows`. With scores per step, ``exp_pairwise`` is filled here. For constant
    scores the caller fills it and adds their maximum to log Z.
    """
    _, pairwise3, stride, _, _, offsets = chain
    t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
    weights, alpha, exp_pairwise, exp_transposed, _, _ = space
    width = alpha.shape[1]
    for j in range(width):
        alpha[0, j] = 1.0
    log_z = 0.0
    for t in range(n_steps):
        if t > 0:
            if stride == 1:
                shift, pair_spread = exp_matrix(pairwise3[t0 + t], exp_pairwise, exp_transposed)
                log_z += shift
                if not spread + pair_spread <= MAX_RANGE:
                    return np.nan
            vector_matrix(alpha[t - 1], exp_pairwise, alpha[t])
        total = normalise(alpha[t], weights[t])
        if total == 0.0:
            return -np.inf
        log_z += math.log(total)
    return log_z


@njit(nogil=True, cache=True)
def backward_one(chain: ChainArrays, sequence: int, space: Space, node: Floats) -> bool:
    """Write the node marginals of one sequence into ``node``; returns False if the scaled form is not
    exact.

    Sets ``weights[t, j]``, ``t > 0``, to the right factor of the pair marginal::

        p(y_{t-1} = i, y_t = j) = alpha[t-1, i] * exp_pairwise[i, j] * weights[t, j]
    """
    _, pairwise3, stride, _, _, offsets = chain
    t0, n_steps = offsets[sequence], offsets[sequence + 1] - offsets[sequence]
    weights, alpha, exp_pairwise, exp_transposed, beta, workspace = space
    n_labels, width = node.shape[1], alpha.shape[1]
    for j in range(n_labels):
        node[t0 + n_steps - 1, j] = alpha[n_steps - 1, j]
    for j in range(width):
        beta[j] = 1.0
    for t in range(n_steps - 1, 0, -1):
        if stride == 1:
            exp_matrix(pairwise3[t0 + t], exp_pairwise, exp_transposed)
        right, left = weights[t], alpha[t - 1]
        for j in range(width):
            right[j] *= beta[j]
        vector_matrix(right, exp_transposed, workspace)
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(0, width, 4):
            a += left[i] * workspace[i]
            b += left[i + 1] * workspace[i + 1]
            c += left[i + 2] * workspace[i + 2]
            d += left[i + 3] * workspace[i + 3]
        inverse = 1.0 / ((a + b) + (c + d))
        n_tiny = 0
        for i in range(width):
            right[i] *= inverse
            # The beta of labels that no path reaches could grow without bound: set it to 0.
            beta[i] = workspace[i] * inverse if left[i] > 0.0 else 0.0
            n_tiny += 1 if (beta[i] < TINY and beta[i] > 0.0) else 0
        if n_tiny > 0:
            return False
        for i in range(n_labels):
            node[t0 + t - 1, i] = left[i] * beta[i]
    return True


@njit(nogil=True, cache=True, inline="always")
def write_pairs(chain: ChainArrays, sequence: int, space: Space, out: Floats) -> None:
    """Write the pair marginals of one sequence, from the factors computed by `backward_one`."""
    _, pairwise3, stride, _, _, offsets = chain
    t0, n_steps = offsets[sequence], offsets[sequence + 1] - offsets[sequence]
    weights, alpha, exp_pairwise, exp_transposed, _, _ = space
    n_labels = out.shape[1]
    for i in range(n_labels):
        for j in range(n_labels):
            out[t0, i, j] = 0.0
    for t in range(1, n_steps):
        if stride == 1:
            exp_matrix(pairwise3[t0 + t], exp_pairwise, exp_transposed)
        for i in range(n_labels):
            a = alpha[t - 1, i]
            for j in range(n_labels):
                out[t0 + t, i, j] = a * exp_pairwise[i, j] * weights[t, j]


@njit(nogil=True, cache=True, inline="always")
def add_pairs(chain: ChainArrays, sequence: int, space: Space, scale: float, out: Floats) -> None:
    """Add ``scale`` times the summed pair marginals of one sequence to ``out``, for scores per step."""
    _, pairwise3, _, _, _, offsets = chain
    t0, n_steps = offsets[sequence], offsets[sequence + 1] - offsets[sequence]
    weights, alpha, exp_pairwise, exp_transposed, _, _ = space
    n_labels = out.shape[1]
    for t in range(1, n_steps):
        exp_matrix(pairwise3[t0 + t], exp_pairwise, exp_transposed)
        for i in range(n_labels):
            a = alpha[t - 1, i] * scale
            for j in range(n_labels):
                out[i, j] += a * exp_pairwise[i, j] * weights[t, j]


@njit(nogil=True, cache=True)
def forward_backward_block(
    chain: ChainArrays,
    first: int,
    last: int,
    sequence_weights: Floats,
    want: int,
    log_z: Floats,
    node: Floats | None,
    pair: Floats | None,
    transitions: Floats | None,
    products: Floats,
) -> int:
    """Forward-backward of the sequences ``first <= i < last``, up to the first that needs log space.

    Returns the number of that sequence, or ``last`` if there is none. The caller continues with
    `log_space_block`, and then here again, even if no sequence is left. Such sequences are rare, and
    computing them here would double the compile time.

    Parameters
    ----------
    chain : ChainArrays
    sequence_weights : array of shape (n_sequences,)
        Weight of each sequence in ``transitions``; size 0 means all 1. Nothing else is weighted.
    want : int
        `LOG_Z`, `NODE` (adds ``node``), `PAIR` (adds ``node`` and ``pair``) or `TRANSITIONS` (adds
        ``node`` and ``transitions``). Results that are not wanted must be None, for which numba compiles
        a kernel without them.
    log_z : array of shape (n_sequences,)
        Entries of the block are set: ``-inf`` if no labeling is legal (the rows of ``node`` and ``pair``
        are then zero and nothing is added to ``transitions``), NaN if a score is NaN or ``+inf``.
    node : array of shape (n_steps, n_labels)
        Rows of the block are set. Must not be ``unary``.
    pair : array of shape (n_steps, n_labels, n_labels)
        Rows of the block are set; zero at each sequence's first step.
    transitions : array of shape (n_labels, n_labels)
        The weighted sums of the pair marginals are *added*.
    products : array of shape (width, width), the padded number of labels
        Sums between the calls for one block; zeros at the first.
    """
    _, pairwise3, stride, _, _, offsets = chain
    space = make_space(chain, first, last)
    weights, alpha, exp_pairwise, exp_transposed, _, _ = space
    pair_shift, pair_spread = 0.0, 0.0
    if stride == 0:
        pair_shift, pair_spread = exp_matrix(pairwise3[0], exp_pairwise, exp_transposed)
    for i in range(first, last):
        t0, t1 = offsets[i], offsets[i + 1]
        if t0 == t1:
            log_z[i] = 0.0
            continue
        scale = sequence_weights[i] if sequence_weights.size > 0 else 1.0
        shift, spread = load_rows(chain, i, space)
        exact = spread <= MAX_RANGE and (t1 - t0 == 1 or spread + pair_spread <= MAX_RANGE)
        if exact:
            log_z[i] = forward_one(chain, i, space, spread)
            log_z[i] += shift + pair_shift * (t1 - t0 - 1)
            exact = not math.isnan(log_z[i])
        is_legal = log_z[i] > -np.inf
        if node is not None:
            if exact and is_legal:
                exact = backward_one(chain, i, space, node)
            if exact and not is_legal:
                clear_rows(t0, t1, want, node, pair)
        if not exact:
            return i
        if pair is not None and is_legal:
            write_pairs(chain, i, space, pair)
        if transitions is not None:
            if is_legal and stride == 1:
                add_pairs(chain, i, space, scale, transitions)
            elif is_legal:
                add_outer_products(alpha, weights, t1 - t0, scale, products)
    if transitions is not None and stride == 0:
        for i in range(transitions.shape[0]):
            for j in range(transitions.shape[1]):
                transitions[i, j] += exp_pairwise[i, j] * products[i, j]
    return last


@njit(nogil=True, cache=True)
def has_large_range(chain: ChainArrays, i: int) -> bool:
    """Whether a row of sequence ``i`` has too large a range, so that the scaled form is never exact."""
    unary, _, _, start, end, offsets = chain
    t0, t1 = offsets[i], offsets[i + 1]
    for t in range(t0, t1):
        high, low = -np.inf, np.inf
        for j in range(unary.shape[1]):
            value = unary[t, j]
            value += start[j] if t == t0 else 0.0
            value += end[j] if t == t1 - 1 else 0.0
            high = max(high, value)
            low = min(low, value) if value > -np.inf else low
        if high - low > MAX_RANGE:
            return True
    return False


@njit(nogil=True, cache=True)
def log_space_block(
    chain: ChainArrays,
    first: int,
    last: int,
    sequence_weights: Floats,
    want: int,
    log_z: Floats,
    node: Floats | None,
    pair: Floats | None,
    transitions: Floats | None,
) -> int:
    """Sequence ``first`` in log space, and those after it that have a large range; returns the next one.

    The arguments are those of `forward_backward_block`.
    """
    n_labels, offsets = chain[0].shape[1], chain[5]
    beta, workspace = np.empty(n_labels), np.empty(n_labels)
    i = first
    while i == first or (i < last and has_large_range(chain, i)):
        n_steps = offsets[i + 1] - offsets[i]
        rows, alpha = np.empty((n_steps, n_labels)), np.empty((n_steps, n_labels))
        scale = sequence_weights[i] if sequence_weights.size > 0 else 1.0
        log_z[i] = forward_backward_log_one(
            chain, i, scale, want, rows, alpha, beta, workspace, node, pair, transitions
        )
        i += 1
    return i
