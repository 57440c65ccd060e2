"""Weighted log-losses of each label given the labels on one side of it, and their gradients.

For one chain, with ``A_t`` the possible labels of step t (one, if the label is known), ``Z_t`` the sum over
the labelings whose first t labels are possible and ``a_t`` the weight of step t, the loss is

    sum_t a_t (log Z_{t-1} - log Z_t) = a_1 log Z_0 + sum_t (a_{t+1} - a_t) log Z_t,        a_{T+1} = 0.

Its gradient is a sum of expected features under the distributions of the ``Z_t``. After step t such a
distribution is the Markov chain of the model (``masses`` go forward), up to step t it is the same chain
restricted to possible labels (``masses`` go backward), and at step t it is ``gamma_t``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import Floats

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Sums of exponentials below this value may have lost terms; the chain is then computed in log space.
TINY = 1e-250


@njit(nogil=True, cache=True)
def _log_sum(values: Floats) -> float:
    largest = values.max()
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in values:
        total += np.exp(value - largest)
    return largest + np.log(total)


@njit(nogil=True, cache=True)
def _orient(edges: Floats, at: int, is_reversed: bool, out: Floats, out_exp: Floats) -> float:
    """Copy the edge scores of a step, from the earlier to the later step in the direction of the pass.

    Returns their maximum; ``out_exp`` receives the exponentials relative to it.
    """
    n_labels = out.shape[0]
    largest = -np.inf
    for i in range(n_labels):
        for j in range(n_labels):
            score = edges[at, j, i] if is_reversed else edges[at, i, j]
            out[i, j] = score
            largest = max(largest, score)
    for i in range(n_labels):
        for j in range(n_labels):
            out_exp[i, j] = np.exp(out[i, j] - largest)
    return largest


@njit(nogil=True, cache=True)
def _flush(sums: Floats, is_reversed: bool, out: Floats) -> None:
    """Add ``sums``, in the direction of the pass, to ``out``; then clear them."""
    out += sums.T if is_reversed else sums
    sums[:] = 0.0


@njit(nogil=True, cache=True)
def _run_chain(
    unary: Floats, edges: Floats, steps: Ints, is_reversed: bool, allowed: Bools, weights: Floats,
    exact: bool, beta: Floats, after: Floats, totals: Floats, prefix: Floats, gamma: Floats,
    edge: Floats, exp_edge: Floats, node: Floats, pair: Floats,
) -> float:  # fmt: skip
    """Add the gradient of one chain in one direction to ``node`` and ``pair``; return its loss.

    ``steps`` are the rows of the chain in the direction of the pass. Returns NaN, without a change, if
    sums are too small and not ``exact``: in log space. ``after[k]`` holds the scores of step k and all later
    steps, or their exponentials if not ``exact``; ``totals[k]`` the sums of exponentials of ``beta[k]``.
    """
    n_steps, n_labels = steps.size, unary.shape[1]
    per_step = edges.shape[0] > 1
    sums = np.zeros((n_labels, n_labels))
    shift = _orient(edges, 0, is_reversed, edge, exp_edge)
    mass, further = np.empty(n_labels), np.empty(n_labels)

    beta[n_steps - 1, :] = 0.0
    for k in range(n_steps - 2, -1, -1):
        row, later = steps[k], steps[k + 1]
        if per_step:
            shift = _orient(edges, max(row, later), is_reversed, edge, exp_edge)
        largest = -np.inf
        for j in range(n_labels):
            after[k + 1, j] = unary[later, j] + beta[k + 1, j]
            largest = max(largest, after[k + 1, j])
        if exact:
            for i in range(n_labels):
                for j in range(n_labels):
                    further[j] = edge[i, j] + after[k + 1, j]
                beta[k, i] = _log_sum(further)
            continue
        for j in range(n_labels):
            after[k + 1, j] = np.exp(after[k + 1, j] - largest)
        for i in range(n_labels):
            total = 0.0
            for j in range(n_labels):
                total += exp_edge[i, j] * after[k + 1, j]
            if not total >= TINY:
                return np.nan
            totals[k, i] = total
            beta[k, i] = np.log(total) + largest + shift

    # Scores of the possible prefixes, and the distribution of the label at their ends.
    log_z, loss = _log_sum(unary[steps[0]] + beta[0]), 0.0
    for k in range(n_steps):
        row = steps[k]
        if per_step and k > 0:
            _orient(edges, max(row, steps[k - 1]), is_reversed, edge, exp_edge)
        n_allowed, last = 0, 0
        for j in range(n_labels):
            prefix[k, j] = gamma[k, j] = -np.inf
            if allowed[row, j]:
                n_allowed, last = n_allowed + 1, j
                prefix[k, j] = unary[row, j]
                if k > 0:
                    n_found = 0
                    for i in range(n_labels):
                        if prefix[k - 1, i] > -np.inf:
                            further[n_found] = prefix[k - 1, i] + edge[i, j]
                            n_found += 1
                    prefix[k, j] += further[0] if n_found == 1 else _log_sum(further[:n_found])
                gamma[k, j] = prefix[k, j] + beta[k, j]
        before = log_z
        if n_allowed == 1:
            log_z = gamma[k, last]
            gamma[k, :] = 0.0
            gamma[k, last] = 1.0
        else:
            log_z = _log_sum(gamma[k])
            for j in range(n_labels):
                gamma[k, j] = np.exp(gamma[k, j] - log_z)
        loss += weights[row] * (before - log_z)

    log_z = _log_sum(unary[steps[0]] + beta[0])
    for j in range(n_labels):
        mass[j] = weights[steps[0]] * np.exp(unary[steps[0], j] + beta[0, j] - log_z)
    for k in range(n_steps - 1):
        row, later = steps[k], steps[k + 1]
        at = max(row, later) if per_step else 0
        if per_step:
            _orient(edges, at, is_reversed, edge, exp_edge)
        change = weights[later] - weights[row]
        for j in range(n_labels):
            node[row, j] += mass[j]
            mass[j] += change * gamma[k, j]
            further[j] = 0.0
        for i in range(n_labels):
            if mass[i] == 0.0:
                continue
            if exact:
                for j in range(n_labels):
                    part = mass[i] * np.exp(edge[i, j] + after[k + 1, j] - beta[k, i])
                    further[j] += part
                    sums[i, j] += part
            else:
                factor = mass[i] / totals[k, i]
                for j in range(n_labels):
                    part = factor * exp_edge[i, j] * after[k + 1, j]
                    further[j] += part
                    sums[i, j] += part
        if per_step:
            _flush(sums, is_reversed, pair[at])
        mass[:] = further
    for j in range(n_labels):
        node[steps[n_steps - 1], j] += mass[j]

    for j in range(n_labels):
        mass[j] = -weights[steps[n_steps - 1]] * gamma[n_steps - 1, j]
    for k in range(n_steps - 1, -1, -1):
        row = steps[k]
        for j in range(n_labels):
            node[row, j] += mass[j]
        if k == 0:
            break
        earlier = steps[k - 1]
        at = max(row, earlier) if per_step else 0
        if per_step:
            _orient(edges, at, is_reversed, edge, exp_edge)
        change = weights[row] - weights[earlier]
        for i in range(n_labels):
            further[i] = change * gamma[k - 1, i]
        for j in range(n_labels):
            if mass[j] == 0.0:
                continue
            for i in range(n_labels):
                if prefix[k - 1, i] > -np.inf:
                    score = prefix[k - 1, i] + edge[i, j] + unary[row, j] - prefix[k, j]
                    part = mass[j] * np.exp(score)
                    further[i] += part
                    sums[i, j] += part
        if per_step:
            _flush(sums, is_reversed, pair[at])
        mass[:] = further
    _flush(sums, is_reversed, pair[0])
    return loss


@njit(nogil=True, cache=True)
def conditional_losses(
    unary: Floats, edges: Floats, offsets: Ints, allowed: Bools, weights: Floats, losses: Floats,
    node: Floats, pair: Floats,
) -> None:  # fmt: skip
    """Set ``losses`` of all chains, in both directions, and add their gradients to ``node`` and ``pair``.

    Parameters
    ----------
    unary : (n_steps, n_labels), boundary scores included
    edges : (1, n_labels, n_labels), or (n_steps, n_labels, n_labels) from step t - 1 to t
    offsets : (n_sequences + 1,)
    allowed : boolean (n_steps, n_labels)
    weights : (n_steps,)
    losses : (n_sequences,)
    node : (n_steps, n_labels)
    pair : like ``edges``
    """
    n_labels, longest = unary.shape[1], 0
    for c in range(offsets.size - 1):
        longest = max(longest, offsets[c + 1] - offsets[c])
    beta, prefix = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    gamma, after = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    totals = np.empty((longest, n_labels))
    edge, exp_edge = np.empty((n_labels, n_labels)), np.empty((n_labels, n_labels))
    for c in range(offsets.size - 1):
        losses[c] = 0.0
        if offsets[c + 1] == offsets[c]:
            continue
        steps = np.arange(offsets[c], offsets[c + 1])
        for is_reversed in (False, True):
            if is_reversed:
                steps = steps[::-1].copy()
            loss = _run_chain(
                unary, edges, steps, is_reversed, allowed, weights, False,
                beta, after, totals, prefix, gamma, edge, exp_edge, node, pair,
            )  # fmt: skip
            if np.isnan(loss):
                loss = _run_chain(
                    unary, edges, steps, is_reversed, allowed, weights, True,
                    beta, after, totals, prefix, gamma, edge, exp_edge, node, pair,
                )  # fmt: skip
            losses[c] += loss
