"""Experiments: what to measure, what was published, what we ask of ourselves; and their runner.

An experiment is a function that measures one number. A claim is a statement about several of them ("A is at
least four points above B"). `run` measures, `as_table` and `as_json` show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from seqlab.data.errors import InputError
from seqlab.papers import PAPERS


@dataclass(frozen=True)
class Experiment:
    """One number of a paper.

    Parameters
    ----------
    name : str
        Parts joined by ``/``, the coarse ones first: ``np/snow/cscl``.
    measure : function
        Of no argument; trains, predicts and returns the number.
    published : float, optional
        What the paper prints, where it has the same experiment (perhaps on other data).
    target : float, optional
        What we ask for: at least, or at most where less is better.
    less_is_better : bool, default=False
        Whether the number counts errors.
    """

    name: str
    measure: Callable[[], float]
    published: float | None = None
    target: float | None = None
    less_is_better: bool = False


@dataclass(frozen=True)
class Claim:
    """A statement about measured numbers.

    Parameters
    ----------
    text : str
    needs : tuple of str
        Names of the experiments it is about.
    holds : function
        Of their numbers, in the order of ``needs``.
    """

    text: str
    needs: tuple[str, ...]
    holds: Callable[..., bool]


class Result(NamedTuple):
    """A measured experiment.

    Attributes
    ----------
    experiment : Experiment
    measured : float
    seconds : float
    """

    experiment: Experiment
    measured: float
    seconds: float

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None where there is none."""
        target = self.experiment.target
        if target is None:
            return None
        printed = round(self.measured, 2)  # compared as printed, in hundredths
        return printed <= target if self.experiment.less_is_better else printed >= target


def find_paper(name: str) -> Any:
    """Module of a paper by its short name."""
    if name not in PAPERS:
        raise InputError(f"no paper {name!r}; there are {', '.join(map(repr, PAPERS))}")
    return import_module(PAPERS[name])


def papers_with(only: Sequence[str]) -> list[str]:
    """Short names of the papers that have experiments with the wanted parts.

    Examples
    --------
    >>> papers_with(["snow"])
    ['classifiers']
    """
    wanted = {part for one in only for part in one.split("/")}
    found = [
        paper
        for paper in PAPERS
        if wanted <= {part for one in find_paper(paper).EXPERIMENTS for part in one.name.split("/")}
    ]
    if not found:
        raise InputError(f"no paper has experiments with the parts {', '.join(sorted(wanted))}")
    return found


def select(experiments: Sequence[Experiment], only: Iterable[str]) -> list[Experiment]:
    """Experiments whose name has all the wanted parts, in any order: ``["np", "snow"]``.

    Examples
    --------
    >>> every = [Experiment("np/snow/hmm", float), Experiment("sv/snow/hmm", float)]
    >>> [one.name for one in select(every, ["hmm", "np"])]
    ['np/snow/hmm']
    """
    wanted = {part for one in only for part in one.split("/")}
    known = {part for one in experiments for part in one.name.split("/")}
    if not wanted <= known:
        strange = ", ".join(map(repr, sorted(wanted - known)))
        raise InputError(
            f"no experiment has the part {strange}; there are {', '.join(sorted(known))}"
        )
    return [one for one in experiments if wanted <= set(one.name.split("/"))]


def run(experiments: Iterable[Experiment]) -> Iterator[Result]:
    """Measure one experiment after the other."""
    for experiment in experiments:
        began = time.perf_counter()
        measured = float(experiment.measure())
        yield Result(experiment, measured, time.perf_counter() - began)


def check_claims(claims: Iterable[Claim], results: Iterable[Result]) -> list[tuple[str, bool]]:
    """Say of each claim, whose experiments were all measured, whether it holds."""
    numbers = {result.experiment.name: result.measured for result in results}
    return [
        (claim.text, bool(claim.holds(*(numbers[name] for name in claim.needs))))
        for claim in claims
        if numbers.keys() >= set(claim.needs)
    ]


def as_json(title: str, results: Sequence[Result], claims: Sequence[Claim]) -> Mapping[str, Any]:
    """Everything that was measured, as plain values."""
    return {
        "title": title,
        "experiments": [
            {
                "name": result.experiment.name,
                "measured": round(result.measured, 2),
                "published": result.experiment.published,
                "target": result.experiment.target,
                "met": result.met,
                "seconds": round(result.seconds, 1),
            }
            for result in results
        ],
        "claims": [{"text": text, "holds": holds} for text, holds in check_claims(claims, results)],
    }


def as_table(title: str, results: Sequence[Result]) -> Any:
    """The results as a table of rich."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("experiment", no_wrap=True)
    for name in ("published", "target", "measured", "", "seconds"):
        table.add_column(name, justify="right")
    marks = {None: "", True: "ok", False: "missed"}
    for result in results:
        experiment = result.experiment
        table.add_row(
            experiment.name,
            _number(experiment.published),
            _number(experiment.target),
            _number(result.measured),
            marks[result.met],
            f"{result.seconds:.1f}",
        )
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
