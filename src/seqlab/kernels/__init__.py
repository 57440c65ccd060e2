"""Kernels: similarities between steps, and matrices of them with bounded memory."""

from seqlab.kernels.functions import (
    BoundKernel,
    CallableKernel,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    PrecomputedKernel,
    RBFKernel,
    default_gamma,
    make_kernel,
)
from seqlab.kernels.gram import GramMatrix
from seqlab.kernels.low_rank import KernelFeatures
from seqlab.kernels.merging import merge_equal_rows
from seqlab.kernels.subsequence import SubsequenceKernel

__all__ = [
    "BoundKernel",
    "CallableKernel",
    "GramMatrix",
    "Kernel",
    "KernelFeatures",
    "LinearKernel",
    "PolynomialKernel",
    "PrecomputedKernel",
    "RBFKernel",
    "SubsequenceKernel",
    "default_gamma",
    "make_kernel",
    "merge_equal_rows",
]
