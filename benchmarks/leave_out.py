"""Constants of the stopping rule chosen on all data sets but one, and what they do on that one.

The constants are factors of `seqlab.optim.state.StoppingRule`: `SAFETY` of the decrease in the last three
iterations, `TAIL` of that in the last quarter, `CAUTION` of the decrement of slow directions, and `RATIO`, by
which the certified bound is divided if c1 = 0 and all features have the same scale. For every data set of
`datasets.py` and each of its penalties a fit is recorded with a smaller tolerance; then the rule itself,
with other constants, is applied to the recorded iterations. For each data set the constants are those that
need the fewest iterations on the other data sets, of those that end at most 0.07 % above the optimum on all
of them. Fits with c1 = 0 and with c1 > 0 choose separately.

``python benchmarks/leave_out.py [word ...]`` uses the data sets whose name contains a word.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from typing import NamedTuple

from _common import RESULTS
from _problems import PROBLEMS

from datasets import PENALTIES

TOL, RECORDED_TOL, TIGHT_TOL = 1e-3, 3e-4, 1e-5
CAUTION = [1.0, 2.0, 3.0, 4.0]
SAFETY = [1.5, 2.0, 2.5, 3.0]
TAIL = [1.0, 1.5, 2.0, 2.5]
RATIO = [1.5, 1.75, 2.0, 2.25, 2.5, 3.0]
LIMIT = 0.07  # percent above the optimum on the data sets that choose


class Record(NamedTuple):
    """The iterations of a fit, as the stopping rule saw them."""

    options: dict  # of the rule
    factor: float  # in the decrements of slow directions
    calls: list[tuple]  # arguments of each iteration
    best: float  # objective of a tight solution


def record(X, y, c1, c2):
    """Fit with a small tolerance and return what the stopping rule saw."""
    import seqlab.learning.curvature as curvature
    import seqlab.optim.proximal_solver as proximal
    from seqlab import LinearChainCRF
    from seqlab.optim.state import StoppingRule

    calls, options, state = [], {}, StoppingRule.state

    def recorded(self, w, *values):
        names = "strong_convexity", "period", "late_safety", "divide_bound", "confirm", "only_bound"
        options.update({name: getattr(self, name) for name in names})
        calls.append(values)
        return state(self, w, *values)

    penalties = {"c1": c1, "c2": c2, "boundary": False}
    StoppingRule.state = recorded
    try:
        LinearChainCRF(tol=RECORDED_TOL, **penalties).fit(X, y)
    finally:
        StoppingRule.state = state
    tight = LinearChainCRF(tol=TIGHT_TOL, max_iter=3000, **penalties).fit(X, y).objective_
    factor = proximal.CAUTION if c1 else curvature.CAUTION
    return Record(options, factor, calls, min(tight, *(values[0] for values in calls)))


def stop(recorded, caution, safety, tail, ratio):
    """Return iteration and excess in percent at which a fit with these constants stops."""
    from seqlab.optim.state import StoppingRule

    rule = StoppingRule(TOL, safety=safety, tail_safety=tail, **recorded.options)
    rule.BOUND_RATIO = ratio
    n_done = -1  # the starting point is not an iteration
    for objective, norm, decrement, slow, *bound in recorded.calls:
        n_done += 1
        slow = None if slow is None else slow * caution / recorded.factor
        if rule.state(None, objective, norm, decrement, slow, *bound).converged:
            break
    return n_done, 100 * (objective / recorded.best - 1)


def choose(ends, keys):
    """Return the constants with the fewest iterations whose excess is small on the records ``keys``.

    Of several the most cautious ones, which are also those if the excess is never small.
    """

    def rank(constants):
        caution, safety, tail, ratio = constants
        chosen = [ends[constants][key] for key in keys]
        is_small = max(excess for _, excess in chosen) <= LIMIT
        n_iterations = sum(n for n, _ in chosen) if is_small else 0
        return not is_small, n_iterations, -caution, -safety, -tail, ratio

    return min(ends, key=rank)


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
            print(name, penalty, len(records[name, penalty].calls), file=sys.stderr, flush=True)
    lines = [
        "# Stopping rule with constants chosen on the other data sets", "",
        "Obtained with `benchmarks/leave_out.py` (its opening docstring says how).", "",
        "| data set | c1 | c2 | CAUTION | SAFETY | TAIL | RATIO | iterations | excess % |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    worst = 0.0
    for is_sparse in (False, True):
        keys = [key for key in records if (key[1][0] > 0) == is_sparse]
        ratios = RATIO[:1] if is_sparse else RATIO
        ends = {
            constants: {key: stop(records[key], *constants) for key in keys}
            for constants in product(CAUTION, SAFETY, TAIL, ratios)
        }
        for name, (c1, c2) in keys:
            constants = choose(ends, [key for key in keys if key[0] != name])
            n, excess = ends[constants][name, (c1, c2)]
            worst = max(worst, excess)
            caution, safety, tail, ratio = (f"{value:g}" for value in constants)
            lines.append(
                f"| {name} | {c1:g} | {c2:g} | {caution} | {safety} | {tail} "
                f"| {'' if is_sparse else ratio} | {n} | {excess:.3f} |"
            )
    lines += ["", f"Largest excess: {worst:.3f} %."]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "leave_out.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
