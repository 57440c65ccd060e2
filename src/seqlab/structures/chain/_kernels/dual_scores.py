"""Scores and changes of one chain in dual training: from weights, or from a kernel matrix.

Dual learners change the model in the direction ``a psi(y1) - b psi(y2)``, where ``psi(y)`` is the difference
between the features of the gold labeling and those of ``y``. Such a change is a short list of
(step, label, value) for the nodes and of (step, arc, value) for the arcs. Arcs are numbered in one vector:
label pairs ``i * n_labels + j``, then start labels, then end labels.

A table of scores has one of two forms.

- Linear: ``weights`` (n_features, n_columns); the scores of a step are a product of its CSR row with them.
- Kernel: ``scores`` (n_columns, n_places) of all distinct training inputs, which are kept up to date, and
  ``coefs`` (n_places, n_columns). A change at one step adds a multiple of one row of the kernel matrix.

Columns are labels (nodes) or label pairs (arcs with features).
"""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def add_entry(n, step, columns, values, t, column, value):
    """Append (t, column, value) to a list of ``n`` entries, unless the value is 0; return its length."""
    if value == 0.0:
        return n
    step[n], columns[n], values[n] = t, column, value
    return n + 1


@njit(nogil=True, cache=True)
def add_combination(n, entries, t, gold, first, a, second, b):
    """Append ``a (e_gold - e_first) - b (e_gold - e_second)`` to a list of entries; return its length."""
    step, columns, values = entries
    on_gold, on_first, on_second = a - b, -a, b
    if first == gold:
        on_gold, on_first = on_gold + on_first, 0.0
    if second == gold:
        on_gold, on_second = on_gold + on_second, 0.0
    elif second == first:
        on_first, on_second = on_first + on_second, 0.0
    n = add_entry(n, step, columns, values, t, gold, on_gold)
    n = add_entry(n, step, columns, values, t, first, on_first)
    return add_entry(n, step, columns, values, t, second, on_second)


@njit(nogil=True, cache=True)
def arc_of(labels, t, n_labels):
    """Return the number of the arc that enters step ``t``: a label pair, or a start label."""
    if t == 0:
        return n_labels * n_labels + labels[0]
    return labels[t - 1] * n_labels + labels[t]


@njit(nogil=True, cache=True)
def list_changes(gold, first, a, second, b, n_steps, n_labels, boundary, nodes, arcs):
    """List the entries of ``a psi(first) - b psi(second)``; return the numbers of nodes and of arcs."""
    n_nodes = 0
    n_arcs = 0
    for t in range(n_steps):
        n_nodes = add_combination(n_nodes, nodes, t, gold[t], first[t], a, second[t], b)
        if t > 0 or boundary:
            n_arcs = add_combination(
                n_arcs, arcs, t, arc_of(gold, t, n_labels), arc_of(first, t, n_labels), a,
                arc_of(second, t, n_labels), b,
            )  # fmt: skip
    if boundary:
        shift, last = n_labels * (n_labels + 1), n_steps - 1
        n_arcs = add_combination(
            n_arcs, arcs, n_steps, shift + gold[last], shift + first[last], a,
            shift + second[last], b,
        )  # fmt: skip
    return n_nodes, n_arcs


@njit(nogil=True, cache=True)
def indicator_norm(n, arcs, scratch):
    """Return the squared norm of the arc indicators of a change; ``scratch`` is zero before and after."""
    _, columns, values = arcs
    total = 0.0
    for k in range(n):
        scratch[columns[k]] += values[k]
    for k in range(n):
        total += scratch[columns[k]] * scratch[columns[k]]
        scratch[columns[k]] = 0.0
    return total


@njit(nogil=True, cache=True)
def linear_norm(n, entries, n_columns, t0, matrix, scratch):
    """Return the squared norm of a change of the weights; columns from ``n_columns`` on are skipped."""
    step, columns, values = entries
    indptr, indices, data = matrix
    total = 0.0
    for k in range(n):
        if columns[k] < n_columns:
            for p in range(indptr[t0 + step[k]], indptr[t0 + step[k] + 1]):
                scratch[indices[p], columns[k]] += values[k] * data[p]
    for k in range(n):
        if columns[k] < n_columns:
            for p in range(indptr[t0 + step[k]], indptr[t0 + step[k] + 1]):
                value = scratch[indices[p], columns[k]]
                total += value * value
                scratch[indices[p], columns[k]] = 0.0
    return total


