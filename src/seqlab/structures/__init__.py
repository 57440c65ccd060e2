"""Weights to scores and back: the border between learners and inference."""

from seqlab.structures.chain import ChainMarginals, ChainStructure, ChainWeights, chain_scores
from seqlab.structures.protocol import Structure

__all__ = ["ChainMarginals", "ChainStructure", "ChainWeights", "Structure", "chain_scores"]
