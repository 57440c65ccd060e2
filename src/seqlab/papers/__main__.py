"""``python -m seqlab.papers``: measure the founding results again."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from seqlab.data.errors import SeqlabError
from seqlab.papers import PAPERS
from seqlab.papers._experiment import (
    as_json,
    as_table,
    check_claims,
    find_paper,
    papers_with,
    run,
    select,
)


def reproduce(paper: str, only: Sequence[str] = (), output: Path | None = None) -> bool:
    """Run the experiments of a paper, print what they give; return whether all targets were met.

    Parameters
    ----------
    paper : str
        Short name, a key of `seqlab.papers.PAPERS`.
    only : sequence of str
        Parts that the names of the experiments must have.
    output : Path, optional
        File for the results as JSON.
    """
    module = find_paper(paper)
    chosen = select(module.EXPERIMENTS, only)
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
    console.print(as_table(module.TITLE, results))
    claims = check_claims(module.CLAIMS, results)
    for text, holds in claims:
        console.print(f"{'holds' if holds else 'does not hold'}: {text}")
    if output is not None:
        kept = as_json(module.TITLE, results, module.CLAIMS)
        output.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return all(result.met is not False for result in results) and all(holds for _, holds in claims)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 where a target was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m seqlab.papers", description="Measure the founding results again."
    )
    parser.add_argument("paper", nargs="?", choices=[*PAPERS, "all"], default="all")
    parser.add_argument(
        "--only", action="append", default=[], help="part of a name, such as np/snow"
    )
    parser.add_argument("--json", type=Path, default=None, help="write the results to this file")
    given = parser.parse_args(arguments)
    try:
        papers = papers_with(given.only) if given.paper == "all" else [given.paper]
        if given.json is not None and len(papers) > 1:
            parser.error("--json needs one paper")
        met = [reproduce(paper, given.only, given.json) for paper in papers]
    except SeqlabError as error:
        print(f"seqlab: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
