"""Max-margin training on one fold of the OCR letters, one thread.

- cubic kernel: CPU seconds to a relative duality gap of 0.01 and 0.001, by SMO and by block-coordinate
  Frank-Wolfe, and of labelling the other nine folds;
- linear: CPU seconds until the primal objective is as low as where SVM-hmm 3.10 stopped (``-c 100 -e 0.5``:
  315.3 after 2.0 s on a machine of this kind; its C is ours times the number of sequences), and to the gaps;
- a large problem: nine folds with the cubic kernel, whose kernel matrix does not fit into memory, on
  pairs of neighbouring pixels; see `seqlab.papers.max_margin_networks`.
"""

from __future__ import annotations

import time

from _common import keep, main, peak_memory, table

PRIMAL_OF_SVM_HMM = 315.3
LIMITS = (0.01, 0.001)


def _folds(train_on_first):
    import numpy as np

    from seqlab.datasets import fetch_ocr_letters

    words = fetch_ocr_letters()
    chosen = np.asarray(words.folds) == 0
    if not train_on_first:
        chosen = ~chosen
    parts = []
    for part in (chosen, ~chosen):
        rows = np.flatnonzero(part)
        parts += [[words.data[i] for i in rows], [words.target[i] for i in rows]]
    return parts


def _watch(record):
    """Return a callback that stores when primal objective and gap reach their limits."""
    began = time.process_time()

    def callback(progress):
        seconds = time.process_time() - began
        share = progress.info["gap"] / progress.objective
        for limit in LIMITS:
            if share <= limit:
                record.setdefault(f"gap {limit}", seconds)
        if progress.objective <= PRIMAL_OF_SVM_HMM:
            record.setdefault("as SVM-hmm", seconds)
        return False

    return callback


def _run(*, name="M3N", train_on_first=True, prepare=None, **options):
    import seqlab

    make = getattr(seqlab, name)
    X, y, X_test, y_test = _folds(train_on_first)
    if prepare is not None:
        X, X_test = prepare(X), prepare(X_test)
    make(**{**options, "max_iter": 3, "tol": 0.0}).fit(X[:20], y[:20]).predict(
        X[:2]
    )  # load kernels
    record = {}
    model = make(random_state=0, callback=_watch(record), **options)
    began = time.process_time()
    model.fit(X, y)
    record["fit"] = time.process_time() - began
    began = time.process_time()
    record["error"] = 100.0 * (1.0 - model.score(X_test, y_test))
    record["predict"] = time.process_time() - began
    record["MB"] = peak_memory()
    return record


def cubic(solver, C):
    return lambda: _run(kernel="poly", C=C, solver=solver, tol=LIMITS[-1])


def linear(solver, name="M3N", tol=LIMITS[-1]):
    return lambda: _run(name=name, C=100 / 626, solver=solver, tol=tol)


def large():
    from seqlab.data import Sequences
    from seqlab.papers.max_margin_networks import pair_pixels

    def prepare(X):
        return pair_pixels(Sequences.from_list(X))

    options = {"kernel": "poly", "C": 3.0, "tol": 0.05, "cache_size": 4000}
    return _run(train_on_first=False, prepare=prepare, **options)


if __name__ == "__main__":
    results = main(
        {
            "cubic, SMO, C=1": cubic("smo", 1.0),
            "cubic, BCFW, C=1": cubic("bcfw", 1.0),
            "cubic, SMO, C=3": cubic("smo", 3.0),
            "cubic, BCFW, C=3": cubic("bcfw", 3.0),
            "linear, SMO": linear("smo"),
            "linear, BCFW": linear("bcfw"),
            "StructuredSVM, BCFW": linear("bcfw", "StructuredSVM"),
            "StructuredSVM, 1-slack": linear("1-slack", "StructuredSVM", LIMITS[0]),
            "StructuredSVM, cutting planes": linear("cutting_plane", "StructuredSVM", LIMITS[0]),
            "cubic, nine folds": large,
        }
    )
    if results:
        columns = ["gap 0.01", "gap 0.001", "as SVM-hmm", "fit", "predict", "error", "MB"]
        table(results, columns)
        keep("margin", results)
