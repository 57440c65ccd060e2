"""Inference on chains, and on graphs: pure functions from scores to probabilities and labelings.

Every function takes the scores of many sequences at once, an optional `Mask` of hard constraints and
``n_jobs``, the number of threads (``None`` or 1 for serial, -1 for all cores). The result is the same,
bit for bit, for any ``n_jobs``. With ``score(y)`` as in `seqlab.inference.scores`, the distribution is
``P(y) = exp(score(y)) / Z``. Cost is O(n_steps * n_labels ** 2) throughout.

Functions that take `GraphScores` compute the same for graphs, with the default settings of
`seqlab.inference.GraphInference`: exactly if the treewidth is small, else approximately.

A sequence without any legal labeling raises `NoLegalLabelingError`, a score that is NaN or ``+inf``
`NumericalError`; both name the sequence. Sequences of length 0 are legal: ``log_z`` and score 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from seqlab.data.errors import InputError
from seqlab.inference import graphs
from seqlab.inference._prepare import (
    chain_arrays,
    check_labels,
    over_blocks,
    prepare,
    require_legal,
    scratch,
)
from seqlab.inference.graphs import GraphScores
from seqlab.inference.kernels.dense import padded_width
from seqlab.inference.kernels.forward_backward import (
    LOG_Z,
    NODE,
    PAIR,
    TRANSITIONS,
    forward_backward_block,
    log_space_block,
)
from seqlab.inference.kernels.forward_backward_pairs import pair_marginals_block
from seqlab.inference.kernels.path_scores import score_paths
from seqlab.inference.kernels.viterbi import max_marginals_block, viterbi_block
from seqlab.inference.results import Labelings, Marginals, PairMarginals, TransitionCounts
from seqlab.inference.scores import ChainArrays, ChainScores, Floats, Mask


def log_partition(
    scores: ChainScores | GraphScores, *, mask: Mask | None = None, n_jobs: int | None = None
) -> Floats:
    """Log-partition ``log Z = log sum_y exp(score(y))`` of each sequence.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    mask : Mask, optional
        Labelings to exclude from the sum.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    log_z : array of shape (n_sequences,)

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import ChainScores, log_partition
    >>> np.exp(log_partition(ChainScores(np.zeros((3, 2)), np.zeros((2, 2))))).round(6)
    array([8.])
    """
    if isinstance(scores, GraphScores):
        return graphs.GraphInference().marginals(scores.masked(mask), n_jobs=n_jobs).log_z
    return _forward_backward(prepare(scores, mask), LOG_Z, n_jobs)[0]


def marginals(
    scores: ChainScores | GraphScores, *, mask: Mask | None = None, n_jobs: int | None = None
) -> Marginals:
    """Node marginals ``P(y_t = s)``.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    mask : Mask, optional
        Labelings that get probability 0.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Marginals
        ``log_z`` of shape (n_sequences,) and ``node`` of shape (n_steps, n_labels).

    Notes
    -----
    Scaled forward-backward; in log space for sequences whose scores have too large a range (see
    ``kernels/forward_backward.py`` for the bound).

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import ChainScores, marginals
    >>> scores = ChainScores(np.array([[1.0, 0], [0, 0], [0, 1]]), np.eye(2))
    >>> marginals(scores).node.round(6)
    array([[0.690399, 0.309601],
           [0.5     , 0.5     ],
           [0.309601, 0.690399]])
    """
    if isinstance(scores, GraphScores):
        found = graphs.GraphInference().marginals(scores.masked(mask), n_jobs=n_jobs)
        return Marginals(found.log_z, found.node)
    log_z, node, _, _ = _forward_backward(prepare(scores, mask), NODE, n_jobs)
    return Marginals(log_z, node)


def pair_marginals(
    scores: ChainScores | GraphScores, *, mask: Mask | None = None, n_jobs: int | None = None
) -> PairMarginals:
    """Pair marginals ``P(y_{t-1} = i, y_t = j)``, with node marginals.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    mask : Mask, optional
        Labelings that get probability 0.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    PairMarginals
        ``log_z`` of shape (n_sequences,), ``node`` of shape (n_steps, n_labels) and ``pair`` of
        shape (n_steps, n_labels, n_labels), zeros at each sequence's first step.

    See Also
    --------
    expected_transitions : their sum over steps, without storing them all.
    """
    if isinstance(scores, GraphScores):
        found = graphs.GraphInference().marginals(scores.masked(mask), n_jobs=n_jobs)
        return PairMarginals(found.log_z, found.node, found.pair)
    log_z, node, pair, _ = _forward_backward(prepare(scores, mask), PAIR, n_jobs)
    return PairMarginals(log_z, node, pair)


def expected_transitions(
    scores: ChainScores,
    weights: ArrayLike | None = None,
    *,
    mask: Mask | None = None,
    n_jobs: int | None = None,
) -> TransitionCounts:
    """Expected number of transitions ``i -> j``, summed over all sequences.

    Parameters
    ----------
    scores : ChainScores
        Scores of all sequences.
    weights : array of shape (n_sequences,), optional
        Weight of each sequence in ``transitions``; 1 by default.
    mask : Mask, optional
        Labelings that get probability 0.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    TransitionCounts
        ``log_z`` of shape (n_sequences,), ``node`` of shape (n_steps, n_labels), both unweighted,
        and ``transitions`` of shape (n_labels, n_labels), ``sum_n weights[n] sum_t P(y_{t-1} = i,
        y_t = j)``.
    """
    scores = prepare(scores, mask)
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != (scores.n_sequences,):
            raise InputError(
                f"weights must have shape ({scores.n_sequences},), got {weights.shape}"
            )
    log_z, node, _, transitions = _forward_backward(scores, TRANSITIONS, n_jobs, weights)
    return TransitionCounts(log_z, node, transitions)


def viterbi(
    scores: ChainScores | GraphScores, *, mask: Mask | None = None, n_jobs: int | None = None
) -> Labelings:
    """Best labeling ``argmax_y score(y)`` of each sequence.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Labelings
        ``labels`` of shape (n_steps,) and ``score`` of shape (n_sequences,). Ties go to the labeling
        that is first in lexicographic order.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import ChainScores, viterbi
    >>> viterbi(ChainScores(np.array([[1.0, 0], [0, 3], [0, 1]]), np.eye(2)))
    Labelings(labels=array([0, 1, 1]), score=array([6.]))
    """
    if isinstance(scores, GraphScores):
        return graphs.GraphInference().labelings(scores.masked(mask), n_jobs=n_jobs)
    scores = prepare(scores, mask)
    labels = np.zeros(scores.n_steps, dtype=np.int64)
    score = np.zeros(scores.n_sequences)
    lengths = np.diff(scores.offsets)
    neighbours = lengths[1:] + lengths[:-1]  # two sequences may share the table
    n_rows = int(max(lengths.max(initial=0), neighbours.max(initial=0)))
    width = int(padded_width(scores.n_labels))

    def block(chain: ChainArrays, first: int, last: int) -> None:
        viterbi_block(chain, first, last, labels, score, scratch(n_rows, width))

    over_blocks(scores, block, n_jobs, independent=True)
    require_legal(scores, score)
    return Labelings(labels, score)


def max_marginals(
    scores: ChainScores | GraphScores, *, mask: Mask | None = None, n_jobs: int | None = None
) -> Floats:
    """Best score of any labeling through each label at each step, ``max_{y: y_t = s} score(y)``.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    array of shape (n_steps, n_labels)
        ``-inf`` if no legal labeling has that label. The maximum of every row is the best score of
        its sequence.
    """
    if isinstance(scores, GraphScores):
        return graphs.GraphInference().max_marginals(scores.masked(mask), n_jobs=n_jobs)
    scores = prepare(scores, mask)
    out = np.empty((scores.n_steps, scores.n_labels))
    over_blocks(scores, max_marginals_block, n_jobs, out)
    occupied = np.diff(scores.offsets) > 0
    best = np.zeros(scores.n_sequences)
    best[occupied] = out[scores.offsets[:-1][occupied]].max(axis=1, initial=-np.inf)
    require_legal(scores, best)
    return out


def loss_augmented(
    scores: ChainScores | GraphScores,
    gold: ArrayLike,
    loss_weights: ArrayLike | None = None,
    *,
    mask: Mask | None = None,
    n_jobs: int | None = None,
) -> Labelings:
    """Most violating labeling, ``argmax_y score(y) + sum_t cost[t, y_t] [y_t != gold_t]``.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    gold : int array of shape (n_steps,)
        True labels.
    loss_weights : array of shape (n_steps,) or (n_steps, n_labels), optional
        Cost of an error at each step, or of each wrong label at each step. 1 by default: Hamming
        loss.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Labelings
        ``labels`` of shape (n_steps,) and ``score`` of shape (n_sequences,), the *augmented* score.
    """
    labels = check_labels(scores, gold, "gold")
    if loss_weights is None:
        cost = np.ones((scores.n_steps, 1))
    else:
        cost = np.asarray(loss_weights, dtype=np.float64)
        if cost.shape not in ((scores.n_steps,), scores.unary.shape):
            raise InputError(
                f"loss_weights must have shape ({scores.n_steps},) or {scores.unary.shape}, "
                f"got {cost.shape}"
            )
        cost = cost[:, np.newaxis] if cost.ndim == 1 else cost
    unary = scores.unary + cost
    steps = np.arange(scores.n_steps)
    unary[steps, labels] = scores.unary[steps, labels]
    return viterbi(scores.with_unary(unary), mask=mask, n_jobs=n_jobs)


def path_scores(
    scores: ChainScores | GraphScores, labels: ArrayLike, *, mask: Mask | None = None
) -> Floats:
    """Score of one given labeling per sequence.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences.
    labels : int array of shape (n_steps,)
        The labelings, stacked.
    mask : Mask, optional
        Labelings whose score is ``-inf``.

    Returns
    -------
    array of shape (n_sequences,)
        ``score(y)``; ``-inf`` if the labeling is forbidden.
    """
    if isinstance(scores, GraphScores):
        return graphs.labeling_scores(scores.masked(mask), labels)
    array = check_labels(scores, labels, "labels")
    scores = prepare(scores, mask)
    out = np.zeros(scores.n_sequences)
    score_paths(chain_arrays(scores), array, out)
    return out


def _forward_backward(
    scores: ChainScores, want: int, n_jobs: int | None, weights: Floats | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log-partition, node and pair marginals and transition counts.

    Results that ``want`` does not name are empty.
    """
    n_labels = scores.n_labels
    log_z = np.zeros(scores.n_sequences)
    node = np.empty((scores.n_steps if want != LOG_Z else 0, n_labels))
    pair = np.empty((scores.n_steps if want == PAIR else 0, n_labels, n_labels))
    if weights is None:
        weights = np.empty(0)
    width = int(padded_width(n_labels))

    def block(chain: ChainArrays, first: int, last: int) -> Floats:
        counts, products = np.zeros((n_labels, n_labels)), np.zeros((width, width))
        if want == PAIR and scores.pairwise.ndim == 3:
            pair_marginals_block(chain, first, last, log_z, node, pair)
            return counts
        results = (
            log_z,
            None if want == LOG_Z else node,
            pair if want == PAIR else None,
            counts if want == TRANSITIONS else None,
        )
        while True:
            first = forward_backward_block(chain, first, last, weights, want, *results, products)
            if first == last:
                return counts
            first = log_space_block(chain, first, last, weights, want, *results)

    transitions = np.zeros((n_labels, n_labels))
    for counts in over_blocks(scores, block, n_jobs):
        transitions += counts
    require_legal(scores, log_z)
    return log_z, node, pair, transitions
