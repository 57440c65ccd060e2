"""Sources of scores: weights, score functions or kernel coefficients.

For any structure, a source gives the scores of a block of samples in two tables: one score for each position
and label, and one for each pair of labels on an edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
ScoreFunction = Callable[[SequenceBlock], Floats]


class ScoreSource(Protocol):
    """Scores of blocks of samples.

    Attributes
    ----------
    n_labels : int
    edges_vary : bool
        Whether the edge scores differ from position to position.
    start, end : arrays of shape (n_labels,)
        Scores of the labels at the first and at the last position of a sample.
    """

    n_labels: int
    edges_vary: bool
    start: Floats
    end: Floats

    def node_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each label at each position, shape (n_block_positions, n_labels)."""
        ...

    def edge_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each pair of labels on an edge.

        Shape (n_labels, n_labels), or (n_block_positions, n_labels, n_labels) if ``edges_vary``: entry ``t``
        is for the edge that ends at position ``t``.
        """
        ...


class FunctionSource:
    """Scores from functions of a block, for example sums of regression trees.

    Parameters
    ----------
    n_labels : int
    node_scores : callable
        Takes a `SequenceBlock`, returns an array of shape (n_block_positions, n_labels).
    edge_scores : array of shape (n_labels, n_labels) or callable, optional
        Constant, or a callable like `node_scores`; zeros if not given.
    start, end : arrays of shape (n_labels,), optional
        Zeros if not given.
    """

    def __init__(
        self,
        n_labels: int,
        node_scores: ScoreFunction,
        edge_scores: Floats | ScoreFunction | None = None,
        start: Floats | None = None,
        end: Floats | None = None,
    ) -> None:
        self.n_labels = n_labels
        self.edges_vary = callable(edge_scores)
        self.start = np.zeros(n_labels) if start is None else start
        self.end = np.zeros(n_labels) if end is None else end
        self._node_scores = node_scores
        self._edge_scores: Any = np.zeros((n_labels, n_labels))
        if edge_scores is not None:
            self._edge_scores = edge_scores

    def node_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each label at each position; see `ScoreSource`."""
        return self._node_scores(block)

    def edge_scores(self, block: SequenceBlock) -> Floats:
        """Return the score of each pair of labels on an edge; see `ScoreSource`."""
        return self._edge_scores(block) if self.edges_vary else self._edge_scores


class KernelSource(FunctionSource):
    """Scores from kernel coefficients: ``score(t, y) = sum_s K(x_t, x_s) coefficients[s, y]``.

    Parameters
    ----------
    coefficients : array of shape (n_training_positions, n_labels)
    kernel_rows : callable
        Takes a `SequenceBlock`, returns the kernel between its positions and the training positions, shape
        (n_block_positions, n_training_positions).
    edge_scores, start, end
        As in `FunctionSource`.
    """

    def __init__(
        self,
        coefficients: Floats,
        kernel_rows: ScoreFunction,
        edge_scores: Floats | ScoreFunction | None = None,
        start: Floats | None = None,
        end: Floats | None = None,
    ) -> None:
        super().__init__(coefficients.shape[1], self._kernel_scores, edge_scores, start, end)
        self._coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        self._kernel_rows = kernel_rows

    def _kernel_scores(self, block: SequenceBlock) -> Floats:
        rows = np.ascontiguousarray(self._kernel_rows(block), dtype=np.float64)
        expected = (block.n_steps, self._coefficients.shape[0])
        if rows.shape != expected:
            raise InputError(f"the kernel has shape {rows.shape}, expected {expected}")
        return matmul(rows, self._coefficients)
