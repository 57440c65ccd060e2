"""TwoLabelPasses: passes over chains with two labels.

With two labels the layout of the data does not depend on the labels: all chains on the same X share one
`ChainFeatures`, and only tables of the size of the weights belong to one chain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.two_labels import two_label_slot
from seqlab.structures.chain.features import ChainFeatures
from seqlab.structures.chain.fused import NOTHING, PassSums
from seqlab.structures.chain.structure import ChainStructure
from seqlab.utils.threads import run_blocks

Floats = NDArray[np.float64]


class TwoLabelPasses:
    """Passes over the data of a chain with two labels and without edge features.

    Parameters
    ----------
    structure : ChainStructure
    features : ChainFeatures
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self, structure: ChainStructure, features: ChainFeatures, *, n_jobs: int | None = None
    ) -> None:
        self.structure, self.features, self.n_jobs = structure, features, n_jobs
        self._has_transition = structure.has_transition
        starts, columns = structure.state.explicit()
        feature = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        self._places = 2 * feature + columns  # of the weights in the table of all pairs
        self._table = np.zeros((starts.size - 1, 2))
        self._sums = np.zeros((starts.size - 1, 2))
        self._parts = np.empty((1, structure.n_params))
        self._lengths = np.diff(features.offsets)
        self._weighted: tuple[Floats, Floats] | None = None  # weights of sequences, their sums

    def run(self, w: Floats, weights: Floats | None = None) -> PassSums:
        """Return log-partitions and expected features of all sequences.

        The next call overwrites the parts.
        """
        features, structure = self.features, self.structure
        n_sequences = features.offsets.size - 1
        log_z, skipped = np.zeros(n_sequences), np.zeros(n_sequences, dtype=bool)
        table = self._table
        table.reshape(-1)[self._places] = w[structure.slices["state"]]
        by_label = np.ascontiguousarray(table.T) if features.entries.matrix.size else table[:0]
        edges = np.zeros((4, 2))
        edges[:2][self._has_transition] = w[structure.slices["transitions"]]
        if structure.boundary:
            edges[2:] = w[structure.slices["start"].start :].reshape(2, 2)
        factors, total = NOTHING if weights is None else weights, self._total(weights)

        ones, edge_sums = np.empty(features.X.n_steps), np.zeros((len(features.slots), 4, 2))

        def run(slot: int) -> int:
            n_skipped: int = two_label_slot(
                features.slots[slot], features.offsets, features.entries, table, by_label, edges,
                factors, log_z, ones, edge_sums[slot], skipped,
            )  # fmt: skip
            return n_skipped

        n_skipped = sum(run_blocks(run, len(features.slots), self.n_jobs))
        if n_skipped:
            of_skipped = np.where(skipped, 1.0 if weights is None else weights, 0.0)
            total = total - features.weighted_sums(np.repeat(of_skipped, self._lengths))
        sums = self._sums
        sums[:, 1] = features.weighted_sums(ones, self.n_jobs)
        sums[:, 0] = total - sums[:, 1]
        self._store(sums, edge_sums.sum(axis=0), self._parts[0])
        return PassSums(log_z, self._parts, skipped, n_skipped)

    def observed(self, codes: NDArray[np.int64], step_weights: Floats) -> Floats:
        """Return the sum of the features of all steps with their labels, shape (n_weights,)."""
        weighted = [self.features.weighted_sums(step_weights * (codes == k)) for k in (0, 1)]
        return np.column_stack(weighted).ravel()[self._places]

    def _total(self, weights: Floats | None) -> Floats:
        """Return the sum of the features of all steps, each times the weight of its sequence."""
        if weights is None:
            return self.features.sums
        if self._weighted is None or self._weighted[0] is not weights:
            step_weights = np.repeat(weights, self._lengths)
            self._weighted = weights, self.features.weighted_sums(step_weights)
        return self._weighted[1]

    def _store(self, sums: Floats, edge_sums: Floats, out: Floats) -> None:
        """Write the sums of all pairs of features and labels, and those of the edges, as a vector."""
        slices = self.structure.slices
        out[slices["state"]] = sums.ravel()[self._places]
        out[slices["transitions"]] = edge_sums[:2][self._has_transition]
        if self.structure.boundary:
            out[slices["start"].start :] = edge_sums[2:].ravel()
