"""Experiments: what to measure, the published number and our target.

An experiment is a function that measures one number, or the same number several times: for several seeds, or
for several folds of the data. A claim is a statement about several numbers ("A is at least four points above
B"), checked for each seed or fold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import fmean, stdev
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
        Trains, predicts and returns the number, or a sequence with one number per seed or fold. Without
        arguments, unless the number is derived from others.
    published : float, optional
        The number in the paper, if it has the same experiment (perhaps on other data).
    target : float, optional
        Our lower limit, or upper limit if less is better.
    less_is_better : bool, default=False
        Whether the number is an error.
    derived_from : tuple of str, default=()
        Experiments, earlier in the list, whose results ``measure`` takes. It runs only if all of them have
        been measured.
    """

    name: str
    measure: Callable[..., float | Sequence[float]]
    published: float | None = None
    target: float | None = None
    less_is_better: bool = False
    derived_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement about measured numbers.

    Parameters
    ----------
    text : str
    needs : tuple of str
        Names of the experiments that it compares.
    holds : function
        Takes their numbers, in the order of ``needs``; called once per seed or fold.
    is_required : bool, default=True
        Whether `seqlab reproduce` fails if the claim does not hold. False for a claim of the paper that
        we only examine.
    obstacle : str, optional
        Why the claim cannot be tested. It needs no experiments then.
    """

    text: str
    needs: tuple[str, ...]
    holds: Callable[..., bool]
    is_required: bool = True
    obstacle: str = ""


class Result(NamedTuple):
    """A measured experiment.

    Attributes
    ----------
    experiment : Experiment
    measured : float
        The number, or its mean over the seeds or folds.
    seconds : float
    values : tuple of float
        One number per seed or fold; empty if there is only one number.
    """

    experiment: Experiment
    measured: float
    seconds: float
    values: tuple[float, ...] = ()

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds or folds; None with fewer than two."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def summary(self) -> str:
        """The number, or its mean and standard deviation, as text."""
        if self.spread is None:
            return f"{self.measured:.2f}"
        return f"{self.measured:.2f} +- {self.spread:.2f}"

    def of_repeat(self, number: int) -> float:
        """Return the number of one seed or fold."""
        return self.values[number] if self.values else self.measured

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None if there is none."""
        target = self.experiment.target
        if target is None:
            return None
        printed = round(self.measured, 2)  # the table prints hundredths
        return printed <= target if self.experiment.less_is_better else printed >= target


class Verdict(NamedTuple):
    """How a claim compares with the measured numbers.

    Attributes
    ----------
    claim : Claim
    n_holds, n_repeats : int
        For how many of the seeds or folds it holds.
    repeats : str
        What the numbers were repeated for: "seeds" or "folds".
    results : tuple of Result
        What the claim compares.
    """

    claim: Claim
    n_holds: int
    n_repeats: int
    repeats: str = "seeds"
    results: tuple[Result, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the claim holds for every seed or fold."""
        return self.n_holds == self.n_repeats

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.claim.obstacle:
            return f"cannot be tested ({self.claim.obstacle})"
        if self.holds:
            return "holds"
        if self.n_holds == 0:
            return "does not hold here"
        return f"holds in part ({self.n_holds} of {self.n_repeats} {self.repeats})"

    @property
    def evidence(self) -> str:
        """The compared numbers, with their standard deviations over the seeds or folds."""
        return ", ".join(f"{one.experiment.name} {one.summary}" for one in self.results)


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
    wanted = {part for one in only for part in one.split("/") if part}
    known = {part for one in experiments for part in one.name.split("/")}
    if not wanted <= known:
        unknown = ", ".join(map(repr, sorted(wanted - known)))
        raise InputError(
            f"no experiment has the part {unknown}; choose from {', '.join(sorted(known))}"
        )
    chosen = [one for one in experiments if wanted <= set(one.name.split("/"))]
    if not chosen:
        raise InputError(f"no experiment has all of the parts {', '.join(sorted(wanted))}")
    return chosen


def run(
    experiments: Iterable[Experiment], known: Mapping[str, Result] | None = None
) -> Iterator[Result]:
    """Run the experiments one after the other.

    Parameters
    ----------
    experiments : iterable of Experiment
    known : mapping of str to Result, optional
        Results of other experiments, by name, for experiments that are derived from them.
    """
    results = dict(known or {})
    for experiment in experiments:
        if not results.keys() >= set(experiment.derived_from):
            continue
        began = time.perf_counter()
        found = experiment.measure(*(results[name] for name in experiment.derived_from))
        values = tuple(float(one) for one in found) if isinstance(found, Sequence) else ()
        measured = fmean(values) if values else float(found)  # type: ignore[arg-type]
        result = Result(experiment, measured, time.perf_counter() - began, values)
        results[experiment.name] = result
        yield result


def check_claims(claims: Iterable[Claim], results: Iterable[Result]) -> list[tuple[str, bool]]:
    """Check each claim whose experiments were all measured; return its text and whether it holds."""
    return [(verdict.claim.text, verdict.holds) for verdict in judge_claims(claims, results)]


def judge_claims(
    claims: Iterable[Claim], results: Iterable[Result], repeats: str = "seeds"
) -> list[Verdict]:
    """Check each claim whose experiments were all measured, for every seed or fold that they have in common.

    Parameters
    ----------
    claims : iterable of Claim
    results : iterable of Result
    repeats : str, default="seeds"
        What numbers were repeated for, as the verdicts name it.
    """
    found = {result.experiment.name: result for result in results}
    verdicts = []
    for claim in claims:
        if claim.obstacle:
            verdicts.append(Verdict(claim, 0, 1, repeats))
        elif found.keys() >= set(claim.needs):
            needed = tuple(found[name] for name in claim.needs)
            n_repeats = min((len(one.values) for one in needed if one.values), default=1)
            n_holds = sum(
                bool(claim.holds(*(one.of_repeat(k) for one in needed))) for k in range(n_repeats)
            )
            verdicts.append(Verdict(claim, n_holds, n_repeats, repeats, needed))
    return verdicts
