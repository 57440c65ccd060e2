"""Constants of the stopping rule chosen on all data sets but one, and what they do on that one.

A run stops when both a multiple (`SAFETY`) of the decrease in the last three iterations and a multiple
(`CAUTION`) of the decrement of slow directions are below the tolerance; or, if c1 = 0 and all features have
the same scale, when the certified bound divided by a constant (`RATIO`) is, on conditions that exclude a
plateau (see `seqlab.optim.state.StoppingRule`). For every data set of `datasets.py` and each of its penalties
a fit is recorded with a smaller tolerance; the iteration at which it would have stopped with other constants
follows from the record. For each data set the constants are those that need the fewest iterations on the
other data sets, of those that end at most 0.07 % above the optimum on all of them.

``python benchmarks/leave_out.py [word ...]`` uses the data sets whose name contains a word.
"""

from __future__ import annotations

import math
import sys
import warnings
from itertools import product
from typing import NamedTuple

from _common import RESULTS
from _problems import PROBLEMS

from datasets import PENALTIES

TOL, RECORDED_TOL, TIGHT_TOL = 1e-3, 3e-4, 1e-5
CAUTION = [0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
SAFETY = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
RATIO = [1.0, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 4.0]
LIMIT = 0.07  # percent above the optimum on the data sets that choose
PERIOD = 3


class Point(NamedTuple):
    """One iteration of a fit."""

    objective: float
    decrement: float  # of the solver
    slow: float  # decrement of slow directions, without its factor
    bound: float  # certified; infinite if it is not divided by a ratio


def record(X, y, c1, c2):
    """Return the iterations of a fit, and the objective of a tight solution."""
    import seqlab.learning.curvature as curvature
    import seqlab.optim.proximal_solver as proximal
    from seqlab import LinearChainCRF
    from seqlab.optim.state import StoppingRule

    factor = proximal.CAUTION if c1 else curvature.CAUTION
    points, state = [], StoppingRule.state

    def recorded(self, w, objective, norm, decrement, slow_decrement=None, lower_bound=None):
        is_divided = lower_bound is not None and self.divide_bound
        bound = objective - lower_bound if is_divided else math.inf
        points.append(Point(objective, decrement, (slow_decrement or 0.0) / factor, bound))
        return state(self, w, objective, norm, decrement, slow_decrement, lower_bound)

    options = {"c1": c1, "c2": c2, "boundary": False}
    StoppingRule.state = recorded
    try:
        LinearChainCRF(tol=RECORDED_TOL, **options).fit(X, y)
    finally:
        StoppingRule.state = state
    tight = LinearChainCRF(tol=TIGHT_TOL, max_iter=3000, **options).fit(X, y).objective_
    return points, min(tight, *(point.objective for point in points))


def stop(points, best, caution, safety, ratio):
    """Return iteration and excess in percent at which a run with these constants stops."""
    for i, point in enumerate(points):
        earlier = points[i - PERIOD].objective if i >= PERIOD else math.inf
        estimate = max(safety * (earlier - point.objective), caution * point.slow)
        quarter = max(PERIOD, (i + 1) // 4)
        before = points[i - quarter].objective if i >= quarter else math.inf
        divided = max(point.bound / ratio, 1.5 * (before - point.objective))
        if i >= PERIOD and point.bound < math.inf:
            fall = max(points[i - PERIOD].bound - point.bound, 1e-300)
            divided = max(divided, 1.5 * point.bound * (earlier - point.objective) / fall)
        if max(point.decrement, min(estimate, divided)) <= TOL * point.objective:
            break
    return i, 100 * (points[i].objective / best - 1)


def choose(records):
    """Return the constants with the fewest iterations whose excess is small on all records."""
    choices = []
    for constants in product(CAUTION, SAFETY, RATIO):
        found = [stop(*one, *constants) for one in records]
        if max(excess for _, excess in found) <= LIMIT:
            choices.append((sum(n for n, _ in found), *constants))
    return min(choices)[1:] if choices else (CAUTION[-1], SAFETY[-1], RATIO[0])


if __name__ == "__main__":
    from seqlab import SequenceVectorizer

    warnings.simplefilter("ignore")
    names = [
        name
        for name in PROBLEMS
        if len(sys.argv) == 1 or any(word in name for word in sys.argv[1:])
    ]
    records = {}
    for name in names:
        X, y = PROBLEMS[name]()
        X = SequenceVectorizer().fit_transform(X)
        for penalty in PENALTIES:
            records[name, penalty] = record(X, y, *penalty)
            print(name, penalty, len(records[name, penalty][0]), file=sys.stderr, flush=True)
    lines = [
        "# Stopping rule with constants chosen on the other data sets", "",
        "Obtained with `benchmarks/leave_out.py` (its opening docstring says how).", "",
        "| data set | c1 | c2 | CAUTION | SAFETY | RATIO | iterations | excess % |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    worst = 0.0
    for name in names:
        for is_sparse in (False, True):
            others = [
                one
                for (other, (c1, _)), one in records.items()
                if other != name and (c1 > 0) == is_sparse
            ]
            caution, safety, ratio = choose(others)
            for c1, c2 in PENALTIES:
                if (c1 > 0) == is_sparse:
                    n, excess = stop(*records[name, (c1, c2)], caution, safety, ratio)
                    worst = max(worst, excess)
                    shown = "" if c1 > 0 else f"{ratio:g}"
                    lines.append(
                        f"| {name} | {c1:g} | {c2:g} | {caution:g} | {safety:g} | {shown} "
                        f"| {n} | {excess:.3f} |"
                    )
    lines += ["", f"Largest excess: {worst:.3f} %."]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "leave_out.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
