"""Kernels for labels that are not known: forward-backward of the hidden runs of a chain.

The labels of a run depend on the others only through the known label on each side. Its log-partition and
marginals are those of a short chain, whose first and last rows also hold the transition scores from and to
these labels. A run of one step costs a softmax over its possible labels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import finite_bounds
from seqlab.inference.kernels.forward_backward import (
    MAX_RANGE,
    backward_one,
    forward_one,
    load_rows,
)

IMPOSSIBLE = 1 << 60  # number of unseen transitions of a labeling that is not possible


@njit(nogil=True, cache=True)
def longest_run(runs, order):
    """Return the number of steps of the longest run of the chains in ``order``."""
    n_steps = 0
    for i in order:
        for r in range(runs.ptr[i], runs.ptr[i + 1]):
            n_steps = max(n_steps, runs.last[r] - runs.first[r])
    return n_steps


@njit(nogil=True, cache=True)
def run_space(n_steps, n_labels, exp_pairwise, exp_transposed):
    """Return the workspace of `subtract_runs` for runs of up to ``n_steps`` steps.

    Scores of a run, its marginals, no boundary scores, its bounds, and the `Space` of forward-backward with
    the given exponentials.
    """
    width = exp_pairwise.shape[0]
    scores, marginals = np.empty((n_steps, n_labels)), np.empty((n_steps, n_labels))
    weights, alpha = np.zeros((n_steps, width)), np.zeros((n_steps, width))
    space = weights, alpha, exp_pairwise, exp_transposed, np.zeros(width), np.zeros(width)
    return scores, marginals, np.zeros(n_labels), np.zeros(2, dtype=np.int64), space


@njit(nogil=True, cache=True)
def has_exact_runs(runs, group, offsets, bounds, unary, n_labels, pair_spread):
    """Return whether scaled numbers can hold the runs of a group of chains.

    See `forward_backward`: two transition scores are added to the scores of a step, and no transition is
    forbidden.
    """
    for c in range(group.size):
        i = group[c]
        shift = bounds[c] - offsets[i]
        for r in range(runs.ptr[i], runs.ptr[i + 1]):
            for t in range(runs.first[r], runs.last[r]):
                high, low = finite_bounds(unary[t + shift, :n_labels])
                if not high - low + 3.0 * pair_spread <= MAX_RANGE:
                    return False
    return True


@njit(nogil=True, cache=True)
def subtract_runs(
    runs, i, begin, place, unary, pairwise3, pair_shift, workspace, weight, node, transitions
):  # fmt: skip
    """Subtract the expectations of the hidden labels of chain ``i`` given its known labels.

    The chain begins at step ``begin`` of the data and at row ``place`` of ``unary`` and ``node``. The
    marginals of the runs are subtracted from ``node``, and ``weight`` times the expected transitions from,
    within and to the runs from ``transitions``. Returns the sum of the log-partitions of the runs.
    """
    scores, marginals, none, run_bounds, space = workspace
    right, alpha, exp_pairwise, _, _, _ = space
    n_labels, pairwise, total = scores.shape[1], pairwise3[0], 0.0
    for r in range(runs.ptr[i], runs.ptr[i + 1]):
        first, n_steps = runs.first[r], runs.last[r] - runs.first[r]
        before, after = runs.before[r], runs.after[r]
        row = place + first - begin
        for t in range(n_steps):
            for j in range(n_labels):
                possible = runs.allowed[first + t, j]
                scores[t, j] = unary[row + t, j] if possible else -np.inf
        for j in range(n_labels):
            if before >= 0:
                scores[0, j] += pairwise[before, j]
            if after >= 0:
                scores[n_steps - 1, j] += pairwise[j, after]
        run_bounds[1] = n_steps
        chain = scores, pairwise3, 0, none, none, run_bounds
        shift, spread = load_rows(chain, 0, space)
        total += shift + pair_shift * (n_steps - 1) + forward_one(chain, 0, space, spread)
        backward_one(chain, 0, space, marginals)
        for t in range(n_steps):
            for j in range(n_labels):
                node[row + t, j] -= marginals[t, j]
        for t in range(1, n_steps):
            for a in range(n_labels):
                left = weight * alpha[t - 1, a]
                if left > 0.0:
                    for b in range(n_labels):
                        transitions[a, b] -= left * exp_pairwise[a, b] * right[t, b]
        for j in range(n_labels):
            if before >= 0:
                transitions[before, j] -= weight * marginals[0, j]
            if after >= 0:
                transitions[j, after] -= weight * marginals[n_steps - 1, j]
    return total


@njit(nogil=True, cache=True)
def is_possible(runs, r, t, label):
    """Return whether step ``t``, in or next to run ``r``, may have a label."""
    if t < runs.first[r]:
        return label == runs.before[r]
    if t == runs.last[r]:
        return label == runs.after[r]
    return runs.allowed[t, label]


@njit(nogil=True, cache=True)
def fewest_unseen(runs, r, begin, stop, seen, from_left, from_right):
    """Return the smallest number of unseen transitions of a labeling of the steps ``begin:stop``.

    ``from_left[t - begin, a]`` receives the smallest number before step ``t`` if it has label ``a``, and
    ``from_right[t - begin, a]`` the smallest number after it; `IMPOSSIBLE` if it cannot have the label.
    """
    n_labels = seen.shape[0]
    for t in range(begin, stop):
        for b in range(n_labels):
            least = IMPOSSIBLE
            if is_possible(runs, r, t, b):
                least = 0 if t == begin else IMPOSSIBLE
                for a in range(n_labels if t > begin else 0):
                    least = min(least, from_left[t - 1 - begin, a] + (0 if seen[a, b] else 1))
            from_left[t - begin, b] = least
    fewest = IMPOSSIBLE
    for b in range(n_labels):
        fewest = min(fewest, from_left[stop - 1 - begin, b])
    for t in range(stop - 1, begin - 1, -1):
        for a in range(n_labels if fewest > 0 else 0):
            least = IMPOSSIBLE
            if is_possible(runs, r, t, a):
                least = 0 if t == stop - 1 else IMPOSSIBLE
                for b in range(n_labels if t < stop - 1 else 0):
                    least = min(least, from_right[t + 1 - begin, b] + (0 if seen[a, b] else 1))
            from_right[t - begin, a] = least
    return fewest


@njit(nogil=True, cache=True)
def count_unseen(runs, seen, out):
    """Count the transitions that the runs need although they were not seen between known labels.

    For each run, the labelings with the fewest unseen transitions are considered, together with the known
    labels next to it. Each unseen transition that one of them has at some step is added to ``out``
    (n_labels, n_labels), once for each step.
    """
    n_labels, n_steps = seen.shape[0], 0
    for r in range(runs.first.size):
        n_steps = max(n_steps, runs.last[r] - runs.first[r] + 2)
    from_left = np.empty((n_steps, n_labels), dtype=np.int64)
    from_right = np.empty((n_steps, n_labels), dtype=np.int64)
    for r in range(runs.first.size):
        begin = runs.first[r] - (1 if runs.before[r] >= 0 else 0)
        stop = runs.last[r] + (1 if runs.after[r] >= 0 else 0)
        fewest = fewest_unseen(runs, r, begin, stop, seen, from_left, from_right)
        if fewest == 0:
            continue
        for t in range(begin + 1, stop):
            for a in range(n_labels):
                for b in range(n_labels):
                    n_other = from_left[t - 1 - begin, a] + from_right[t - begin, b]
                    if not seen[a, b] and n_other + 1 == fewest:
                        out[a, b] += 1
