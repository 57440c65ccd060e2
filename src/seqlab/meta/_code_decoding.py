"""Decoding: from the probabilities of the bits to scores of the labels.

With p_k the probability that bit k is 1 and M_jk the bit of label j, the score of label j is

* "l1":          ``-sum_k |p_k - M_jk|``
* "hamming":     the same, with p_k rounded to 0 or 1 (1/2 if it is exactly 1/2)
* "likelihood":  ``sum_k log P(bit k = M_jk)``, with probabilities of at least `MIN_PROBABILITY`

All three are linear in M for given p: with ``a_k`` the score of a bit that is 1 and ``b_k`` of one that is 0,
they are ``sum_k M_jk (a_k - b_k) + sum_k b_k``, a single matrix product for all steps and labels.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.meta._code_matrix import Bits
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
# One column that is sure and wrong must not exclude a label: it costs as much as -log of this.
MIN_PROBABILITY = 1e-6
# Size of the random term that breaks ties: above the rounding errors of sums over the columns, below any
# difference of scores that matters.
TIE_NOISE = 1e-9


def score_labels(probabilities: Floats, code: Bits, decoding: str) -> Floats:
    """Return the score of each label at each step, shape (n_steps, n_labels); at most 0.

    Parameters
    ----------
    probabilities : array of shape (n_steps, n_columns)
        Probability that the bit is 1.
    code : array of shape (n_labels, n_columns)
    decoding : {"l1", "hamming", "likelihood"}
    """
    if decoding == "likelihood":
        one = np.log(np.maximum(probabilities, MIN_PROBABILITY))
        zero = np.log(np.maximum(1.0 - probabilities, MIN_PROBABILITY))
    else:
        found = round_bits(probabilities) if decoding == "hamming" else probabilities
        one, zero = found - 1.0, -found
    table = np.ascontiguousarray(code.T, dtype=np.float64)
    return matmul(one - zero, table) + _row_sums(zero)[:, None]


def round_bits(probabilities: Floats) -> Floats:
    """Return 1 above 1/2, 0 below, and 1/2 at 1/2."""
    return 0.5 * (1.0 + np.sign(probabilities - 0.5))


def _row_sums(values: Floats) -> Floats:
    """Return the sum of each row, in an order that does not depend on the number of rows."""
    return matmul(values, np.ones((values.shape[1], 1)))[:, 0]


def break_ties(scores: Floats, positions: NDArray[np.int64], seed: int) -> Floats:
    """Return scores with a pseudo-random term of at most `TIE_NOISE`, so that no two of them are equal.

    The term depends on the seed, the label and the position of the step in its sequence, but not on the other
    sequences: a sequence is labelled in the same way alone and together with others.
    """
    out = np.empty_like(scores)
    _add_noise(scores, positions, np.uint64(seed), out)
    return out


@njit(nogil=True, cache=True)
def _add_noise(scores: Floats, positions: NDArray[np.int64], seed: np.uint64, out: Floats) -> None:
    scale = TIE_NOISE / 18446744073709551616.0  # 2 ** 64
    for t in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            out[t, j] = scores[t, j] + scale * float(
                _mix(seed, np.uint64(positions[t]), np.uint64(j))
            )


@njit(nogil=True, cache=True)
def _mix(seed: np.uint64, position: np.uint64, label: np.uint64) -> np.uint64:
    """Return a pseudo-random number for three numbers (two rounds of the finaliser of splitmix64)."""
    z = seed + np.uint64(0x9E3779B97F4A7C15) * (position + np.uint64(1))
    for _ in range(2):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15) * (label + np.uint64(1))
    return z


def softmax(scores: Floats) -> Floats:
    """Return ``exp(scores)``, normalised in each row."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / _row_sums(shifted)[:, None]
