"""Kernels: covariances of the sums of features over a chain under the model.

They are the Hessian of a log-partition. With ``S_t`` the sum of the features ``f`` of the steps up to ``t``,

    Cov(S, S) = sum_t Cov(f_t, f_t) + C_t + C_t',   C_t = Cov(f_t, S_{t-1}),

and ``C_t`` follows from the expectations of ``S_{t-1}`` given the label of step t - 1, less its expectation
without that: a table with a row for each label, which is computed from step to step.

Labels that are not probable at a step are left out, and the marginals are computed once more without them.
So the result is the covariance of a distribution, and positive semidefinite; and steps whose label is almost
certain, the majority in a trained model, cost next to nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.utils.linalg import axpy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Additions to a row of the result that take as long as one to a single entry.
ROW_SPEED = 8
# Additions that take as long as an exponential function.
EXP_COST = 8


@njit(nogil=True, cache=True)
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
    labels: NDArray[np.int32],
    edge_starts: NDArray[np.int32],
    edge_pairs: NDArray[np.int32],
    row_of_edge: int,
    row_of_transition: Ints,
    row_of_start: int,
    min_probability: float,
    out: Floats,
) -> int:
    """Add a matrix to ``out`` that is, plus its transpose, the covariance of the sums of all features.

    ``factors`` are exponentials of the scores of label pairs, of each step or of all of them. The weights of
    feature ``f`` are the rows ``starts[f]:starts[f + 1]`` of ``out``; ``labels`` are their labels. Its
    weights of label pairs are ``edge_starts[f]:edge_starts[f + 1]``, with the pairs ``a * n_labels + b``
    and rows that follow ``row_of_edge``; ``edge_starts`` is empty without edge features.
    ``row_of_transition[a, b]`` is the row of a transition, -1 if it has none. The rows of start and end
    follow ``row_of_start``, which is -1 if there are none. Labels less probable than ``min_probability`` are
    left out, and so is a sequence whose probabilities underflow. Returns the number of operations.
    """
    n_labels, size = unary.shape[1], out.shape[0]
    # Features of a step: row, label, value, expectation; and the label pair, for features of pairs.
    row_of, label = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    value, mean = np.empty(size), np.empty(size)
    pair_of = np.full(size, -1, dtype=np.int64)
    local, forward, backward = np.empty_like(unary), np.empty_like(unary), np.empty_like(unary)
    kept = np.empty(unary.shape, dtype=np.int64)
    n_kept = np.empty(unary.shape[0], dtype=np.int64)
    pair, node = np.empty((n_labels, n_labels)), np.empty(n_labels)
    # Expectations of the sum before a step given its label, and of the sum up to a step.
    given, table = np.zeros((n_labels, size)), np.zeros((n_labels, size))
    n_products = 0
    for k in range(offsets.size - 1):
        first, last = offsets[k], offsets[k + 1]
        if weights[k] == 0.0 or first == last:
            continue
        for t in range(first, last):
            highest = -math.inf
            for b in range(n_labels):
                score = unary[t, b]
                if t == first:
                    score += start[b]
                if t == last - 1:
                    score += end[b]
                local[t, b] = score
                highest = max(highest, score)
            for b in range(n_labels):
                local[t, b] = math.exp(local[t, b] - highest)
        if not _run_all_labels(local, factors, first, last, forward, backward):
            continue
        n_products += (last - first) * n_labels * (EXP_COST + 2 * n_labels // ROW_SPEED)
        least = min(min_probability, 0.5 / n_labels)
        for t in range(first, last):
            total = 0.0
            for b in range(n_labels):
                total += forward[t, b] * backward[t, b]
            n = 0
            for b in range(n_labels):
                if forward[t, b] * backward[t, b] > least * total:
                    kept[t, n] = b
                    n += 1
            n_kept[t] = n
        if not _run_both_ways(local, factors, first, last, kept, n_kept, forward, backward):
            continue
        for t in range(first, last):
            n_now, n_before = n_kept[t], 0 if t == first else n_kept[t - 1]
            if n_now == 1 and n_before <= 1:
                continue  # the table of step t - 1 has one row, of zeros
            total = 0.0
            node[:] = 0.0
            pair[:] = 0.0  # of labels that are left out
            for j in range(n_now):
                b = kept[t, j]
                node[b] = forward[t, b] * backward[t, b] if t == first else 0.0
                for i in range(n_before):
                    a = kept[t - 1, i]
                    step = factors[min(t, factors.shape[0] - 1)]
                    pair[a, b] = forward[t - 1, a] * step[a, b] * local[t, b] * backward[t, b]
                    node[b] += pair[a, b]
                total += node[b]
            n = 0
            for entry in range(indptr[t], indptr[t + 1]):
                f = indices[entry]
                for place in range(starts[f], starts[f + 1]):
                    b = labels[place]
                    if n_now > 1 and data[entry] != 0.0 and node[b] > 0.0:
                        row_of[n], label[n], value[n] = place, b, data[entry]
                        mean[n] = data[entry] * node[b] / total
                        n += 1
            for j in range(n_now if n_now > 1 and row_of_start >= 0 else 0):
                b = kept[t, j]
                for is_on, row in (
                    (t == first, row_of_start + b),
                    (t == last - 1, row_of_start + n_labels + b),
                ):
                    if is_on:
                        row_of[n], label[n], value[n] = row, b, 1.0
                        mean[n] = node[b] / total
                        n += 1
            n_states = n
            for j in range(n_now):
                b = kept[t, j]
                for i in range(n_before):
                    a = kept[t - 1, i]
                    pair[a, b] /= total
                    if row_of_transition[a, b] >= 0:
                        row_of[n], label[n], pair_of[n] = (
                            row_of_transition[a, b],
                            b,
                            a * n_labels + b,
                        )
                        value[n], mean[n] = 1.0, pair[a, b]
                        n += 1
                node[b] /= total
            for entry in range(indptr[t], indptr[t + 1] if t > first and edge_starts.size else 0):
                f = indices[entry]
                for place in range(edge_starts[f], edge_starts[f + 1]):
                    a, b = divmod(edge_pairs[place], n_labels)
                    if pair[a, b] > 0.0 and data[entry] != 0.0:
                        row_of[n], label[n] = row_of_edge + place, b
                        pair_of[n] = edge_pairs[place]
                        value[n], mean[n] = data[entry], data[entry] * pair[a, b]
                        n += 1
            for i in range(n):
                for j in range(i + 1):
                    covariance = -mean[i] * mean[j]
                    if label[i] == label[j] and (j < n_states or pair_of[i] == pair_of[j]):
                        # Both are on with the same label, or pair; mean[i] has the probability of the rarer.
                        covariance += value[j] * mean[i]
                    if i == j:
                        covariance *= 0.5
                    out[row_of[i], row_of[j]] += weights[k] * covariance
            n_products += n * (n + 1) // 2
            if n_before > 1:
                n_products += _add_earlier_steps(
                    kept[t - 1, :n_before], kept[t, :n_now], pair, node, table, row_of[:n], label, value,
                    mean, pair_of, n_states, weights[k], given, out,
                )  # fmt: skip
            if n_now == 1:
                continue  # the table has one row, of zeros: it is not read
            for j in range(n_now):
                b = kept[t, j]
                expected = table[b]
                if n_before > 1:
                    expected[:] = given[b]
                else:
                    expected[:] = 0.0
                for i in range(n):
                    expected[row_of[i]] -= mean[i]
                    if i < n_states and label[i] == b:
                        expected[row_of[i]] += value[i]
                    elif i >= n_states and label[i] == b:
                        expected[row_of[i]] += mean[i] / node[b]
            n_products += n_now * (size // ROW_SPEED + n)
    return n_products


@njit(nogil=True, cache=True)
def _add_earlier_steps(
    kept_before: Ints,
    kept: Ints,
    pair: Floats,
    node: Floats,
    table: Floats,
    row_of: Ints,
    label: Ints,
    value: Floats,
    mean: Floats,
    pair_of: Ints,
    n_states: int,
    weight: float,
    given: Floats,
    out: Floats,
) -> int:
    """Add the covariances of the features of a step with those of all earlier steps.

    Sets ``given[b]`` to the expectation of the earlier sum if the label of the step is b. Returns the number
    of operations.
    """
    n_rows = row_of.size + kept.size * kept_before.size
    for b in kept:
        given[b] = 0.0
        for a in kept_before:
            axpy(pair[a, b] / node[b], table[a], given[b])
    for i in range(n_states):
        axpy(weight * value[i] * node[label[i]], given[label[i]], out[row_of[i]])
    for i in range(n_states, row_of.size):
        axpy(weight * mean[i], table[pair_of[i] // node.size], out[row_of[i]])
    return n_rows * (given.shape[1] // ROW_SPEED)


# Sums may be reordered, so that vector units can add.
@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _run_all_labels(
    local: Floats, factors: Floats, first: int, last: int, forward: Floats, backward: Floats
) -> bool:
    """Run the forward-backward algorithm over all labels, as `_run_both_ways` does over some.

    The labels are consecutive, so that vector units can be used.
    """
    n_labels = local.shape[1]
    for t in range(first, last):
        step = factors[min(t, factors.shape[0] - 1)]
        for b in range(n_labels):
            forward[t, b] = 1.0 if t == first else 0.0
        for a in range(n_labels if t > first else 0):
            before = forward[t - 1, a]
            for b in range(n_labels):
                forward[t, b] += before * step[a, b]
        total = 0.0
        for b in range(n_labels):
            forward[t, b] *= local[t, b]
            total += forward[t, b]
        if not total > 0.0:
            return False
        for b in range(n_labels):
            forward[t, b] /= total
    after = np.empty(n_labels)
    backward[last - 1] = 1.0 / n_labels
    for t in range(last - 2, first - 1, -1):
        step = factors[min(t + 1, factors.shape[0] - 1)]
        for b in range(n_labels):
            after[b] = local[t + 1, b] * backward[t + 1, b]
        total = 0.0
        for a in range(n_labels):
            reached = 0.0
            for b in range(n_labels):
                reached += step[a, b] * after[b]
            backward[t, a] = reached
            total += reached
        if not total > 0.0:
            return False
        for a in range(n_labels):
            backward[t, a] /= total
    return True


@njit(nogil=True, cache=True)
def _run_both_ways(
    local: Floats,
    factors: Floats,
    first: int,
    last: int,
    kept: Ints,
    n_kept: Ints,
    forward: Floats,
    backward: Floats,
) -> bool:
    """Run the forward-backward algorithm over the first ``n_kept[t]`` labels of each row of ``kept``.

    The product of ``forward`` and ``backward`` is proportional to a node marginal. Each row is scaled to the
    sum 1. Returns whether no row underflows.
    """
    for t in range(first, last):
        total = 0.0
        for j in range(n_kept[t]):
            b = kept[t, j]
            reached = 1.0
            if t > first:
                step = factors[min(t, factors.shape[0] - 1)]
                reached = 0.0
                for i in range(n_kept[t - 1]):
                    a = kept[t - 1, i]
                    reached += forward[t - 1, a] * step[a, b]
            forward[t, b] = reached * local[t, b]
            total += forward[t, b]
        if not total > 0.0:
            return False
        for j in range(n_kept[t]):
            forward[t, kept[t, j]] /= total
    for t in range(last - 1, first - 1, -1):
        total = 0.0
        for i in range(n_kept[t]):
            a = kept[t, i]
            reached = 1.0
            if t < last - 1:
                step = factors[min(t + 1, factors.shape[0] - 1)]
                reached = 0.0
                for j in range(n_kept[t + 1]):
                    b = kept[t + 1, j]
                    reached += step[a, b] * local[t + 1, b] * backward[t + 1, b]
            backward[t, a] = reached
            total += reached
        if not total > 0.0:
            return False
        for i in range(n_kept[t]):
            backward[t, kept[t, i]] /= total
    return True


@njit(nogil=True, cache=True)
def add_transpose(matrix: Floats) -> None:
    """Add its transpose to a matrix; in place, to save memory."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            matrix[i, j] += matrix[j, i]
            matrix[j, i] = matrix[i, j]
