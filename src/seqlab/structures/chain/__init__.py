"""Linear chains: parameters, scores, and fused passes for fast training."""

from typing import TYPE_CHECKING

from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.structures.chain.bound import BoundChain
    from seqlab.structures.chain.columns import (
        centred_shares,
        has_large_offset,
        mean_squares,
        typical_shares,
    )
    from seqlab.structures.chain.features import ChainFeatures
    from seqlab.structures.chain.marginals import ChainMarginals
    from seqlab.structures.chain.margins import ChainMarginModel
    from seqlab.structures.chain.pattern import FeaturePattern
    from seqlab.structures.chain.structure import ChainStructure, previous_codes
    from seqlab.structures.chain.weights import (
        ChainWeights,
        WeightSource,
        as_csr,
        chain_scores,
    )

__getattr__, __dir__ = import_on_use(
    __name__,
    {
        "bound": ("BoundChain",),
        "marginals": ("ChainMarginals",),
        "columns": ("centred_shares", "has_large_offset", "mean_squares", "typical_shares"),
        "features": ("ChainFeatures",),
        "margins": ("ChainMarginModel",),
        "pattern": ("FeaturePattern",),
        "structure": ("ChainStructure", "previous_codes"),
        "weights": ("ChainWeights", "WeightSource", "as_csr", "chain_scores"),
    },
)

__all__ = [
    "BoundChain",
    "ChainFeatures",
    "ChainMarginModel",
    "ChainMarginals",
    "ChainStructure",
    "ChainWeights",
    "FeaturePattern",
    "WeightSource",
    "as_csr",
    "centred_shares",
    "chain_scores",
    "has_large_offset",
    "mean_squares",
    "previous_codes",
    "typical_shares",
]
