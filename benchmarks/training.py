"""CRF training on CoNLL-2000: seconds and peak memory of CRFsuite and seqlab.

Same attributes, parameters and penalty (c2 = 1, no boundary weights, only observed pairs). CRFsuite runs
100 L-BFGS iterations with one thread; seqlab runs to its default tolerance, which gives a lower objective.
"""

from __future__ import annotations

import sys
import time
from itertools import accumulate

from _common import clock, conll2000, keep, main, peak_memory, run_role, table


def crfsuite():
    import tempfile

    import pycrfsuite

    from seqlab.metrics import span_f1

    X, y = conll2000("train")
    record = {"memory before": peak_memory()}
    trainer = pycrfsuite.Trainer(
        algorithm="lbfgs", params={"c2": 1.0, "max_iterations": 100}, verbose=False
    )
    with clock(record, "read"):
        for steps, labels in zip(X, y, strict=True):
            trainer.append(steps, labels)
    with tempfile.NamedTemporaryFile() as file:
        with clock(record, "train"):
            trainer.train(file.name)
        record["memory"] = peak_memory() - record["memory before"]
        record["objective"] = trainer.logparser.last_iteration["loss"]
        iterations = trainer.logparser.iterations
        seconds = accumulate(float(iteration["time"]) for iteration in iterations)
        losses = (iteration["loss"] for iteration in iterations)
        record["trajectory"] = list(zip(seconds, losses, strict=True))
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        X_test, y_test = conll2000("test")
        record["f1"] = span_f1(y_test, [tagger.tag(steps) for steps in X_test])
    record["total"] = record["read"] + record["train"]
    return record


def seqlab_sequences(n_jobs):
    from seqlab import LinearChainCRF, SequenceVectorizer

    X, y = conll2000("train")
    vectorizer = SequenceVectorizer()
    sequences = vectorizer.fit_transform(X)
    record = {}
    LinearChainCRF(c2=1.0, boundary=False).fit(sequences[:300], y[:300])  # load the kernels
    with clock(record, "train"):
        model = LinearChainCRF(c2=1.0, boundary=False, n_jobs=n_jobs).fit(sequences, y)
    return _describe(model, record, vectorizer)


def seqlab_strings(n_jobs):
    from seqlab import LinearChainCRF, SequenceVectorizer

    X, y = conll2000("train")
    warm = SequenceVectorizer().fit_transform(X[:300])
    LinearChainCRF(c2=1.0, boundary=False).fit(warm, y[:300])
    record = {"memory before": peak_memory()}
    began = time.perf_counter()
    model = LinearChainCRF(c2=1.0, boundary=False, n_jobs=n_jobs).fit(X, y)
    record["total"] = time.perf_counter() - began
    record["memory"] = peak_memory() - record["memory before"]
    return _describe(model, record, None)


def _describe(model, record, vectorizer):
    from seqlab.metrics import span_f1

    X_test, y_test = conll2000("test")
    if vectorizer is not None:
        X_test = vectorizer.transform(X_test)
    record["objective"] = model.objective_
    record["iterations"] = model.n_iter_
    if "train" in record:
        seconds, losses = model.history_["seconds"], model.history_["objective"]
        set_up = record["train"] - seconds[-1]
        record["trajectory"] = [(set_up + a, b) for a, b in zip(seconds, losses, strict=True)]
    record["f1"] = span_f1(y_test, model.predict(X_test))
    return record


PEER = "CRFsuite, 100 iterations"
ROLES = {
    PEER: crfsuite,
    "seqlab, 1 thread": lambda: seqlab_sequences(1),
    "seqlab, 2 threads": lambda: seqlab_sequences(2),
    "seqlab from strings, 2 threads": lambda: seqlab_strings(2),
}


def compare():
    """Run seqlab once before and twice after CRFsuite; return the run of median time of each role.

    The speed of a machine changes within the minute that CRFsuite takes.
    """
    repeated = {role: [run_role(role)] for role in ROLES if role != PEER}
    results = {PEER: run_role(PEER)}
    for _ in range(2):
        for role, records in repeated.items():
            records.append(run_role(role))
    for role, records in repeated.items():
        part = "train" if "train" in records[0] else "total"
        records.sort(key=lambda record, part=part: record[part])
        results[role] = records[1]
        print(f"# {role}: {[record[part] for record in records]}", file=sys.stderr)
    for record in results.values():
        for part in ("train", "total"):
            if part in record:
                record[f"{part} ratio"] = results[PEER][part] / record[part]
    return results


if __name__ == "__main__":
    if "--role" in sys.argv:
        main(ROLES)
    else:
        results = compare()
        columns = ["read", "train", "train ratio", "total", "total ratio", "memory", "objective"]
        table(results, [*columns, "f1"])
        keep("training", results)
