"""Convergence with columns of very different scale: twelve scalings, three sizes, three penalties.

For each problem the objective of a default fit is compared with a tight solution by SciPy in coordinates
scaled by the curvature at zero. A fit passes if its objective is within 0.1 % of that, or if it does not
report convergence and its warning names the columns. The seeds differ from those of the tests, on which the
rule was developed.

``python benchmarks/scales.py [seed ...]``
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from _common import RESULTS

SCALINGS = [
    "1e2", "1e4", "1e6", "1e12", "mixed", "all 1e3", "year", "time stamp", "running number", "outliers",
    "many outliers", "time stamp and year",
]  # fmt: skip
SIZES = {"60 sequences": 60, "200 sequences": 200, "1500 sequences": 1500}
PENALTIES = [1.0, 1e-2, 1e-4]


def rescale(X, name, seed):
    """Return X with some columns or rows multiplied, or with columns added."""
    random = np.random.default_rng(seed + 1000)
    lengths = [len(x) for x in X]
    stacked = np.concatenate(X)
    n_steps, n_columns = stacked.shape
    columns = {
        "year": lambda: random.integers(1990, 2020, n_steps).astype(float),
        "time stamp": lambda: 1.7e9 + 1e6 * random.random(n_steps),
        "running number": lambda: np.arange(n_steps).astype(float),
    }
    if name in columns or name == "time stamp and year":
        added = [make() for key, make in columns.items() if key in name]
        stacked = np.column_stack([stacked, *added])
    elif "outliers" in name:
        rows = random.choice(n_steps, 3 if name == "outliers" else n_steps // 20, replace=False)
        stacked[rows] *= 1e6
    elif name == "mixed":
        stacked = stacked * 10.0 ** random.uniform(-3, 3, n_columns)
    elif name == "all 1e3":
        stacked = stacked * 1e3
    else:
        stacked[:, random.integers(n_columns)] *= float(name)
    return np.split(stacked, np.cumsum(lengths)[:-1])


def measure(n_sequences, name, c2, seed):
    from sklearn.exceptions import ConvergenceWarning

    from scaled_data import gaussian_data, tight_optimum
    from seqlab import LinearChainCRF

    X, y = gaussian_data(n_sequences, seed=seed)
    X = rescale(X, name, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        began = time.process_time()
        model = LinearChainCRF(c2=c2, n_jobs=1).fit(X, y)
        seconds = time.process_time() - began
        tight = LinearChainCRF(c2=c2, n_jobs=1, tol=1e-8, max_iter=4000).fit(X, y).objective_
    by_scipy = tight_optimum(X, y, c2, n_runs=1, maxiter=3000, maxfun=5000, ftol=1e-14)
    excess = model.objective_ / min(by_scipy, tight) - 1
    names = any("has values up to" in str(warning.message) for warning in caught)
    passed = excess <= 1e-3 or (not model.converged_ and names)
    return passed, model, excess, seconds


if __name__ == "__main__":
    seeds = [int(word) for word in sys.argv[1:]] or [7, 8]
    lines = [
        "# Twelve scalings of columns and rows", "",
        "Obtained with `benchmarks/scales.py` (its opening docstring says how).", "",
        "| data | scaling | c2 | seed | iterations | reports convergence | excess % | seconds | passed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    n_failed = 0
    for seed in seeds:
        for size, n_sequences in SIZES.items():
            for name in SCALINGS:
                for c2 in PENALTIES:
                    passed, model, excess, seconds = measure(n_sequences, name, c2, seed)
                    n_failed += not passed
                    lines.append(
                        f"| {size} | {name} | {c2:g} | {seed} | {model.n_iter_} |"
                        f" {'yes' if model.converged_ else 'no'} | {100 * excess:.4f} | {seconds:.2f} |"
                        f" {'yes' if passed else 'NO'} |"
                    )
                    print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", f"{len(lines) - 6} fits, {n_failed} failed."]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scales.md").write_text("\n".join(lines) + "\n")
