"""The command line: a thin client of the public API.

One file per command; files that start with ``_`` hold what the commands share. NumPy, scikit-learn and the
like are imported only when a command runs, so that ``seqlab --help`` is fast. This module imports nothing, so
that `main` can prepare for signals first.
"""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers, which know the name; see `seqlab`
if TYPE_CHECKING:
    from typing import Any

    from seqlab.cli.program import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the ``seqlab`` command."""
    from seqlab.cli._interrupts import exit_on_signals

    exit_on_signals()
    from seqlab.cli.program import run

    run()


def __getattr__(name: str) -> Any:
    if name == "app":
        from seqlab.cli.program import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
