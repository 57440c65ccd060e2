"""Phrase inference on given posteriors: seconds for each cost, and for one long sequence.

Random posteriors for 47,000 tokens in sentences of about 24, like the test part of CoNLL-2000. Then one
long sequence, with the method that tries all pairs of steps and the one that uses the lower envelope of
lines.

Run: python benchmarks/phrases.py
"""

import time

import numpy as np
from _common import table

from seqlab.inference import PhraseCosts, best_phrases

REPEATS = 5


def best_of(function):
    function()  # compiles or loads the kernels
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def sentences(n_types):
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 47_001, 23.5).astype(np.int64)
    opened, closed = (rng.dirichlet(np.ones(n_types + 2), size=47_000) for _ in range(2))
    rows = {}
    for kind in ("product", "log_odds", "map"):
        parts = slice(None) if kind == "map" else slice(n_types)

        def run(kind=kind, parts=parts):
            make = getattr(PhraseCosts, kind)
            best_phrases(make(opened[:, parts], closed[:, parts], offsets, threshold=0.2))

        rows[f"{kind}, {n_types} types"] = {"seconds": f"{best_of(run):.4f}"}
    return rows


def one_sequence(n_steps):
    opened, closed = np.random.default_rng(0).random((2, n_steps, 1))
    costs = PhraseCosts.product(opened, closed, threshold=0.3)
    return {
        f"one sequence of {n_steps:,}": {
            method: f"{best_of(lambda m=method: best_phrases(costs, method=m)):.4f}"
            for method in ("quadratic", "fast")
        }
    }


if __name__ == "__main__":
    table({**sentences(1), **sentences(10)}, ["seconds"])
    table({**one_sequence(1_000), **one_sequence(10_000)}, ["quadratic", "fast"])
