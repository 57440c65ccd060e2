"""Duals of max-margin chains: over the marginals of nodes and edges, and over stored labelings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.marginal_smo import measure_marginals, smo_pass
from seqlab.structures.chain._kernels.plane_steps import measure_planes, plane_pass
from seqlab.structures.chain._kernels.support import link_free, start_at_gold
from seqlab.structures.margins import MAX_STEPS, SHRINK, DualValues
from seqlab.utils.linalg import dot

if TYPE_CHECKING:
    from seqlab.structures.chain.margins import ChainMarginModel

# Edges with mass that there is room for at first, per step; the room grows if it is not enough.
EDGES_PER_STEP = 8
# Stored labelings per sequence that there is room for at first.
N_PLANES = 8


class ChainMarginalDual:
    """SMO on the marginals of chains; see `seqlab.structures.margins.BlockDual`.

    Only the edges that have mass are stored. Margin rescaling only: the loss must be a sum over steps.

    Parameters
    ----------
    model : ChainMarginModel
        Zero.
    """

    def __init__(self, model: ChainMarginModel) -> None:
        self._model = model
        n_steps, n_labels = model.problem.costs.shape
        longest = int(np.diff(model.offsets).max(initial=1))
        size = (EDGES_PER_STEP + 1) * n_steps + MAX_STEPS * longest
        self._lists = (
            np.zeros(n_steps, dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.zeros(size),
            np.array([-1, 0]),
        )
        codes, limits = model.problem.codes, model.problem.limits
        start_at_gold(model.offsets, codes, limits, n_labels, self._lists)

    def run_pass(self, order: NDArray[np.int64], *, search: bool = True) -> int:
        """Improve the dual on these sequences, in order; return the number of steps.

        There are no stored labelings: without ``search`` nothing changes.
        """
        model, n_taken = self._model, 0
        for chunk in model.chunks(order) if search else ():
            done = 0
            while done < chunk.size:
                done, n = smo_pass(
                    chunk, done, model.arrays, model.space, self._lists, MAX_STEPS, SHRINK
                )
                n_taken += n
                if done < chunk.size:
                    self._grow()
        return n_taken

    def _grow(self) -> None:
        """Double the room for edges."""
        head, following, pair, mass, free = self._lists
        size = following.size
        following, pair = np.tile(following, 2), np.tile(pair, 2)
        self._lists = (head, following, pair, np.tile(mass, 2), free)
        link_free(following, size, free)

    def measure(self) -> DualValues:
        """Return primal and dual of the current model."""
        model, limits = self._model, self._model.problem.limits
        slack, gaps = np.empty((2, limits.size))
        loss = measure_marginals(model.arrays, model.space, self._lists, slack, gaps)
        half = 0.5 * model.squared_norm()
        return DualValues(half + float(dot(limits, slack)), loss - half, gaps)

    def objective(self) -> float:
        """Return the dual objective."""
        return self.measure().dual


class ChainPlaneDual:
    """Pairwise steps on stored labelings of chains; see `seqlab.structures.margins.BlockDual`.

    Parameters
    ----------
    model : ChainMarginModel
        Zero.
    """

    def __init__(self, model: ChainMarginModel) -> None:
        self._model = model
        n, n_steps = model.problem.limits.size, model.problem.codes.size
        labels = np.zeros((N_PLANES, n_steps), dtype=np.int64)
        labels[0] = model.problem.codes
        weight = np.zeros((n, N_PLANES))
        weight[:, 0] = model.problem.limits
        scales = np.ones((n, N_PLANES))
        count = np.ones(n, dtype=np.int64)
        self._store = (labels, weight, np.zeros((n, N_PLANES)), scales, count)

    def run_pass(self, order: NDArray[np.int64], *, search: bool = True) -> int:
        """Improve the dual on these sequences, in order; return the number of steps."""
        model, n_taken = self._model, 0
        for chunk in model.chunks(order):
            done = 0
            while done < chunk.size:
                done, n = plane_pass(
                    chunk, done, model.arrays, model.space, self._store,
                    model.rule, search, MAX_STEPS, SHRINK,
                )  # fmt: skip
                n_taken += n
                if done < chunk.size:
                    self._grow()
        return n_taken

    def _grow(self) -> None:
        """Double the room for stored labelings."""
        labels, weight, losses, scales, count = self._store
        more = ((0, 0), (0, weight.shape[1]))
        self._store = (
            np.pad(labels, ((0, labels.shape[0]), (0, 0))),
            np.pad(weight, more),
            np.pad(losses, more),
            np.pad(scales, more, constant_values=1.0),
            count,
        )

    def measure(self) -> DualValues:
        """Return primal and dual of the current model."""
        model, limits = self._model, self._model.problem.limits
        found = model.find_violators()
        gaps = np.empty(limits.size)
        loss = measure_planes(model.arrays, model.space, self._store, gaps, found.slack)
        half = 0.5 * model.squared_norm()
        return DualValues(half + float(dot(limits, found.slack)), loss - half, gaps)

    def objective(self) -> float:
        """Return the dual objective, without search."""
        _, weight, losses, _, _ = self._store
        loss = float(dot(weight.ravel(), losses.ravel()))
        return loss - 0.5 * self._model.squared_norm()
