"""Phrase sets with constraints: an integer program over phrase variables, solved by HiGHS.

One 0/1 variable ``x_e`` per candidate phrase. With ``c_e`` its cost and ``o_t`` that of step ``t``
outside::

    minimise    sum_t o_t + sum_e x_e (c_e - sum_{t in e} o_t)
    subject to  sum_{e covers t} x_e <= 1      for every step t (= 1 if it must be in a phrase)
                the rows of the constraints

Without the last line this is an interval matrix, which is totally unimodular, and the program is equivalent
to the shortest path. So the shortest path is computed first; if its phrases satisfy all constraints, they
are the solution. Only the other sequences go to the solver.

The solution is exact (the gap is closed to 0), but the time grows with the number of candidates. For long
sequences, exclude improbable candidates or limit their length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError
from seqlab.data.tags import StackedPhrases
from seqlab.inference.phrases.constraints import (
    Covered,
    LengthLimit,
    PathConstraint,
    check_constraints,
)
from seqlab.inference.phrases.costs import NO_LIMIT, PhraseCandidates, PhraseCosts
from seqlab.inference.phrases.shortest_path import PhraseSets, best_phrases

Ints = NDArray[np.int64]

_INFEASIBLE = 2  # status of scipy.optimize.milp


def constrained_phrases(
    costs: PhraseCosts,
    constraints: Iterable[Any] = (),
    types: Sequence[str | None] | None = None,
    *,
    n_jobs: int | None = None,
) -> PhraseSets:
    """Cheapest set of disjoint phrases of each sequence that satisfies all constraints.

    Parameters
    ----------
    costs : PhraseCosts
    constraints : iterable of LengthLimit, Covered, CountLimit, TypeOrder, Requires
    types : sequence of str, optional
        Names of the types, in the order of the columns of ``costs``; all None by default.
    n_jobs : int, optional
        Number of threads for the shortest path.

    Returns
    -------
    PhraseSets
        As in `best_phrases`.

    Raises
    ------
    NoLegalLabelingError
        If no set satisfies the constraints; the message names the sequence and the constraints.

    Examples
    --------
    >>> from seqlab.inference import CountLimit, PhraseCosts, constrained_phrases
    >>> costs = PhraseCosts.product([[0.9], [0.2], [0.6]], [[0.3], [0.8], [0.7]])
    >>> constrained_phrases(costs, [CountLimit(1)]).phrases
    StackedPhrases(start=array([0]), stop=array([2]), type=array([0]))
    """
    names = [None] * costs.n_types if types is None else list(types)
    if len(names) != costs.n_types:
        raise InputError(
            f"got {len(names)} names of types, but the costs have {costs.n_types} types"
        )
    path, linear = check_constraints(constraints, names)
    costs = limit_costs(costs, path, names)
    best = best_phrases(costs, n_jobs=n_jobs)
    if not linear:
        return best
    violated = [
        index
        for index, phrases in enumerate(_split(best.phrases, costs.offsets, names))
        if not all(constraint.allows(phrases) for constraint in linear)
    ]

    solved = []
    for index in violated:
        candidates = costs.sequence(index).candidates()
        solved.append((*solve_program(candidates, linear, names, sequence=index), candidates))
    return _merge(best, violated, solved, costs.offsets)


def limit_costs(
    costs: PhraseCosts, constraints: Iterable[PathConstraint], types: Sequence[str | None]
) -> PhraseCosts:
    """The costs with the constraints that the shortest path can handle."""
    for constraint in constraints:
        if isinstance(constraint, LengthLimit):
            concerned = np.array([constraint.type in (None, type_) for type_ in types])
            longest = NO_LIMIT if constraint.longest is None else constraint.longest
            costs = costs.limited(
                np.where(concerned, constraint.shortest, 1), np.where(concerned, longest, NO_LIMIT)
            )
        elif isinstance(constraint, Covered):
            lengths = np.diff(costs.offsets).tolist()
            masks = [constraint.mask(length) for length in lengths]
            costs = costs.covering(np.concatenate([np.zeros(0, dtype=bool), *masks]))
    return costs


@dataclass(slots=True)
class _Program:
    """Rows and columns of the program of one sequence; implements the protocol `Rows`."""

    start: Ints
    stop: Ints
    type_of: Ints
    types: Sequence[str | None]
    n_steps: int
    n_columns: int
    columns: list[Ints] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def of_type(self, type_: str | None) -> Ints:
        if type_ is None:
            return np.arange(self.start.size)
        return np.flatnonzero(self.type_of == self.types.index(type_))

    def add(
        self, columns: Ints, values: Any, *, low: float = -np.inf, high: float = np.inf
    ) -> None:
        self.columns.append(columns)
        self.values.append(np.broadcast_to(np.asarray(values, dtype=np.float64), columns.shape))
        self.low.append(low)
        self.high.append(high)

    def new_switches(self, n: int) -> Ints:
        self.n_columns += n
        return np.arange(self.n_columns - n, self.n_columns)

    def matrix(self) -> Any:
        indptr = _offsets([columns.size for columns in self.columns])
        indices = np.concatenate([np.zeros(0, dtype=np.int64), *self.columns])
        data = np.concatenate([np.zeros(0), *self.values])
        return sp.csr_matrix((data, indices, indptr), shape=(len(self.columns), self.n_columns))


def solve_program(
    candidates: PhraseCandidates,
    constraints: Iterable[Any] = (),
    types: Sequence[str | None] = (None,),
    *,
    sequence: int = 0,
) -> tuple[Ints, float]:
    """Solve the integer program of one sequence.

    Parameters
    ----------
    candidates : PhraseCandidates
        Candidates of one sequence.
    constraints : iterable of CountLimit, TypeOrder, Requires
    types : sequence of str
        Names of the types.
    sequence : int
        Number of the sequence, for the error message.

    Returns
    -------
    chosen : int array
        Indices of the chosen candidates.
    cost : float
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    usable = np.flatnonzero(np.isfinite(candidates.cost))
    start, stop = candidates.start[usable], candidates.stop[usable]
    n_steps = candidates.outside.size
    forced = np.isposinf(candidates.outside)
    outside = np.where(forced, 0.0, candidates.outside)
    before = np.concatenate([[0.0], np.cumsum(outside)])
    gain = candidates.cost[usable] - (before[stop] - before[start])
    program = _Program(start, stop, candidates.type[usable], types, n_steps, usable.size)
    for constraint in constraints:
        constraint.add_to(program)
    # Row t: every candidate that covers step t.
    cover = sp.csr_matrix(
        (np.ones(int((stop - start).sum())), _ranges(start, stop), _offsets(stop - start)),
        shape=(usable.size, n_steps),
    ).T.tocsr()
    cover.resize(n_steps, program.n_columns)
    matrix = sp.vstack([cover, program.matrix()], format="csr")
    low = np.concatenate([np.where(forced, 1.0, -np.inf), program.low])
    high = np.concatenate([np.ones(n_steps), program.high])
    if program.n_columns == 0:
        feasible = bool((low <= 0.0).all() and (high >= 0.0).all())
        if feasible:
            return usable, float(before[-1])
    else:
        objective = np.zeros(program.n_columns)
        objective[: usable.size] = gain
        result = milp(
            objective,
            integrality=np.ones(program.n_columns),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(matrix, low, high),
            options={"mip_rel_gap": 0.0},
        )
        if result.x is not None and result.status == 0:
            chosen = usable[result.x[: usable.size] > 0.5]
            covered = np.zeros(n_steps, dtype=bool)
            covered[_ranges(candidates.start[chosen], candidates.stop[chosen])] = True
            return chosen, float(candidates.cost[chosen].sum() + outside[~covered].sum())
        if result.status != _INFEASIBLE:
            raise NumericalError(
                f"HiGHS failed on sequence {{sequence}} ({n_steps} steps): {_escape(result.message)}",
                sequence,
            )
    named = _escape(", ".join(map(repr, constraints)) or "Covered()")
    raise NoLegalLabelingError(
        f"sequence {{sequence}} ({n_steps} steps) has no legal phrase set: no set of disjoint phrases "
        f"satisfies {named}",
        sequence,
    )


