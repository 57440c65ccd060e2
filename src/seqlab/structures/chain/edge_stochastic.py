"""Stochastic gradient passes over the likelihood of a chain with edge features."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.edge_stochastic import sgd_pass
from seqlab.structures.chain.columns import sum_squares
from seqlab.structures.chain.stochastic import DAMPING
from seqlab.structures.chain.structure import label_pairs
from seqlab.structures.chain.weights import as_csr
from seqlab.utils.signals import check_signals

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.bound import BoundChain
    from seqlab.structures.chain.structure import ChainStructure
    from seqlab.structures.partial_labels import PartialLabels

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Ints32 = NDArray[np.int32]
# Largest number of sequences between two additions of the weights to their mean, and largest shrinkage that
# is applied at a time.
PART, MAX_SHRINKAGE = 256, 0.02
# Pair scores of the longest sequence that are held in memory.
MAX_PAIR_SCORES = 1 << 24


class EdgePasses:
    """Stochastic passes over a chain with edge features; implements `StochasticSupport`.

    Parameters
    ----------
    bound : BoundChain
        With edge features.
    """

    def __init__(self, bound: BoundChain) -> None:
        self._bound = bound
        # A feature is active twice, for a label and for a label pair: so the learning rate is half as large.
        self.mean_square = 2.0 * bound.features.mean_square

    @property
    def is_evenly_scaled(self) -> bool:
        """Whether one rate suits all features, and the scores of the longest sequence fit into memory."""
        bound = self._bound
        numbers = int(bound.X.lengths.max(initial=0)) * bound.n_labels**2
        return bound.features.is_evenly_scaled and numbers <= MAX_PAIR_SCORES

    def curvature(self, w: Floats, weights: Floats | None = None) -> Floats:
        """Return the diagonal of the Hessian at ``w``; see `BoundChain.curvature`."""
        return self._bound.curvature(w, weights)

    def stochastic_passes(
        self,
        codes: Codes,
        weights: Floats,
        c2: float,
        rate: float,
        partial: PartialLabels | None = None,
    ) -> EdgeStochasticPasses:
        """Return zero weights, to be trained by stochastic gradient descent."""
        bound = self._bound
        return EdgeStochasticPasses(
            bound.structure, bound.X, codes, weights, partial, c2=c2, rate=rate
        )


class EdgeStochasticPasses:
    """Weights under stochastic gradient descent, starting from zero; see `StochasticPasses`.

    As in `ChainStochasticPasses`, frequent weights have a smaller learning rate, because they would overshoot
    at the common rate. Here the weights are updated after each sequence.

    Parameters
    ----------
    structure : ChainStructure
        With edge features.
    X : Sequences
    codes : array of shape (n_steps,)
    weights : array of shape (n_sequences,)
    partial : PartialLabels, optional
        If some labels are not known. Sequences of which nothing is known are not visited.
    c2 : float
        L2 penalty of the whole objective, divided among the sequences.
    rate : float
        Step size at the beginning.
    """

    def __init__(
        self,
        structure: ChainStructure,
        X: Sequences,
        codes: Codes,
        weights: Floats,
        partial: PartialLabels | None = None,
        *,
        c2: float,
        rate: float,
    ) -> None:
        self._structure, self._X, self._partial = structure, X, partial
        self._offsets = np.array(
            X.offsets
        )  # writeable: the kernel is compiled for one type of array
        self._codes, self._rate = codes, rate
        self._hidden, self._allowed = np.zeros(len(X), dtype=bool), np.zeros((0, 0), dtype=bool)
        visited = weights
        if partial is not None:
            visited, self._allowed = weights[partial.is_informative], partial.allowed
            sequence = np.repeat(np.arange(len(X)), X.lengths)
            self._hidden = np.bincount(sequence, codes < 0, len(X)) > 0
        self._decay = 2.0 * c2 / max(float(visited.sum()), 1e-12)
        # Relative to their mean, so that the rate does not depend on the scale of the weights.
        self._mean_weight = float(visited.mean())
        self._weights = weights / self._mean_weight
        steps = MAX_SHRINKAGE / max(self._decay * rate, 1e-12)
        self._part = int(min(max(steps, 1), PART))
        self.restart()

    def restart(self) -> None:
        """Set all weights to zero."""
        self._step = 0
        self._w = np.zeros(self._structure.n_params)

    def run(self, order: Codes) -> tuple[float, Floats]:
        """Visit the sequences in order.

        Returns
        -------
        loss : float
            Weighted sum of the log-losses, each at the weights when the sequence is visited.
        mean : array of shape (n_params,)
            Mean of the weights during the pass.
        """
        if self._partial is not None:
            order = order[self._partial.is_informative[order]]
        mean, total = np.zeros_like(self._w), 0.0
        parts = [order[i : i + self._part] for i in range(0, order.size, self._part)]
        for part in parts:
            check_signals()
            total += self._run_part(part)
            mean += self._w
        mean /= max(len(parts), 1)
        return total * self._mean_weight, mean

    def _run_part(self, order: Codes) -> float:
        X, offsets, codes, allowed = self._X, self._offsets, self._codes, self._allowed
        weights, hidden, visited = self._weights, self._hidden, order
        if not X.is_sparse:  # only a part has a sparse copy at a time
            steps = np.concatenate([np.arange(*offsets[k : k + 2]) for k in order])
            codes, allowed = codes[steps], allowed[steps] if self._partial else allowed
            X, weights, hidden = as_csr(X[order]), weights[order], hidden[order]
            offsets, visited = np.array(X.offsets), np.arange(order.size)
        self._step, total = sgd_pass(
            visited, offsets, X.matrix.indptr, X.matrix.indices, X.matrix.data, *self._layout,
            self._w, self._shares, codes, weights, hidden, allowed,
            self._decay, self._rate, self._step,
        )  # fmt: skip
        rate = self._rate / (1.0 + self._decay * self._rate * self._step)
        self._w /= 1.0 + (self._decay * rate * order.size) * self._shares
        return float(total)

    @cached_property
    def _layout(self) -> tuple[Ints32, Ints32, Ints32, Ints32, Codes, Codes, bool]:
        """The weights, as the kernel reads them."""
        structure, edge = self._structure, self._structure.edge
        assert edge is not None
        names = "state", "edge", "transitions", "start", "end"
        first = np.array([structure.slices[name].start for name in names])
        others = structure.transition_index, first, structure.boundary
        return *structure.state.explicit(), *edge.explicit(), *others

    @cached_property
    def _shares(self) -> Floats:
        """Factor of the learning rate of each weight; see `ChainStochasticPasses`.

        The number of times that a weight is active is estimated from those of its feature and its label.
        """
        structure, X, n_labels = self._structure, self._X, self._structure.n_labels
        squares = sum_squares(X.matrix, np.ones(X.n_steps))
        pairs = label_pairs(self._codes, X.offsets, n_labels)
        counts = np.empty(structure.n_params)
        for name, pattern, codes in (
            ("state", structure.state, self._codes),
            ("edge", structure.edge, pairs),
        ):
            assert pattern is not None
            starts, columns = pattern.explicit()
            frequency = np.bincount(codes[codes >= 0], minlength=pattern.n_columns) / codes.size
            of_features = np.repeat(squares, np.diff(starts))
            counts[structure.slices[name]] = of_features * frequency[columns]
        seen = np.bincount(pairs[pairs >= 0], minlength=n_labels * n_labels)
        counts[structure.slices["transitions"]] = seen[structure.has_transition.ravel()]
        counts[structure.slices["transitions"].stop :] = len(X) / n_labels  # of the boundaries
        return 1.0 / (1.0 + DAMPING * self._rate * counts / max(len(X), 1))
