"""The Hessian of a chain's log-partitions, for models with few weights.

`curvature_block` treats steps as independent. If labels stay the same for many steps, as in records of
sensors, a wrong label lasts as long, and the covariances between steps are most of the Hessian: for days of
1,440 minutes its curvature was wrong by factors of 0.005 to 100. Here they are exact, but for labels that are
hardly probable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.chain_covariances import add_covariances, add_transpose
from seqlab.structures.chain.weights import WeightSource, as_csr, chain_scores

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]

# Scores, marginals and feature values that are held in memory at a time, after which it is known whether the
# whole would take too long; longer sequences than the second number says are not supported.
NUMBERS_PER_PART, MAX_NUMBERS = 20_000, 5_000_000


def chain_hessian(
    structure: ChainStructure,
    X: Sequences,
    w: Floats,
    weights: Floats | None,
    *,
    min_probability: float,
    max_products: float,
) -> Floats | None:
    """Return the Hessian at ``w``, of shape (n_params, n_params).

    None if a sequence is too long, or if it takes more than ``max_products`` operations.

    Parameters
    ----------
    min_probability : float
        Labels that are less probable at a step are left out.
    """
    n_entries = X.matrix.nnz if X.is_sparse else X.matrix.size
    n_scores = structure.n_labels ** (1 if structure.edge is None else 2)
    numbers = 4 * n_scores + n_entries // max(X.n_steps, 1)  # of a step
    if X.lengths.max(initial=0) * numbers > MAX_NUMBERS:
        return None
    starts, labels = structure.state.explicit()
    edge_starts = edge_pairs = np.zeros(0, dtype=np.int32)
    if structure.edge is not None:
        edge_starts, edge_pairs = structure.edge.explicit()
    first = structure.slices["transitions"].start
    transitions = np.where(
        structure.transition_index >= 0, structure.transition_index + first, -1
    ).astype(np.int64)
    row_of_start = structure.slices["start"].start if structure.boundary else -1
    out, n_products = np.zeros((structure.n_params, structure.n_params)), 0
    source = WeightSource(structure.weights(w), X)
    places = X.offsets[1:] * numbers // NUMBERS_PER_PART
    ends = [*(np.flatnonzero(np.diff(places)) + 1).tolist(), len(X)]
    for begin, stop in zip([0, *ends[:-1]], ends, strict=True):
        scores = chain_scores(source, X.block(begin, stop))
        # A constant factor cancels.
        factors = np.exp(scores.pairwise - scores.pairwise.max())
        factors = factors.reshape(-1, structure.n_labels, structure.n_labels)
        rows = as_csr(X[begin:stop]).matrix
        some = np.ones(stop - begin) if weights is None else weights[begin:stop]
        n_products += add_covariances(
            scores.unary, factors, scores.start, scores.end, scores.offsets, rows.indptr,
            rows.indices, rows.data, some, starts.astype(np.int32), labels.astype(np.int32),
            edge_starts, edge_pairs, structure.slices["edge"].start,
            transitions, row_of_start, min_probability, out,
        )  # fmt: skip
        if n_products * X.n_steps > max_products * X.offsets[stop]:
            return None  # the other parts will take as long
    add_transpose(out)
    return out
