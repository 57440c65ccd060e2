"""Time to decode the CoNLL-2000 test file (47k tokens, NP chunks) with each classifier-based Markov model.

The classifiers read their posteriors from a table, so that almost only the time of the Markov model itself is
measured. IOB tags (3 labels, 47k steps) and open/close decisions (6 labels, 95k steps).
"""

from __future__ import annotations

import time

import numpy as np
from _common import keep, main, table

TARGET = 0.2


def decisions(coding):
    """Gold labels of the NP chunks of the test file, in the given coding."""
    from seqlab.data import phrases_to_open_close, tags_to_phrases
    from seqlab.datasets import fetch_conll2000

    _, y = fetch_conll2000(subset="test", return_X_y=True)
    out = []
    for tags in y:
        chunks = tags_to_phrases(list(tags), "IOB2")
        phrases = [p for p in chunks if p.type == "NP"]
        if coding == "open_close":
            out.append(phrases_to_open_close(phrases, len(tags)))
        else:
            out.append([tag if tag.endswith("-NP") else "O" for tag in tags])
    return out


def run(make, coding="iob"):
    """Shortest time of five calls of `predict`, with random posteriors that favour the gold labels."""
    from lookup import Lookup
    from seqlab.data import Sequences

    y = decisions(coding)
    flat = np.concatenate(y)
    labels, codes = np.unique(flat, return_inverse=True)
    rows = np.random.default_rng(0).dirichlet(np.full(labels.size, 0.3), flat.size)
    rows[np.arange(flat.size), codes] += 0.5
    bounds = np.cumsum([0, *map(len, y)])
    numbers = np.arange(flat.size, dtype=float)[:, None]
    X = Sequences(numbers, bounds)
    model = make(Lookup(rows / rows.sum(axis=1, keepdims=True), labels.tolist())).fit(X, y)
    model.predict(X[:10])  # load the kernels
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        model.predict(X)
        seconds.append(time.perf_counter() - began)
    return {"steps": int(flat.size), "predict": min(seconds)}


def hmm_iob():
    from seqlab import ClassifierHMM

    return run(ClassifierHMM)


def hmm_open_close():
    from seqlab import ClassifierHMM

    return run(ClassifierHMM, "open_close")


def pmm_iob():
    from seqlab import ProjectionMarkovModel

    return run(ProjectionMarkovModel)


def pmm_open_close():
    from seqlab import ProjectionMarkovModel

    return run(ProjectionMarkovModel, "open_close")


def memm():
    from seqlab import MEMM

    return run(MEMM)


def memm_two():
    from seqlab import MEMM

    return run(lambda classifier: MEMM(classifier, history=2))


def memm_beam():
    from seqlab import MEMM

    return run(lambda classifier: MEMM(classifier, history=3, decoding="beam", beam_width=5))


if __name__ == "__main__":
    results = main(
        {
            "ClassifierHMM, IOB": hmm_iob,
            "ClassifierHMM, open/close": hmm_open_close,
            "ProjectionMarkovModel, IOB": pmm_iob,
            "ProjectionMarkovModel, open/close": pmm_open_close,
            "MEMM, history 1": memm,
            "MEMM, history 2": memm_two,
            "MEMM, history 3, beam 5": memm_beam,
        }
    )
    if results:
        for record in results.values():
            record["target"] = TARGET
            record["within"] = "yes" if record["predict"] < TARGET else "no"
        table(results, ["steps", "predict", "target", "within"])
        keep("combinators", results)
