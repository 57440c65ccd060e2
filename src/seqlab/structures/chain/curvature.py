"""The diagonal of the Hessian of a chain's log-partitions, treating steps as independent.

For a weight with the feature ``x`` and the label (or label pair) of marginal ``p`` it is the sum over steps
of ``p (1 - p) x^2``. Fused passes compute it without edge features. Here it is computed block by block,
with edge features and for sequences that a fused pass skips.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.data.sequences import SequenceBlock
from seqlab.structures.chain.columns import csr_rows

if TYPE_CHECKING:
    from seqlab.structures.chain.bound import BoundChain

Floats = NDArray[np.float64]


def add_block_curvature(
    bound: BoundChain,
    w: Floats,
    blocks: list[SequenceBlock],
    weights: Floats | None,
    out: Floats,
) -> None:
    """Add the curvature of blocks of sequences at ``w`` to ``out`` (n_params,)."""
    structure, source = bound.structure, bound.source(w)
    slices = structure.slices
    for block in blocks:
        found = bound.block_marginals(source, block, None, None)
        lengths = np.diff(block.offsets)
        some = np.ones(lengths.size) if weights is None else weights[block.first : block.last]
        step_weights = np.repeat(some, lengths)
        node = found.node * (1.0 - found.node) * step_weights[:, None]
        rows = csr_rows(bound.X.matrix, block.begin, block.stop)
        with np.errstate(over="ignore"):
            rows = rows.multiply(rows).tocsr()
        structure.state.scatter(rows, node, 0, rows.shape[0], out[slices["state"]])
        if structure.edge is None:
            # The variance of a transition is at most that of either of its labels.
            total = node.sum(axis=0)
            transitions = np.minimum(found.transitions, np.minimum(total[:, None], total))
        else:
            assert found.pair is not None
            pair = found.pair * (1.0 - found.pair) * step_weights[:, None, None]
            transitions = pair.sum(axis=0)
            flat = pair.reshape(rows.shape[0], -1)
            structure.edge.scatter(rows, flat, 0, rows.shape[0], out[slices["edge"]])
        out[slices["transitions"]] += transitions[structure.has_transition]
        if structure.boundary:
            nonempty = lengths > 0
            out[slices["start"]] += node[block.offsets[:-1][nonempty]].sum(axis=0)
            out[slices["end"]] += node[block.offsets[1:][nonempty] - 1].sum(axis=0)
