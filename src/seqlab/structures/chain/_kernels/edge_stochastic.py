"""Stochastic gradient passes over chains with edge features, one sequence at a time.

The objective per sequence is ``log Z(x_i) - w' phi(x_i, y_i) + lambda/2 |w|^2``, the rate
``eta / (1 + lambda eta t)`` (Bottou). The penalty is left to the caller, which shrinks the weights at
intervals.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from seqlab.inference.kernels.forward_backward import make_space
from seqlab.inference.kernels.forward_backward_pairs import pairs_one


@njit(nogil=True, cache=True)
def sgd_pass(
    order, offsets, indptr, indices, data, state_starts, state_labels, edge_starts, edge_pairs,
    transition_index, first_weights, boundary, weights, shares,
    codes, sequence_weights, hidden, allowed, decay, rate, step,
):  # fmt: skip
    """Visit sequences in the given order; update all weights in place.

    Parameters
    ----------
    order : int64 array
    offsets, indptr, indices, data : arrays
        The sequences, and the CSR matrix of their features.
    state_starts, state_labels, edge_starts, edge_pairs : int32 arrays
        The weights of each feature (see `FeaturePattern`): their labels and label pairs.
    transition_index : int64 array of shape (n_labels, n_labels)
        Index of each transition among the transition weights, or -1.
    first_weights : int64 array
        Index of the first state, edge, transition, start and end weight.
    boundary : bool
        Whether there are start and end weights.
    weights, shares : arrays of shape (n_params,)
        The weights, and the factors of their learning rates.
    codes : int64 array of shape (n_steps,)
        Negative if a label is not known.
    sequence_weights : array of shape (n_sequences,)
    hidden : boolean array of shape (n_sequences,)
        Whether some labels of a sequence are not known.
    allowed : boolean array of shape (n_steps, n_labels)
        Possible labels of each step; read for hidden sequences only.
    decay, rate, step : numbers
        ``lambda``, ``eta`` and the number of sequences visited before.

    Returns
    -------
    step : int
    total : float
        Weighted sum of the log-losses, infinite if a score is extreme.
    """
    n_labels, longest = transition_index.shape[0], 0
    for k in order:
        longest = max(longest, offsets[k + 1] - offsets[k])
    unary, node = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    scores_of_pairs = np.empty((longest, n_labels * n_labels))
    pairs = np.empty((longest, n_labels * n_labels))
    pairwise = scores_of_pairs.reshape((longest, n_labels, n_labels))
    pair = pairs.reshape((longest, n_labels, n_labels))
    n_hidden = longest if hidden.any() else 0
    masked, given_node = np.empty((n_hidden, n_labels)), np.empty((n_hidden, n_labels))
    given_pair = np.empty((n_hidden, n_labels, n_labels))
    transitions, start, end = np.zeros((n_labels, n_labels)), np.zeros(n_labels), np.zeros(n_labels)
    bounds = np.array([0, longest])
    space = make_space((unary, pairwise, 1, start, end, bounds), 0, 1)
    state, edge, first_transition, first_start, first_end = first_weights
    total = 0.0
    for k in order:
        begin, n_steps = offsets[k], offsets[k + 1] - offsets[k]
        if n_steps == 0:
            continue
        for a in range(n_labels):
            if boundary:
                start[a], end[a] = weights[first_start + a], weights[first_end + a]
            for b in range(n_labels):
                if transition_index[a, b] >= 0:
                    transitions[a, b] = weights[first_transition + transition_index[a, b]]
        for t in range(n_steps):
            scores, pair_scores = unary[t], scores_of_pairs[t]
            scores[:] = 0.0
            pairwise[t] = transitions
            for entry in range(indptr[begin + t], indptr[begin + t + 1]):
                feature, value = indices[entry], data[entry]
                for p in range(state_starts[feature], state_starts[feature + 1]):
                    scores[state_labels[p]] += value * weights[state + p]
                if t > 0:
                    for p in range(edge_starts[feature], edge_starts[feature + 1]):
                        pair_scores[edge_pairs[p]] += value * weights[edge + p]
        bounds[1] = n_steps
        chain = unary, pairwise, 1, start, end, bounds
        loss = pairs_one(chain, 0, space, node, pair)
        if hidden[k]:
            for t in range(n_steps):
                for j in range(n_labels):
                    masked[t, j] = unary[t, j] if allowed[begin + t, j] else -np.inf
            given = masked, pairwise, 1, start, end, bounds
            loss -= pairs_one(given, 0, space, given_node, given_pair)
            for t in range(n_steps):
                for a in range(n_labels):
                    node[t, a] -= given_node[t, a]
                    for b in range(n_labels if t > 0 else 0):
                        pair[t, a, b] -= given_pair[t, a, b]
        else:
            for t in range(n_steps):
                code = codes[begin + t]
                loss -= unary[t, code]
                node[t, code] -= 1.0
                if t > 0:
                    before = codes[begin + t - 1]
                    loss -= pairwise[t, before, code]
                    pair[t, before, code] -= 1.0
            loss -= start[codes[begin]] + end[codes[begin + n_steps - 1]]
        total += sequence_weights[k] * loss
        if not math.isfinite(total):
            return step, np.inf
        factor = -sequence_weights[k] * rate / (1.0 + decay * rate * step)
        for t in range(n_steps):
            residual, pair_residual = node[t], pairs[t]
            for entry in range(indptr[begin + t], indptr[begin + t + 1]):
                feature, change = indices[entry], factor * data[entry]
                for p in range(state_starts[feature], state_starts[feature + 1]):
                    weights[state + p] += change * shares[state + p] * residual[state_labels[p]]
                if t > 0:
                    for p in range(edge_starts[feature], edge_starts[feature + 1]):
                        weights[edge + p] += (
                            change * shares[edge + p] * pair_residual[edge_pairs[p]]
                        )
        for a in range(n_labels):
            for b in range(n_labels):
                place = first_transition + transition_index[a, b]
                if transition_index[a, b] >= 0:
                    for t in range(1, n_steps):
                        weights[place] += factor * shares[place] * pair[t, a, b]
            if boundary:
                weights[first_start + a] += factor * shares[first_start + a] * node[0, a]
                weights[first_end + a] += factor * shares[first_end + a] * node[n_steps - 1, a]
        step += 1
    return step, total
