"""Pair sums with a beam, for chains whose scores are tables of rows: only kept labels are visited.

At every step the ``width`` labels with the largest forward values are kept, and on request the gold label
besides them (Pal, Sutton & McCallum 2006). A forward step takes O(width L) time, everything else O(width^2).
In log space::

    forward[k]  =  node[k, row] + log sum_{c kept} exp(alpha[c] + pair[k, row, c])

The likelihood is that of the gold labels among the paths within the beam. If the gold path is not one of
them, it counts as one more path, so that its probability ``q`` is defined: the marginals are then those of
the beam, times ``1 - q``, plus ``q`` on the gold path.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.beam import keep_best
from seqlab.inference.kernels.dense import longest
from seqlab.inference.kernels.forward_backward_log import log_sum_exp
from seqlab.simd.exponential import exp_nonpositive

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


@njit(nogil=True, cache=True)
def is_member(label: int, labels: Ints, n_labels: int) -> bool:
    """Return whether a label is among the first ``n_labels`` of a list."""
    found = False
    for r in range(n_labels):
        found = found or labels[r] == label
    return found


@njit(nogil=True, cache=True)
def insert_sorted(label: int, labels: Ints, n_labels: int) -> None:
    """Insert a label into a list of ``n_labels`` increasing labels."""
    place = n_labels
    while place > 0 and labels[place - 1] > label:
        labels[place] = labels[place - 1]
        place -= 1
    labels[place] = label


@njit(nogil=True, cache=True)
def run_beam(
    node: Floats,
    pair: Floats,
    codes: Ints,
    rows: Rows,
    offsets: Ints,
    width: int,
    keep_gold: bool,
    kept: Ints,
    n_kept: Ints,
    probability: Floats,
    log_likelihood: Floats,
    gold_share: Floats,
) -> None:
    """Compute the marginals of a block of sequences.

    Parameters
    ----------
    node, pair : arrays over the rows
    codes, rows, offsets : arrays over the steps and sequences of the block
    width : int
    keep_gold : bool
    kept : int64 array of shape (n_steps, width + 1)
        Receives the labels in the beam, in increasing order.
    n_kept : int64 array of shape (n_steps,)
        Their numbers.
    probability : array of shape (n_steps, width + 1, width + 1)
        Receives the marginals of pairs of kept labels, previous label first; at a first step row 0 has
        those of the labels.
    log_likelihood, gold_share : arrays of shape (n_sequences,)
        Receive the log-likelihood, and the probability of a gold path that is not in the beam, else 0.
    """
    n_labels = node.shape[0]
    alpha = np.empty((longest(offsets, 0, offsets.size - 1), width + 1))
    values, terms = np.empty(n_labels), np.empty(n_labels)
    right, beta = np.empty(width + 1), np.empty(width + 1)
    for i in range(offsets.size - 1):
        t0, t1 = offsets[i], offsets[i + 1]
        log_likelihood[i], gold_share[i] = 0.0, 0.0
        if t0 == t1:
            continue
        log_z, gold, is_inside = 0.0, 0.0, True
        for t in range(t0, t1):
            row, y = rows[t], codes[t]
            column = n_labels if t == t0 else codes[t - 1]
            gold += node[y, row] + pair[y, row, column]
            if t == t0:
                for k in range(n_labels):
                    values[k] = node[k, row] + pair[k, row, n_labels]
            else:
                before, n_before, left = kept[t - 1], n_kept[t - 1], alpha[t - 1 - t0]
                for k in range(n_labels):
                    scores = pair[k, row]
                    for q in range(n_before):
                        terms[q] = left[q] + scores[before[q]]
                    values[k] = node[k, row] + log_sum_exp(terms, n_before)
            n_kept[t] = keep_best(values, n_labels, width, -1, kept[t])
            if not is_member(y, kept[t], n_kept[t]):
                is_inside = is_inside and keep_gold
                if keep_gold:
                    insert_sorted(y, kept[t], n_kept[t])
                    n_kept[t] += 1
            high = values.max()
            log_z += high
            for r in range(n_kept[t]):
                alpha[t - t0, r] = values[kept[t, r]] - high
        log_z += log_sum_exp(alpha[t1 - 1 - t0], n_kept[t1 - 1])
        if not is_inside:  # one more path: log(e^log_z + e^gold)
            terms[0], terms[1] = log_z, gold
            log_z = log_sum_exp(terms, 2)
            gold_share[i] = exp_nonpositive(gold - log_z)
        log_likelihood[i] = gold - log_z

        for r in range(n_kept[t1 - 1]):
            beta[r] = 0.0
        for t in range(t1 - 1, t0, -1):
            row, left = rows[t], alpha[t - 1 - t0]
            for r in range(n_kept[t]):
                right[r] = beta[r] + node[kept[t, r], row]
            for q in range(n_kept[t - 1]):
                c = kept[t - 1, q]
                for r in range(n_kept[t]):
                    score = pair[kept[t, r], row, c] + right[r]
                    terms[r] = score
                    probability[t, q, r] = left[q] + score
                beta[q] = log_sum_exp(terms, n_kept[t])
            for q in range(n_kept[t - 1]):
                terms[q] = left[q] + beta[q]
            total = log_sum_exp(terms, n_kept[t - 1])
            highest = -np.inf
            for q in range(n_kept[t - 1]):
                highest = max(highest, beta[q])
                for r in range(n_kept[t]):
                    # Rounding may make a logarithm slightly positive.
                    probability[t, q, r] = exp_nonpositive(min(probability[t, q, r] - total, 0.0))
            for q in range(n_kept[t - 1]):  # a constant does not matter, but must not grow
                beta[q] -= highest
        for r in range(n_kept[t0]):
            terms[r] = alpha[0, r] + beta[r]
        total = log_sum_exp(terms, n_kept[t0])
        for r in range(n_kept[t0]):
            probability[t0, 0, r] = exp_nonpositive(min(terms[r] - total, 0.0))


@njit(nogil=True, cache=True)
def add_beam_sums(
    codes: Ints,
    rows: Rows,
    sequence_weights: Floats,
    offsets: Ints,
    kept: Ints,
    n_kept: Ints,
    probability: Floats,
    gold_share: Floats,
    scale: float,
    gradient: Ints,
    curvature: Ints,
) -> None:
    """Add the gradient and the curvature of a block, from the marginals of `run_beam`."""
    n_labels = gradient.shape[0]
    with_curvature = curvature.shape[1] > 0
    for i in range(offsets.size - 1):
        factor, share = sequence_weights[i] * scale, gold_share[i]
        if factor == 0.0:
            continue
        for t in range(offsets[i], offsets[i + 1]):
            is_first = t == offsets[i]
            row, y = rows[t], codes[t]
            before = n_labels if is_first else codes[t - 1]
            gradient[y, row, before] += int(factor + 0.5)
            is_added = share == 0.0  # whether the probability of the gold path has been added
            for q in range(1 if is_first else n_kept[t - 1]):
                c = n_labels if is_first else kept[t - 1, q]
                for r in range(n_kept[t]):
                    k = kept[t, r]
                    p = (1.0 - share) * probability[t, q, r]
                    if c == before and k == y:
                        p += share
                        is_added = True
                    gradient[k, row, c] -= int(p * factor + 0.5)
                    if with_curvature:
                        curvature[k, row, c] += int(p * (1.0 - p) * factor + 0.5)
            if not is_added:
                gradient[y, row, before] -= int(share * factor + 0.5)
                if with_curvature:
                    curvature[y, row, before] += int(share * (1.0 - share) * factor + 0.5)
