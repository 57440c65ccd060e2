"""Helpers that several rooms share: threads, linear algebra with fixed rounding, files."""
