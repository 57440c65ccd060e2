"""Kernel: covariances of the features of single steps under the model."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Labels and label pairs that are less probable are left out.
MIN_PROBABILITY = 1e-3


@njit(nogil=True, cache=True)
def add_step_covariances(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: Floats,
    node: Floats,
    pair: Floats,
    step_weights: Floats,
    starts: NDArray[np.int32],
    labels: Ints,
    rank_of_state: Ints,
    rank_of_transition: Ints,
    out: Floats,
) -> int:
    """Add the covariances of the features of some weights at each step to the lower half of ``out``.

    The weights of feature ``f`` are ``starts[f]:starts[f + 1]``; ``labels`` are their labels and
    ``rank_of_state`` their rows of ``out``. ``rank_of_transition[a, b]`` is the row of a transition, -1 if
    it has none. ``node`` and ``pair`` are marginals; ``pair[t]`` is 0 for the first step of a sequence.
    Returns the number of products.
    """
    n_labels = node.shape[1]
    size = out.shape[0]
    rank, label = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    value, mean = np.empty(size), np.empty(size)
    n_products = 0
    for t in range(node.shape[0]):
        weight = step_weights[t]
        if weight == 0.0:
            continue
        n = 0
        for entry in range(indptr[t], indptr[t + 1]):
            f = indices[entry]
            for j in range(starts[f], starts[f + 1]):
                p = node[t, labels[j]]
                if p > MIN_PROBABILITY and data[entry] != 0.0:
                    rank[n], label[n] = rank_of_state[j], labels[j]
                    value[n], mean[n] = data[entry], data[entry] * p
                    n += 1
        n_states = n
        for a in range(n_labels):
            for b in range(n_labels):
                p = pair[t, a, b]
                if p > MIN_PROBABILITY and rank_of_transition[a, b] >= 0:
                    rank[n], label[n] = rank_of_transition[a, b], b
                    value[n], mean[n] = 1.0, p
                    n += 1
        for i in range(n):
            for j in range(i + 1):
                covariance = -mean[i] * mean[j]
                if i == j or (j < n_states and label[i] == label[j]):
                    # Both are on if the label is this one; mean[i] has the probability of the rarer.
                    covariance += value[j] * mean[i]
                out[max(rank[i], rank[j]), min(rank[i], rank[j])] += weight * covariance
        n_products += n * (n + 1) // 2
    return n_products


@njit(nogil=True, cache=True)
def copy_lower_half(matrix: Floats) -> None:
    """Make a matrix symmetric, given its lower half; in place, to save memory."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
