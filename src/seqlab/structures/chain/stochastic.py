"""Stochastic gradient passes over the likelihood of a chain without edge features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.simd.lanes import LANES
from seqlab.structures.chain._kernels.stochastic import sgd_pass
from seqlab.structures.chain.hidden_runs import HiddenRuns
from seqlab.structures.chain.mixed_rows import MixedRows
from seqlab.structures.chain.padded_weights import PaddedLayout, PaddedWeights
from seqlab.structures.chain.structure import ChainStructure, label_pairs
from seqlab.utils.linalg import axpy
from seqlab.utils.signals import check_signals

Floats = NDArray[np.float64]
# Sequences sorted by length at a time: with more, groups have more equal lengths but a less random order.
SORT_WINDOW = 64
# Sequences between two additions of the frequent weights to their mean.
PART = 256
# Parts between two additions of all weights to their mean, and between two shrinkages of frequent weights.
PARTS_PER_MEAN = 8
PARTS_PER_SHRINKAGE = 4
# Reduces the learning rate of frequent weights; see `ChainStochasticPasses`.
DAMPING = 0.2


class ChainStochasticPasses:
    """Weights under stochastic gradient descent, starting from zero; see `StochasticPasses`.

    A weight whose feature is active ``n`` times in a group of sequences has ``1 / (1 + DAMPING * rate * n)``
    times the common learning rate, because it would overshoot at the common rate. More damping would allow a
    larger rate, but learns slowly in directions in which frequent features nearly cancel, and there a batch
    solver is slow too.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    X : Sequences
    rows : MixedRows
        Of X.
    codes : array of shape (n_steps,)
    weights : array of shape (n_sequences,)
    hidden : HiddenRuns, optional
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
        rows: MixedRows,
        codes: NDArray[np.int64],
        weights: Floats,
        hidden: HiddenRuns | None = None,
        *,
        c2: float,
        rate: float,
    ) -> None:
        self._structure, self._rows = structure, rows
        self._codes = codes
        self._offsets, self._lengths = np.array(X.offsets), X.lengths
        self._rate = rate
        self._layout = PaddedLayout(structure, rows)
        self._table = PaddedWeights(self._layout)
        self._hidden = hidden
        visited = weights if hidden is None else weights[hidden.is_informative]
        self._decay = 2.0 * c2 / max(float(visited.sum()), 1e-12)
        # Relative to their mean, so that the rate does not depend on the scale of the weights.
        self._mean_weight = float(visited.mean())
        relative = weights / self._mean_weight
        self._weights = relative if np.any(relative != 1.0) else np.empty(0)
        self._has_row = rows.new_rows()
        rows.spread(np.ones(rows.n_weights), self._has_row)
        self._set_shares()
        self.restart()

    def restart(self) -> None:
        """Set all weights to zero."""
        self._step = 0
        self._scale = 1.0  # factor of the weights of rare features
        self._shrinkage = 0.0  # not yet applied to the others
        for table in self._table.tables:
            table[...] = 0.0

    def _set_shares(self) -> None:
        """Compute the factor of the learning rate of each weight of a frequent feature."""
        structure, rows, n_labels = self._structure, self._rows, self._structure.n_labels
        n_groups = max(self._lengths.size, 1) / LANES

        def share(count: Floats) -> Floats:
            return 1.0 / (1.0 + DAMPING * self._rate * count / n_groups)

        self._row_share = share(rows.row_squares())
        self._columns = rows.columns
        if rows.columns is not None:
            self._columns = rows.columns._replace(factors=self._row_share[: rows.n_matrix])
        pairs = label_pairs(self._codes, self._offsets, n_labels)
        seen = np.bincount(pairs[pairs >= 0], minlength=n_labels * n_labels)
        shares = share(seen.reshape(n_labels, n_labels).astype(np.float64))
        self._pairwise_share = np.where(structure.has_transition, shares, 0.0)
        self._boundary_share = share(np.full((2, n_labels), float(self._lengths.size)))

    def run(self, order: NDArray[np.int64]) -> tuple[float, Floats]:
        """Visit the sequences in order.

        Returns
        -------
        loss : float
            Weighted sum of the log-losses, each at the weights when the sequence is visited.
        mean : array of shape (n_params,)
            Mean of the weights during the pass.
        """
        if self._hidden is not None:
            order = order[self._hidden.is_informative[order]]
        average = PaddedWeights(self._layout)
        table, mean = self._table.tables, average.tables
        parts = [order[i : i + PART] for i in range(0, order.size, PART)]
        n_means, total = 0, 0.0
        frequent = [(mean[k], table[k]) for k in (0, 2, 3, 4)]  # all but the state weights
        for i, part in enumerate(parts):
            check_signals()
            total += self._run_part(part)
            if i % PARTS_PER_SHRINKAGE == PARTS_PER_SHRINKAGE - 1 or i == len(parts) - 1:
                self._shrink()
            # Frequent weights are noisy and few, so their mean is taken over more points.
            for to, now in frequent:
                to += now
            if i % PARTS_PER_MEAN == PARTS_PER_MEAN // 2 or len(parts) <= PARTS_PER_MEAN // 2:
                axpy(self._scale, table.state, mean.state)
                n_means += 1
        np.divide(mean.state, n_means, out=mean.state)
        for to, _ in frequent:
            to /= len(parts)
        return total * self._mean_weight, average.flush()

    def _run_part(self, order: NDArray[np.int64]) -> float:
        rows = self._rows
        window = np.arange(order.size) // SORT_WINDOW
        order = order[np.lexsort((self._lengths[order], window))]
        self._step, self._scale, total = sgd_pass(
            order, self._offsets, rows.arrays, self._row_share, self._columns,
            self._table.tables, rows.n_labels,
            self._pairwise_share, self._structure.boundary, self._boundary_share,
            self._codes, self._weights,
            None if self._hidden is None else self._hidden.arrays,
            self._decay, self._rate, self._step, self._scale,
        )  # fmt: skip
        rate = self._rate / (1.0 + self._decay * self._rate * self._step)
        self._shrinkage += self._decay * rate * order.size
        return total

    def _shrink(self) -> None:
        """Apply the penalty to the frequent weights; clear entries of dense rows that are not weights."""
        dense, _, pairwise, start, end = self._table.tables
        n_labels = self._structure.n_labels
        dense *= self._has_row
        dense *= np.exp(-self._shrinkage * self._row_share)[:, None]
        pairwise[0, :n_labels, :n_labels] *= np.exp(-self._shrinkage * self._pairwise_share)
        start[:n_labels] *= np.exp(-self._shrinkage * self._boundary_share[0])
        end[:n_labels] *= np.exp(-self._shrinkage * self._boundary_share[1])
        self._shrinkage = 0.0
