"""Approximate inference on chains with a beam: at most ``width`` labels are kept at every step.

For large label sets. The cost falls from O(n_steps * n_labels ** 2) to O(n_steps * width *
n_labels). With ``width >= n_labels`` nothing is dropped and the results are exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NoLegalLabelingError
from seqlab.inference._prepare import (
    check_labels,
    first_blocked_position,
    over_blocks,
    prepare,
    require_chains,
    require_legal,
)
from seqlab.inference.kernels.beam import beam_block
from seqlab.inference.kernels.beam_marginals import beam_marginals_block
from seqlab.inference.results import Labelings, Marginals, PairMarginals
from seqlab.inference.scores import ChainScores, Floats, Mask


def beam(
    scores: ChainScores, width: int, *, mask: Mask | None = None, n_jobs: int | None = None
) -> Labelings:
    """Best labeling found when only the ``width`` best labels of each step are kept.

    Parameters
    ----------
    scores : ChainScores
        Scores of all sequences.
    width : int
        Labels kept per step, those with the best prefix score; ties go to the lower label.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Labelings
        ``labels`` of shape (n_steps,) and ``score`` of shape (n_sequences,), never above the
        exact best.

    See Also
    --------
    viterbi : the exact search.
    """
    width = _check_width(scores, width)
    scores = prepare(scores, mask)
    labels = np.zeros(scores.n_steps, dtype=np.int64)
    score = np.zeros(scores.n_sequences)
    over_blocks(scores, beam_block, n_jobs, width, labels, score)
    _require_survivors(scores, score, width)
    return Labelings(labels, score)


def beam_marginals(
    scores: ChainScores,
    width: int,
    gold: ArrayLike | None = None,
    *,
    mask: Mask | None = None,
    n_jobs: int | None = None,
) -> Marginals:
    """Node marginals of the chain restricted to the ``width`` likeliest labels of each step.

    Parameters
    ----------
    scores : ChainScores
        Scores of all sequences.
    width : int
        Labels kept per step, those with the largest forward probability.
    gold : int array of shape (n_steps,), optional
        Labels that are always kept, so that the labeling ``gold`` has a probability above 0, as
        training requires.
    mask : Mask, optional
        Labelings that get probability 0.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Marginals
        ``log_z`` of shape (n_sequences,), the log-partition over labelings within the beam, and
        ``node`` of shape (n_steps, n_labels), 0 for dropped labels. Rows sum to 1.
    """
    log_z, node, _ = _beam_marginals(scores, width, gold, mask, n_jobs, with_pairs=False)
    return Marginals(log_z, node)


def beam_pair_marginals(
    scores: ChainScores,
    width: int,
    gold: ArrayLike | None = None,
    *,
    mask: Mask | None = None,
    n_jobs: int | None = None,
) -> PairMarginals:
    """Pair marginals of the chain restricted to the ``width`` likeliest labels of each step.

    Parameters
    ----------
    scores : ChainScores
        Scores of all sequences.
    width : int
        Labels kept per step, those with the largest forward probability.
    gold : int array of shape (n_steps,), optional
        Labels that are always kept.
    mask : Mask, optional
        Labelings that get probability 0.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    PairMarginals
        As `beam_marginals`, with ``pair`` of shape (n_steps, n_labels, n_labels), zeros at each
        sequence's first step.
    """
    return _beam_marginals(scores, width, gold, mask, n_jobs, with_pairs=True)


def _beam_marginals(
    scores: ChainScores,
    width: int,
    gold: ArrayLike | None,
    mask: Mask | None,
    n_jobs: int | None,
    *,
    with_pairs: bool,
) -> PairMarginals:
    width = _check_width(scores, width)
    forced: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    if gold is not None:
        forced = check_labels(scores, gold, "gold")
    scores = prepare(scores, mask)
    log_z = np.zeros(scores.n_sequences)
    node = np.empty((scores.n_steps, scores.n_labels))
    pair = np.empty((scores.n_steps if with_pairs else 0, scores.n_labels, scores.n_labels))
    arguments = width, forced, with_pairs, log_z, node, pair
    over_blocks(scores, beam_marginals_block, n_jobs, *arguments)
    _require_survivors(scores, log_z, width)
    return PairMarginals(log_z, node, pair)


def _check_width(scores: ChainScores, width: int) -> int:
    require_chains(scores)
    if width < 1:
        raise InputError(f"width must be at least 1, got {width}")
    return min(int(width), max(scores.n_labels, 1))


def _require_survivors(scores: ChainScores, values: Floats, width: int) -> None:
    """Like `require_legal`, with its own message if a wider beam would have found a labeling."""
    for sequence in np.flatnonzero(np.isneginf(values)):
        if first_blocked_position(scores, int(sequence)) is None:
            raise NoLegalLabelingError(
                "the beam lost every legal labeling of sequence {sequence}: "
                f"a width above {width} is needed",
                int(sequence),
            )
        break
    require_legal(scores, values)
