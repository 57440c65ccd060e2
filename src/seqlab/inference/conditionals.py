"""Weighted log-losses of single steps of a chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.inference.kernels import conditionals
from seqlab.inference.scores import ChainScores, Floats


class ConditionalLosses(NamedTuple):
    """Losses of sequences, and their gradients with respect to the scores.

    Attributes
    ----------
    losses : array of shape (n_sequences,)
    node : array of shape (n_steps, n_labels)
    pair : array of shape (1, n_labels, n_labels), summed over the steps, or (n_steps, n_labels, n_labels)
        The latter if the pairwise scores differ from step to step.
    """

    losses: Floats
    node: Floats
    pair: Floats


def conditional_losses(
    scores: ChainScores, allowed: NDArray[np.bool_], weights: Floats
) -> ConditionalLosses:
    """Return the weighted negative log-probabilities of the labels, given the labels on one side.

    The loss of a sequence is the mean of two sums, one for each direction::

        1/2 sum_t a_t [ -log p(y_t | y_1 .. y_{t-1}, x) - log p(y_t | y_{t+1} .. y_T, x) ]

    If all weights ``a_t`` are 1, both sums are ``-log p(y | x)``. A step with several allowed labels stands
    for all of them.

    Parameters
    ----------
    scores : ChainScores
        Finite.
    allowed : boolean array of shape (n_steps, n_labels)
        Possible labels of each step: one, if the label is known.
    weights : array of shape (n_steps,)

    Returns
    -------
    ConditionalLosses
    """
    unary, offsets = scores.unary.copy(), scores.offsets
    nonempty = np.flatnonzero(np.diff(offsets))
    unary[offsets[nonempty]] += scores.start
    unary[offsets[nonempty + 1] - 1] += scores.end
    edges = np.ascontiguousarray(scores.pairwise)
    if not scores.per_step:
        edges = edges[np.newaxis]
    losses = np.empty(scores.n_sequences)
    node, pair = np.zeros_like(unary), np.zeros_like(edges)
    conditionals.conditional_losses(
        unary, edges, offsets, allowed, 0.5 * weights, losses, node, pair
    )
    return ConditionalLosses(losses, node, pair)
