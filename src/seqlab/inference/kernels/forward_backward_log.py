"""Forward-backward of one chain in log space: slower than the scaled form, but safe for any scores.

Used if the scaled form could underflow: with extreme scores, or with hard constraints that drive the
probability of a legal prefix towards zero. Rows of ``log alpha`` and ``log beta`` are shifted to a maximum
of 0, and the shifts are summed separately, so that even after 10^5 steps the rows are as exact as the
scores of single steps. Needs one exponential per pair of labels and step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import ChainArrays, Floats
from seqlab.simd.exponential import exp_nonpositive

# What forward-backward computes besides log_z. Arrays of results that are not computed may have size 0 or be
# None, for which numba compiles less code.
LOG_Z = 0
NODE = 1
PAIR = 2  # nodes and pairs
TRANSITIONS = 3  # nodes and summed pairs


@njit(nogil=True, cache=True)
def subtract_max(row: Floats, n_labels: int) -> float:
    """Subtract the maximum from ``row``; returns what was subtracted (0 for a row of ``-inf``)."""
    high = -np.inf
    for j in range(n_labels):
        high = max(high, row[j])
    if high == -np.inf:
        return 0.0
    for j in range(n_labels):
        row[j] -= high
    return high


@njit(nogil=True, cache=True)
def log_sum_exp(row: Floats, n_labels: int) -> float:
    """``log sum_j exp(row[j])``; NaN if an entry is NaN or ``+inf``, ``-inf`` for an empty sum."""
    high = -np.inf
    for j in range(n_labels):
        high = max(high, row[j])
    shift = high if high > -np.inf else 0.0
    total = 0.0
    for j in range(n_labels):
        total += exp_nonpositive(row[j] - shift)
    return shift + math.log(total) if total != 0.0 else -np.inf


@njit(nogil=True, cache=True)
def step_forward(
    previous: Floats,
    kept: NDArray[np.int64],
    n_kept: int,
    pairwise: Floats,
    highs: Floats,
    out: Floats,
) -> None:
    """``out[j] = log sum_r exp(previous[r] + pairwise[kept[r], j])`` over ``r < n_kept``."""
    n_labels = pairwise.shape[1]
    for j in range(n_labels):
        highs[j] = -np.inf
        out[j] = 0.0
    for r in range(n_kept):
        a, i = previous[r], kept[r]
        for j in range(n_labels):
            value = a + pairwise[i, j]
            highs[j] = value if value > highs[j] else highs[j]
    for j in range(n_labels):
        highs[j] = highs[j] if highs[j] > -np.inf else 0.0
    for r in range(n_kept):
        a, i = previous[r], kept[r]
        for j in range(n_labels):
            out[j] += exp_nonpositive(a + pairwise[i, j] - highs[j])
    for j in range(n_labels):
        out[j] = highs[j] + math.log(out[j]) if out[j] != 0.0 else -np.inf


@njit(nogil=True, cache=True)
def step_backward(right: Floats, pairwise: Floats, workspace: Floats, out: Floats) -> None:
    """``out[i] = log sum_j exp(pairwise[i, j] + right[j])``."""
    n_labels = pairwise.shape[0]
    for i in range(n_labels):
        for j in range(n_labels):
            workspace[j] = pairwise[i, j] + right[j]
        out[i] = log_sum_exp(workspace, n_labels)


@njit(nogil=True, cache=True)
def clear_rows(t0: int, t1: int, want: int, node: Floats, pair: Floats | None) -> None:
    """Set the marginals of a sequence to zero."""
    # Loops, not slices: numba takes seconds to compile the assignment of a slice.
    n_labels = node.shape[1]
    for t in range(t0, t1):
        for i in range(n_labels):
            node[t, i] = 0.0
            if pair is not None:
                for j in range(n_labels if want == PAIR else 0):
                    pair[t, i, j] = 0.0


@njit(nogil=True, cache=True)
def forward_backward_log_one(
    chain: ChainArrays,
    sequence: int,
    scale: float,
    want: int,
    rows: Floats,
    alpha: Floats,
    beta: Floats,
    workspace: Floats,
    node: Floats | None,
    pair: Floats | None,
    transitions: Floats | None,
) -> float:
    """`forward_backward_block` of one sequence; returns log Z.

    ``rows`` and ``alpha`` are workspaces of at least ``(n_steps, n_labels)`` for the steps of the sequence,
    ``beta`` and ``workspace`` of at least ``(n_labels,)``. ``want`` is one of the constants above.
    """
    unary, pairwise3, stride, start, end, offsets = chain
    t0, t1 = offsets[sequence], offsets[sequence + 1]
    n_labels, n_steps = unary.shape[1], t1 - t0
    every = np.arange(n_labels)
    log_z = 0.0
    for t in range(n_steps):
        for j in range(n_labels):
            value = unary[t0 + t, j]
            if t == 0:
                value += start[j]
            if t == n_steps - 1:
                value += end[j]
            rows[t, j] = value
            alpha[t, j] = 0.0
        if t > 0:
            pairwise = pairwise3[(t0 + t) * stride]
            step_forward(alpha[t - 1], every, n_labels, pairwise, workspace, alpha[t])
        for j in range(n_labels):
            alpha[t, j] += rows[t, j]
        log_z += subtract_max(alpha[t], n_labels)
    last_sum = log_sum_exp(alpha[n_steps - 1], n_labels)
    log_z += last_sum
    if node is None or want == LOG_Z:
        return log_z
    if not math.isfinite(log_z):
        clear_rows(t0, t1, want, node, pair)
        return log_z
    for j in range(n_labels):
        node[t1 - 1, j] = exp_nonpositive(alpha[n_steps - 1, j] - last_sum)
        beta[j] = 0.0
    for t in range(n_steps - 1, 0, -1):
        pairwise, right, left = pairwise3[(t0 + t) * stride], rows[t], alpha[t - 1]
        for j in range(n_labels):
            right[j] += beta[j]
        subtract_max(right, n_labels)
        step_backward(right, pairwise, workspace, beta)
        for i in range(n_labels):
            workspace[i] = left[i] + beta[i]
        local = log_sum_exp(workspace, n_labels)  # the same constant for nodes and pairs
        for i in range(n_labels):
            node[t0 + t - 1, i] = exp_nonpositive(workspace[i] - local)
        if pair is not None:
            for i in range(n_labels if want == PAIR else 0):
                for j in range(n_labels):
                    pair[t0 + t, i, j] = exp_nonpositive(
                        left[i] + pairwise[i, j] + right[j] - local
                    )
        if transitions is not None:
            for i in range(n_labels if want == TRANSITIONS else 0):
                for j in range(n_labels):
                    transitions[i, j] += scale * exp_nonpositive(
                        left[i] + pairwise[i, j] + right[j] - local
                    )
    if pair is not None:
        for i in range(n_labels if want == PAIR else 0):
            for j in range(n_labels):
                pair[t0, i, j] = 0.0
    return log_z
