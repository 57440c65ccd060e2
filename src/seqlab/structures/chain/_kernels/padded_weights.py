"""Copies between a parameter vector and padded tables: one call instead of a dozen small NumPy operations.

Loops instead of slices: numba compiles the error message of an assignment between slices, for two seconds.
"""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def load_tables(w, dense_param, dense_place, transition_place, n_labels, boundary, tables):
    """Write the parameter vector ``w`` to the tables, except the state weights that are not dense."""
    dense, state, pairwise, start, end = tables
    rows, square, at = dense.reshape(-1), pairwise.reshape(-1), state.size
    for k in range(dense_param.size):
        rows[dense_place[k]] = w[dense_param[k]]
    for k in range(transition_place.size):
        square[transition_place[k]] = w[at + k]
    if boundary:
        at += transition_place.size
        for j in range(n_labels):
            start[j] = w[at + j]
            end[j] = w[at + n_labels + j]


@njit(nogil=True, cache=True)
def flush_tables(tables, dense_param, dense_place, transition_place, n_labels, boundary, w):
    """Write the tables to the parameter vector ``w``, whose memory the other state weights share."""
    dense, state, pairwise, start, end = tables
    rows, square, at = dense.reshape(-1), pairwise.reshape(-1), state.size
    for k in range(dense_param.size):
        w[dense_param[k]] = rows[dense_place[k]]
    for k in range(transition_place.size):
        w[at + k] = square[transition_place[k]]
    if boundary:
        at += transition_place.size
        for j in range(n_labels):
            w[at + j] = start[j]
            w[at + n_labels + j] = end[j]
