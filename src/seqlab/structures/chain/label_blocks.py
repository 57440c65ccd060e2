"""Blocks of the Hessian of a chain's log-partitions, one for the weights of each label.

If there are few features, such as pixels, sensors or the dimensions of an embedding, what makes training slow
is that they are correlated: neighbouring pixels are on together, and sensors measure the same thing. The
block of label ``j`` is ``sum_t p_tj (1 - p_tj) x_t x_t'`` for its marginals ``p``, treating steps as
independent. Only few steps are undecided about a label, so a sample of steps with probabilities proportional
to ``p (1 - p)`` needs a few times as many steps as there are features. It is systematic: the steps at which
the cumulated sum of ``p (1 - p)`` passes equidistant values. The marginals come from the pass that computes
the diagonal of the Hessian.

One matrix of the features for all labels, times the covariances of the labels (a Kronecker product), took 1.5
to 2 times as many iterations on the OCR letters: which pixels matter differs between labels.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.structures.chain.block_directions import BlockDirections
from seqlab.structures.chain.columns import outer_products
from seqlab.structures.chain.curvature_block import (
    PRECISE_SHRINKAGE,
    SHRINKAGE,
    complete_block,
)
from seqlab.structures.values import LabelCurvature
from seqlab.utils.threads import run_blocks

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Sampled steps per label and feature; fewer, down to the minimum, if there is little work in a pass.
MIN_SAMPLED, MAX_SAMPLED = 2, 8
# All blocks may take as long as this number of passes over the data. A pass counts as this many times its
# operations: these count entries, of which vector units multiply about eight at a time.
MAX_PASSES, WORK_OF_PASS = 4.0, 7.5
# Variances that are stored: at most as much memory as this share of the data, or this many bytes.
MEMORY_SHARE, MIN_BYTES = 0.25, 1 << 24
# Smallest sum of the squared correlations of a feature with the others, on average. With less, as if exactly
# one of the features is on, the blocks are diagonal, and a single block with the transitions is better.
MIN_CORRELATION = 0.1
# Share of the correlations that is removed with an L1 penalty: ten fits (five data sets) took 0.85 times as
# many iterations as with `SHRINKAGE`.
SPARSE_SHRINKAGE = 0.002


def plan_label_blocks(
    structure: ChainStructure,
    X: Sequences,
    work_per_pass: float,
    *,
    max_passes: float | None = None,
    n_jobs: int | None = None,
) -> LabelBlocks | None:
    """Return blocks that passes can fill; None if they would take too long, or with edge features.

    They may take as long as ``max_passes`` passes over the data; by default `MAX_PASSES`.
    """
    max_passes = MAX_PASSES if max_passes is None else max_passes
    n_features = X.matrix.shape[1]
    products = max(float(n_features) ** 2 * structure.n_labels, 1.0)  # of one step per label
    # Factorising takes as long as the products of a third as many steps as there are features.
    size = WORK_OF_PASS * max_passes * work_per_pass / products - n_features / 3.0
    if structure.edge is not None or n_features < 2 or size < MIN_SAMPLED * n_features:
        return None
    return LabelBlocks(structure, X, int(min(size, MAX_SAMPLED * n_features)), n_jobs=n_jobs)


class LabelBlocks:
    """Blocks of the Hessian, one per label, from a sample of steps.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    X : Sequences
    size : int
        Number of steps that are sampled for each label.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    first_place : int64 array of shape (n_sequences,)
        Place of the first step of each sequence; -1 for sequences that are left out to save memory.
    variances : float32 array of shape (n_labels, n_places)
        ``p (1 - p)`` of each label and step, times the weight of its sequence: a pass writes them.
    point : tuple of (w, weights)
        Weights of the features at which, and weights of the sequences with which, the pass was run.
    """

    def __init__(
        self, structure: ChainStructure, X: Sequences, size: int, *, n_jobs: int | None = None
    ) -> None:
        self._structure, self._X, self._size, self._n_jobs = structure, X, size, n_jobs
        n_labels, lengths = structure.n_labels, X.lengths
        n_bytes = X.matrix.data.nbytes if X.is_sparse else X.matrix.nbytes
        limit = max(MEMORY_SHARE * n_bytes, MIN_BYTES)
        every = max(int(np.ceil(4.0 * n_labels * X.n_steps / limit)), 1)
        is_stored = np.arange(lengths.size) % every == 0
        stored_lengths = np.where(is_stored, lengths, 0)
        self.first_place = np.where(is_stored, np.cumsum(stored_lengths) - stored_lengths, -1)
        self._steps = np.flatnonzero(np.repeat(is_stored, lengths))
        self.variances = np.zeros((n_labels, self._steps.size), dtype=np.float32)
        self.point: tuple[Floats, Floats | None] = np.zeros(structure.n_params), None

    def compute(
        self, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> LabelCurvature | None:
        """Return the weights of each label and their block, with the given diagonal of the Hessian.

        Only correlations come from the sample; they are shrunk, unless ``precise``. None if features are
        hardly correlated. Directions that run through several blocks are added, unless ``sparse``.
        """
        shrinkage = PRECISE_SHRINKAGE if precise else SPARSE_SHRINKAGE if sparse else SHRINKAGE
        starts, labels = self._structure.state.explicit()
        feature = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        by_label = np.argsort(labels, kind="stable")
        n_labels, state = self._structure.n_labels, self._structure.slices["state"]
        cuts = np.searchsorted(labels[by_label], np.arange(n_labels + 1))

        def block(label: int) -> tuple[Ints, Floats]:
            weights = by_label[cuts[label] : cuts[label + 1]]
            products = outer_products(self._X.matrix, *self._sample(label))
            chosen = feature[weights]
            if chosen.size < products.shape[0]:
                products = products[np.ix_(chosen, chosen)]
            complete_block(products, diagonal[state][weights], shrinkage)
            return weights + state.start, products

        blocks = run_blocks(block, n_labels, self._n_jobs)
        correlations = [_mean_correlation(products) for _, products in blocks]
        if np.mean(correlations) < MIN_CORRELATION:
            return None
        if sparse:
            none = sp.csr_matrix((0, self._structure.n_params))
            return LabelCurvature(blocks, none, np.empty((0, 0)))
        found = self._directions
        return LabelCurvature(blocks, found.directions, found.hessian(*self.point))

    @cached_property
    def _directions(self) -> BlockDirections:
        return BlockDirections(self._structure, self._X)

    def _sample(self, label: int) -> tuple[Ints, Floats]:
        """Return steps with probabilities proportional to their variances, and how often each is drawn."""
        sums = np.cumsum(self.variances[label], dtype=np.float64)
        total = sums[-1] if sums.size else 0.0
        if not total > 0.0:
            return np.empty(0, dtype=np.int64), np.empty(0)
        places = np.searchsorted(sums, (np.arange(self._size) + 0.5) * (total / self._size))
        chosen, counts = np.unique(np.minimum(places, sums.size - 1), return_counts=True)
        return self._steps[chosen], counts.astype(np.float64)


def _mean_correlation(block: Floats) -> float:
    """Return the sum of the squared correlations of a feature with the others, on average."""
    variances = np.diag(block)
    is_used = variances > 0.0
    if not is_used.any():
        return 0.0
    roots = np.sqrt(variances[is_used])
    correlations = block[np.ix_(is_used, is_used)] / roots / roots[:, None]
    return float(np.mean(np.sum(correlations * correlations, axis=1) - 1.0))
