"""The model that dual training changes, in one interface for weights and for kernel coefficients.

``space`` is a tuple of arrays:

- ``is_linear``: whether the model has weights; else it has kernel coefficients;
- ``linear``: (matrix, weights, edge_weights, scratch, edge_scratch), ``matrix`` = (indptr, indices, data);
- ``kernel``: (gram, row_of, place, scores, coefs, edge_scores, edge_coefs): ``place[t]`` is the number of the
  distinct input of step ``t`` and ``row_of`` its row of ``gram`` (-1 if that row is not loaded);
- ``arcs``: weights of label pairs, start labels and end labels, in one vector;
- ``n_edge_columns``: n_labels ** 2 if arcs have features, else 0.

``local`` is the workspace of one chain: (unary, pairwise3, pending, edge_pending).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from seqlab.structures.chain._kernels.dual_scores import (
    apply_arcs,
    apply_linear,
    apply_local,
    flush_pending,
    indicator_norm,
    kernel_norm,
    linear_norm,
    load_kernel,
    load_linear,
)


@njit(nogil=True, cache=True)
def new_local(n_rows, n_labels, n_edge_columns):
    """Return the workspace of chains with up to ``n_rows`` steps."""
    n_tables = n_rows if n_edge_columns > 0 else 1
    return (
        np.empty((n_rows, n_labels)),
        np.empty((n_tables, n_labels, n_labels)),
        np.zeros((n_rows, n_labels)),
        np.zeros((n_rows, n_edge_columns)),
    )


@njit(nogil=True, cache=True)
def new_entries(n_rows):
    """Return an empty list of changes: (step, column, value)."""
    size = 3 * (n_rows + 1)
    return np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)


@njit(nogil=True, cache=True)
def load_chain(space, t0, n_steps, local):
    """Compute the scores of one chain."""
    is_linear, linear, kernel, arcs, n_edge_columns = space
    unary, pairwise3, _, _ = local
    n_labels = unary.shape[1]
    if is_linear:
        load_linear(linear[0], linear[1], t0, n_steps, unary)
        if n_edge_columns > 0:
            flat = pairwise3.reshape(pairwise3.shape[0], n_edge_columns)
            load_linear(linear[0], linear[2], t0, n_steps, flat)
    else:
        load_kernel(kernel[3], kernel[2], t0, n_steps, unary)
        if n_edge_columns > 0:
            flat = pairwise3.reshape(pairwise3.shape[0], n_edge_columns)
            load_kernel(kernel[5], kernel[2], t0, n_steps, flat)
    # Plain loops: array expressions take seconds to compile.
    for t in range(n_steps if n_edge_columns > 0 else 1):
        for i in range(n_labels):
            for j in range(n_labels):
                before = pairwise3[t, i, j] if n_edge_columns > 0 else 0.0
                pairwise3[t, i, j] = before + arcs[i * n_labels + j]


@njit(nogil=True, cache=True)
def squared_norm(space, t0, n_nodes, nodes, n_arcs, arc_entries, arc_scratch):
    """Return the squared norm of a change."""
    is_linear, linear, kernel, _, n_edge_columns = space
    total = indicator_norm(n_arcs, arc_entries, arc_scratch)
    if is_linear:
        matrix, weights, _, scratch, edge_scratch = linear
        total += linear_norm(n_nodes, nodes, weights.shape[1], t0, matrix, scratch)
        if n_edge_columns > 0:
            total += linear_norm(n_arcs, arc_entries, n_edge_columns, t0, matrix, edge_scratch)
        return total
    gram, row_of, place, scores, _, _, _ = kernel
    total += kernel_norm(n_nodes, nodes, scores.shape[0], place, t0, gram, row_of)
    if n_edge_columns > 0:
        total += kernel_norm(n_arcs, arc_entries, n_edge_columns, place, t0, gram, row_of)
    return total


@njit(nogil=True, cache=True)
def apply_change(space, factor, t0, n_steps, n_nodes, nodes, n_arcs, arc_entries, local):
    """Add ``factor`` times a change to the model and to the scores of its own chain."""
    is_linear, linear, kernel, arcs, n_edge_columns = space
    unary, pairwise3, pending, edge_pending = local
    n_labels = unary.shape[1]
    apply_arcs(n_arcs, arc_entries, factor, arcs)
    if is_linear:
        matrix, weights, edge_weights, _, _ = linear
        apply_linear(n_nodes, nodes, n_labels, factor, t0, matrix, weights)
        if n_edge_columns > 0:
            apply_linear(n_arcs, arc_entries, n_edge_columns, factor, t0, matrix, edge_weights)
        load_chain(space, t0, n_steps, local)
        return
    gram, row_of, place, _, _, _, _ = kernel
    apply_local(n_nodes, nodes, n_labels, factor, place, t0, n_steps, gram, row_of, unary, pending)
    if n_edge_columns > 0:
        flat = pairwise3.reshape(pairwise3.shape[0], n_edge_columns)
        apply_local(
            n_arcs, arc_entries, n_edge_columns, factor, place, t0, n_steps, gram, row_of, flat,
            edge_pending,
        )  # fmt: skip
    _, columns, values = arc_entries
    for k in range(n_arcs):
        if columns[k] < n_labels * n_labels:
            i, j = columns[k] // n_labels, columns[k] % n_labels
            for t in range(n_steps if n_edge_columns > 0 else 1):
                pairwise3[t, i, j] += factor * values[k]


@njit(nogil=True, cache=True)
def finish_chain(space, t0, n_steps, local):
    """Apply the collected changes of one chain to the scores of all other chains."""
    is_linear, _, kernel, _, n_edge_columns = space
    if is_linear:
        return
    gram, row_of, place, scores, coefs, edge_scores, edge_coefs = kernel
    _, _, pending, edge_pending = local
    flush_pending(pending, place, t0, n_steps, gram, row_of, scores, coefs)
    if n_edge_columns > 0:
        flush_pending(edge_pending, place, t0, n_steps, gram, row_of, edge_scores, edge_coefs)
