"""Compiled kernels of the chain; they take and return arrays only."""
