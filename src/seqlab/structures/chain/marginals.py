"""ChainMarginals: marginals of a block of sequences, as learners receive them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ChainMarginals(NamedTuple):
    """Marginals of a block of sequences, multiplied by the weights of the sequences."""

    log_z: Floats  # (n_block_sequences,), not weighted
    node: Floats  # (n_block_steps, n_labels)
    transitions: Floats  # (n_labels, n_labels), summed over the block
    pair: Floats | None = None  # (n_block_steps, n_labels, n_labels), only with edge features

    def minus(self, other: ChainMarginals) -> ChainMarginals:
        """Subtract other marginals."""
        return ChainMarginals(
            self.log_z - other.log_z,
            self.node - other.node,
            self.transitions - other.transitions,
            None if self.pair is None or other.pair is None else self.pair - other.pair,
        )
