"""Cheapest sets of disjoint phrases: constraint satisfaction with classifiers, as a shortest path.

Every run of consecutive steps is a candidate phrase, of every type, with a cost (`PhraseCosts`); a step in
no phrase costs ``outside``. The cheapest set of *disjoint* phrases is a shortest path over the gaps between
steps, with one edge per candidate and one per step outside.

With the ``map`` cost and a threshold of 0 the cheapest set is the most probable legal path of independent
open and close decisions (`seqlab.data.open_close_mask`).

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seqlab.data.errors import InputError, NoLegalLabelingError
from seqlab.data.tags import StackedPhrases
from seqlab.inference.phrases._kernels import (
    FAST,
    LOG_ODDS,
    PRODUCT,
    QUADRATIC,
    best_phrases_block,
    find_best_listed,
)
from seqlab.inference.phrases.costs import PhraseCandidates, PhraseCosts
from seqlab.inference.scores import Floats
from seqlab.utils.threads import block_bounds, run_blocks

# Sequences with fewer steps use the plain double loop, which is then faster than the tree of lines
# (measured).
ENVELOPE_FROM = 128


class PhraseSets(NamedTuple):
    """One set of disjoint phrases per sequence.

    Attributes
    ----------
    phrases : StackedPhrases
        First step, step after the last, and type of every phrase, as positions in the stacked steps,
        sorted by start.
    cost : array of shape (n_sequences,)
    """

    phrases: StackedPhrases
    cost: Floats


def best_phrases(
    costs: PhraseCosts | PhraseCandidates, *, method: str = "auto", n_jobs: int | None = None
) -> PhraseSets:
    """Cheapest set of disjoint phrases of each sequence.

    Parameters
    ----------
    costs : PhraseCosts or PhraseCandidates
        Structured costs, or a list of candidates with arbitrary costs.
    method : {"auto", "quadratic", "fast"}
        Algorithm for structured costs. "quadratic" tries all pairs of steps within the length limits.
        "fast" is the lower envelope of lines for the product, O(T log T), and a running minimum for
        the map cost, O(T); it does not support length limits or log-odds. "auto" takes the faster one.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.

    Returns
    -------
    PhraseSets
        Named tuple (phrases, cost). Ties go to the step outside, then to the phrase that begins first.

    Raises
    ------
    NoLegalLabelingError
        If a step must be in a phrase and no candidate can cover it; the message names the sequence.

    Examples
    --------
    >>> from seqlab.inference import PhraseCosts, best_phrases
    >>> costs = PhraseCosts.product([[0.9], [0.2]], [[0.3], [0.8]], threshold=0.5)
    >>> best_phrases(costs).phrases
    StackedPhrases(start=array([0]), stop=array([2]), type=array([0]))
    """
    if method not in ("auto", "quadratic", "fast"):
        raise InputError(f'method must be "auto", "quadratic" or "fast", got {method!r}')
    n_steps = costs.outside.size
    stop = np.full(n_steps, -1, dtype=np.int64)
    type_ = np.zeros(n_steps, dtype=np.int64)
    total = np.zeros(costs.n_sequences)
    if isinstance(costs, PhraseCandidates):
        find_best_listed(
            costs.start, costs.stop, costs.type, costs.cost, costs.outside, costs.offsets,
            stop, type_, total,
        )  # fmt: skip
    else:
        code, fast_from = _choose_method(costs, method)
        arrays = costs.arrays
        bounds = block_bounds(costs.offsets, 64 * costs.n_types)

        def block(b: int) -> None:
            first, last = int(bounds[b]), int(bounds[b + 1])
            best_phrases_block(costs.kind, code, arrays, fast_from, first, last, stop, type_, total)

        run_blocks(block, bounds.size - 1, n_jobs)
    blocked = np.flatnonzero(np.isposinf(total))
    if blocked.size:
        raise NoLegalLabelingError(
            "sequence {sequence} has no legal phrase set: a step that must be in a phrase cannot be "
            "covered by disjoint candidates",
            int(blocked[0]),
        )
    start = np.flatnonzero(stop >= 0)
    return PhraseSets(StackedPhrases(start, stop[start], type_[start]), total)


def _choose_method(costs: PhraseCosts, method: str) -> tuple[int, int]:
    """Code of the method, and the smallest length for which it is used."""
    can_be_fast = costs.kind != LOG_ODDS and not costs.has_limits
    if method == "quadratic" or (method == "auto" and not can_be_fast):
        return QUADRATIC, 0
    if not can_be_fast:
        raise InputError('method="fast" supports neither log-odds nor length limits')
    return FAST, ENVELOPE_FROM if method == "auto" and costs.kind == PRODUCT else 0
