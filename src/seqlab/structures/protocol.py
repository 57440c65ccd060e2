"""The border between learners and structures.

A learner (perceptron, likelihood, margin) knows weights and objectives; a structure knows how weights
become scores, how labelings become features, and what a wrong label costs. A chain is one structure, a
graph another; learners ask for the lowest level they need:

- everyone: `scores`
- perceptron and margin learners: `joint_features`
- likelihood learners: `add_expected_features`
- margin learners: `loss` and `loss_unary`, its form for the loss-augmented argmax
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Structure(Protocol):
    """What every structure offers. ``X`` is the structure's own input (for chains, `Sequences`)."""

    n_labels: int
    n_params: int

    def scores(self, w: Floats, X: Any, first: int = 0, last: int | None = None) -> Any:
        """Scores of samples first..last under weights ``w``: what inference works on."""
        ...

    def joint_features(self, X: Any, codes: Codes) -> sp.csr_matrix:
        """``phi(x_i, y_i)`` of every sample, shape (n_samples, n_params)."""
        ...

    def add_expected_features(
        self, X: Any, marginals: Any, first: int, last: int, out: Floats
    ) -> None:
        """Add the features of samples first..last, expected under their marginals, to ``out``."""
        ...

    def loss(self, codes: Codes, predicted: Codes, X: Any) -> Floats:
        """Loss of each sample, shape (n_samples,)."""
        ...

    def loss_unary(self, codes: Codes) -> Floats:
        """The loss as a sum over positions: cost of each label, shape (n_positions, n_labels)."""
        ...