@njit(nogil=True, cache=True)
def kernel_norm(n, entries, n_columns, place, t0, gram, row_of):
    """Return the squared norm of a change in the feature space of the kernel."""
    step, columns, values = entries
    total = 0.0
    for k in range(n):
        if columns[k] < n_columns:
            row = row_of[place[t0 + step[k]]]
            total += values[k] * values[k] * gram[row, place[t0 + step[k]]]
            for m in range(k):
                if columns[m] == columns[k]:
                    total += 2.0 * values[k] * values[m] * gram[row, place[t0 + step[m]]]
    return total


@njit(nogil=True, cache=True)
def load_linear(matrix, weights, t0, n_steps, out):
    """``out[t] = x_t W`` for the steps of a chain."""
    indptr, indices, data = matrix
    n_columns = weights.shape[1]
    for t in range(n_steps):
        row = out[t]
        for s in range(n_columns):
            row[s] = 0.0
        for p in range(indptr[t0 + t], indptr[t0 + t + 1]):
            value, source = data[p], weights[indices[p]]
            for s in range(n_columns):
                row[s] += value * source[s]


@njit(nogil=True, cache=True)
def load_kernel(scores, place, t0, n_steps, out):
    """``out[t, s]`` = the current score of column ``s`` at step ``t`` of a chain."""
    for t in range(n_steps):
        u = place[t0 + t]
        for s in range(scores.shape[0]):
            out[t, s] = scores[s, u]


@njit(nogil=True, cache=True)
def apply_linear(n, entries, n_columns, factor, t0, matrix, weights):
    """Add ``factor`` times a change to the weights."""
    step, columns, values = entries
    indptr, indices, data = matrix
    for k in range(n):
        if columns[k] < n_columns:
            change = factor * values[k]
            for p in range(indptr[t0 + step[k]], indptr[t0 + step[k] + 1]):
                weights[indices[p], columns[k]] += change * data[p]


@njit(nogil=True, cache=True)
def apply_local(n, entries, n_columns, factor, place, t0, n_steps, gram, row_of, local, pending):
    """Add ``factor`` times a change to the scores of its own chain, and to ``pending`` for the others."""
    step, columns, values = entries
    for k in range(n):
        if columns[k] < n_columns:
            change, s = factor * values[k], columns[k]
            row = row_of[place[t0 + step[k]]]
            for t in range(n_steps):
                local[t, s] += change * gram[row, place[t0 + t]]
            pending[step[k], s] += change


@njit(nogil=True, cache=True)
def flush_pending(pending, place, t0, n_steps, gram, row_of, scores, coefs):
    """Add the collected changes of one chain to the scores of all inputs; ``pending`` becomes zero."""
    for t in range(n_steps):
        u = place[t0 + t]
        row = gram[row_of[u]]
        for s in range(pending.shape[1]):
            change = pending[t, s]
            if change != 0.0:
                coefs[u, s] += change
                target = scores[s]
                for k in range(target.size):
                    target[k] += change * row[k]
                pending[t, s] = 0.0


@njit(nogil=True, cache=True)
def apply_arcs(n, entries, factor, weights):
    """Add ``factor`` times the arc indicators of a change to the arc weights."""
    _, columns, values = entries
    for k in range(n):
        weights[columns[k]] += factor * values[k]


@njit(nogil=True, cache=True)
def labeling_score(labels, unary, pairwise3, stride, start, end, n_steps):
    """Return the score of a labeling."""
    total = start[labels[0]] + unary[0, labels[0]] + end[labels[n_steps - 1]]
    for t in range(1, n_steps):
        total += unary[t, labels[t]] + pairwise3[t * stride, labels[t - 1], labels[t]]
    return total
