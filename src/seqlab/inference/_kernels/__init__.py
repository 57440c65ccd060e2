"""inference/_kernels."""
