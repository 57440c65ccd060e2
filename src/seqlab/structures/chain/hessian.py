"""The Hessian of a chain's log-partitions with the covariances between steps, of all or of some weights.

`curvature_block` treats steps as independent. If labels stay the same for many steps, as in records of
sensors, a wrong label lasts as long, and the covariances between steps are most of the Hessian: for days of
1,440 minutes its curvature was wrong by factors of 0.005 to 100. Here they are exact, but for labels that are
hardly probable.

On any chain there are directions whose curvature is small only because of these covariances: between two
changes from one label to another there is a change back, so a number that is added to all transitions into
a label and subtracted from all transitions out of it changes scores at the ends of a sequence alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.chain_covariances import add_covariances, add_transpose
from seqlab.structures.chain.curvature_block import (
    complete_block,
    layout_of,
    numbers_of_features,
    sample_parts,
)
from seqlab.structures.chain.weights import WeightSource, as_csr, chain_scores

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]

# Scores, marginals and feature values that are held in memory at a time, after which it is known whether the
# whole would take too long. The whole Hessian is not computed if a sequence needs more than the second
# number.
NUMBERS_PER_PART, MAX_NUMBERS = 20_000, 5_000_000
# Share of the correlations that is removed if they come from a sample: on 15 data sets 1e-3 and 1e-2 took as
# many iterations. A large share would give directions in which features cancel too much curvature.
SHRINKAGE = 1e-3
# Smallest variance, relative to that of the same weight if steps were independent: a sample, and the labels
# that are left out, may hide most of it. On 15 data sets fits with 0.1 and 0.3 took about as long, and with 1
# 4 % longer.
MIN_VARIANCE = 0.3


class _Rows(NamedTuple):
    """The rows of a matrix that belong to weights, as the kernel `add_covariances` reads them."""

    starts: NDArray[np.int32]
    labels: NDArray[np.int32]
    edge_starts: NDArray[np.int32]
    edge_pairs: NDArray[np.int32]
    row_of_edge: int
    row_of_transition: NDArray[np.int64]
    row_of_start: int


def chain_hessian(
    structure: ChainStructure,
    X: Sequences,
    w: Floats,
    weights: Floats | None,
    *,
    min_probability: float,
    max_products: float,
) -> Floats | None:
    """Return the Hessian at ``w``, of shape (n_params, n_params).

    None if a sequence is too long, or if it takes more than ``max_products`` operations.

    Parameters
    ----------
    min_probability : float
        Labels that are less probable at a step are left out.
    """
    numbers = _numbers_per_step(structure, X)
    if X.lengths.max(initial=0) * numbers > MAX_NUMBERS:
        return None
    starts, labels = structure.state.explicit()
    edge_starts = edge_pairs = np.zeros(0, dtype=np.int32)
    if structure.edge is not None:
        edge_starts, edge_pairs = structure.edge.explicit()
    first = structure.slices["transitions"].start
    transitions = np.where(
        structure.transition_index >= 0, structure.transition_index + first, -1
    ).astype(np.int64)
    row_of_start = structure.slices["start"].start if structure.boundary else -1
    rows = _Rows(
        starts.astype(np.int32), labels.astype(np.int32), edge_starts, edge_pairs,
        structure.slices["edge"].start, transitions, row_of_start,
    )  # fmt: skip
    out, n_products = np.zeros((structure.n_params, structure.n_params)), 0
    places = X.offsets[1:] * numbers // NUMBERS_PER_PART
    ends = [*(np.flatnonzero(np.diff(places)) + 1).tolist(), len(X)]
    for begin, stop in zip([0, *ends[:-1]], ends, strict=True):
        some = None if weights is None else weights[begin:stop]
        n_products += _add_part(structure, X[begin:stop], w, some, rows, min_probability, out)
        if n_products * X.n_steps > max_products * X.offsets[stop]:
            return None  # the other parts will take as long
    add_transpose(out)
    return out


def sample_hessian(
    structure: ChainStructure,
    X: Sequences,
    w: Floats,
    weights: Floats | None,
    chosen: NDArray[np.int64],
    diagonal: Floats,
    *,
    min_probability: float,
    max_products: float,
) -> Floats | None:
    """Return the block of the Hessian at ``w`` of the chosen weights; None without weights or samples.

    It comes from random sequences, about as many as ``max_products`` operations are enough for, and is
    positive definite. ``diagonal`` is that of the Hessian for these weights, treating steps as independent:
    it replaces variances of zero, and others are at least a share of it.

    Parameters
    ----------
    chosen : array of int
        Weights of labels, transitions and, all or none, of boundaries; in this order.
    min_probability : float
        Labels that are less probable at a step are left out.
    """
    if chosen.size == 0:
        return None
    n_boundary = int(np.count_nonzero(chosen >= structure.slices["start"].start))
    n_others = chosen.size - n_boundary
    starts, labels, _, transitions = layout_of(structure, chosen[:n_others])
    no_edge = np.zeros(0, dtype=np.int32)
    row_of_start = n_others if n_boundary else -1
    rows = _Rows(starts, labels.astype(np.int32), no_edge, no_edge, 0, transitions, row_of_start)
    out, n_products, sampled = np.zeros((chosen.size, chosen.size)), 0, 0.0
    numbers = _numbers_per_step(structure, X)
    for part in sample_parts(X, numbers, X.n_steps, part_size=NUMBERS_PER_PART):
        sample, some = X[part], None if weights is None else weights[part]
        n_products += _add_part(structure, sample, w, some, rows, min_probability, out)
        sampled += float(sample.n_steps if some is None else np.sum(some * sample.lengths))
        if n_products > max_products:
            break
    if sampled == 0.0:
        return None
    add_transpose(out)
    out *= float(X.n_steps if weights is None else np.sum(X.lengths * weights)) / sampled
    variances = np.diag(out).copy()
    least = np.maximum(variances, MIN_VARIANCE * diagonal)
    complete_block(out, np.where(variances > 0.0, least, diagonal), SHRINKAGE)
    return out


def _numbers_per_step(structure: ChainStructure, X: Sequences) -> int:
    """Return the number of scores, marginals and feature values of a step, on average."""
    n_scores = structure.n_labels ** (1 if structure.edge is None else 2)
    return 4 * n_scores + numbers_of_features(X)


def _add_part(
    structure: ChainStructure,
    part: Sequences,
    w: Floats,
    weights: Floats | None,
    rows: _Rows,
    min_probability: float,
    out: Floats,
) -> int:
    """Add the covariances of some sequences to one half of ``out``; return the number of operations."""
    scores = chain_scores(WeightSource(structure.weights(w), part), part.block(0, len(part)))
    # A constant factor cancels.
    factors = np.exp(scores.pairwise - scores.pairwise.max())
    factors = factors.reshape(-1, structure.n_labels, structure.n_labels)
    X = as_csr(part).matrix
    some = np.ones(len(part)) if weights is None else weights
    n_products: int = add_covariances(
        scores.unary, factors, scores.start, scores.end, scores.offsets, X.indptr, X.indices,
        X.data, some, *rows, min_probability, out,
    )  # fmt: skip
    return n_products
