"""Consoles of the commands: results go to standard output, everything else to standard error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from seqlab.utils.text import show_controls


class Console(RichConsole):
    """A console that raises an error if the output pipe is closed, and shows control characters."""

    def on_broken_pipe(self) -> None:
        """Raise again: the command line handles all errors in one place."""
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render as usual, except that text cannot contain control characters other than line ends."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                lines = map(show_controls, segment.text.split("\n"))
                yield Segment("\n".join(lines), segment.style)


def stdout(**options: Any) -> Console:
    """Console for results: as wide as the terminal, at least 100 columns if there is none."""
    console = Console(highlight=False, **options)
    if not console.is_terminal and "width" not in options:
        console.width = max(console.width, 100)
    return console


def stderr() -> Console:
    """Console for messages."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def plain_table(**options: Any) -> Table:
    """Table with a line under its header and no other lines."""
    from rich import box

    look = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1), "header_style": "bold"}
    return Table(**{**look, **options})


def print_facts(console: Any, facts: dict[str, str]) -> None:
    """Print one line per fact, with its name on the left."""
    for name, value in facts.items():
        console.print(f"[dim]{name:>8}[/dim]  {escape_text(value)}", soft_wrap=True)


def escape_text(value: object) -> str:
    """Return text for a table: markup and control characters are shown as they are written."""
    from rich.markup import escape

    return escape(show_controls(str(value)))


def format_help(text: str) -> str:
    """Join the lines of each paragraph, as typer expects; indented lines stay as they are."""
    paragraphs = text.strip().split("\n\n")
    joined = [p if p.startswith("  ") else " ".join(p.split("\n")) for p in paragraphs]
    return "\n\n".join(joined)


def format_count(number: int, noun: str) -> str:
    """``1 sequence``, ``8,936 sequences``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def format_size(n_sequences: int, n_tokens: int) -> str:
    """``8,936 sequences, 211,727 tokens``."""
    return f"{format_count(n_sequences, 'sequence')}, {format_count(n_tokens, 'token')}"


def format_seconds(value: float) -> str:
    """``0.42 s``, ``38 s``, ``2 min 05 s``."""
    if value < 10:
        return f"{value:.2g} s" if value < 1 else f"{value:.1f} s"
    whole = round(value)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
