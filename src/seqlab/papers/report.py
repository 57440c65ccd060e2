"""Run the experiments of a paper and show the results as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from seqlab.data.io.streams import open_writer
from seqlab.papers.experiment import Claim, Result, find_paper, judge_claims, run, select


def run_paper(paper: str, only: Sequence[str] = (), output: Path | None = None) -> bool:
    """Run the experiments of a paper and print the results; return whether all targets were met.

    Parameters
    ----------
    paper : str
        Short name, a key of `seqlab.papers.PAPERS`.
    only : sequence of str
        Parts that the name of an experiment must contain.
    output : Path, optional
        File for the results as JSON.
    """
    module = find_paper(paper)
    chosen = select(module.EXPERIMENTS, only)
    repeats = getattr(module, "REPEATS", "seeds")
    progress = Console(stderr=True, highlight=False)
    results = []
    for result in run(chosen):
        results.append(result)
        progress.print(
            f"{result.experiment.name}  {result.measured:.2f}  [dim]{result.seconds:.1f} s[/dim]"
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    console.print(make_table(module.TITLE, results))
    verdicts = judge_claims(module.CLAIMS, results, repeats)
    for verdict in verdicts:
        console.print(f"{verdict.text}: {verdict.claim.text}")
        if verdict.evidence:
            console.print(f"  {verdict.evidence}", style="dim")
    if output is not None:
        with open_writer(output) as write:
            found = to_dict(module.TITLE, results, module.CLAIMS, repeats)
            write(json.dumps(found, indent=1) + "\n")
    claims_hold = all(one.holds for one in verdicts if one.claim.is_required)
    return claims_hold and all(result.met is not False for result in results)


def to_dict(
    title: str, results: Sequence[Result], claims: Sequence[Claim], repeats: str = "seeds"
) -> dict[str, Any]:
    """All results as plain values."""
    return {
        "title": title,
        "experiments": [
            {
                "name": result.experiment.name,
                "measured": round(result.measured, 2),
                "values": [round(value, 2) for value in result.values],
                "published": result.experiment.published,
                "target": result.experiment.target,
                "met": result.met,
                "seconds": round(result.seconds, 1),
            }
            for result in results
        ],
        "claims": [
            {
                "text": one.claim.text,
                "holds": one.holds,
                "verdict": one.text,
                "evidence": one.evidence,
            }
            for one in judge_claims(claims, results, repeats)
        ],
    }


def make_table(title: str, results: Sequence[Result]) -> Table:
    """Table of the results."""
    table = Table(title=title, title_justify="left")
    table.add_column("experiment", no_wrap=True)
    for name in ("published", "target", "measured", "+-", "", "seconds"):
        table.add_column(name, justify="right")
    marks = {None: "", True: "ok", False: "missed"}
    for result in results:
        experiment = result.experiment
        table.add_row(
            experiment.name,
            _format(experiment.published),
            _format(experiment.target),
            _format(result.measured),
            _format(result.spread),
            marks[result.met],
            f"{result.seconds:.1f}",
        )
    return table


def _format(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
