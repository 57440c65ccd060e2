"""Commands whose functions can be interrupted, unlike the parsing of the command line."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command; interrupts take effect when its function begins.

    While the command line is parsed they wait, because code that evaluates annotations may swallow them.
    `seqlab.cli.app.main` puts the function that ends the waiting into the context.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the function of the command."""
        release_interrupts = ctx.find_root().obj
        if release_interrupts is not None:
            release_interrupts()
        return super().invoke(ctx)
