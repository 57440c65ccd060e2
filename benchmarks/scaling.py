"""How the time of a training pass grows with the number of sequences, labels, steps per sequence and
threads.

Seconds for one evaluation of the CRF's objective and gradient on generated data, best of three. In
theory the time is linear in steps and quadratic in labels; the last column shows the measured exponent
from row to row.
"""

from __future__ import annotations

import math
import time

import numpy as np
import scipy.sparse as sp
from _common import keep, table

from seqlab.data import Sequences
from seqlab.learning import Likelihood, PenalisedObjective
from seqlab.structures.chain import ChainStructure


def seconds_of_a_pass(n_sequences, length, n_labels, n_jobs=1, n_active=10, n_features=5000):
    random = np.random.default_rng(0)
    n_steps = n_sequences * length
    indices = random.integers(0, n_features, size=n_steps * n_active).astype(np.int32)
    indptr = np.arange(n_steps + 1, dtype=np.int32) * n_active
    matrix = sp.csr_matrix((np.ones(indices.size), indices, indptr), shape=(n_steps, n_features))
    X = Sequences(matrix, np.arange(n_sequences + 1) * length)
    codes = random.integers(0, n_labels, n_steps)
    structure = ChainStructure.from_data(X, codes, n_labels)
    term = Likelihood(structure.bind(X, n_jobs=n_jobs), codes, np.ones(n_sequences))
    objective = PenalisedObjective(term, 1.0)
    best = math.inf
    for _ in range(3):
        w = random.normal(size=structure.n_params) * 0.1
        began = time.perf_counter()
        objective.loss_gradient(w)
        best = min(best, time.perf_counter() - began)
    return best


def series(name, values, cost):
    seconds_of_a_pass(20, 20, 4)  # load the kernels
    rows, before = {}, None
    for value in values:
        seconds = cost(value)
        row = {"seconds": seconds}
        if before is not None:
            row["power"] = math.log(seconds / before[1]) / math.log(value / before[0])
        rows[f"{name} {value}"] = row
        before = (value, seconds)
    table(rows, ["seconds", "power"])
    return rows


if __name__ == "__main__":
    results = {
        "sequences": series("sequences", [500, 1000, 2000, 4000, 8000, 16000, 32000],
                            lambda n: seconds_of_a_pass(n, 25, 20)),
        "labels": series("labels", [2, 4, 8, 16, 32, 64, 128, 256, 512],
                         lambda n: seconds_of_a_pass(max(400, 200_000 // (n * 20)), 20, n, n_features=100)
                         / max(400, 200_000 // (n * 20))),
        "length": series("length", [10, 100, 1000, 10_000, 100_000],
                         lambda n: seconds_of_a_pass(max(1, 200_000 // n), n, 20)
                         / max(1, 200_000 // n)),
        "threads": series("threads", [1, 2], lambda n: seconds_of_a_pass(8000, 25, 20, n_jobs=n)),
    }  # fmt: skip
    keep("scaling", results)
