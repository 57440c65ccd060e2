"""Cheapest sets of disjoint phrases: constraint satisfaction with classifiers, as a shortest path.

Every stretch of a sequence is a candidate phrase, of every type, with a cost (`PhraseCosts`); steps in no
phrase cost ``outside``. Among all sets of *disjoint* phrases the cheapest is a shortest path over the
gaps between steps, with one edge per candidate and one for each step that stays outside.

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
    listed_path_all,
)
from seqlab.inference.phrases.costs import PhraseCandidates, PhraseCosts
from seqlab.inference.scores import Floats
from seqlab.utils.threads import block_bounds, run_blocks

# Below this length the plain double loop is faster than the trees of the envelope (measured).
ENVELOPE_FROM = 128


class PhraseSets(NamedTuple):
    """One set of disjoint phrases per sequence.

    Attributes
    ----------
    phrases : StackedPhrases
        First step, step after the last and type of every phrase, in the coordinates of the stacked
        steps, sorted by start.
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
        Structured costs, or a list of candidates with costs of any kind.
    method : {"auto", "quadratic", "fast"}
        Of structured costs. "quadratic" tries all pairs of steps, or those within the limits of length.
        "fast" is the lower envelope of lines for the product, O(T log T), and a running minimum for
        the map cost, O(T); it knows no limits of length and no log-odds. "auto" takes what is faster.
    n_jobs : int, optional
        Number of threads; the result has the same bits for any.

    Returns
    -------
    PhraseSets
        Named tuple (phrases, cost). Ties go to the step outside, then to the phrase that begins first.

    Raises
    ------
    NoLegalLabelingError
        Where a step must be in a phrase and no candidate covers it; the sequence is named.

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
        listed_path_all(
            costs.start, costs.stop, costs.type, costs.cost, costs.outside, costs.offsets,
            stop, type_, total,
        )  # fmt: skip
    else:
        code, fast_from = _method(costs, method)
        arrays = (
            costs.first, costs.last, costs.through, costs.outside, costs.opens, costs.closes,
            costs.threshold, costs.shortest, costs.longest, fast_from, costs.offsets,
        )  # fmt: skip
        bounds = block_bounds(costs.offsets, 64 * costs.n_types)

        def block(b: int) -> None:
            first, last = int(bounds[b]), int(bounds[b + 1])
            best_phrases_block(costs.kind, code, *arrays, first, last, stop, type_, total)

        run_blocks(block, bounds.size - 1, n_jobs)
    blocked = np.flatnonzero(np.isposinf(total))
    if blocked.size:
        raise NoLegalLabelingError(
            "sequence {sequence} has no legal phrase set: a step that must be in a phrase is in no "
            "candidate that could stand beside the others",
            int(blocked[0]),
        )
    start = np.flatnonzero(stop >= 0)
    return PhraseSets(StackedPhrases(start, stop[start], type_[start]), total)


def _method(costs: PhraseCosts, method: str) -> tuple[int, int]:
    """Code of the method and the length from which on it is used."""
    possible = costs.kind != LOG_ODDS and not costs.has_limits
    if method == "quadratic" or (method == "auto" and not possible):
        return QUADRATIC, 0
    if not possible:
        raise InputError('method="fast" knows neither log-odds nor limits of length')
    return FAST, ENVELOPE_FROM if method == "auto" and costs.kind == PRODUCT else 0
