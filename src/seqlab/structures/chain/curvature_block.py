"""A dense block of the Hessian of a chain's log-partitions, treating steps as independent.

It is computed for the weights with the largest diagonal entries. These belong to frequent features, which are
often almost collinear, so that the diagonal alone is a bad model of the Hessian. Correlations are estimated
on a sample of the sequences; the diagonal is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.step_covariances import add_covariances
from seqlab.structures.chain.columns import join_halves
from seqlab.structures.chain.weights import WeightSource, as_csr, chain_scores

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Weights of which the largest are searched at a time.
CHUNK = 1 << 16
# Size of the sample: number of label pairs at all steps, within limits for the number of steps; and the
# number of products in the sum over the steps.
MAX_PAIRS = 2_000_000
MIN_STEPS, MAX_STEPS = 4_000, 10_000
MAX_PRODUCTS = 2_000_000
# Pair marginals and feature values that are held in memory at a time; sequences that need more than the
# second limit are not sampled.
NUMBERS_PER_PART, MAX_NUMBERS = 200_000, 2_000_000
# Share of the correlations that is removed: they come from a sample.
SHRINKAGE = 0.02
PRECISE_SHRINKAGE = 1e-12  # against rounding errors alone
# Sampled steps per weight with which a block can be precise, unless the sample is all of the data.
STEPS_PER_WEIGHT = 4


def largest_weights(structure: ChainStructure, importance: Floats, size: int) -> Ints:
    """Return the indices of at most ``size`` weights of labels and transitions with the largest values.

    Only positive values count; of equal ones, those of the first weights.
    """
    parts = _slices(structure)
    largest = np.empty(0)
    for values in (importance[part] for part in parts):
        for first in range(0, values.size, CHUNK):  # a copy of all values would take longer
            some = values[first : first + CHUNK]
            least = largest.min() if largest.size == size else 0.0
            largest = np.concatenate([largest, some[some > least]])
            largest = largest if largest.size <= size else np.partition(largest, -size)[-size:]
    if largest.size == 0:
        return np.empty(0, dtype=np.int64)
    least = largest.min()
    n_equal = np.count_nonzero(largest == least)
    found = [part.start + np.flatnonzero(importance[part] >= least) for part in parts]
    chosen = np.concatenate(found, dtype=np.int64)
    is_equal = importance[chosen] == least
    return chosen[~is_equal | (np.cumsum(is_equal) <= n_equal)]


def nonzero_weights(structure: ChainStructure, w: Floats, importance: Floats, size: int) -> Ints:
    """Return the indices of at most ``size`` weights that are not zero, with the largest values.

    All transitions that are not zero, and the weights of boundaries, come first, unless they would be more
    than half of them: there are directions through all of these that have almost no curvature.
    """
    importance = np.where(w != 0.0, importance, 0.0)
    part = structure.slices["transitions"]
    transitions = part.start + np.flatnonzero(importance[part])
    boundaries = np.arange(structure.slices["start"].start, structure.n_params)
    if transitions.size + boundaries.size > size // 2:
        return largest_weights(structure, importance, size)
    importance[part] = 0.0
    states = largest_weights(structure, importance, size - transitions.size - boundaries.size)
    return np.concatenate([states, transitions, boundaries])


def sample_block(
    structure: ChainStructure,
    X: Sequences,
    w: Floats,
    weights: Floats | None,
    chosen: Ints,
    diagonal: Floats,
    *,
    precise: bool = False,
) -> Floats:
    """Return the block of the chosen weights; ``diagonal`` is that of the Hessian, for these weights.

    The given diagonal is used for weights of labels. For transitions it is only an upper bound, so theirs
    comes from the sample. Correlations are shrunk, unless ``precise`` and the sample is large enough.
    """
    covariances = np.zeros((chosen.size, chosen.size))
    layout = layout_of(structure, chosen)
    n_products, n_sampled, sampled = 0, 0, 0.0
    n_steps = min(max(MAX_PAIRS // structure.n_labels**2, MIN_STEPS), MAX_STEPS)
    numbers = structure.n_labels**2 + numbers_of_features(X)  # of a step
    for part in sample_parts(X, numbers, n_steps):
        sample = X[part]
        block = sample.block(0, len(sample))
        scores = chain_scores(WeightSource(structure.weights(w), sample), block)
        # A constant factor cancels.
        factors = np.exp(scores.pairwise - scores.pairwise.max())
        factors = factors.reshape(-1, structure.n_labels, structure.n_labels)
        rows = as_csr(sample).matrix
        some = np.ones(len(sample)) if weights is None else weights[part]
        n_products += add_covariances(
            scores.unary, factors, scores.start, scores.end, scores.offsets,
            rows.indptr, rows.indices, rows.data, some, *layout, covariances,
        )  # fmt: skip
        sampled += float(np.sum(some * sample.lengths))
        n_sampled += sample.n_steps
        if n_products > MAX_PRODUCTS:
            break
    covariances = join_halves(covariances)
    lengths = X.lengths.astype(np.float64)
    total = float(lengths.sum() if weights is None else np.sum(lengths * weights))
    variances = np.diag(covariances).copy() * (total / max(sampled, 1e-300))
    first_transition = np.searchsorted(chosen, structure.slices["transitions"].start)
    is_known = np.arange(chosen.size) < first_transition
    variances = np.where(is_known | ~(variances > 0.0), diagonal, variances)
    is_large = n_sampled >= min(STEPS_PER_WEIGHT * chosen.size, X.n_steps)
    complete_block(covariances, variances, PRECISE_SHRINKAGE if precise and is_large else SHRINKAGE)
    return covariances


def layout_of(
    structure: ChainStructure, chosen: Ints
) -> tuple[NDArray[np.int32], Ints, Ints, Ints]:
    """Return the chosen weights, in order, as kernels read them: feature by feature, and transitions."""
    states, transitions = _slices(structure)
    of_labels = chosen[chosen < states.stop] - states.start
    starts, labels = structure.state.explicit()
    before = np.zeros(starts.size, dtype=np.int32)
    np.add.at(before, np.searchsorted(starts, of_labels, side="right"), 1)
    np.cumsum(before, out=before)
    rank = np.full(transitions.stop - transitions.start, -1, dtype=np.int64)
    rank[chosen[of_labels.size :] - transitions.start] = np.arange(of_labels.size, chosen.size)
    of_transitions = np.full(structure.has_transition.shape, -1, dtype=np.int64)
    of_transitions[structure.has_transition] = rank
    return before, labels[of_labels].astype(np.int64), np.arange(of_labels.size), of_transitions


def _slices(structure: ChainStructure) -> tuple[slice, slice]:
    return structure.slices["state"], structure.slices["transitions"]


def numbers_of_features(X: Sequences) -> int:
    """Return the number of values of features that are stored for a step, on average."""
    n_entries = X.matrix.nnz if X.is_sparse else X.matrix.size
    return int(n_entries // max(X.n_steps, 1))


def sample_parts(
    X: Sequences, numbers: int, n_steps: int, *, part_size: int = NUMBERS_PER_PART
) -> list[Ints]:
    """Return random sequences with about a number of steps together, in parts of bounded memory.

    ``numbers`` are held in memory for each step, and at most about ``part_size`` for each part.
    """
    order = np.random.default_rng(0).permutation(len(X))
    lengths = X.lengths[order]
    is_possible = (lengths > 0) & (lengths * numbers <= MAX_NUMBERS)
    order, ends = order[is_possible], np.cumsum(lengths[is_possible])
    n_taken = int(np.searchsorted(ends, n_steps)) + 1
    order, ends = order[:n_taken], ends[:n_taken]
    part = ends * numbers // part_size
    return np.split(order, np.flatnonzero(np.diff(part)) + 1) if order.size else []


def complete_block(block: Floats, variances: Floats, shrinkage: float) -> None:
    """Turn covariances, in place, into a block with these variances.

    A share of the correlations is removed, because they come from a sample.
    """
    roots = np.sqrt(np.maximum(np.diag(block), 0.0))
    roots[roots == 0.0] = np.inf  # not in the sample: not correlated
    np.fill_diagonal(block, 0.0)
    for factors in (1.0 / roots, np.sqrt((1.0 - shrinkage) * variances)):
        block *= factors[:, None]
        block *= factors
    np.fill_diagonal(block, variances)
