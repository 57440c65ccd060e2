"""Posterior samples of chains: forward filtering, backward sampling.

With ``alpha`` from the forward pass, the last label is drawn from ``alpha[T-1]`` and every earlier label
from ``P(y_{t-1} = i | y_t = j) ~ alpha[t-1, i] exp(pairwise[t][i, j])``. The caller draws all uniform
numbers, one per step and sample, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import exp_matrix
from seqlab.inference.kernels.forward_backward import (
    LOG_Z,
    MAX_RANGE,
    forward_one,
    load_rows,
    make_space,
)
from seqlab.inference.kernels.forward_backward_log import forward_backward_log_one
from seqlab.inference.scores import ChainArrays, Floats


@njit(nogil=True, cache=True)
def draw_label(weights: Floats, n_labels: int, uniform: float) -> int:
    """Draw a label with probability proportional to ``weights``, by inversion."""
    total = 0.0
    for i in range(n_labels):
        total += weights[i]
    threshold, cumulated, chosen = uniform * total, 0.0, 0
    for i in range(n_labels):
        if weights[i] > 0.0:
            cumulated += weights[i]
            chosen = i
            if cumulated > threshold:
                break
    return chosen


@njit(nogil=True, cache=True)
def weight_predecessors(
    alpha: Floats, arcs: Floats, label: int, in_logs: bool, out: Floats
) -> None:
    """``out[i]`` is proportional to ``alpha[i] * exp(arcs[i, label])``; the largest exponential is 1.

    ``alpha`` holds logarithms if ``in_logs``.
    """
    n_labels = arcs.shape[0]
    high = -np.inf
    for i in range(n_labels):
        out[i] = arcs[i, label] + (alpha[i] if in_logs else 0.0)
        if out[i] > high and (in_logs or alpha[i] > 0.0):
            high = out[i]
    for i in range(n_labels):
        if in_logs:
            out[i] = math.exp(out[i] - high)
        else:
            out[i] = alpha[i] * math.exp(out[i] - high) if alpha[i] > 0.0 else 0.0


@njit(nogil=True, cache=True)
def sample_block(
    chain: ChainArrays,
    first: int,
    last: int,
    uniforms: Floats,
    labels: NDArray[np.int64],
    log_z: Floats,
) -> None:
    """Write samples into ``labels`` (n_samples, n_steps), from ``uniforms`` of the same shape."""
    unary, pairwise3, stride, _, _, offsets = chain
    n_labels = unary.shape[1]
    space = make_space(chain, first, last)
    weights, alpha, exp_pairwise, exp_transposed, beta, workspace = space
    pair_spread = 0.0
    if stride == 0:
        _, pair_spread = exp_matrix(pairwise3[0], exp_pairwise, exp_transposed)
    for k in range(first, last):
        t0, t1 = offsets[k], offsets[k + 1]
        if t0 == t1:
            log_z[k] = 0.0
            continue
        _, spread = load_rows(chain, k, space)
        log_z[k] = np.nan
        if spread + pair_spread <= MAX_RANGE:
            log_z[k] = forward_one(chain, k, space, spread)
        in_logs = math.isnan(log_z[k])
        if in_logs:
            log_z[k] = forward_backward_log_one(
                chain, k, 1.0, LOG_Z, weights, alpha, beta, workspace, None, None, None
            )
        if not math.isfinite(log_z[k]):
            continue
        for s in range(labels.shape[0]):
            row = alpha[t1 - 1 - t0]
            for i in range(n_labels):
                workspace[i] = math.exp(row[i]) if in_logs else row[i]
            label = draw_label(workspace, n_labels, uniforms[s, t1 - 1])
            labels[s, t1 - 1] = label
            for t in range(t1 - 1, t0, -1):
                weight_predecessors(
                    alpha[t - 1 - t0], pairwise3[t * stride], label, in_logs, workspace
                )
                label = draw_label(workspace, n_labels, uniforms[s, t - 1])
                labels[s, t - 1] = label
