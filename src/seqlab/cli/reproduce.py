"""``seqlab reproduce``: measure the founding results again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqlab.cli import _console
from seqlab.cli._errors import CommandError, check_output
from seqlab.cli._nearest import nearest

_HELP = """
Measure the results of the papers behind seqlab again, beside what they published.

Takes minutes, and the data sets of the experiments (see [bold]seqlab datasets[/bold]). Ends with 1 if
a target is missed.

  [bold]seqlab reproduce --list[/bold]
  [bold]seqlab reproduce classifiers --only sv[/bold]     [dim]some experiments, by parts of their names[/dim]
"""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("reproduce", help=_console.teach(_HELP), rich_help_panel="Commands")(reproduce)


def reproduce(
    paper: Annotated[str, typer.Argument(help="Short name of the paper, or all.")] = "all",
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Part of the experiments' names.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--json", help="Also write the results to this file.")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Only list the experiments.")] = False,
) -> None:
    """Run the experiments of a paper; see `_HELP`."""
    from seqlab.papers import PAPERS

    if paper not in (*PAPERS, "all"):
        raise CommandError(f"no paper {paper!r}{nearest(paper, [*PAPERS, 'all'])}")
    if output is not None:
        check_output(output)
    from seqlab.papers.__main__ import reproduce as measure
    from seqlab.papers._experiment import find_paper, papers_with, select

    parts = only or []
    papers = papers_with(parts) if paper == "all" else [paper]
    if list_only:
        for one in papers:
            for experiment in select(find_paper(one).EXPERIMENTS, parts):
                print(f"{one} {experiment.name}")
        return
    if output is not None and len(papers) > 1:
        raise CommandError("--json needs one paper")
    met = [measure(one, parts, output) for one in papers]
    if not all(met):
        raise typer.Exit(1)
