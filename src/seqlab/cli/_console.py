"""Consoles of the commands: results on standard output, everything else on standard error."""

from __future__ import annotations

from typing import Any

from rich.console import Console as RichConsole
from rich.table import Table


class Console(RichConsole):
    """A console that lets a broken pipe through to whoever runs the command."""

    def on_broken_pipe(self) -> None:
        """Raise again: the command line answers it in one place."""
        raise BrokenPipeError


def stdout(**options: Any) -> Console:
    """Console of the results; as wide as the terminal, and wide where there is none."""
    console = Console(highlight=False, **options)
    if not console.is_terminal and "width" not in options:
        console.width = max(console.width, 100)
    return console


def stderr() -> Console:
    """Console of messages."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def plain_table(**options: Any) -> Table:
    """Return a table with a rule under its header and nothing else."""
    from rich import box

    look = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1), "header_style": "bold"}
    return Table(**{**look, **options})


def teach(text: str) -> str:
    """Help text as typer shows it: paragraphs in one piece, indented lines as they stand."""
    paragraphs = text.strip().split("\n\n")
    joined = [p if p.startswith("  ") else " ".join(p.split("\n")) for p in paragraphs]
    return "\n\n".join(joined)


def count(number: int, noun: str) -> str:
    """``1 sequence``, ``8,936 sequences``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def seconds(value: float) -> str:
    """``0.42 s``, ``38 s``, ``2 min 05 s``."""
    if value < 10:
        return f"{value:.2g} s" if value < 1 else f"{value:.1f} s"
    whole = round(value)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
