"""Forward-backward and pair sums of chains whose scores are tables of rows, for any number of labels.

The tables are stored label by label, ``pair[k, row, c]`` for label ``k`` after label ``c``, and so are the
exponentials of a block, ``weights[t, k, c]``: all inner loops run over consecutive previous labels ``c`` and
become vector code. Each exponential is computed once and used by the forward pass, the backward pass and the
sums::

    P(y_{t-1} = c, y_t = k) = alpha[t-1, c] weights[t, k, c] right[t, k]

The scaled form is exact if the range of the scores of a row is at most ``MAX_RANGE`` (see
``inference/kernels/forward_backward.py``); the caller uses another method if it is larger.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.simd.exponential import exp_nonpositive
from seqlab.utils.linalg import axpy, dot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

MAX_RANGE = 300.0


@njit(nogil=True, cache=True)
def largest_scores(node: Floats, pair: Floats, shifts: Floats) -> bool:
    """Set the largest scores of each row: of all pairs, and of a first step.

    Returns False if the range of the scores of a row is too large for the scaled form.
    """
    n_labels, n_rows, n_columns = pair.shape
    high, low = np.empty(n_columns), np.empty(n_columns)
    for row in range(n_rows):
        high[:] = -np.inf
        low[:] = np.inf
        for k in range(n_labels):
            base, scores = node[k, row], pair[k, row]
            for c in range(n_columns):
                score = base + scores[c]
                high[c] = score if score > high[c] else high[c]
                low[c] = score if score < low[c] else low[c]
        shifts[row, 0], shifts[row, 1] = high[:n_labels].max(), high[n_labels]
        if not shifts[row, 0] - low[:n_labels].min() <= MAX_RANGE:
            return False
        if not high[n_labels] - low[n_labels] <= MAX_RANGE:
            return False
    return True


@njit(nogil=True, cache=True)
def run_forward_backward(
    node: Floats,
    pair: Floats,
    shifts: Floats,
    codes: Ints,
    rows: Rows,
    offsets: Ints,
    weights: Floats,
    alpha: Floats,
    right: Floats,
    log_likelihood: Floats,
) -> None:
    """Compute the factors of the pair marginals of a block of sequences.

    Parameters
    ----------
    node, pair, shifts : arrays over the rows
    codes, rows, offsets : arrays over the steps and sequences of the block
    weights : array of shape (n_steps, n_labels, n_labels)
    alpha, right : arrays of shape (n_steps, n_labels)
        At a first step ``right`` holds the node marginals.
    log_likelihood : array of shape (n_sequences,)
    """
    n_labels = node.shape[0]
    beta, message = np.empty(n_labels), np.empty(n_labels)
    for i in range(offsets.size - 1):
        t0, t1 = offsets[i], offsets[i + 1]
        value = 0.0
        for t in range(t0, t1):
            row, y = rows[t], codes[t]
            if t == t0:
                for k in range(n_labels):
                    score = node[k, row] + pair[k, row, n_labels]
                    alpha[t, k] = exp_nonpositive(score - shifts[row, 1])
                value += node[y, row] + pair[y, row, n_labels] - shifts[row, 1]
            else:
                for k in range(n_labels):
                    base, scores, out = node[k, row] - shifts[row, 0], pair[k, row], weights[t, k]
                    for c in range(n_labels):
                        out[c] = exp_nonpositive(base + scores[c])
                    alpha[t, k] = dot(out, alpha[t - 1])
                value += node[y, row] + pair[y, row, codes[t - 1]] - shifts[row, 0]
            total = alpha[t].sum()
            value -= math.log(total)
            for k in range(n_labels):
                alpha[t, k] /= total
        log_likelihood[i] = value
        if t0 == t1:
            continue
        beta[:] = 1.0
        for t in range(t1 - 1, t0, -1):
            message[:] = 0.0
            for k in range(n_labels):
                axpy(beta[k], weights[t, k], message)
            inverse = 1.0 / dot(alpha[t - 1], message)
            for k in range(n_labels):
                right[t, k] = beta[k] * inverse
                message[k] *= inverse
            beta[:] = message
        for k in range(n_labels):
            right[t0, k] = alpha[t0, k] * beta[k]


@njit(nogil=True, cache=True)
def add_label_sums(
    weights: Floats,
    alpha: Floats,
    right: Floats,
    codes: Ints,
    rows: Rows,
    sequence_weights: Floats,
    offsets: Ints,
    scale: float,
    gradient: Ints,
    curvature: Ints,
) -> None:
    """Add the gradient and the curvature of a block, from the factors of its pair marginals."""
    n_labels = alpha.shape[1]
    with_curvature = curvature.shape[1] > 0
    for i in range(offsets.size - 1):
        factor = sequence_weights[i] * scale
        if factor == 0.0:
            continue
        one = int(factor + 0.5)
        for t in range(offsets[i], offsets[i + 1]):
            row = rows[t]
            if t == offsets[i]:
                gradient[codes[t], row, n_labels] += one
                for k in range(n_labels):
                    p = right[t, k]
                    gradient[k, row, n_labels] -= int(p * factor + 0.5)
                    if with_curvature:
                        curvature[k, row, n_labels] += int(p * (1.0 - p) * factor + 0.5)
                continue
            gradient[codes[t], row, codes[t - 1]] += one
            left = alpha[t - 1]
            for k in range(n_labels):
                r, exps, sums = right[t, k], weights[t, k], gradient[k, row]
                if with_curvature:
                    curved = curvature[k, row]
                    for c in range(n_labels):
                        p = left[c] * exps[c] * r
                        sums[c] -= int(p * factor + 0.5)
                        curved[c] += int(p * (1.0 - p) * factor + 0.5)
                else:
                    for c in range(n_labels):
                        sums[c] -= int(left[c] * exps[c] * r * factor + 0.5)