def _escape(text: str) -> str:
    """Text that `str.format` leaves unchanged."""
    return text.replace("{", "{{").replace("}", "}}")


def _ranges(start: Ints, stop: Ints) -> Ints:
    """``start[0], ..., stop[0] - 1, start[1], ...``: the steps of all phrases."""
    lengths = stop - start
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) - np.repeat(ends - lengths, lengths) + np.repeat(start, lengths)


def _offsets(lengths: Ints | list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)])


def _split(phrases: StackedPhrases, offsets: Ints, names: Sequence[str | None]) -> list[list[Any]]:
    """Phrases of each sequence as tuples (start, stop, type)."""
    bounds = np.searchsorted(phrases.start, offsets).tolist()
    columns = (phrases.start.tolist(), phrases.stop.tolist(), phrases.type.tolist())
    named = [(a, b, names[k]) for a, b, k in zip(*columns, strict=True)]
    return [named[a:b] for a, b in pairwise(bounds)]


def _merge(
    best: PhraseSets,
    replaced: list[int],
    solved: list[tuple[Ints, float, PhraseCandidates]],
    offsets: Ints,
) -> PhraseSets:
    """Replace the phrases of some sequences by those from the solver."""
    sequence = np.searchsorted(offsets, best.phrases.start, side="right") - 1
    kept = ~np.isin(sequence, replaced)
    parts = [StackedPhrases(*(part[kept] for part in best.phrases))]
    cost = best.cost.copy()
    for index, (chosen, value, candidates) in zip(replaced, solved, strict=True):
        begin = offsets[index]
        found = (candidates.start[chosen] + begin, candidates.stop[chosen] + begin)
        parts.append(StackedPhrases(*found, candidates.type[chosen]))
        cost[index] = value
    start, stop, type_ = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return PhraseSets(StackedPhrases(start[order], stop[order], type_[order]), cost)
