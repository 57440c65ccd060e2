"""The pairwise network on graphs as a structure."""

from seqlab.structures.graph.bound import BoundGraph
from seqlab.structures.graph.structure import GraphStructure, GraphWeights

__all__ = ["BoundGraph", "GraphStructure", "GraphWeights"]
