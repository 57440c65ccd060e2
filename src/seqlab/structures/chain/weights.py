"""ChainWeights: the weights of a linear chain in readable form, and the scores they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores
from seqlab.structures.chain.emission import MAX_LABELS, EmissionTable
from seqlab.structures.chain.pattern import emit
from seqlab.structures.sources import ScoreSource

Floats = NDArray[np.float64]
# Build an emission table only if X has at least 1/64 stored entries per feature of the model: building it
# takes a little time for every feature.
MIN_ENTRIES_PER_FEATURE = 1 / 64


@dataclass(slots=True)
class ChainWeights:
    """The weights of a linear chain in readable form.

    Parameters
    ----------
    coef : array or CSC matrix of shape (n_labels, n_features)
        Weight of each feature for each label.
    transitions : array of shape (n_labels, n_labels)
        From the first axis to the second.
    start, end : arrays of shape (n_labels,)
        Boundary weights.
    edge_coef : array or CSC matrix of shape (n_labels * n_labels, n_features), optional
        Weight of each feature for each pair of labels (row ``i * n_labels + j`` is from i to j).
    """

    coef: Any
    transitions: Floats
    start: Floats
    end: Floats
    edge_coef: Any = None

    def check(self, n_features: int) -> None:
        """Raise `InputError` if shapes do not match each other or the data: kernels do not check them."""
        n_labels = self.coef.shape[0]
        shapes = {
            "coef": (self.coef, (n_labels, n_features)),
            "transitions": (self.transitions, (n_labels, n_labels)),
            "edge_coef": (self.edge_coef, (n_labels * n_labels, n_features)),
        }
        for name, (part, shape) in shapes.items():
            if part is not None and part.shape != shape:
                raise InputError(f"{name} has shape {part.shape}, expected {shape}")


class WeightSource:
    """Scores of chains from weights; a `ScoreSource`.

    Parameters
    ----------
    weights : ChainWeights
    X : Sequences
        The data to be scored.
    repeated : bool, default=False
        Whether these weights score all of X, so that an emission table can save time.
    """

    def __init__(self, weights: ChainWeights, X: Sequences, *, repeated: bool = False) -> None:
        weights.check(X.n_features)
        self.n_labels = weights.transitions.shape[0]
        self.edges_vary = weights.edge_coef is not None
        self.start, self.end = weights.start, weights.end
        self._weights = weights
        self._matrix = as_csr(X).matrix
        self._table: EmissionTable | None = None
        coef = weights.coef
        if (
            repeated
            and sp.issparse(coef)
            and coef.nnz
            and self._matrix.nnz > MIN_ENTRIES_PER_FEATURE * coef.shape[1]
            and coef.shape[0] <= MAX_LABELS
        ):
            csc = coef if coef.format == "csc" else coef.tocsc()
            self._table = EmissionTable(csc, self._matrix)

    def node_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each label at each step, shape (n_block_steps, n_labels)."""
        if self._table is not None:
            return self._table.emit(block.begin, block.stop)
        return emit(self._matrix, self._weights.coef, block.begin, block.stop)

    def edge_scores(self, block: SequenceBlock) -> Floats:
        """Return the transition scores; with edge features (n_block_steps, n_labels, n_labels)."""
        transitions = self._weights.transitions
        if self._weights.edge_coef is None:
            return transitions
        scores = emit(self._matrix, self._weights.edge_coef, block.begin, block.stop)
        edges = scores.reshape(-1, *transitions.shape)
        edges += transitions
        return edges


def as_csr(X: Sequences) -> Sequences:
    """Return the same sequences with a CSR matrix, which the kernels of the chain need."""
    if X.is_sparse:
        return X
    return Sequences(sp.csr_matrix(X.matrix), X.offsets, feature_names=X.feature_names)


def mean_squares(matrix: sp.csr_matrix) -> Floats:
    """Return the mean square of the stored values of each column; 1 for an empty column."""
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    with np.errstate(over="ignore"):
        sums = np.bincount(matrix.indices, matrix.data**2, matrix.shape[1])
    return np.where(sums > 0.0, sums / np.maximum(counts, 1), 1.0)


def chain_scores(source: ScoreSource, block: SequenceBlock) -> ChainScores:
    """Return the scores of a block of chains, as inference expects them."""
    return ChainScores(
        source.node_scores(block),
        source.edge_scores(block),
        source.start,
        source.end,
        block.offsets,
    )
