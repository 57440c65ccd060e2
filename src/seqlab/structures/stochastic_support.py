"""What a structure offers for a warm start: stochastic passes, and the diagonal of the Hessian."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.partial_labels import Codes, Floats, PartialLabels


class StochasticPasses(Protocol):
    """Weights trained by stochastic gradient descent on a penalised likelihood."""

    def run(self, order: NDArray[np.int64]) -> tuple[float, Floats]:
        """Visit samples in order; return the weighted sum of their losses and the mean of the weights."""
        ...

    def restart(self) -> None:
        """Set all weights to zero."""
        ...


class StochasticSupport(Protocol):
    """Methods of a structure with which training can begin with stochastic passes."""

    @property
    def mean_square(self) -> float:
        """Mean square of the feature values: 1 for text."""
        ...

    @property
    def is_evenly_scaled(self) -> bool:
        """Whether one rate of stochastic passes suits all features."""
        ...

    def curvature(self, w: Floats, weights: Floats | None = None) -> Floats:
        """Return the approximate diagonal of the Hessian of the summed log-partitions, shape (n_params,)."""
        ...

    def stochastic_passes(
        self,
        codes: Codes,
        weights: Floats,
        c2: float,
        rate: float,
        partial: PartialLabels | None = None,
    ) -> StochasticPasses:
        """Return zero weights, to be trained by stochastic gradient descent."""
        ...
