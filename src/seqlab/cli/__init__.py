"""The command line: a thin client of the public API.

One file per command; files that start with ``_`` hold what the commands share. NumPy, scikit-learn and the
like are imported only when a command runs, so that ``seqlab --help`` is fast.
"""

from seqlab.cli.app import app, main

__all__ = ["app", "main"]
