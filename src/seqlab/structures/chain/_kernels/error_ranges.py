"""Several violating labelings of a chain from one search, for slack rescaling.

Error-count Viterbi finds the best labeling for every number of wrong labels. With slack rescaling, labelings
with few and with many wrong labels bound the objective in very different regions: one labeling from each
range of 1, 2-3, 4-7, ... wrong labels describes it far better than the most violating one alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.inference.kernels.dense import longest
from seqlab.inference.kernels.error_count import (
    error_count_workspace,
    fill_error_counts,
    trace_errors,
)
from seqlab.structures.chain._kernels.dual_scores import labeling_score
from seqlab.structures.chain._kernels.dual_space import load_chain, new_local


@njit(nogil=True, cache=True)
def find_range_violators(problem, space, found, slack, losses):
    """Write the labeling of highest ``h`` with 2^r to 2^(r+1) - 1 errors of every chain into ``found[r]``.

    ``slack`` and ``losses`` have shape (n_ranges, n_chains). If no labeling has so many errors, the gold
    labeling is written, whose ``h`` and loss are 0.
    """
    offsets, codes, costs, _, _ = problem
    _, _, _, arcs, n_edge_columns = space
    n_labels = costs.shape[1]
    n_rows = longest(offsets, 0, offsets.size - 1)
    local = new_local(n_rows, n_labels, n_edge_columns)
    unary, pairwise3, _, _ = local
    tables, back = error_count_workspace(n_labels, n_rows)
    best = np.empty(n_rows + 1)
    start = arcs[n_labels * n_labels : n_labels * (n_labels + 1)]
    end = arcs[n_labels * (n_labels + 1) :]
    stride = 1 if n_edge_columns > 0 else 0
    for i in range(offsets.size - 1):
        t0, n_steps = offsets[i], offsets[i + 1] - offsets[i]
        gold = codes[t0 : t0 + n_steps]
        load_chain(space, t0, n_steps, local)
        gold_score = labeling_score(gold, unary, pairwise3, stride, start, end, n_steps)
        now = fill_error_counts(
            unary, pairwise3, stride, start, end, gold, 0, n_steps, tables, back, best
        )
        first = 1
        for r in range(found.shape[0]):
            n_wrong, highest = 0, -np.inf
            for k in range(first, min(2 * first, n_steps + 1)):
                value = k * (1.0 - gold_score + best[k])
                if value > highest:
                    n_wrong, highest = k, value
            first *= 2
            labels = found[r, t0 : t0 + n_steps]
            if n_wrong == 0:
                labels[:] = gold
                slack[r, i], losses[r, i] = 0.0, 0.0
            else:
                trace_errors(n_wrong, now, end, gold, n_steps, tables, back, labels)
                slack[r, i], losses[r, i] = highest, float(n_wrong)
