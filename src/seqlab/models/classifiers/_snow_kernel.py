"""Kernels of SNoW: one pass over sparse examples, and activations.

The links of all nodes are stored feature by feature, as a CSR matrix (n_features, n_classes): those of
feature ``f`` are ``link_ptr[f]:link_ptr[f + 1]``, each with its class and weight. A link that has not been
made yet has weight 0, every other link a positive weight, so activations are plain sums.

The speed is limited by memory latency: one cache line per active feature.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Bound on the absolute log-weight, so that multiplicative updates neither overflow nor reach 0.
LOG_WEIGHT_LIMIT = 30.0


@njit(nogil=True, cache=True)
def winnow_pass(
    order: Any, indptr: Any, indices: Any, strengths: Any, codes: Any,
    link_ptr: Any, link_class: Any, weight: Any, count: Any, total: Any, touched: Any,
    n_classes: int, log_promotion: float, log_demotion: float, threshold: float, margin: float,
    initial_weight: float, min_count: int, counting: bool, clock: int,
) -> tuple[int, int]:  # fmt: skip
    """Train all nodes on the examples, in the given order; changes the arrays of the links.

    Parameters
    ----------
    order : int64 array
        Rows to visit.
    indptr, indices, strengths : arrays of a CSR matrix
    codes : int64 array of shape (n_samples,)
        Class of each row.
    link_ptr, link_class, weight : arrays of a CSR matrix (n_features, n_classes)
    count : int32 array
        Positive examples of each link; the link is made when it reaches ``min_count``.
    total, touched : float64 and int64 arrays
        Sum of each weight over the examples up to its last change, and the number of that example.
    n_classes, log_promotion, log_demotion, threshold, margin, initial_weight, min_count
        The parameters of `seqlab.SNoW`.
    counting : bool
        Whether these examples are new and add to ``count``.
    clock : int
        Number of examples before.

    Returns
    -------
    n_wrong : int
        Examples whose node was not the most active one, without links made for the example itself.
    n_updates : int
        Updates of nodes, over all examples.
    """
    least, most = exp(-LOG_WEIGHT_LIMIT), exp(LOG_WEIGHT_LIMIT)
    activation = np.empty(n_classes)
    step = np.empty(n_classes)
    n_wrong = n_updates = 0
    for i in order:
        y = codes[i]
        activation[:] = 0.0
        fresh = 0.0  # activation by links that are made for this example
        for k in range(indptr[i], indptr[i + 1]):
            strength = strengths[k]
            if strength == 0.0:  # stored, but not active
                continue
            f = indices[k]
            for link in range(link_ptr[f], link_ptr[f + 1]):
                c = link_class[link]
                if counting and c == y:
                    count[link] += 1
                    if count[link] == min_count:
                        weight[link] = initial_weight
                        touched[link] = clock
                        fresh += initial_weight * strength
                activation[c] += weight[link] * strength
        before = activation[y] - fresh
        right = True
        changed = 0
        for c in range(n_classes):
            if c != y and (activation[c] > before or (activation[c] == before and c < y)):
                right = False
            step[c] = 0.0
            if c == y:
                if activation[c] < threshold + margin:
                    step[c] = log_promotion
                    changed += 1
            elif activation[c] >= threshold - margin:
                step[c] = log_demotion
                changed += 1
        n_wrong += not right
        n_updates += changed
        if changed:
            for k in range(indptr[i], indptr[i + 1]):
                f = indices[k]
                for link in range(link_ptr[f], link_ptr[f + 1]):
                    size = step[link_class[link]] * strengths[k]
                    if size != 0.0 and weight[link] > 0.0:
                        total[link] += weight[link] * (clock - touched[link])
                        touched[link] = clock
                        # The factor itself must not overflow; no weight can change by more.
                        size = min(max(size, -2.0 * LOG_WEIGHT_LIMIT), 2.0 * LOG_WEIGHT_LIMIT)
                        weight[link] = min(max(weight[link] * exp(size), least), most)
        clock += 1
    return n_wrong, n_updates


@njit(nogil=True, cache=True)
def activations(
    indptr: Any, indices: Any, strengths: Any, link_ptr: Any, link_class: Any, weight: Any,
    n_classes: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the activation of every node for every row, shape (n_samples, n_classes)."""
    n_samples = indptr.size - 1
    out = np.zeros((n_samples, n_classes))
    for i in range(n_samples):
        for k in range(indptr[i], indptr[i + 1]):
            f = indices[k]
            for link in range(link_ptr[f], link_ptr[f + 1]):
                out[i, link_class[link]] += weight[link] * strengths[k]
    return out
