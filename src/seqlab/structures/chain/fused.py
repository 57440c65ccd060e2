"""Passes over all chains in fused kernels: expected features, and the diagonal of the Hessian.

For chains without edge features, the usual case. The data are converted once to `MixedRows`; a pass computes
emission, forward-backward and scatter for eight chains at a time. Also creates the stochastic passes.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.likelihood import likelihood_slot
from seqlab.structures.chain.features import ChainFeatures
from seqlab.structures.chain.hidden_runs import HiddenRuns
from seqlab.structures.chain.mixed_rows import MixedRows
from seqlab.structures.chain.padded_weights import PaddedLayout, PaddedWeights, WeightTables
from seqlab.structures.chain.stochastic import ChainStochasticPasses
from seqlab.structures.chain.structure import ChainStructure
from seqlab.structures.partial_labels import PartialLabels
from seqlab.structures.protocol import N_SLOTS, Codes
from seqlab.utils.threads import block_bounds, run_blocks

if TYPE_CHECKING:
    from seqlab.structures.chain.label_blocks import LabelBlocks

Floats = NDArray[np.float64]
# Doubles of gradients that all slots together may hold (512 MB): larger models get fewer slots.
SLOT_DOUBLES = 1 << 26
# Minimum operations on the data per slot and weight: with fewer, clearing and summing the gradients of the
# slots takes a noticeable share of the time.
WORK_PER_WEIGHT = 64
NOTHING = np.empty(0)
NO_PLACES, NO_VARIANCES = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.float32)


class PassSums(NamedTuple):
    """Results of a pass."""

    log_z: Floats  # (n_sequences,)
    parts: Floats  # (n_slots, n_params): expected features, or curvatures
    skipped: NDArray[np.bool_]  # sequences that are too long or have too extreme scores
    n_skipped: int


class FusedPasses:
    """Passes over the data of a chain without edge features.

    Parameters
    ----------
    structure : ChainStructure
    features : ChainFeatures
        Of the data.
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self, structure: ChainStructure, features: ChainFeatures, *, n_jobs: int | None = None
    ) -> None:
        if structure.edge is not None:
            raise ValueError("fused passes do not support edge features")
        self.structure, self.n_jobs = structure, n_jobs
        self._features, self.X, self.offsets = features, features.X, features.offsets

    # Built on first use: on small data, and with two labels, these passes may not be needed.

    @cached_property
    def rows(self) -> MixedRows:
        """The training data, converted for the feature pattern."""
        return MixedRows(self._features, self.structure.state, n_jobs=self.n_jobs)

    @cached_property
    def _layout(self) -> PaddedLayout:
        return PaddedLayout(self.structure, self.rows)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """First and last position of each slot in the order of the sequences."""
        width, n_params = self.rows.width, max(self.structure.n_params, 1)
        work = self.X.n_steps * width * width + 8 * self.rows.n_entries
        n_slots = min(N_SLOTS, SLOT_DOUBLES // n_params, work // (WORK_PER_WEIGHT * n_params))
        # A power of two: with 5 slots, one of two threads would have 3, and the other wait for it.
        n_slots = 1 << int(max(2, n_slots)).bit_length() - 1
        return block_bounds(self.offsets, width * width, max_blocks=n_slots)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        # Sorted by length within a slot, so that the chains of a group have similar lengths.
        lengths = self.X.lengths
        slots = pairwise(self._bounds.tolist())
        return np.concatenate([a + np.argsort(lengths[a:b], kind="stable") for a, b in slots])

    # Kept between passes: allocating this much memory costs more than clearing it.

    @cached_property
    def _tables(self) -> WeightTables:
        return PaddedWeights(self._layout).tables

    @cached_property
    def _parts(self) -> Floats:
        return np.empty((self._bounds.size - 1, self.structure.n_params))

    def run(
        self,
        w: Floats,
        weights: Floats | None = None,
        hidden: HiddenRuns | None = None,
        *,
        curvature: bool = False,
        blocks: LabelBlocks | None = None,
    ) -> PassSums:
        """Return log-partitions and expected features (or curvatures) of all sequences.

        Those of hidden labels, given the known ones, are subtracted. The next call overwrites the parts.
        With ``curvature``, the variances of the labels of single steps are stored in ``blocks``, if given.
        """
        log_z, skipped = np.zeros(len(self.X)), np.zeros(len(self.X), dtype=bool)
        tables = self._layout.load(w, self._tables)
        arrays = factors = self.rows.arrays
        if curvature:
            factors = arrays._replace(
                dense_value=arrays.dense_value**2, pair_value=arrays.pair_value**2
            )
        weights = NOTHING if weights is None else weights
        runs = None if hidden is None else hidden.arrays
        first_place, variances = NO_PLACES, NO_VARIANCES
        if blocks is not None:
            first_place, variances = blocks.first_place, blocks.variances

        def run(slot: int) -> int:
            order = self._order[self._bounds[slot] : self._bounds[slot + 1]]
            if hidden is not None:  # a sequence of which nothing is known adds nothing
                order = order[hidden.is_informative[order]]
            part = self._parts[slot]
            part[:] = 0.0
            sums = PaddedWeights(self._layout, part)
            label_variances = np.zeros(self.rows.width)
            n_skipped = likelihood_slot(
                order, self.offsets, arrays, self.rows.columns, tables, self.structure.n_labels,
                weights, runs, curvature, factors,
                log_z, sums.tables, label_variances, first_place, variances, skipped,
            )  # fmt: skip
            if curvature:
                n_labels = self.structure.n_labels
                counts = sums.tables.pairwise[0, :n_labels, :n_labels]
                counts[:] = _transition_variances(counts, label_variances[:n_labels])
            sums.flush()
            return n_skipped

        n_skipped = sum(run_blocks(run, self._bounds.size - 1, self.n_jobs))
        return PassSums(log_z, self._parts, skipped, n_skipped)

    def curvature(self, w: Floats, weights: Floats | None = None) -> Floats:
        """Return the diagonal of the Hessian at ``w``, treating steps as independent; shape (n_params,).

        Sequences that a pass skips are left out: if scores are extreme, the curvature is near 0.
        """
        sums: Floats = self.run(w, weights, curvature=True).parts.sum(axis=0)
        return sums

    @property
    def mean_square(self) -> float:
        """Mean square of the feature values that are not zero: 1 for text."""
        return self._features.mean_square

    @property
    def is_evenly_scaled(self) -> bool:
        """Whether one rate of stochastic passes suits all features."""
        return self._features.is_evenly_scaled

    def stochastic_passes(
        self,
        codes: Codes,
        weights: Floats,
        c2: float,
        rate: float,
        partial: PartialLabels | None = None,
    ) -> ChainStochasticPasses:
        """Return zero weights, to be trained by stochastic gradient descent."""
        assert partial is None or isinstance(partial, HiddenRuns)
        return ChainStochasticPasses(
            self.structure, self.X, self.rows, codes, weights, partial, c2=c2, rate=rate
        )


def _transition_variances(counts: Floats, label_variances: Floats) -> Floats:
    """Return an approximation of ``sum_t p (1 - p)`` for every transition.

    Parameters
    ----------
    counts : array of shape (n_labels, n_labels)
        ``sum_t p`` of the transitions.
    label_variances : array of shape (n_labels,)
        ``sum_t q (1 - q)`` of the labels, the sums of their variances.

    The variance of a transition is taken as that of its two labels together. ``sum_t p`` itself is hundreds
    of times larger if the model is confident, and as a preconditioner would nearly stop the transitions.
    """
    share = label_variances / np.maximum(np.maximum(counts.sum(axis=0), counts.sum(axis=1)), 1e-12)
    result: Floats = counts * np.minimum(share[:, None] + share[None, :], 1.0)
    return result
