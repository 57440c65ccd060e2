"""Templates: token columns to feature matrices, by CRF++, Wapiti or Python templates."""

from seqlab.features.templates.templates import Templates

__all__ = ["Templates"]
