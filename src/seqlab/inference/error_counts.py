"""Best scores of chains by their number of wrong labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from seqlab.data.errors import InputError
from seqlab.inference._prepare import over_blocks, prepare, require_chains
from seqlab.inference.kernels.error_count import error_count_block
from seqlab.inference.scores import ChainArrays, ChainScores, Floats, Mask


def error_count_scores(
    scores: ChainScores,
    gold: ArrayLike,
    *,
    mask: Mask | None = None,
    n_jobs: int | None = None,
) -> list[Floats]:
    """Best score of a labeling with exactly k wrong labels, for every k (error-count Viterbi).

    Cost O(T^2 L^2) for a sequence of T steps, and T^2 L numbers of memory.

    Parameters
    ----------
    scores : ChainScores
        Scores of all sequences.
    gold : int array of shape (n_steps,)
        True labels; a negative label differs from all labels.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    list of arrays of shape (n_steps_of_the_sequence + 1,)
        Entry k is for k wrong labels; ``-inf`` if no labeling has k wrong labels.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import ChainScores, error_count_scores
    >>> error_count_scores(ChainScores(np.array([[1.0, 0], [3, 1]]), np.zeros((2, 2))), [0, 1])
    [array([2., 4., 3.])]
    """
    require_chains(scores)
    codes = np.asarray(gold)
    if codes.shape != (scores.n_steps,) or (codes.size and codes.dtype.kind not in "iu"):
        raise InputError(
            f"gold must be integers of shape ({scores.n_steps},), got {codes.dtype} of shape {codes.shape}"
        )
    codes = np.ascontiguousarray(codes, dtype=np.int64)
    scores = prepare(scores, mask)
    out = np.empty(scores.n_steps + scores.n_sequences)

    def block(chain: ChainArrays, first: int, last: int) -> None:
        error_count_block(chain, codes, first, last, out)

    over_blocks(scores, block, n_jobs)
    starts = scores.offsets + np.arange(scores.offsets.size)
    return [out[starts[i] : starts[i + 1]] for i in range(scores.n_sequences)]
