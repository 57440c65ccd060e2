"""Forward-backward of chains with two labels, many at a time.

Only differences of scores matter: ``d[t] = unary[t, 1] - unary[t, 0]``. With ``E = exp(pairwise)`` and
``e[t] = exp(d[t])`` the ratio ``r[t] = alpha[t, 1] / alpha[t, 0]`` is one number per step,

    r[t] = e[t] (E01 + E11 r[t-1]) / (E00 + E10 r[t-1]),

and so is the ratio ``q[t]`` of the ``beta``, with ``m[t] = e[t] q[t]``::

    q[t-1] = (E10 + E11 m[t]) / (E00 + E01 m[t])

The probability of label 1 is ``r q / (1 + r q)``, that of label 1 twice in a row
``r[t-1] E11 m[t] / (E00 + E01 m[t] + r[t-1] (E10 + E11 m[t]))``, and the other three pairs follow from these.
``log Z`` without the scores of label 0 is the sum of the logarithms of the denominators of ``r``, and
``log(1 + r)`` of the last step; their product is kept as a mantissa and an exponent.

Chains are side by side in the rows of tables, up to `MAX_LANES` of them, so that the compiler turns the loops
over chains into vector code: a step costs three divisions and one exponential, eight chains at a time. If
``|d|`` plus twice the range of the transition scores exceeds `MAX_DIFFERENCE`, the caller must compute the
chains in another way.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.scores import Floats
from seqlab.simd.exponential import BIAS, MANTISSA, exp_nonpositive
from seqlab.simd.scalars import bits_to_float, float_to_bits

MAX_LANES = 64
# r and m are at most exp(300), so that neither their product nor a square of it can overflow.
MAX_DIFFERENCE = 300.0
_MANTISSA_BITS = (1 << MANTISSA) - 1
_ONE_BITS = BIAS << MANTISSA
_LOG_2 = math.log(2.0)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def exp_differences(
    difference: Floats, n_steps: int, n_lanes: int, largest: Floats, out: Floats
) -> float:
    """``out = exp(difference)``; returns the largest absolute value (NaN is possible).

    ``largest`` (MAX_LANES,) is workspace.
    """
    for c in range(n_lanes):
        largest[c] = 0.0
    for t in range(n_steps):
        for c in range(n_lanes):
            size = abs(difference[t, c])
            largest[c] = largest[c] if size <= largest[c] else size
            out[t, c] = exp_nonpositive(difference[t, c])
    total = 0.0
    for c in range(n_lanes):
        total = total if largest[c] <= total else largest[c]
    return total


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def two_label_marginals(
    factor: Floats,
    lengths: NDArray[np.int64],
    n_steps: int,
    n_lanes: int,
    pairs: Floats,
    ratio: Floats,
    node: Floats,
    work: Floats,
    twice: Floats,
    log_z: Floats,
) -> None:
    """Compute the probability of label 1 at each step of each chain, and ``log Z`` of each chain.

    Parameters
    ----------
    factor : array of shape (n_rows, MAX_LANES)
        ``e[t]`` of each chain; any finite number after its end.
    lengths : int64 array of shape (MAX_LANES,)
        Steps of each chain, at least 1.
    n_steps, n_lanes : int
        Length of the longest chain, number of chains.
    pairs : array of shape (2, 2)
        ``E``.
    ratio : array of shape (n_rows, MAX_LANES)
        Workspace.
    node : array of shape (n_rows, MAX_LANES)
        Receives the probabilities of label 1; no meaning after the end of a chain.
    work : array of shape (3, MAX_LANES)
        Workspace.
    twice : array of shape (MAX_LANES,)
        Receives the expected number of times that label 1 follows label 1.
    log_z : array of shape (MAX_LANES,)
        Receives ``log Z`` without the scores of label 0.
    """
    e00, e01, e10, e11 = pairs[0, 0], pairs[0, 1], pairs[1, 0], pairs[1, 1]
    mantissa, exponent, beta = work[0], work[1], work[2]
    for c in range(n_lanes):
        ratio[0, c] = factor[0, c]
        mantissa[c], exponent[c], beta[c], twice[c] = 1.0, 0.0, 1.0, 0.0
    for t in range(1, n_steps):
        earlier, now, weights = ratio[t - 1], ratio[t], factor[t]
        for c in range(n_lanes):
            before = earlier[c]
            total = e00 + e10 * before
            now[c] = weights[c] * (e01 + e11 * before) / total
            total = total if t < lengths[c] else 1.0
            bits = float_to_bits(mantissa[c] * total)
            exponent[c] += float((bits >> MANTISSA) - BIAS)
            mantissa[c] = bits_to_float(bits & _MANTISSA_BITS | _ONE_BITS)
    for c in range(n_lanes):
        last = ratio[lengths[c] - 1, c]
        log_z[c] = math.log(mantissa[c] * (1.0 + last)) + exponent[c] * _LOG_2
    last_step = n_steps - 1
    for c in range(n_lanes):
        node[last_step, c] = ratio[last_step, c] / (1.0 + ratio[last_step, c])
    for t in range(n_steps - 1, 0, -1):
        earlier, weights, target = ratio[t - 1], factor[t], node[t - 1]
        for c in range(n_lanes):
            message = weights[c] * beta[c]
            is_inside = t < lengths[c]
            # After the end of a chain beta stays 1: its last step is like the first of the recursion.
            left = e00 + e01 * message if is_inside else 1.0
            right = e10 + e11 * message if is_inside else 1.0
            before = earlier[c]
            inverse = 1.0 / (left + before * right)
            twice[c] += before * e11 * message * inverse if is_inside else 0.0
            target[c] = before * right * inverse
            beta[c] = right / left
