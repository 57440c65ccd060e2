"""Maximum margin with cutting planes, for structures whose best labelings may be fractional.

    min_w  |w|^2 / 2 + C sum_i a_i [ max_y w' phi(x_i, y) + loss(y_i, y) - w' phi(x_i, y_i) ]

In every pass the most violating labeling of each sample becomes a plane of `descend_on_planes`. If the
maximum is taken over a relaxation (the local polytope of a graph), this is the relaxed problem of Taskar,
Guestrin & Koller (2004): its value bounds the exact one from above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.sequences import SequenceBlock
from seqlab.learning.plane_descent import descend_on_planes
from seqlab.optim import Bundle, FitState
from seqlab.structures import ScoreSource, miss_costs
from seqlab.utils.linalg import dot
from seqlab.utils.threads import run_blocks

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class RelaxedSupport(Protocol):
    """A structure whose loss-augmented labelings may be fractional."""

    n_labels: int
    n_params: int
    n_jobs: int | None
    X: Any

    def source(self, w: Floats) -> ScoreSource:
        """Return the scores that weights give to the data."""
        ...

    def scores(self, source: ScoreSource, block: SequenceBlock) -> Any:
        """Return the scores of a block."""
        ...

    def add_costs(self, scores: Any, costs: Floats) -> Any:
        """Return scores with costs added to the node scores."""
        ...

    def relaxed_argmax(self, scores: Any) -> Any:
        """Return best labelings, possibly fractional, as node and pair marginals with their value."""
        ...

    def add_expected_features(self, marginals: Any, block: SequenceBlock, out: Floats) -> None:
        """Add the features expected under marginals to ``out``."""
        ...

    def total_features(self, codes: Codes, weights: Floats) -> Floats:
        """Return the weighted sum of the features of labelings."""
        ...


class RelaxedMargin:
    """Margin rescaling with Hamming loss, solved by cutting planes.

    Parameters
    ----------
    bound : RelaxedSupport
    codes : int64 array of shape (n_positions,)
        Gold labels, all known.
    C : array of shape (n_samples,)
        Weight of the slack of each sample.
    """

    def __init__(self, bound: RelaxedSupport, codes: Codes, C: Floats) -> None:
        self.bound, self.codes, self.C = bound, codes, C
        n = len(bound.X)
        self._blocks = [bound.X.block(i, i + 1) for i in range(n)]
        self._gold = [bound.total_features(codes, np.eye(n)[i]) for i in range(n)]

    def states(self, tol: float) -> Iterator[FitState]:
        """Yield the best weights so far after each pass; converged at a relative duality gap of ``tol``."""
        bundle = Bundle(len(self._blocks), self.bound.n_params, self.C)
        return descend_on_planes(bundle, lambda w: self._add_planes(bundle, w), tol=tol)

    def _add_planes(self, bundle: Bundle, w: Floats) -> tuple[float, float]:
        """Add the most violating plane of each sample at ``w``; return the objective and ``|w|^2``."""
        bound = self.bound
        source = bound.source(w)
        found: list[tuple[Floats, float, float]] = [(np.zeros(0), 0.0, 0.0)] * len(self._blocks)

        def run(i: int) -> None:
            block = self._blocks[i]
            costs = miss_costs(self.codes[block.steps], bound.n_labels)
            worst = bound.relaxed_argmax(bound.add_costs(bound.scores(source, block), costs))
            features = np.zeros(bound.n_params)
            bound.add_expected_features(worst, block, features)
            psi, loss = self._gold[i] - features, float((costs * worst.node).sum())
            found[i] = psi, loss, loss - float(dot(w, psi))

        run_blocks(run, len(found), bound.n_jobs)
        squared_norm = float(dot(w, w))
        objective = 0.5 * squared_norm
        for i, (psi, loss, slack) in enumerate(found):
            objective += float(self.C[i]) * max(slack, 0.0)
            bundle.add(i, psi, loss)
        return objective, squared_norm
