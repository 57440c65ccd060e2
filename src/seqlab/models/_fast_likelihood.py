"""The likelihood of a plain chain, as fast as it goes: fused kernels over `MixedRows`.

The same objective as `ChainLikelihood` where every label is known and transitions do not depend on the
observation, which is the usual case. Also gives the diagonal of the Hessian, as a preconditioner.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError, PlacedError
from seqlab.models._likelihood import N_SLOTS, ChainLikelihood
from seqlab.optim._kernels import penalised_sum
from seqlab.structures._likelihood_kernel import likelihood_slot
from seqlab.structures.chain import chain_scores
from seqlab.structures.mixed_rows import MixedRows
from seqlab.utils.threads import block_bounds, in_chunks, run_blocks

Floats = NDArray[np.float64]
# Doubles of gradients that all slots together may hold (512 MB): fewer slots for larger models.
SLOT_DOUBLES = 1 << 26
# Operations on the data for each weight of a slot: its gradient must be cleared and added to the others.
WORK_PER_WEIGHT = 64


class _Tables(NamedTuple):
    """What a pass asks the kernels for, in their order."""

    rows: Floats  # (n_dense, width)
    state: Floats  # (n_weights,)
    pairwise: Floats  # (1, width, width)
    start: Floats  # (width,)
    end: Floats  # (width,)
    dense_factor: Floats  # values of features in the sums
    pair_factor: Floats


class _Sequences(NamedTuple):
    """What a pass finds of each sequence."""

    log_z: Floats
    left_out: NDArray[np.bool_]


class FastChainLikelihood(ChainLikelihood):
    """Penalised negative conditional log-likelihood of a plain chain; see `ChainLikelihood`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.allowed is not None or self.structure.edge is not None:
            raise ValueError("this objective knows neither partial labels nor edge features")
        self.offsets = np.array(self.X.offsets)
        nothing = np.empty(0)
        self.miss = nothing if self.miss_cost is None else self.miss_cost
        self.weight = self.weights if self._weighted else nothing
        width = self.rows.width
        work = self.X.n_steps * width * width + 8 * self.X.matrix.nnz
        n_params = max(self.n_params, 1)
        n_slots = min(N_SLOTS, SLOT_DOUBLES // n_params, work // (WORK_PER_WEIGHT * n_params))
        n_slots = max(2, n_slots)
        self._bounds = block_bounds(self.offsets, width * width, max_blocks=n_slots)
        # Within a slot by length, so that the chains of a group end together.
        lengths = self.X.lengths
        self._order = np.concatenate(
            [
                a + np.argsort(lengths[a:b], kind="stable")
                for a, b in pairwise(self._bounds.tolist())
            ]
        )
        self._sums = np.empty((self._bounds.size - 1, self.n_params))
        self._last: tuple[Floats, float, Floats] | None = None

    def _observed_features(self) -> Floats:
        self.rows = MixedRows(self.X.matrix, self.structure.state, n_jobs=self.n_jobs)
        state = self.rows.observed(self.codes, self._step_weights)
        return self.structure.total_features(self.X, self.codes, self.weights, state)

    def loss_gradient(self, w: Floats) -> tuple[float, Floats]:
        """``f(w)`` and its gradient; asked again for the very same array, it answers from memory."""
        if self._last is None or self._last[0] is not w:
            log_z, left_out = self._pass(w, curvature=False)
            loss = np.sum(log_z * self.weights if self._weighted else log_z)
            loss += self._add_left_out(w, left_out)
            counted = w if self.penalised is None else np.where(self.penalised, w, 0.0)
            assert self._observed is not None  # no partial labels here
            gradient, observed = np.empty(self.n_params), self._observed

            def finish(begin: int, stop: int) -> float:
                return float(
                    penalised_sum(self._sums, observed, w, counted, self.c2, begin, stop, gradient)
                )

            loss += sum(in_chunks(finish, self.n_params, self.n_jobs))
            self._last = (w, float(loss), gradient)
        return self._last[1:]

    def loss_at_zero(self) -> float:
        """``f(0)``, without a pass over the data where labels cost the same."""
        if self.miss_cost is not None:
            return self.loss(np.zeros(self.n_params))
        return float(np.log(self.structure.n_labels) * np.sum(self.weights * self.X.lengths))

    def curvature(self, w: Floats) -> Floats:
        """Diagonal of the Hessian at ``w``, treating steps as independent; shape (n_params,).

        Without the sequences that a pass leaves out: of extreme scores the model is sure.
        """
        self._pass(w, curvature=True)
        diagonal = self._sums.sum(axis=0)
        counted = 1.0 if self.penalised is None else self.penalised.astype(np.float64)
        # A weight that nothing holds would get an infinite step; half an observation will do.
        return np.maximum(diagonal + 2.0 * self.c2 * counted, 1e-3)

    def _add_left_out(self, w: Floats, left_out: NDArray[np.bool_]) -> float:
        """Add what the pass cannot do: very long chains, scores of extreme range. Returns its loss."""
        if not left_out.any():
            return 0.0
        readable, loss = self.structure.weights(w), 0.0
        edges = np.flatnonzero(np.diff(np.concatenate([[0], left_out, [0]])))
        for first, last in chain.from_iterable(self._slots):
            for a, b in edges.reshape(-1, 2):
                a, b = max(a, first), min(b, last)
                if a < b:
                    try:
                        scores = chain_scores(readable, self.X, a, b)
                        loss += self._add_block(scores, a, b, self._sums[0])
                    except PlacedError as error:
                        raise error.shifted(a) from None
        return loss

    def _pass(self, w: Floats, *, curvature: bool) -> _Sequences:
        """``log Z`` of the sequences, and which of them were left out.

        The sums of the slots receive the expected features, or curvatures.
        """
        n_sequences = len(self.X)
        result = _Sequences(np.zeros(n_sequences), np.zeros(n_sequences, dtype=bool))
        tables = self._tables(w, curvature)

        def run(slot: int) -> None:
            order = self._order[self._bounds[slot] : self._bounds[slot + 1]]
            self._run_slot(order, tables, curvature, result, self._sums[slot])

        run_blocks(run, self._bounds.size - 1, self.n_jobs)
        if not np.isfinite(result.log_z).all():
            bad = int(np.argmax(~np.isfinite(result.log_z)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        return result

    def _tables(self, w: Floats, curvature: bool) -> _Tables:
        rows, readable = self.rows, self.structure.weights(w)
        state: Floats = np.ascontiguousarray(w[self.structure.slices["state"]])
        dense = rows.new_rows()
        rows.spread(state, dense)
        start, end = rows.pad_labels(readable.start), rows.pad_labels(readable.end)
        pairwise, power = rows.pad_pairwise(readable.transitions), 2 if curvature else 1
        factors = rows.arrays.dense_value**power, rows.arrays.pair_value**power
        return _Tables(dense, state, pairwise, start, end, *factors)

    def _run_slot(
        self,
        order: NDArray[np.int64],
        tables: _Tables,
        curvature: bool,
        result: _Sequences,
        gradient: Floats,
    ) -> None:
        """Expected features (or curvatures) of the sequences in ``order`` into ``gradient``."""
        structure, rows, n_labels = self.structure, self.rows, self.structure.n_labels
        gradient[:] = 0.0
        part = gradient[structure.slices["state"]]
        out_rows, counts = rows.new_rows(), np.zeros((rows.width, rows.width))
        out_start, out_end, out_labels = np.zeros((3, rows.width))
        likelihood_slot(
            order, self.offsets, *rows.arrays,
            tables.rows, tables.state, n_labels, tables.pairwise, tables.start, tables.end,
            self.codes, self.miss, self.weight, curvature, tables.dense_factor, tables.pair_factor,
            result.log_z, out_rows, part, counts, out_start, out_end, out_labels,
            result.left_out,
        )  # fmt: skip
        rows.gather(out_rows, part)
        counts = counts[:n_labels, :n_labels]
        if curvature:
            counts = _unsure_transitions(counts, out_labels[:n_labels])
        gradient[structure.slices["transitions"]] = counts[structure.transition_index >= 0]
        if structure.boundary:
            gradient[structure.slices["start"]] = out_start[:n_labels]
            gradient[structure.slices["end"]] = out_end[:n_labels]


def _unsure_transitions(counts: Floats, unsure: Floats) -> Floats:
    """About ``sum_t p (1 - p)`` of every transition, from ``sum_t p`` and ``sum_t q (1 - q)`` of the labels.

    A transition is taken to be as unsure as its two labels together. The sums ``p`` alone, hundreds of
    times larger where the model is sure, would all but stop the transitions.
    """
    share = unsure / np.maximum(np.maximum(counts.sum(axis=0), counts.sum(axis=1)), 1e-12)
    result: Floats = counts * np.minimum(share[:, None] + share[None, :], 1.0)
    return result
