"""The command line: a thin client of the public API.

One file per command; files that start with ``_`` hold what the commands share. NumPy, scikit-learn and the
like are imported only when a command runs, so that ``seqlab --help`` is fast.
"""

from seqlab.utils.signals import hold_interrupts

# Ctrl-C while these modules are imported takes effect in `main`, which says so in one line.
with hold_interrupts(raise_after=False) as _held:
    from seqlab.cli import app as _app
    from seqlab.cli.app import app, main

_app.early_signal = _held.number

__all__ = ["app", "main"]
