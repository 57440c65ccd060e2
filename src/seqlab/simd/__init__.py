"""LLVM intrinsics: the loops that the compiler does not vectorise by itself.

All of them are called from numba kernels only. `builder` writes the code that they share;
``tests/simd_oracle.py`` has a NumPy version of each.
"""
