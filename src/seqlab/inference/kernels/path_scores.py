"""Single passes over the scores: the score of given labelings, and the number of invalid scores."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.dense import count_invalid
from seqlab.inference.scores import ChainArrays, Floats


@njit(nogil=True, cache=True)
def count_invalid_scores(chain: ChainArrays) -> int:
    """Number of scores that are NaN or ``+inf``, without start, end and entries that are never read."""
    unary, pairwise3, stride, _, _, offsets = chain
    bad = count_invalid(unary.ravel())
    if stride == 0:
        return bad + count_invalid(pairwise3.ravel())
    for i in range(offsets.shape[0] - 1):
        bad += count_invalid(
            pairwise3[offsets[i] + 1 : max(offsets[i] + 1, offsets[i + 1])].ravel()
        )
    return bad


@njit(nogil=True, cache=True)
def score_paths(chain: ChainArrays, labels: NDArray[np.int64], out: Floats) -> None:
    """``out[i]``: the score of the labeling ``labels[offsets[i]:offsets[i + 1]]`` of sequence ``i``."""
    unary, pairwise3, stride, start, end, offsets = chain
    for i in range(offsets.shape[0] - 1):
        t0, t1 = offsets[i], offsets[i + 1]
        total = 0.0
        if t0 < t1:
            total = start[labels[t0]] + end[labels[t1 - 1]]
        for t in range(t0, t1):
            total += unary[t, labels[t]]
            if t > t0:
                total += pairwise3[t * stride, labels[t - 1], labels[t]]
        out[i] = total
