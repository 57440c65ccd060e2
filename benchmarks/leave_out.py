"""All constants of the default solver chosen without a data set, and what they do on that data set.

Data sets of the same source (the same sentences with other labels, say) are left out together. For each
source, and separately for c1 = 0 and c1 > 0, three steps use only the data sets of the other sources:

1. The constants of `_constants.py`. 54 runs have random levels of all of them, each level equally often. The
   measure is the CPU time until the objective is within 0.05 % of the optimum, whatever the stopping rule
   says. Each constant gets the level with the smallest mean of the logarithms of these times, relative to
   the mean of each problem.
2. The factors of `seqlab.optim.state.StoppingRule`: `CAUTION` of the decrement of slow directions, `SAFETY`
   of the decrease in the last three iterations, `TAIL` of that in the last quarter, and `RATIO`, by which the
   certified bound is divided if c1 = 0 and all features have the same scale. Fits with the constants of step
   1 and a smaller tolerance are recorded, and the rule is applied to the recorded iterations: those factors
   that need the fewest iterations, of those that end at most 0.07 % above the optimum everywhere.
3. With all of these, the problems of the source that was left out are measured as in `datasets.py`.

``python benchmarks/leave_out.py times [word ...]`` measures the times of step 1 for the data sets whose name
contains a word, ``choose`` takes steps 1 and 2, ``measure [word ...]`` step 3, ``write`` writes the table.
Results are kept in files, so that two processes can share the data sets. ``results/leave_out.json`` has the
chosen constants: ``measure`` and ``write`` need only these, so that step 3 can be repeated after a change of
the code.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
from _common import RESULTS
from _constants import CONSTANTS, DEFAULT_LEVEL, Rule, applied, random_design
from _problems import PROBLEMS, SOURCES

from datasets import PENALTIES, measure, table

N_RUNS = 54
TOL, RECORDED_TOL, TIGHT_TOL = 1e-3, 3e-4, 1e-5
NEAR = 5e-4  # relative distance from the optimum of step 1
TOO_FAR = 2.0  # factor of the time of fits that end further away
LIMIT = 0.07  # percent above the optimum on the data sets that choose
CAUTION = [1.0, 2.0, 3.0, 4.0]
SAFETY = [1.5, 2.0, 2.5, 3.0]
TAIL = [1.0, 1.5, 2.0, 2.5]
RATIO = [1.5, 1.75, 2.0, 2.25, 2.5, 3.0]
FOLDER, CHOSEN = RESULTS / "leave_out", RESULTS / "leave_out.json"


class Record(NamedTuple):
    """The iterations of a fit, as the stopping rule saw them."""

    options: dict  # of the rule
    factor: float  # in the decrements of slow directions
    calls: list[tuple]  # arguments of each iteration
    seconds: list[float]  # CPU time until each


def fit(X, y, c1, c2, **options):
    from seqlab import LinearChainCRF

    return LinearChainCRF(c1=c1, c2=c2, boundary=False, **options).fit(X, y)


def record(X, y, c1, c2):
    """Fit with a small tolerance and return what the stopping rule saw."""
    import seqlab.learning.curvature as curvature
    import seqlab.optim.proximal_solver as proximal
    from seqlab.optim.state import StoppingRule

    calls, seconds, options, state = [], [], {}, StoppingRule.state
    names = "strong_convexity", "period", "late_safety", "divide_bound", "confirm", "only_bound"
    began = time.process_time()

    def recorded(self, w, *values):
        options.update({name: getattr(self, name) for name in names})
        calls.append(values)
        seconds.append(time.process_time() - began)
        return state(self, w, *values)

    StoppingRule.state = recorded
    try:
        fit(X, y, c1, c2, tol=RECORDED_TOL)
    finally:
        StoppingRule.state = state
    return Record(options, proximal.CAUTION if c1 else curvature.CAUTION, calls, seconds)


def stop(recorded, best, rule):
    """Return iteration and excess in percent at which a fit with these factors stops."""
    from seqlab.optim.state import StoppingRule

    applied_rule = StoppingRule(TOL, safety=rule.safety, tail_safety=rule.tail, **recorded.options)
    applied_rule.BOUND_RATIO = rule.ratio
    n_done = -1  # the starting point is not an iteration
    for objective, norm, decrement, slow, *bound in recorded.calls:
        n_done += 1
        slow = None if slow is None else slow * rule.caution / recorded.factor
        if applied_rule.state(None, objective, norm, decrement, slow, *bound).converged:
            break
    return n_done, 100 * (objective / best - 1)


def load(name):
    from seqlab import SequenceVectorizer

    X, y = PROBLEMS[name]()
    return SequenceVectorizer().fit_transform(X), y


def measure_times(name):
    """Store the objective of a tight solution and the time of each run, for each pair of penalties."""
    X, y = load(name)
    found = {}
    for c1, c2 in PENALTIES:
        fit(X, y, c1, c2, max_iter=20)  # load the kernels
        best = fit(X, y, c1, c2, tol=TIGHT_TOL, max_iter=3000).objective_
        curves = []
        for levels in random_design(c1 > 0, N_RUNS):
            with applied(c1 > 0, levels):
                one = record(X, y, c1, c2)
            curves.append(([values[0] for values in one.calls], one.seconds))
            best = min(best, *curves[-1][0])
        times = []
        for objectives, seconds in curves:
            near = [s for f, s in zip(objectives, seconds, strict=True) if f <= (1 + NEAR) * best]
            times.append(near[0] if near else TOO_FAR * seconds[-1])
        found[f"{c1:g}|{c2:g}"] = {"best": best, "times": times}
        print(f"# {name} {c1:g} {c2:g}: {np.median(times):.3f} s", file=sys.stderr, flush=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(found))


def read_times():
    return {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in PROBLEMS}


def mean_effects(times, sparse, names):
    """Return the mean logarithm of relative times on some data sets, for each level of each constant."""
    logs = [np.log(row["times"]) for name in names for row in select(times[name], sparse)]
    relative = np.mean([one - one.mean() for one in logs], axis=0)
    design = np.array(random_design(sparse, N_RUNS))
    return np.array([[relative[column == k].mean() for k in range(3)] for column in design.T])


def select(rows, sparse):
    return [row for key, row in rows.items() if (float(key.split("|")[0]) > 0) == sparse]


def choose_rule(ends, keys):
    """Return the factors with the fewest iterations whose excess is small on the records ``keys``.

    Of several the most cautious ones, which are also those if the excess is never small.
    """

    def rank(rule):
        chosen = [ends[rule][key] for key in keys]
        is_small = max(excess for _, excess in chosen) <= LIMIT
        n_iterations = sum(n for n, _ in chosen) if is_small else 0
        return not is_small, n_iterations, -rule.caution, -rule.safety, -rule.tail, rule.ratio

    return min(ends, key=rank)


def describe_effects(times):
    """Return by how many percent the best and the worst level differ, at most and in the median."""
    found = {}
    for sparse in (False, True):
        effects = np.ptp(mean_effects(times, sparse, list(times)), axis=1)
        found[str(sparse)] = [round(100 * np.expm1(f(effects))) for f in (np.max, np.median)]
    return found


def choose_all(times):
    """Return constants and factors for each source that is left out, by whether c1 > 0."""
    chosen = {source: {} for source in dict.fromkeys(SOURCES.values())}
    for sparse in (False, True):
        for source in chosen:
            names = [name for name in times if SOURCES[name] != source]
            levels = tuple(mean_effects(times, sparse, names).argmin(axis=1).tolist())
            chosen[source][str(sparse)] = {"levels": levels}
        penalties = [pair for pair in PENALTIES if (pair[0] > 0) == sparse]
        distinct = {one[str(sparse)]["levels"] for one in chosen.values()}
        rules = [Rule(*f) for f in product(CAUTION, SAFETY, TAIL, RATIO[:1] if sparse else RATIO)]
        ends = {levels: {rule: {} for rule in rules} for levels in distinct}
        for name in times:
            X, y = load(name)
            for (c1, c2), levels in product(penalties, distinct):
                with applied(sparse, levels):
                    recorded = record(X, y, c1, c2)
                best = min(times[name][f"{c1:g}|{c2:g}"]["best"], *(v[0] for v in recorded.calls))
                for rule in rules:
                    ends[levels][rule][name, c1, c2] = stop(recorded, best, rule)
            print(f"# rule: {name}", file=sys.stderr, flush=True)
        for source, one in chosen.items():
            keys = [
                (name, *pair) for name in times for pair in penalties if SOURCES[name] != source
            ]
            one[str(sparse)]["rule"] = choose_rule(ends[one[str(sparse)]["levels"]], keys)
    return chosen


def measure_left_out(name, chosen):
    """Store what the constants chosen without the source of a data set do on it."""
    X, y = PROBLEMS[name]()
    found = {}
    for c1, c2 in PENALTIES:
        one = chosen[SOURCES[name]][str(c1 > 0)]
        constants = applied(c1 > 0, one["levels"], Rule(*one["rule"]))
        key = f"{name}|{c1:g}|{c2:g}"
        found[key] = measure(X, y, c1, c2, constants)
        print(f"# {key}: {found[key]}", file=sys.stderr, flush=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name} measured.json").write_text(json.dumps(found))


def write(chosen, effects):
    """Write the table and the constants as Markdown."""
    results = {}
    for name in PROBLEMS:
        place = FOLDER / f"{name} measured.json"
        results |= json.loads(place.read_text()) if place.exists() else {}
    lines = [
        "# All constants of the solver chosen on other data sets", "",
        "Obtained with `benchmarks/leave_out.py` (its opening docstring says how). Two processes ran at a",
        "time. Columns as in `datasets.md`, for fits with the constants that were chosen without the source",
        "of the data set. Those for c1 = 0 were chosen before there was a block of nonzero weights, which",
        "only fits with c1 > 0 have; those for c1 > 0 before it had a larger sample, and replaced blocks of",
        "labels, where labels last long (names, mails, activities). Two more constants of that block were",
        "compared on all data sets afterwards: without any source the default of `MIN_VARIANCE` is best, and",
        "a `min_probability` of 1e-2 instead of 1e-3. With that, for c1 > 0, the least ratio to CRFsuite's",
        "100 iterations is 1.25 and the largest excess 0.044 %.", "", *table(results), "",
        "## What was chosen", "",
        "Levels of the constants in `_constants.py`: `-` smaller than the default, `+` larger.",
    ]  # fmt: skip
    sources = list(chosen)
    for sparse in (False, True):
        largest, median = effects[str(sparse)]
        lines += [
            "", f"## c1 {'>' if sparse else '='} 0", "",
            "On all data sets, the best and the worst level of a constant differ in the mean time to the",
            f"optimum by at most {largest} %, in the median by {median} %. Without the source:",
            "",
        ]  # fmt: skip
        lines += ["| | " + " | ".join(sources) + " |", "|---|" + "---|" * len(sources)]
        for i, name in enumerate(CONSTANTS[sparse]):
            levels = [
                chosen[source][str(sparse)]["levels"][i] - DEFAULT_LEVEL for source in sources
            ]
            lines.append(
                f"| {name} | " + " | ".join({-1: "-", 0: "", 1: "+"}[k] for k in levels) + " |"
            )
        for i, name in enumerate(Rule._fields[: 3 if sparse else 4]):
            values = [chosen[source][str(sparse)]["rule"][i] for source in sources]
            lines.append(f"| {name} | " + " | ".join(f"{value:g}" for value in values) + " |")
    (RESULTS / "leave_out.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    step, words = sys.argv[1], sys.argv[2:]
    names = [name for name in PROBLEMS if not words or any(word in name for word in words)]
    if step == "times":
        for name in names:
            measure_times(name)
    elif step == "choose":
        times = read_times()
        found = {"constants": choose_all(times), "effects": describe_effects(times)}
        CHOSEN.write_text(json.dumps(found, indent=1))
    elif step == "measure":
        for name in names:
            measure_left_out(name, json.loads(CHOSEN.read_text())["constants"])
    elif step == "write":
        found = json.loads(CHOSEN.read_text())
        write(found["constants"], found["effects"])
    else:
        sys.exit(__doc__)
