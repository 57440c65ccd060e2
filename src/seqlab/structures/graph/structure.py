"""GraphStructure: which weights a pairwise network on graphs has, and their place in one vector.

    score(y) = sum_i (coef[y_i] . x_i + intercept[y_i]) + sum_e sum_k f_e[k] tables[k][y_a, y_b]     e = (a,
    b)

with node features ``x_i`` and edge features ``f_e``. The tables may differ in both directions of an edge;
with ``directed=False`` they are replaced by their symmetric part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.graphs import Graphs

if TYPE_CHECKING:
    from seqlab.inference import GraphInference
    from seqlab.structures.graph.bound import BoundGraph

Floats = NDArray[np.float64]


class GraphWeights(NamedTuple):
    """The weights of a network on graphs, in readable form."""

    coef: Floats  # (n_labels, n_features)
    intercept: Floats  # (n_labels,)
    tables: Floats  # (n_edge_features, n_labels, n_labels)


@dataclass(frozen=True, slots=True)
class GraphStructure:
    """Weights of a pairwise network.

    Parameters
    ----------
    n_features, n_labels, n_edge_features : int
    fit_intercept : bool, default=True
        Whether each label has a weight without a feature.
    directed : bool, default=True
        Whether the two ends of an edge have different roles.
    """

    n_features: int
    n_labels: int
    n_edge_features: int
    fit_intercept: bool = True
    directed: bool = True

    @property
    def n_params(self) -> int:
        """Number of weights."""
        node = (self.n_features + self.fit_intercept) * self.n_labels
        return node + self.n_edge_features * self.n_labels**2

    @property
    def first_table(self) -> int:
        """Place of the first weight of an edge."""
        return (self.n_features + self.fit_intercept) * self.n_labels

    def weights(self, w: Floats) -> GraphWeights:
        """Return a weight vector in readable form."""
        L, F = self.n_labels, self.n_features
        coef = w[: F * L].reshape(F, L).T
        intercept = w[F * L : (F + 1) * L] if self.fit_intercept else np.zeros(L)
        tables = w[self.first_table :].reshape(-1, L, L)
        if not self.directed:
            tables = (tables + tables.transpose(0, 2, 1)) / 2.0
        return GraphWeights(coef.copy(), intercept.copy(), tables.copy())

    def bind(
        self, X: Graphs, *, inference: GraphInference | None = None, n_jobs: int | None = None
    ) -> BoundGraph:
        """Return the structure bound to these graphs."""
        from seqlab.structures.graph.bound import BoundGraph

        return BoundGraph(self, X, inference=inference, n_jobs=n_jobs)
