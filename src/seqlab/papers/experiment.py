"""Experiments: what to measure, the published number and our target.

An experiment is a function that measures one number. A claim is a statement about several numbers ("A is at
least four points above B").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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
        Parts joined by ``/``, from general to specific: ``np/snow/cscl``.
    measure : function
        Without arguments; trains, predicts and returns the number.
    published : float, optional
        The number in the paper, if it has the same experiment (perhaps on other data).
    target : float, optional
        Our lower limit, or upper limit if less is better.
    less_is_better : bool, default=False
        Whether the number is an error.
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
        Names of the experiments that it compares.
    holds : function
        Takes their numbers, in the order of ``needs``.
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
        """Whether the target was reached; None if there is none."""
        target = self.experiment.target
        if target is None:
            return None
        printed = round(self.measured, 2)  # the table prints hundredths
        return printed <= target if self.experiment.less_is_better else printed >= target


def find_paper(name: str) -> Any:
    """Import the module of a paper, given its short name."""
    if name not in PAPERS:
        raise InputError(f"no paper is named {name!r}; choose from {', '.join(map(repr, PAPERS))}")
    return import_module(PAPERS[name])


def find_papers(only: Sequence[str]) -> list[str]:
    """Find the papers that have experiments with the wanted parts; return their short names.

    Examples
    --------
    >>> find_papers(["snow"])
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
    """Select the experiments whose name has all the wanted parts, in any order: ``["np", "snow"]``.

    Examples
    --------
    >>> every = [Experiment("np/snow/hmm", float), Experiment("sv/snow/hmm", float)]
    >>> [one.name for one in select(every, ["hmm", "np"])]
    ['np/snow/hmm']
    """
    wanted = {part for one in only for part in one.split("/")}
    known = {part for one in experiments for part in one.name.split("/")}
    if not wanted <= known:
        unknown = ", ".join(map(repr, sorted(wanted - known)))
        raise InputError(
            f"no experiment has the part {unknown}; choose from {', '.join(sorted(known))}"
        )
    return [one for one in experiments if wanted <= set(one.name.split("/"))]


def run(experiments: Iterable[Experiment]) -> Iterator[Result]:
    """Run the experiments one after the other."""
    for experiment in experiments:
        began = time.perf_counter()
        measured = float(experiment.measure())
        yield Result(experiment, measured, time.perf_counter() - began)


def check_claims(claims: Iterable[Claim], results: Iterable[Result]) -> list[tuple[str, bool]]:
    """Check each claim whose experiments were all measured; return its text and whether it holds."""
    numbers = {result.experiment.name: result.measured for result in results}
    return [
        (claim.text, bool(claim.holds(*(numbers[name] for name in claim.needs))))
        for claim in claims
        if numbers.keys() >= set(claim.needs)
    ]
