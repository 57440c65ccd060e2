"""Run the experiments of a paper, show the results as a table, and keep them in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import seqlab
from seqlab.data.errors import InputError
from seqlab.data.io.streams import iter_lines, open_writer
from seqlab.papers.experiment import (
    Claim,
    Experiment,
    Result,
    find_paper,
    judge_claims,
    run,
    select,
)


def run_paper(
    paper: str, only: Sequence[str] = (), output: Path | None = None, *, resume: bool = False
) -> bool:
    """Run the experiments of a paper and print the results; return whether all targets were met.

    Parameters
    ----------
    paper : str
        Short name, a key of `seqlab.papers.PAPERS`.
    only : sequence of str
        Parts that the name of an experiment must contain.
    output : Path, optional
        File for the results as JSON, written again after every experiment.
    resume : bool, default=False
        Whether to take over the results that ``output`` already has: only the other experiments are run,
        and the report is about all of them.
    """
    module = find_paper(paper)
    chosen = select(module.EXPERIMENTS, only)
    repeats = getattr(module, "REPEATS", "seeds")
    found: dict[str, Result] = {}
    if resume and output is not None and output.exists():
        found = read_results(output, module.TITLE, module.EXPERIMENTS)
    progress = Console(stderr=True, highlight=False)
    for result in run([one for one in chosen if one.name not in found], dict(found)):
        found[result.experiment.name] = result
        progress.print(
            f"{result.experiment.name}  {result.measured:.2f}  [dim]{result.seconds:.1f} s[/dim]"
        )
        if output is not None and (output.is_file() or not output.exists()):
            _write(output, module, found)
    results = _in_order(module, found)
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
        _write(output, module, found)
    claims_hold = all(one.holds for one in verdicts if one.claim.is_required)
    return claims_hold and all(result.met is not False for result in results)


def _in_order(module: Any, found: dict[str, Result]) -> list[Result]:
    return [found[one.name] for one in module.EXPERIMENTS if one.name in found]


def _write(output: Path, module: Any, found: dict[str, Result]) -> None:
    repeats = getattr(module, "REPEATS", "seeds")
    content = to_dict(module.TITLE, _in_order(module, found), module.CLAIMS, repeats)
    with open_writer(output) as write:
        write(json.dumps(content, indent=1) + "\n")


def read_results(path: Path, title: str, experiments: Sequence[Experiment]) -> dict[str, Result]:
    """Read the results of an earlier run; experiments that no longer exist are left out.

    Raises
    ------
    InputError
        If the file is not a result of the same paper and the same version of seqlab.
    """
    try:
        content = json.loads("\n".join(line for _, line in iter_lines(path)))
        if (content["title"], content["seqlab"]) != (title, seqlab.__version__):
            raise InputError(f"{path}: has the results of another paper or version of seqlab")
        stored = {
            str(one["name"]): (
                float(one["measured"]),
                float(one["seconds"]),
                tuple(float(value) for value in one["values"]),
            )
            for one in content["experiments"]
        }
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not a file of results of seqlab reproduce") from error
    return {one.name: Result(one, *stored[one.name]) for one in experiments if one.name in stored}


def to_dict(
    title: str, results: Sequence[Result], claims: Sequence[Claim], repeats: str = "seeds"
) -> dict[str, Any]:
    """All results as plain values."""
    return {
        "title": title,
        "seqlab": seqlab.__version__,
        "experiments": [
            {
                "name": result.experiment.name,
                "measured": round(result.measured, 4),
                "values": [round(value, 4) for value in result.values],
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
