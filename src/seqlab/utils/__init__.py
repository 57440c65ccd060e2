"""Helpers of several packages: threads, linear algebra with a fixed order of summation, files."""
