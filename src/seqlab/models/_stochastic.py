"""Stochastic gradient passes over the likelihood of a plain chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.models._fast_likelihood import FastChainLikelihood
from seqlab.simd.lanes import LANES
from seqlab.structures._sgd_kernel import sgd_pass

Floats = NDArray[np.float64]
STRETCH = 64
# Sequences between two looks at the frequent weights; how many of those to one look at all weights, and to
# one shrinkage of the frequent ones.
PART = 256
PARTS_PER_LOOK = 8
PARTS_PER_SHRINKAGE = 4
DAMPING = 0.2


class StochasticPasses:
    """Weights under stochastic gradient descent, from zero.

    A weight whose feature fires ``n`` times in a group of sequences moves at ``1 / (1 + DAMPING * rate * n)``
    of the common rate, at which it would overshoot. More damping would let a larger rate pass, but it leaves
    the directions unlearned in which frequent features nearly cancel, and those are the ones that cost a
    batch solver its time.

    Parameters
    ----------
    objective : FastChainLikelihood
    rate : float
        Step size at the beginning.
    """

    def __init__(self, objective: FastChainLikelihood, rate: float) -> None:
        structure, rows = objective.structure, objective.rows
        n_labels = structure.n_labels
        self._objective = objective
        self._rate = rate
        self._rows = rows.new_rows()
        self._state: Floats = np.zeros(rows.n_weights)
        self._pairwise = np.zeros((n_labels, n_labels))
        self._boundaries = np.zeros((2, n_labels))
        # The penalty of the whole objective, shared out over the sequences.
        self._decay = 2.0 * objective.c2 / max(float(objective.weights.sum()), 1e-12)
        self._has_row = rows.new_rows()
        rows.spread(np.ones(rows.n_weights), self._has_row)
        self._set_shares()
        self.restart()

    def restart(self) -> None:
        """Back to zero weights."""
        self._step = 0
        self._scale = 1.0  # of the weights of rare features
        self._shrinkage = 0.0  # owed to the others
        for weights in (self._rows, self._state, self._pairwise, self._boundaries):
            weights[:] = 0.0

    def _set_shares(self) -> None:
        """The share of the rate that each weight of a frequent feature gets."""
        objective, structure = self._objective, self._objective.structure
        arrays, n_groups = objective.rows.arrays, max(len(objective.X), 1) / LANES

        def share(fired: Floats) -> Floats:
            return 1.0 / (1.0 + DAMPING * self._rate * fired / n_groups)

        unit = arrays.dense_value.size == 0
        values = np.ones(arrays.dense_row.size) if unit else arrays.dense_value
        fired = np.bincount(arrays.dense_row, values * values, objective.rows.n_dense)
        self._row_share = share(fired.astype(np.float64))
        self._pace = values * self._row_share[arrays.dense_row]
        has_weight = structure.transition_index >= 0
        pairs = structure.pairs(objective.X, objective.codes)
        seen = np.bincount(pairs[pairs >= 0], minlength=has_weight.size).reshape(has_weight.shape)
        self._pairwise_share = np.where(has_weight, share(seen.astype(np.float64)), 0.0)
        self._boundary_share = share(np.full(self._boundaries.shape, float(len(objective.X))))

    def run(self, order: NDArray[np.int64]) -> tuple[float, Floats]:
        """Visit the sequences in order.

        Returns
        -------
        loss : float
            Sum of the log-losses met on the way.
        mean : array of shape (n_params,)
            Mean of the weights on the way.
        """
        structure, rows = self._objective.structure, self._objective.rows
        parts = [order[i : i + PART] for i in range(0, order.size, PART)]
        # Frequent weights are noisy, and few: their mean is taken over many points.
        mean_rows, mean_pairwise = rows.new_rows(), np.zeros_like(self._pairwise)
        mean_boundaries, mean = np.zeros_like(self._boundaries), np.zeros(structure.n_params)
        state, n_looks, total = mean[structure.slices["state"]], 0, 0.0
        for i, part in enumerate(parts):
            total += self._run_part(part)
            if i % PARTS_PER_SHRINKAGE == PARTS_PER_SHRINKAGE - 1 or i == len(parts) - 1:
                self._shrink()
            mean_rows += self._rows
            mean_pairwise += self._pairwise
            mean_boundaries += self._boundaries
            if i % PARTS_PER_LOOK == PARTS_PER_LOOK // 2 or len(parts) <= PARTS_PER_LOOK // 2:
                state += self._scale * self._state
                n_looks += 1
        state /= n_looks
        rows.gather(mean_rows / len(parts), state)
        mean_pairwise /= len(parts)
        mean[structure.slices["transitions"]] = mean_pairwise[structure.transition_index >= 0]
        if structure.boundary:
            mean_boundaries /= len(parts)
            mean[structure.slices["start"]], mean[structure.slices["end"]] = mean_boundaries
        return total, mean

    def _run_part(self, order: NDArray[np.int64]) -> float:
        objective, rows = self._objective, self._objective.rows
        # The chains of a group should end together: by length within short stretches of the order.
        stretch = np.arange(order.size) // STRETCH
        order = order[np.lexsort((objective.X.lengths[order], stretch))]
        self._step, self._scale, total = sgd_pass(
            order, objective.offsets, *rows.arrays,
            self._pace, self._rows, self._state, rows.n_labels,
            self._pairwise, self._pairwise_share, objective.structure.boundary,
            self._boundaries[0], self._boundaries[1], self._boundary_share,
            objective.codes, objective.miss, objective.weight,
            self._decay, self._rate, self._step, self._scale,
        )  # fmt: skip
        speed = self._rate / (1.0 + self._decay * self._rate * self._step)
        self._shrinkage += self._decay * speed * order.size
        return total

    def _shrink(self) -> None:
        """What the penalty takes from the frequent weights; and clear what is no weight of the model."""
        self._rows *= self._has_row
        shrinkage = np.exp(-self._shrinkage * self._row_share)
        self._rows *= shrinkage[:, None]
        self._pairwise *= np.exp(-self._shrinkage * self._pairwise_share)
        self._boundaries *= np.exp(-self._shrinkage * self._boundary_share)
        self._shrinkage = 0.0
