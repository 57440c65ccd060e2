"""``seqlab reproduce``: repeat the experiments of the papers behind seqlab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqlab.cli._errors import CommandError, check_output
from seqlab.cli._suggestions import suggest

HELP = """
Repeat the experiments of the papers behind seqlab and compare with the published results.

This takes minutes and needs the data sets of the experiments (see [bold]seqlab datasets[/bold]). The exit
code is 1 if a target is missed. The file of [bold]--json[/bold] is written after every experiment;
[bold]--resume[/bold] continues from there.

  [bold]seqlab reproduce --list[/bold]
  [bold]seqlab reproduce classifiers --only sv[/bold]   [dim]select experiments by parts of their names[/dim]
  [bold]seqlab reproduce secoc --json secoc.json --resume[/bold]   [dim]run what the file does not have[/dim]
"""


def reproduce(
    paper: Annotated[str, typer.Argument(help="Short name of a paper, or all.")] = "all",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Only experiments with this part in their name; if repeated, with all of the parts.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--json", help="Also write the results to this file, as JSON.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Keep the results in the file of --json; run only the others."
        ),
    ] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Only list the experiments.")] = False,
) -> None:
    """Run the experiments of a paper; see `HELP`."""
    from seqlab.papers import PAPERS

    if paper not in (*PAPERS, "all"):
        raise CommandError(f"no paper is named {paper!r}{suggest(paper, [*PAPERS, 'all'])}")
    if output is not None:
        check_output(output)
    elif resume:
        raise CommandError("--resume: name the file of results with --json")
    from seqlab.papers.experiment import find_paper, find_papers, select
    from seqlab.papers.report import run_paper

    parts = only or []
    papers = find_papers(parts) if paper == "all" else [paper]
    if list_only:
        for one in papers:
            for experiment in select(find_paper(one).EXPERIMENTS, parts):
                print(f"{one} {experiment.name}")
        return
    if output is not None and len(papers) > 1:
        raise CommandError("--json: name one paper")
    met_targets = [run_paper(one, parts, output, resume=resume) for one in papers]
    if not all(met_targets):
        raise typer.Exit(1)
