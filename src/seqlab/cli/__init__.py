"""The command line: a thin client of the public API.

One file per command, what they share in files that begin with ``_``. Nothing heavy is imported before
a command runs, so that ``seqlab --help`` answers at once.
"""

from seqlab.cli.app import app, main

__all__ = ["app", "main"]
