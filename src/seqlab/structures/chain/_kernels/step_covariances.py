"""Kernels: covariances of the features of single steps under the model.

Marginals are computed here, by the simplest forward-backward algorithm, because the kernels of `inference`
take ten seconds to compile, and training does not need them otherwise.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Labels and label pairs that are less probable are left out.
MIN_PROBABILITY = 1e-3


# Sums may be reordered, so that vector units can add.
@njit(nogil=True, cache=True, fastmath={"reassoc"})
def add_covariances(
    unary: Floats,
    factors: Floats,
    start: Floats,
    end: Floats,
    offsets: Ints,
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: Floats,
    weights: Floats,
    starts: NDArray[np.int32],
    labels: Ints,
    rank_of_state: Ints,
    rank_of_transition: Ints,
    out: Floats,
) -> int:
    """Add the covariances of the features of some weights at each step to ``out``, once for each pair.

    ``factors`` are exponentials of the scores of label pairs, of each step or of all of them. The weights of
    feature ``f`` are ``starts[f]:starts[f + 1]``; ``labels`` are their labels, ``rank_of_state`` their rows
    of ``out``. ``rank_of_transition[a, b]`` is the row of a transition, -1 if it has none. Returns the number
    of products. A sequence whose probabilities underflow is left out.
    """
    n_labels, size = unary.shape[1], out.shape[0]
    # Unsigned: numba then does not check for negative indices.
    rank, label = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.int64)
    value, mean = np.empty(size), np.empty(size)
    # Each row of these is scaled to the sum 1. `after[t]` includes the unary scores of step t.
    forward, after = np.empty(unary.shape), np.empty(unary.shape)
    pair, node = np.empty((n_labels, n_labels)), np.empty(n_labels)
    n_products = 0
    for k in range(offsets.size - 1):
        first, last = offsets[k], offsets[k + 1]
        underflows = weights[k] == 0.0
        for t in range(first, last):
            highest = -math.inf
            for b in range(n_labels):
                score = unary[t, b]
                if t == first:
                    score += start[b]
                if t == last - 1:
                    score += end[b]
                after[t, b] = score
                highest = max(highest, score)
            for b in range(n_labels):
                after[t, b] = math.exp(after[t, b] - highest)
                forward[t, b] = 1.0 if t == first else 0.0
            step = factors[min(t, factors.shape[0] - 1)]
            for a in range(n_labels if t > first else 0):
                for b in range(n_labels):
                    forward[t, b] += forward[t - 1, a] * step[a, b]
            total = 0.0
            for b in range(n_labels):
                forward[t, b] *= after[t, b]
                total += forward[t, b]
            if not total > 0.0:
                underflows = True
                break
            for b in range(n_labels):
                forward[t, b] /= total
        for t in range(last - 2, first - 1, -1):
            if underflows:
                break
            step = factors[min(t + 1, factors.shape[0] - 1)]
            total = 0.0
            for a in range(n_labels):
                reached = 0.0
                for b in range(n_labels):
                    reached += step[a, b] * after[t + 1, b]
                after[t, a] *= reached
                total += after[t, a]
            if not total > 0.0:
                underflows = True
                break
            for a in range(n_labels):
                after[t, a] /= total
        if underflows:
            continue
        for t in range(first, last):
            # At the first step `after` is the node marginal already; at others it follows from pairs.
            total = 0.0
            for b in range(n_labels):
                node[b] = after[t, b] if t == first else 0.0
                total += node[b]
            if t > first:
                step = factors[min(t, factors.shape[0] - 1)]
                for a in range(n_labels):
                    for b in range(n_labels):
                        pair[a, b] = forward[t - 1, a] * step[a, b] * after[t, b]
                        node[b] += pair[a, b]
                        total += pair[a, b]
            if not total > 0.0:
                break
            n = 0
            for entry in range(indptr[t], indptr[t + 1]):
                f = indices[entry]
                for j in range(starts[f], starts[f + 1]):
                    p = node[labels[j]] / total
                    if p > MIN_PROBABILITY and data[entry] != 0.0:
                        rank[n], label[n] = rank_of_state[j], labels[j]
                        value[n], mean[n] = data[entry], data[entry] * p
                        n += 1
            n_states = n
            for a in range(n_labels if t > first else 0):
                for b in range(n_labels):
                    if pair[a, b] > MIN_PROBABILITY * total and rank_of_transition[a, b] >= 0:
                        rank[n], label[n] = rank_of_transition[a, b], b
                        value[n], mean[n] = 1.0, pair[a, b] / total
                        n += 1
            for i in range(n):
                row, factor, own = out[rank[i]], weights[k] * mean[i], label[i]
                for j in range(min(i, n_states)):
                    # Both are on if the label is this one; mean[i] has the probability of the rarer.
                    same = value[j] if label[j] == own else 0.0
                    row[rank[j]] += factor * (same - mean[j])
                for j in range(n_states, i):
                    row[rank[j]] -= factor * mean[j]
                row[rank[i]] += factor * (value[i] - mean[i])
            n_products += n * (n + 1) // 2
    return n_products
