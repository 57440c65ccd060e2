"""One pass of the structured perceptron over chains, in one call.

For each sequence in the given order: decode (exactly, or with a beam) under the current weights; if the
labeling is wrong, ``w += a (phi(x, y) - phi(x, y*))``. With early update (Collins & Roark 2004) the beam
search stops when the gold label falls out of the beam, and only the prefixes up to that step are compared.
The gold label can also be kept in the beam at every step.

Ties go to the lowest label, or are broken at random: noise that is smaller than any difference of scores
that matters is added to the scores of each step. With one binary feature per step and two labels, a fixed
rule is harmful: the difference of the two weights is then never negative, so that their average prefers one
label whatever the data are.

Averages are computed lazily: ``u += c a (phi(x, y) - phi(x, y*))`` with ``c`` the number of sequences visited
before; the mean of the weights after each of ``n`` visits is then ``w - u / n``.

The time is limited by the latency of reading weight rows (as in emission), then by Viterbi.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from seqlab.inference.kernels.beam import beam_one, beam_workspace
from seqlab.inference.kernels.dense import longest
from seqlab.inference.kernels.viterbi import transpose_pairwise, viterbi_one, viterbi_workspace
from seqlab.simd.dense_products import add_product
from seqlab.structures.chain._kernels.mixed_rows import emit_mixed

# Size of the noise that breaks ties, relative to the largest score of the sequence: far above the rounding
# errors of scores, far below the differences between scores that are not tied.
TIE_NOISE = 1e-9


@njit(nogil=True, cache=True)
def next_uniform(state):
    """Advance the generator splitmix64, whose state is ``state[0]``; return a number in [0, 1)."""
    state[0] += uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint64(31))
    return float(z >> uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def add_tie_noise(unary, pairwise, start, end, n_steps, n_labels, state):
    """Add noise to the scores of the first ``n_steps`` steps that decides between equal labelings."""
    largest = 0.0
    for t in range(n_steps):
        for j in range(n_labels):
            largest = max(largest, abs(unary[t, j]))
    for i in range(n_labels):
        largest = max(largest, abs(start[i]), abs(end[i]))
        for j in range(n_labels):
            largest = max(largest, abs(pairwise[i, j]))
    scale = TIE_NOISE * (largest if largest > 0.0 else 1.0)
    for t in range(n_steps):
        for j in range(n_labels):
            unary[t, j] += scale * next_uniform(state)


@njit(nogil=True, cache=True)
def perceptron_pass(
    order, offsets, codes, sequence_weights, steps, columns, now, sums, row_mask, n_labels, has_transition,
    boundary, step, beam_width, early, keep_gold, tie_state, predicted, updated,
):  # fmt: skip
    """Run one pass over the data, updating weights and sums in place.

    ``steps`` is the `RowArrays` of the data, ``columns`` their `MatrixColumns` or None, ``now`` and
    ``sums`` are `WeightTables`. ``row_mask`` is 1 at the entries of dense rows that are weights.
    ``beam_width`` 0 means exact. ``tie_state`` is the state of the generator that breaks ties, or empty
    (ties go to the lowest label). ``predicted`` (n_steps,) receives the decoded labels, ``updated``
    (n_sequences,) which sequences changed the weights. Returns the number of wrong labels and the number of
    visits so far.
    """
    dense_ptr, dense_row, dense_value, pair_ptr, pair_weight, pair_column, pair_value = steps
    rows, state, pairwise3, start, end = now
    row_sum, state_sum, pairwise_sum, start_sum, end_sum = sums
    width = pairwise3.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    unit = dense_value.size == 0 and pair_value.size == 0
    unary = np.empty((n_rows, width))
    labels = np.empty(n_rows, dtype=np.int64)
    gold, index = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    no_gold = np.empty(0, dtype=np.int64)
    transposed, table = viterbi_workspace(width, n_rows)
    transpose_pairwise(pairwise3[0], transposed)
    kept, n_kept, beam_table, values, candidates = beam_workspace(width, n_rows, max(beam_width, 1))
    n_wrong = 0
    for i in order:
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        emit_mixed(steps, rows, state, 1.0, n_labels, t0, t0 + n_steps, unary)
        for t in range(n_steps):
            gold[t], index[t] = codes[t0 + t], t0 + t
        if columns is not None:
            add_product(columns.matrix, index, n_steps, rows, unary)
        if tie_state.size > 0:
            add_tie_noise(unary, pairwise3[0], start, end, n_steps, n_labels, tie_state)
        n_done = n_steps
        if beam_width > 0:
            tracked_gold = gold[:n_steps] if early or keep_gold else no_gold
            _, n_done = beam_one(
                unary, pairwise3, 0, start, end, 0, n_steps, tracked_gold, keep_gold,
                kept, n_kept, beam_table, values, candidates, labels,
            )  # fmt: skip
        else:
            viterbi_one(unary, pairwise3, 0, start, end, 0, n_steps, transposed, table, labels)
        wrong = n_steps - n_done
        for t in range(n_done):
            predicted[t0 + t] = labels[t]
            wrong += 1 if labels[t] != gold[t] else 0
        for t in range(n_done, n_steps):
            predicted[t0 + t] = -1
        n_wrong += wrong
        updated[i] = wrong > 0
        if wrong > 0:
            a = sequence_weights[i]
            sum_change = step * a
            for t in range(n_done):
                y, z = gold[t], labels[t]
                if y != z:
                    for k in range(dense_ptr[t0 + t], dense_ptr[t0 + t + 1]):
                        r = dense_row[k]
                        value = 1.0 if unit else dense_value[k]
                        rows[r, y] += a * value * row_mask[r, y]
                        row_sum[r, y] += sum_change * value * row_mask[r, y]
                        rows[r, z] -= a * value * row_mask[r, z]
                        row_sum[r, z] -= sum_change * value * row_mask[r, z]
                    if columns is not None:
                        for r in range(columns.matrix.shape[1]):
                            value = a * columns.matrix[t0 + t, r]
                            rows[r, y] += value * row_mask[r, y]
                            row_sum[r, y] += step * value * row_mask[r, y]
                            rows[r, z] -= value * row_mask[r, z]
                            row_sum[r, z] -= step * value * row_mask[r, z]
                    for k in range(pair_ptr[t0 + t], pair_ptr[t0 + t + 1]):
                        column, p = pair_column[k], pair_weight[k]
                        value = 1.0 if unit else pair_value[k]
                        if column == y:
                            state[p] += a * value
                            state_sum[p] += sum_change * value
                        elif column == z:
                            state[p] -= a * value
                            state_sum[p] -= sum_change * value
                if t > 0 and (y != z or gold[t - 1] != labels[t - 1]):
                    before, decoded = gold[t - 1], labels[t - 1]
                    if has_transition[before, y]:
                        pairwise3[0, before, y] += a
                        pairwise_sum[0, before, y] += sum_change
                        transposed[y, before] = pairwise3[0, before, y]
                    if has_transition[decoded, z]:
                        pairwise3[0, decoded, z] -= a
                        pairwise_sum[0, decoded, z] -= sum_change
                        transposed[z, decoded] = pairwise3[0, decoded, z]
            if boundary:
                start[gold[0]] += a
                start[labels[0]] -= a
                start_sum[gold[0]] += sum_change
                start_sum[labels[0]] -= sum_change
                if n_done == n_steps:
                    end[gold[n_steps - 1]] += a
                    end[labels[n_steps - 1]] -= a
                    end_sum[gold[n_steps - 1]] += sum_change
                    end_sum[labels[n_steps - 1]] -= sum_change
        step += 1
    return n_wrong, step
