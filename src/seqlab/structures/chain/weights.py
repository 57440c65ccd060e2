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
from seqlab.structures.chain.columns import csr_rows
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
        self._transitions = weights.transitions
        self._matrix = X.matrix
        self._table: EmissionTable | None = None
        coef, edge_coef = weights.coef, weights.edge_coef
        if not X.is_sparse:
            coef, edge_coef = _to_dense(coef), _to_dense(edge_coef)
        self._coef, self._edge_coef = coef, edge_coef
        if (
            repeated
            and X.is_sparse
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
        return emit(self._matrix, self._coef, block.begin, block.stop)

    def edge_scores(self, block: SequenceBlock) -> Floats:
        """Return the transition scores; with edge features (n_block_steps, n_labels, n_labels)."""
        transitions = self._transitions
        if self._edge_coef is None:
            return transitions
        scores = emit(self._matrix, self._edge_coef, block.begin, block.stop)
        edges = scores.reshape(-1, *transitions.shape)
        edges += transitions
        return edges


def as_csr(X: Sequences) -> Sequences:
    """Return the same sequences with a CSR matrix."""
    if X.is_sparse:
        return X
    matrix = csr_rows(X.matrix, 0, X.n_steps)
    return Sequences(matrix, X.offsets, feature_names=X.feature_names)


def _to_dense(coef: Any) -> Any:
    """Return weights as a Fortran-ordered array, whose transpose matrix products can use as it is."""
    return np.asfortranarray(coef.toarray(order="F")) if sp.issparse(coef) else coef


def chain_scores(source: ScoreSource, block: SequenceBlock) -> ChainScores:
    """Return the scores of a block of chains, as inference expects them."""
    return ChainScores(
        source.node_scores(block),
        source.edge_scores(block),
        source.start,
        source.end,
        block.offsets,
    )
