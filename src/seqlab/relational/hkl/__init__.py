"""Hierarchical kernel learning over the lattice of conjunctions."""

from seqlab.relational.hkl.rules import Rule
from seqlab.relational.hkl.struct_hkl import StructHKL

__all__ = ["Rule", "StructHKL"]
