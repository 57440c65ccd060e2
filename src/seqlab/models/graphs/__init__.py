"""Models of linked objects: pairwise networks on graphs."""

from seqlab.models.graphs.graph_crf import GraphCRF
from seqlab.models.graphs.graph_m3n import GraphM3N

__all__ = ["GraphCRF", "GraphM3N"]
