"""Sparse forward-backward: only the ``width`` labels with the largest ``alpha`` are kept at every step.

``alpha`` is computed for all labels from the kept labels of the previous step, then all but the
largest are dropped; ``beta`` and the marginals are those of the chain restricted to the kept
labels, and ``log_z`` is its log-partition (at most the exact one). In log space, with O(T width L)
exponentials.

Reference: beam-search training of conditional random fields (Pal, Sutton & McCallum, 2006).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.beam import Ints, keep_best
from seqlab.inference.kernels.dense import longest
from seqlab.inference.kernels.forward_backward_log import (
    NODE,
    PAIR,
    clear_rows,
    log_sum_exp,
    step_forward,
    subtract_max,
)
from seqlab.inference.scores import ChainArrays, Floats
from seqlab.simd.exponential import exp_nonpositive


@njit(nogil=True, cache=True)
def beam_marginals_block(
    chain: ChainArrays,
    first: int,
    last: int,
    width: int,
    gold: Ints,
    with_pairs: bool,
    log_z: Floats,
    node: Floats,
    pair: Floats,
) -> None:
    """Beam marginals of a block; 0 for dropped labels.

    The labels ``gold`` (n_steps,) are always kept, in place of the last one if necessary; size 0 for none.
    ``node`` (n_steps, n_labels) and, if ``with_pairs``, ``pair`` (n_steps, n_labels, n_labels) are set in
    the rows of the block; ``log_z`` is ``-inf`` if no legal path is left in the beam.
    """
    unary, pairwise3, stride, start, end, offsets = chain
    n_labels = unary.shape[1]
    n_rows = longest(offsets, first, last)
    kept = np.zeros((n_rows, width), dtype=np.int64)
    n_kept = np.zeros(n_rows, dtype=np.int64)
    alpha = np.zeros((n_rows, width))  # log alpha of the kept labels, maximum 0
    values, workspace = np.zeros(n_labels), np.zeros(n_labels)
    beta, right = np.zeros(width), np.zeros(width)
    for k in range(first, last):
        t0, n_steps = offsets[k], offsets[k + 1] - offsets[k]
        clear_rows(t0, t0 + n_steps, PAIR if with_pairs else NODE, node, pair)
        log_z[k] = 0.0
        for t in range(n_steps):
            if t == 0:
                for j in range(n_labels):
                    values[j] = start[j]
            else:
                step_forward(
                    alpha[t - 1], kept[t - 1], n_kept[t - 1], pairwise3[(t0 + t) * stride],
                    workspace, values,
                )  # fmt: skip
            for j in range(n_labels):
                values[j] += unary[t0 + t, j]
            if t == n_steps - 1:
                for j in range(n_labels):
                    values[j] += end[j]
            forced = gold[t0 + t] if gold.size > 0 else -1
            n_kept[t] = keep_best(values, n_labels, width, forced, kept[t])
            if n_kept[t] == 0:
                log_z[k] = -np.inf
                break
            high = values.max()
            log_z[k] += high
            for r in range(n_kept[t]):
                alpha[t, r] = values[kept[t, r]] - high
        if n_steps == 0 or log_z[k] == -np.inf:
            continue
        t = n_steps - 1
        local = log_sum_exp(alpha[t], n_kept[t])
        log_z[k] += local
        for r in range(n_kept[t]):
            node[t0 + t, kept[t, r]] = exp_nonpositive(alpha[t, r] - local)
            beta[r] = 0.0
        for t in range(n_steps - 1, 0, -1):
            pairwise = pairwise3[(t0 + t) * stride]
            for r in range(n_kept[t]):
                right[r] = beta[r] + unary[t0 + t, kept[t, r]]
                if t == n_steps - 1:
                    right[r] += end[kept[t, r]]
            subtract_max(right, n_kept[t])
            for q in range(n_kept[t - 1]):
                for r in range(n_kept[t]):
                    workspace[r] = pairwise[kept[t - 1, q], kept[t, r]] + right[r]
                beta[q] = log_sum_exp(workspace, n_kept[t])
            for q in range(n_kept[t - 1]):
                workspace[q] = alpha[t - 1, q] + beta[q]
            local = log_sum_exp(workspace, n_kept[t - 1])  # the same constant for nodes and pairs
            for q in range(n_kept[t - 1]):
                i = kept[t - 1, q]
                node[t0 + t - 1, i] = exp_nonpositive(workspace[q] - local)
                for r in range(n_kept[t] if with_pairs else 0):
                    j = kept[t, r]
                    pair[t0 + t, i, j] = exp_nonpositive(
                        alpha[t - 1, q] + pairwise[i, j] + right[r] - local
                    )
