"""The likelihood of a plain chain, as fast as it goes: fused kernels over `MixedRows`.

The same objective as `ChainLikelihood` where every label is known and transitions do not depend on the
observation, which is the usual case. Also gives the diagonal of the Hessian, as a preconditioner.

In single precision the tables of weights, scores, messages and marginals are single; log-partitions,
gradients and all other sums that grow with the data are doubles. The value is that of the rounded weights, so
that rounding them does not make the objective jagged: its slope there is the gradient, small at the end.
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
from seqlab.utils.linalg import dot
from seqlab.utils.threads import block_bounds, in_chunks, run_blocks

Floats = NDArray[np.float64]
# Doubles of gradients that all slots together may hold (512 MB): fewer slots for larger models.
SLOT_DOUBLES = 1 << 26
# Operations on the data for each weight of a slot: its gradient must be cleared and added to the others.
WORK_PER_WEIGHT = 64
# In single precision no product of a weight and a feature may be larger (it is then wrong by up to 3e-5), and
# no feature, whose square could leave the range of numbers.
MAX_TERM = 512.0
MAX_VALUE = 1e18
# Error of the value in single precision, for each unit of score and the square root of the number of steps.
# Measured on CoNLL-2000: four (c2 = 1) and two (c2 = 0.01) times half a unit in the last place, 2 ** -24.
NOISE = 2.0**-22
# Share of the sequences that single precision cannot do from which on it is given up.
MANY = 0.1


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
    gold: Floats  # scores of the gold labelings; size 0 where nobody asks


class FastChainLikelihood(ChainLikelihood):
    """Penalised negative conditional log-likelihood of a plain chain; see `ChainLikelihood`.

    Parameters
    ----------
    single : bool
        Whether to work in single precision, where that does.

    Attributes
    ----------
    dtype : type
        float32 or float64: precision of the passes.
    noise : float
        About the error of the last value that is due to single precision; 0 in double.
    """

    def __init__(self, *args: Any, single: bool = False, **options: Any) -> None:
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
        self.dtype: type = np.float32 if single else np.float64
        self._largest = self._largest_values() if single and not self.rows.is_unit else None
        if self._largest is not None and self._largest.max(initial=0.0) > MAX_VALUE:
            self.dtype = np.float64
        self._sums = np.empty((self._bounds.size - 1, self.n_params))
        self.noise = 0.0
        self._last: tuple[Floats, float, Floats] | None = None

    @property
    def is_single(self) -> bool:
        """Whether passes are in single precision now."""
        return self.dtype is np.float32

    def use_doubles(self) -> None:
        """Work in double precision from here on."""
        self.dtype, self._last = np.float64, None

    def _largest_values(self) -> Floats:
        """The largest value, without its sign, of the feature of each state weight."""
        largest = abs(self.X.matrix).max(axis=0).toarray().ravel()
        starts, _ = self.structure.state.explicit()
        return np.repeat(largest, np.diff(starts))

    def _observed_features(self) -> Floats:
        self.rows = MixedRows(self.X.matrix, self.structure.state, n_jobs=self.n_jobs)
        state = self.rows.observed(self.codes, self._step_weights)
        return self.structure.total_features(self.X, self.codes, self.weights, state)

    def loss_gradient(self, w: Floats) -> tuple[float, Floats]:
        """``f(w)`` and its gradient; asked again for the very same array, it answers from memory."""
        if self._last is None or self._last[0] is not w:
            asked, w = w, self._rounded(w)
            log_z, left_out, gold = self._pass(w, curvature=False)
            self.noise = 0.0
            if gold.size > 0:  # the same rounding in both, and most of it cancels
                self.noise = NOISE * float(np.sum(np.abs(log_z))) / max(self.X.n_steps, 1) ** 0.5
                log_z -= gold
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
            if gold.size > 0:
                loss += dot(w, observed)
            self._last = (asked, float(loss), gradient)
        return self._last[1:]

    def _rounded(self, w: Floats) -> Floats:
        """``w`` with the weights of features as single precision has them, where it is in use."""
        if not self._single_does(w):
            return w
        state, rounded = self.structure.slices["state"], w.copy()
        rounded[state] = w[state].astype(np.float32)
        return rounded

    def _single_does(self, w: Floats) -> bool:
        """Whether single precision is in use and no term of a score too large for it."""
        if not self.is_single:
            return False
        terms = w[self.structure.slices["state"]]
        if self._largest is not None:
            terms = terms * self._largest
        low, high = terms.min(initial=0.0), terms.max(initial=0.0)
        return bool(low >= -MAX_TERM and high <= MAX_TERM)  # false for NaN

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
        single, n_sequences = self._single_does(w), len(self.X)
        gold = np.zeros(n_sequences if single and not curvature else 0)
        result = _Sequences(np.zeros(n_sequences), np.zeros(n_sequences, dtype=bool), gold)
        tables = self._tables(w, curvature, np.float32 if single else np.float64)

        def run(slot: int) -> None:
            order = self._order[self._bounds[slot] : self._bounds[slot + 1]]
            self._run_slot(order, tables, curvature, result, self._sums[slot])

        run_blocks(run, self._bounds.size - 1, self.n_jobs)
        if single and result.left_out.any():
            self._again_in_doubles(w, curvature, result)
        if not np.isfinite(result.log_z).all():
            bad = int(np.argmax(~np.isfinite(result.log_z)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        return result

    def _tables(self, w: Floats, curvature: bool, dtype: type) -> _Tables:
        rows, readable = self.rows, self.structure.weights(w)
        state: Floats = np.ascontiguousarray(w[self.structure.slices["state"]], dtype=dtype)
        dense = rows.new_rows(dtype)
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
            result.log_z, result.gold, out_rows, part, counts, out_start, out_end, out_labels,
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

    def _again_in_doubles(self, w: Floats, curvature: bool, result: _Sequences) -> None:
        """Do what single precision has left out; where that is much, it is not tried again."""
        if np.mean(result.left_out) > MANY:
            self.dtype = np.float64
        tables, again = self._tables(w, curvature, np.float64), result.left_out.copy()
        result.left_out[:] = False

        def run(slot: int) -> None:
            order = self._order[self._bounds[slot] : self._bounds[slot + 1]]
            more = np.empty(self.n_params)
            self._run_slot(order[again[order]], tables, curvature, result, more)
            self._sums[slot] += more

        run_blocks(run, self._bounds.size - 1, self.n_jobs)


def _unsure_transitions(counts: Floats, unsure: Floats) -> Floats:
    """About ``sum_t p (1 - p)`` of every transition, from ``sum_t p`` and ``sum_t q (1 - q)`` of the labels.

    A transition is taken to be as unsure as its two labels together. The sums ``p`` alone, hundreds of
    times larger where the model is sure, would all but stop the transitions.
    """
    share = unsure / np.maximum(np.maximum(counts.sum(axis=0), counts.sum(axis=1)), 1e-12)
    result: Floats = counts * np.minimum(share[:, None] + share[None, :], 1.0)
    return result
