"""Directions that run through the blocks of several labels, and the Hessian among them.

Blocks of the Hessian, one for the weights of each label, treat labels as independent and have no transitions.
There are directions in which each block has much curvature, but all of them together have almost none, so
that training would be slow:

- *offsets*: if some features add up to a constant, a number that is added to their weights for one label, and
  subtracted from all transitions into that label and from its start weight, hardly changes a score. Likewise
  with all transitions from that label and its end weight: there are two directions per label.
- *shifts*: a number added to the weights of a feature for all labels that it was seen with changes only how
  probable the other labels are, which the model hardly ever expects at steps with that feature. (If it was
  seen with all labels, nothing changes: see `invariance`.)

The Hessian is estimated on a sample of sequences, treating steps as independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import block_diag

from seqlab.inference import pair_marginals
from seqlab.structures.chain.columns import outer_products
from seqlab.structures.chain.curvature_block import numbers_of_features, sample_parts
from seqlab.structures.chain.weights import WeightSource, chain_scores
from seqlab.utils.cholesky import factorise, solve_cholesky
from seqlab.utils.linalg import matmul

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]

# Number of directions of one kind: the Hessian among them is dense.
MAX_DIRECTIONS = 1_000
# Steps from which the sum of features is found: this number per feature, and this number besides.
STEPS_PER_FEATURE, MIN_STEPS = 4, 1000
# Penalty of the weights in that sum, relative to the squares of their features.
RIDGE = 1e-4
# Steps in the sample: this share, within these limits.
SHARE, MIN_SAMPLE, MAX_SAMPLE = 0.1, 500, 2_000
# Pair marginals and feature values that are held in memory at a time.
PART_SIZE = 200_000


class _Sums(NamedTuple):
    """Sums over steps, for each label or feature: entries of the Hessian."""

    into: Floats
    out_of: Floats
    both: Floats
    shifts: Floats


class BlockDirections:
    """Directions that run through the blocks of several labels of a chain.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    X : Sequences

    Attributes
    ----------
    directions : CSR matrix of shape (n_directions, n_params)
        The transitions into each label, those from each label, and the shift of each feature.
    """

    def __init__(self, structure: ChainStructure, X: Sequences) -> None:
        self._structure, self._X = structure, X
        n_labels = structure.n_labels
        starts, self._labels = structure.state.explicit()
        counts = np.diff(starts)
        self._feature = np.repeat(np.arange(counts.size), counts)  # of each weight
        self._shifted = np.flatnonzero((counts > 1) & (counts < n_labels))
        self._has_offsets = 2 * n_labels <= MAX_DIRECTIONS
        parts = [sp.csr_matrix((0, structure.n_params))]
        self._factors = np.empty((counts.size, 0))
        if self._has_offsets:
            # The factor of a feature and label; 0 if the pair has no weight.
            self._factors = np.zeros((counts.size, n_labels))
            self._factors[self._feature, self._labels] = constant_sum(X.matrix)[self._feature]
            parts.append(self._offsets())
        if self._shifted.size > MAX_DIRECTIONS:
            self._shifted = np.empty(0, dtype=np.int64)
        is_missing = np.ones((n_labels, counts.size))
        is_missing[self._labels, self._feature] = 0.0
        self._is_missing = is_missing[:, self._shifted]
        parts.append(self._shifts())
        self.directions = sp.vstack(parts).tocsr()

    def _offsets(self) -> sp.csr_matrix:
        structure, n_labels = self._structure, self._structure.n_labels
        of_weights = self._factors[self._feature, self._labels]
        before, after = np.nonzero(structure.has_transition)
        parts: list[tuple[str, Any, Any, Any]] = [
            ("state", self._labels, self._labels, of_weights),
            ("transitions", after, before, None),
        ]
        if structure.boundary:
            every = np.arange(n_labels)
            parts += [("start", every, None, None), ("end", None, every, None)]
        rows, columns, values = [], [], []
        for name, into, out_of, given in parts:
            places = structure.slices[name]
            for first, labels in ((0, into), (n_labels, out_of)):
                if labels is not None:
                    rows.append(labels + first)
                    columns.append(np.arange(places.start, places.stop))
                    values.append(np.full(labels.size, -1.0) if given is None else given)
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return sp.csr_matrix(entries, shape=(2 * n_labels, structure.n_params))

    def _shifts(self) -> sp.csr_matrix:
        row = np.full(self._X.n_features, -1)
        row[self._shifted] = np.arange(self._shifted.size)
        row = row[self._feature]
        weights = np.flatnonzero(row >= 0)
        columns = self._structure.slices["state"].start + weights
        shape = self._shifted.size, self._structure.n_params
        return sp.csr_matrix((np.ones(weights.size), (row[weights], columns)), shape=shape)

    def hessian(self, w: Floats, weights: Floats | None) -> Floats:
        """Return the Hessian of the log-partitions at ``w`` among the directions.

        ``weights`` are those of the sequences, 1 if not given.
        """
        X, n_labels = self._X, self._structure.n_labels
        n_steps = int(min(max(SHARE * X.n_steps, MIN_SAMPLE), MAX_SAMPLE))
        into, out_of, both = np.zeros((3, n_labels))
        sums = _Sums(into, out_of, both, np.zeros(self._shifted.size))
        sampled = 0.0
        numbers = n_labels * n_labels + numbers_of_features(X)  # of a step
        for part in sample_parts(X, numbers, n_steps, part_size=PART_SIZE):
            sample = X[part]
            some = np.ones(part.size) if weights is None else weights[part]
            self._add(sample, w, np.repeat(some, sample.lengths), sums)
            sampled += float(np.sum(some * sample.lengths))
        lengths = X.lengths.astype(np.float64)
        total = float(lengths.sum() if weights is None else np.sum(lengths * weights))
        into, out_of, both, shifts = (part * (total / max(sampled, 1e-300)) for part in sums)
        of_offsets = np.empty((0, 0))
        if self._has_offsets:
            of_offsets = np.block(
                [[np.diag(into), np.diag(both)], [np.diag(both), np.diag(out_of)]]
            )
        return block_diag(of_offsets, np.diag(shifts))

    def _add(self, sample: Sequences, w: Floats, step_weights: Floats, sums: _Sums) -> None:
        """Add the variances of what the directions change at each step."""
        structure = self._structure
        block = sample.block(0, len(sample))
        scores = chain_scores(WeightSource(structure.weights(w), sample), block)
        _, node, pair = pair_marginals(scores)
        rows = sample.matrix.toarray() if sample.is_sparse else sample.matrix
        if self._has_offsets:
            first, last = sample.offsets[:-1], sample.offsets[1:] - 1
            with_weight = pair * structure.has_transition
            # Probability of a label together with a transition (or a boundary) that has a weight.
            before, after = with_weight.sum(axis=1), np.zeros_like(node)
            after[:-1] = with_weight[1:].sum(axis=2)
            for steps, at_boundary in ((first, before), (last, after)):
                at_boundary[steps] = node[steps] if structure.boundary else 0.0
            change = matmul(rows, self._factors)
            means, squares = [], []
            for counted in (before, after):
                means.append(change * node - counted)
                squares.append(change * change * node - 2.0 * change * counted + counted)
            for total, mean, square in zip(sums[:2], means, squares, strict=True):
                total += np.einsum("t,tj->j", step_weights, square - mean * mean)
            # Given its label, a step's transitions into it and from it are independent.
            odds = np.divide(1.0 - node, node, out=np.zeros_like(node), where=node > 0.0)
            sums.both[:] += np.einsum("t,tj->j", step_weights, means[0] * means[1] * odds)
        if self._shifted.size:
            missing = np.minimum(matmul(node, self._is_missing), 1.0)
            x = rows[:, self._shifted]
            with np.errstate(over="ignore"):
                sums.shifts[:] += np.einsum(
                    "t,tf->f", step_weights, x * x * (missing * (1.0 - missing))
                )


def constant_sum(matrix: Any) -> Floats:
    """Return the factors of the features whose weighted sum is nearest to 1, by least squares."""
    n_steps, n_features = matrix.shape
    every = max(1, n_steps // (STEPS_PER_FEATURE * n_features + MIN_STEPS))
    steps = np.arange(0, n_steps, every)
    products = outer_products(matrix, steps, np.ones(steps.size))
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.asarray(matrix[::every].sum(axis=0), dtype=np.float64).ravel()
        roots = np.sqrt(np.diag(products))
        is_used = np.isfinite(roots) & (roots > 0.0)
        products = np.where(is_used & is_used[:, None], products, 0.0)
    roots, sums = np.where(is_used, roots, 1.0), np.where(is_used, sums, 0.0)
    products /= roots
    products /= roots[:, None]
    products[np.diag_indices_from(products)] += RIDGE
    if not factorise(products):
        return np.zeros(n_features)
    return solve_cholesky(products, sums / roots) / roots
