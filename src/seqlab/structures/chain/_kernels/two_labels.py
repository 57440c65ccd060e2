"""Log-partition and expected features of chains with two labels, up to 64 at a time.

For each group of chains of similar length: emission, and forward-backward on differences of scores (see
`seqlab.inference.kernels.two_labels`). The probabilities of label 1 are one vector over all steps; its
products with the columns of X are the expected features of label 1. Those of label 0 are the sums over all
steps minus these. Reading columns takes a fifth of the time of adding to the weights row by row, because no
addition waits for the one before it.

Measured on 1,000 words of NETtalk (7,318 steps with 7 entries), one thread: 0.20 ms per pass, of which
emission takes 0.07 and the columns 0.02; 0.43 ms with two labels padded to four, as other numbers are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.two_labels import (
    MAX_DIFFERENCE,
    MAX_LANES,
    exp_differences,
    two_label_marginals,
)
from seqlab.utils.linalg import axpy, dot

# Steps of the longest chain of a group: limits the workspace of a thread to 25 MB.
MAX_STEPS = 1 << 14


@njit(nogil=True, cache=True)
def sum_columns(columns, values, first, last, out):
    """Set ``out[f]`` to the sum of column ``f`` times the values of its steps, for ``first <= f < last``.

    ``columns`` is a `ColumnArrays`. Eight partial sums hide the latency of additions.
    """
    starts, steps, data = columns
    for f in range(first, last):
        begin, stop = np.int64(starts[f]), np.int64(starts[f + 1])
        whole = begin + (stop - begin) // 8 * 8
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        if data.size == 0:
            for k in range(begin, whole, 8):
                s0 += values[steps[k]]
                s1 += values[steps[k + 1]]
                s2 += values[steps[k + 2]]
                s3 += values[steps[k + 3]]
                s4 += values[steps[k + 4]]
                s5 += values[steps[k + 5]]
                s6 += values[steps[k + 6]]
                s7 += values[steps[k + 7]]
        else:
            for k in range(begin, whole, 8):
                s0 += data[k] * values[steps[k]]
                s1 += data[k + 1] * values[steps[k + 1]]
                s2 += data[k + 2] * values[steps[k + 2]]
                s3 += data[k + 3] * values[steps[k + 3]]
                s4 += data[k + 4] * values[steps[k + 4]]
                s5 += data[k + 5] * values[steps[k + 5]]
                s6 += data[k + 6] * values[steps[k + 6]]
                s7 += data[k + 7] * values[steps[k + 7]]
        total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
        for k in range(whole, stop):
            total += values[steps[k]] if data.size == 0 else data[k] * values[steps[k]]
        out[f] = total


@njit(nogil=True, cache=True)
def sum_matrix(matrix, values, out):
    """Set ``out`` to the sum of the rows of a dense matrix, each times a value."""
    for f in range(out.size):
        out[f] = 0.0
    for t in range(matrix.shape[0]):
        axpy(values[t], matrix[t], out)


@njit(nogil=True, cache=True)
def emit_two(entries, table, by_label, begin, n_steps, lane, first, difference):
    """Write ``unary[1] - unary[0]`` of the steps of a chain to a lane; return the sum of ``unary[0]``.

    ``table`` (n_features, 2) are the weights, ``by_label`` (2, n_features) the same for a dense matrix.
    """
    indptr, indices, data, matrix = entries
    total = 0.0
    for t in range(n_steps):
        zero = one = 0.0
        if matrix.shape[1] > 0:
            zero, one = dot(matrix[begin + t], by_label[0]), dot(matrix[begin + t], by_label[1])
        elif data.size == 0:
            for k in range(indptr[begin + t], indptr[begin + t + 1]):
                zero += table[indices[k], 0]
                one += table[indices[k], 1]
        else:
            for k in range(indptr[begin + t], indptr[begin + t + 1]):
                zero += data[k] * table[indices[k], 0]
                one += data[k] * table[indices[k], 1]
        total += zero
        difference[t, lane] = one - zero
    for t in range(n_steps, first):
        difference[t, lane] = 0.0
    return total


@njit(nogil=True, cache=True)
def two_label_slot(
    order, offsets, entries, table, by_label, edges, sequence_weights,
    log_z, ones, edge_sums, skipped,
):  # fmt: skip
    """Compute the probabilities of label 1 in the chains of ``order``, and their ``log_z``.

    Parameters
    ----------
    order : int64 array
        Chains, sorted by length.
    offsets : int64 array of shape (n_sequences + 1,)
    entries : EntryArrays
    table, by_label : see `emit_two`
    edges : array of shape (4, 2)
        Transition scores (two rows), start and end scores.
    sequence_weights : array of shape (n_sequences,) or (0,)
    log_z : array of shape (n_sequences,)
    ones : array of shape (n_steps,)
        Receives the probability of label 1 at each step, times the weight of the sequence.
    edge_sums : array of shape (4, 2)
        Receives the expected transitions, first and last labels.
    skipped : boolean array of shape (n_sequences,)
        Set for chains that are too long or have too extreme scores.

    Returns the number of skipped chains.
    """
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    n_rows = min(longest, MAX_STEPS)
    difference, factor = np.empty((n_rows, MAX_LANES)), np.empty((n_rows, MAX_LANES))
    ratio, node = np.empty((n_rows, MAX_LANES)), np.empty((n_rows, MAX_LANES))
    work, twice, group_log_z = np.empty((3, MAX_LANES)), np.empty(MAX_LANES), np.empty(MAX_LANES)
    lengths = np.zeros(MAX_LANES, dtype=np.int64)
    high, low = np.max(edges[:2]), np.min(edges[:2])
    pairs = np.exp(edges[:2] - high)
    n_skipped = 0
    for g in range(0, order.size, MAX_LANES):
        group = order[g : g + MAX_LANES]
        n_lanes, n_steps = group.size, 0
        for c in range(n_lanes):
            lengths[c] = offsets[group[c] + 1] - offsets[group[c]]
            n_steps = max(n_steps, lengths[c])
        done = n_steps <= n_rows
        if done:
            for c in range(n_lanes):
                i, begin, last = group[c], offsets[group[c]], lengths[c] - 1
                total = emit_two(
                    entries, table, by_label, begin, lengths[c], c, n_steps, difference
                )  # fmt: skip
                total += edges[2, 0] + edges[3, 0] + high * last
                difference[0, c] += edges[2, 1] - edges[2, 0]
                difference[last, c] += edges[3, 1] - edges[3, 0]
                log_z[i] = total
            largest = exp_differences(difference, n_steps, n_lanes, twice, factor)
            done = largest + 2.0 * (high - low) <= MAX_DIFFERENCE
        if not done:
            for i in group:
                skipped[i] = True
                ones[offsets[i] : offsets[i + 1]] = 0.0
            n_skipped += n_lanes
            continue
        two_label_marginals(
            factor, lengths, n_steps, n_lanes, pairs, ratio, node, work, twice, group_log_z
        )  # fmt: skip
        for c in range(n_lanes):
            i, last = group[c], lengths[c] - 1
            weight = 1.0 if sequence_weights.size == 0 else sequence_weights[i]
            log_z[i] += group_log_z[c]
            total, begin = 0.0, offsets[i]
            for t in range(lengths[c]):
                total += node[t, c]
                ones[begin + t] = weight * node[t, c]
            first_one, last_one = node[0, c], node[last, c]
            from_one, to_one = total - last_one - twice[c], total - first_one - twice[c]
            edge_sums[0, 0] += weight * (last - twice[c] - from_one - to_one)
            edge_sums[0, 1] += weight * to_one
            edge_sums[1, 0] += weight * from_one
            edge_sums[1, 1] += weight * twice[c]
            edge_sums[2, 0] += weight * (1.0 - first_one)
            edge_sums[2, 1] += weight * first_one
            edge_sums[3, 0] += weight * (1.0 - last_one)
            edge_sums[3, 1] += weight * last_one
    return n_skipped
