"""The likelihood of a plain chain, as fast as it goes: fused kernels over `MixedRows`.

The same objective as `ChainLikelihood` where every label is known and transitions do not depend on the
observation, which is the usual case. Also gives what the fast route to the optimum needs: stochastic passes
for a warm start, and the diagonal of the Hessian as a preconditioner.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError
from seqlab.inference._threads import block_bounds, run_blocks
from seqlab.models._likelihood import N_SLOTS, ChainLikelihood
from seqlab.structures._likelihood_kernel import likelihood_slot
from seqlab.structures._sgd_kernel import sgd_pass
from seqlab.structures.mixed_rows import MixedRows

Floats = NDArray[np.float64]
# Doubles of gradients that all slots together may hold (512 MB): fewer slots for larger models.
SLOT_DOUBLES = 1 << 26
STRETCH = 64


class FastChainLikelihood(ChainLikelihood):
    """Penalised negative conditional log-likelihood of a plain chain; see `ChainLikelihood`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.allowed is not None or self.structure.edge is not None:
            raise ValueError("this objective knows neither partial labels nor edge features")
        self._offsets = np.array(self.X.offsets)
        nothing = np.empty(0)
        self._miss = nothing if self.miss_cost is None else self.miss_cost
        self._weight = self.weights if self._weighted else nothing
        n_slots = max(2, min(N_SLOTS, SLOT_DOUBLES // max(self.n_params, 1)))
        width = self.rows.width
        self._bounds = block_bounds(self._offsets, width * width, max_blocks=n_slots)
        # Within a slot by length, so that the chains of a group end together.
        lengths = self.X.lengths
        self._order = np.concatenate(
            [
                a + np.argsort(lengths[a:b], kind="stable")
                for a, b in pairwise(self._bounds.tolist())
            ]
        )
        self._dense = self.rows.new_rows()
        self._last: tuple[Floats, float, Floats] | None = None

    def _observed_features(self) -> Floats:
        self.rows = MixedRows(self.X.matrix, self.structure.state)
        state = self.rows.observed(self.codes, self._step_weights)
        return self.structure.total_features(self.X, self.codes, self.weights, state)

    def loss_gradient(self, w: Floats) -> tuple[float, Floats]:
        """``f(w)`` and its gradient; asked again for the very same array, it answers from memory."""
        if self._last is None or self._last[0] is not w:
            self._last = (w, *super().loss_gradient(w))
        _, loss, gradient = self._last
        return loss, gradient.copy()

    def _expected(self, w: Floats) -> tuple[float, Floats]:
        log_z, gradient = self._pass(w, curvature=False)
        weighted = log_z * self.weights if self._weighted else log_z
        return float(np.sum(weighted)), gradient

    def loss_at_zero(self) -> float:
        """``f(0)``, without a pass over the data where labels cost the same."""
        if self.miss_cost is not None:
            return self.loss(np.zeros(self.n_params))
        return float(np.log(self.structure.n_labels) * np.sum(self.weights * self.X.lengths))

    def curvature(self, w: Floats) -> Floats:
        """Diagonal of the Hessian at ``w``, treating steps as independent; shape (n_params,)."""
        diagonal = self._pass(w, curvature=True)[1]
        counted = 1.0 if self.penalised is None else self.penalised.astype(np.float64)
        # A weight that nothing holds would get an infinite step; half an observation will do.
        return np.maximum(diagonal + 2.0 * self.c2 * counted, 1e-3)

    def _pass(self, w: Floats, *, curvature: bool) -> tuple[Floats, Floats]:
        """``log Z`` of every sequence and the summed expected features (or their curvature)."""
        structure, rows = self.structure, self.rows
        readable = structure.weights(w)
        state = np.ascontiguousarray(w[structure.slices["state"]])
        rows.spread(state, self._dense)
        transitions = rows.pad_pairwise(readable.transitions)
        start, end = rows.pad_labels(readable.start), rows.pad_labels(readable.end)
        log_z = np.empty(len(self.X))
        has_weight = structure.transition_index >= 0
        n_labels = structure.n_labels

        def run(slot: int) -> Floats:
            first, last = int(self._bounds[slot]), int(self._bounds[slot + 1])
            gradient = np.zeros(self.n_params)
            part = gradient[structure.slices["state"]]
            out_rows, counts = rows.new_rows(), np.zeros((rows.width, rows.width))
            out_start, out_end = np.zeros(rows.width), np.zeros(rows.width)
            likelihood_slot(
                self._order[first:last], self._offsets, *rows.arrays,
                self._dense, state, n_labels, transitions, start, end,
                self.codes, self._miss, self._weight, curvature,
                log_z, out_rows, part, counts, out_start, out_end,
            )  # fmt: skip
            rows.gather(out_rows, part)
            gradient[structure.slices["transitions"]] = counts[:n_labels, :n_labels][has_weight]
            if structure.boundary:
                gradient[structure.slices["start"]] = out_start[:n_labels]
                gradient[structure.slices["end"]] = out_end[:n_labels]
            return gradient

        total, *others = run_blocks(run, self._bounds.size - 1, self.n_jobs)
        for gradient in others:
            total += gradient
        if not np.isfinite(log_z).all():
            bad = int(np.argmax(~np.isfinite(log_z)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        return log_z, total

    def stochastic(self) -> StochasticPasses:
        """Stochastic gradient passes over the same objective, from zero weights."""
        return StochasticPasses(self)


class StochasticPasses:
    """Weights under stochastic gradient descent, ``w = scale * v``."""

    def __init__(self, objective: FastChainLikelihood) -> None:
        structure, rows = objective.structure, objective.rows
        self._objective = objective
        self._step = 0
        self._scale = 1.0
        self._rows = rows.new_rows()
        self._mask = rows.new_rows()
        rows.spread(np.ones(rows.n_weights), self._mask)
        self._state = np.zeros(rows.n_weights)
        self._pairwise = np.zeros((structure.n_labels, structure.n_labels))
        self._has_transition = (structure.transition_index >= 0).astype(np.float64)
        self._start = np.zeros(structure.n_labels)
        self._end = np.zeros(structure.n_labels)
        # The penalty of the whole objective, shared out over the sequences.
        self._decay = 2.0 * objective.c2 / max(float(objective.weights.sum()), 1e-12)

    def run(self, order: NDArray[np.int64], rate: float) -> float:
        """Visit the sequences in order; returns the mean log-loss met on the way."""
        objective, rows = self._objective, self._objective.rows
        # The chains of a group should end together: by length within short stretches of the order.
        stretch = np.arange(order.size) // STRETCH
        order = order[np.lexsort((objective.X.lengths[order], stretch))]
        self._step, self._scale, total = sgd_pass(
            order, objective._offsets, *rows.arrays,
            self._rows, self._mask, self._state, rows.n_labels,
            self._pairwise, self._has_transition, objective.structure.boundary,
            self._start, self._end,
            objective.codes, objective._miss, objective._weight,
            self._decay, rate, self._step, self._scale,
        )  # fmt: skip
        return total / max(order.size, 1)

    def weights(self) -> Floats:
        """The weights now, as a parameter vector."""
        structure, rows = self._objective.structure, self._objective.rows
        w = np.zeros(structure.n_params)
        state = self._state.copy()
        rows.gather(self._rows, state)
        w[structure.slices["state"]] = state
        w[structure.slices["transitions"]] = self._pairwise[structure.transition_index >= 0]
        if structure.boundary:
            w[structure.slices["start"]] = self._start
            w[structure.slices["end"]] = self._end
        return w * self._scale
