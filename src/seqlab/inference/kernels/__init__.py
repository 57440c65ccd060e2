"""The numba core of inference: arrays in, arrays out, a whole block of sequences per call."""
