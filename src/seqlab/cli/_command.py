"""Commands: from when on Ctrl-C raises KeyboardInterrupt (see `seqlab.cli._interrupts`)."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from seqlab.cli._interrupts import begin_work


class Command(TyperCommand):
    """A command that begins its work at once."""

    def invoke(self, ctx: Any) -> Any:
        """Run the function of the command."""
        begin_work()
        return super().invoke(ctx)


class StartingCommand(TyperCommand):
    """A command that first imports much; its function calls `begin_work` itself."""
