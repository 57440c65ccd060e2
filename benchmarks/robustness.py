"""The default solver and plain L-BFGS, without tuning, on several data sets and penalties.

Seconds with two threads to the default tolerance; how far the final objective lies above the best known
one (the lowest of both and of a run with a small tolerance); and F1 or accuracy on the test data,
compared with that run.

With ``--before FOLDER``, the ``src`` folder of another version of seqlab, the default solver of both versions
is compared instead: seconds of the best of three fits, in processes that run in turn.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

from _common import conll2000, keep, other_version, run_role, table


def chunks():
    from seqlab import SequenceVectorizer
    from seqlab.metrics import span_f1

    vectorizer = SequenceVectorizer()
    X, y = conll2000("train")
    X = vectorizer.fit_transform(X)
    X_test, y_test = conll2000("test")
    return X, y, vectorizer.transform(X_test), y_test, span_f1


def letters():
    from seqlab.datasets import fetch_ocr_letters
    from seqlab.metrics import token_accuracy

    data = fetch_ocr_letters()
    test = data.folds == 0
    pick = lambda values, chosen: [v for v, c in zip(values, chosen, strict=True) if c]  # noqa: E731
    return (pick(data.data, ~test), pick(data.target, ~test),
            pick(data.data, test), pick(data.target, test), token_accuracy)  # fmt: skip


def parts_of_speech(tagset="upos"):
    from seqlab import Templates
    from seqlab.datasets import fetch_ud_english_ewt
    from seqlab.metrics import token_accuracy

    X, y = fetch_ud_english_ewt(subset="train", tagset=tagset, return_X_y=True)
    X_test, y_test = fetch_ud_english_ewt(subset="test", tagset=tagset, return_X_y=True)
    templates = Templates.default()
    X = templates.fit_transform(X)
    return X, y, templates.transform(X_test), y_test, token_accuracy


def two_labels():
    from seqlab.metrics import token_accuracy

    X, y, X_test, y_test, _ = chunks()
    merge = lambda labels: [["in" if tag.endswith("NP") else "out" for tag in s] for s in labels]  # noqa: E731
    return X, merge(y), X_test, merge(y_test), token_accuracy


def hundred_labels():
    import numpy as np

    from seqlab.datasets import make_hmm_sequences
    from seqlab.metrics import token_accuracy

    X, y = make_hmm_sequences(
        1200, n_labels=100, n_observations=100, random_state=0, return_X_y=True
    )
    assert np.unique(np.concatenate([np.asarray(s) for s in y])).size == 100
    return X[:1000], y[:1000], X[1000:], y[1000:], token_accuracy


CASES = [
    ("chunks", chunks, {"c2": 10.0}),
    ("chunks", chunks, {"c2": 1.0}),
    ("chunks", chunks, {"c2": 0.1}),
    ("chunks", chunks, {"c2": 0.01}),
    ("chunks", chunks, {"c2": 0.1, "c1": 0.1}),
    ("letters, dense pixels", letters, {"c2": 1.0}),
    ("letters, dense pixels", letters, {"c2": 0.1}),
    ("parts of speech, default template", parts_of_speech, {"c2": 1.0}),
    ("two labels", two_labels, {"c2": 1.0}),
    ("a hundred labels", hundred_labels, {"c2": 1.0}),
]
TITLES = {
    f"{name}, " + ", ".join(f"{key}={value:g}" for key, value in options.items()): (load, options)
    for name, load, options in CASES
}


def measure(data, options):
    from seqlab import LinearChainCRF

    X, y, X_test, y_test, score = data
    plain = "owlqn" if options.get("c1") else "lbfgs"
    row, models = {}, {}
    for name, solver, tol in (("auto", "auto", None), ("plain", plain, 1e-3)):
        began = time.perf_counter()
        model = LinearChainCRF(solver=solver, tol=tol, n_jobs=2, **options).fit(X, y)
        row[f"{name} seconds"] = time.perf_counter() - began
        row[f"{name} iterations"] = model.n_iter_
        row[f"{name} objective"] = model.objective_
        models[name] = model
    tight = LinearChainCRF(tol=1e-5, max_iter=400, n_jobs=2, **options).fit(X, y)
    best = min(tight.objective_, *(m.objective_ for m in models.values()))
    row["best objective"] = best
    for name, model in models.items():
        row[f"{name} excess %"] = 100 * (model.objective_ / best - 1)
    row["time, auto / plain"] = row["auto seconds"] / row["plain seconds"]
    row["auto score"] = 100 * score(y_test, models["auto"].predict(X_test))
    row["tight score"] = 100 * score(y_test, tight.predict(X_test))
    return row


def measure_default(title):
    """Measure the default solver on one case: the best of three fits."""
    from seqlab import LinearChainCRF

    load, options = TITLES[title]
    X, y, X_test, y_test, score = load()
    model = LinearChainCRF(n_jobs=2, **options).fit(X, y)  # compile the kernels
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - began)
    record = {"seconds": min(seconds), "iterations": model.n_iter_, "objective": model.objective_}
    return record | {"score": 100 * score(y_test, model.predict(X_test))}


def compare_versions(titles, other):
    results = {}
    for title in titles:
        before, now = run_role(title, other), run_role(title)
        row = {f"{key}, before": value for key, value in before.items()} | now
        row["ratio"] = before["seconds"] / now["seconds"]
        row["objective ratio"] = now["objective"] / before["objective"]
        results[title] = row
        print(f"# {title}: {row}", file=sys.stderr, flush=True)
    names = ["seconds", "iterations", "score"]
    columns = [name for key in names for name in (f"{key}, before", key)]
    table(results, ["ratio", "objective ratio", *columns])


def compare_solvers(titles, *, is_complete):
    results, loaded = {}, (None, None)
    for title in titles:
        load, options = TITLES[title]
        if loaded[0] is not load:
            loaded = (load, load())
        results[title] = measure(loaded[1], options)
        print(f"# {title}: {results[title]}", file=sys.stderr, flush=True)
    table(results, ["auto seconds", "plain seconds", "time, auto / plain", "auto excess %",
                    "plain excess %", "auto score", "tight score"])  # fmt: skip
    if is_complete:
        keep("robustness", results)


def main():
    other = other_version()
    words = [word for word in sys.argv[1:] if word not in ("--before", other)]
    titles = [title for title in TITLES if not words or any(word in title for word in words)]
    if other is None:
        compare_solvers(titles, is_complete=not words)
    else:
        compare_versions(titles, other)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--role" in sys.argv:
        print(json.dumps(measure_default(sys.argv[sys.argv.index("--role") + 1])))
    else:
        main()
