"""Viterbi and marginals of one sequence of a million steps and twenty labels: seconds and peak memory."""

from __future__ import annotations

import numpy as np
from _common import clock, keep, main, peak_memory, table

N_STEPS, N_LABELS = 1_000_000, 20


def run(what):
    import seqlab.inference as inference

    random = np.random.default_rng(0)
    unary = random.normal(size=(N_STEPS, N_LABELS))
    pairwise = random.normal(size=(N_LABELS, N_LABELS))
    zeros = np.zeros(N_LABELS)
    small = inference.ChainScores(unary[:10], pairwise, zeros, zeros, np.array([0, 10]))
    function = getattr(inference, what)
    function(small)  # loads the kernels
    scores = inference.ChainScores(unary, pairwise, zeros, zeros, np.array([0, N_STEPS]))
    record = {"memory before, MB": peak_memory()}
    with clock(record, "seconds"):
        function(scores)
    record["peak memory, MB"] = peak_memory()
    return record


if __name__ == "__main__":
    results = main({"viterbi": lambda: run("viterbi"), "marginals": lambda: run("marginals")})
    if results:
        table(results, ["seconds", "memory before, MB", "peak memory, MB"])
        keep("long_sequence", results)
