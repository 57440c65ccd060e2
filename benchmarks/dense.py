"""Dense features: seconds and peak memory of `fit` and `predict`, and the OCR letters.

The peaks are those of a process whose X takes 114 MB, above the memory before the call. With ``--before
FOLDER``, the ``src`` folder of another version of seqlab, the same is measured for that version in the same
run, and the ratios are printed. One thread; CPU time, which other processes disturb less than wall time.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

from _common import keep, other_version, peak_memory, run_role, table

N_STEPS, N_FEATURES, N_LABELS, LENGTH = 111_328, 128, 10, 16


def memory():
    """Peaks of `fit` and `predict` on one stacked array of 114 MB."""
    import numpy as np

    from seqlab import LinearChainCRF

    random = np.random.default_rng(0)
    X = random.normal(size=(N_STEPS, N_FEATURES))
    centres = random.normal(size=(N_FEATURES, N_LABELS))
    y = (X @ centres + 20 * random.gumbel(size=(N_STEPS, N_LABELS))).argmax(axis=1)
    lengths = [LENGTH] * (N_STEPS // LENGTH)
    few = 300 * LENGTH  # compile the kernels
    LinearChainCRF(max_iter=3).fit(X[:few], y[:few], lengths=lengths[:300]).predict(X[:few])
    record = {"X": X.nbytes / 1e6}
    model = LinearChainCRF(tol=1e-3)
    for name, call in (
        ("fit", lambda: model.fit(X, y, lengths=lengths)),
        ("predict", lambda: model.predict(X, lengths=lengths)),
    ):
        before, began = peak_memory(), time.process_time()
        call()
        record[f"{name} seconds"] = time.process_time() - began
        record[f"{name} memory"] = peak_memory() - before
    record["objective"] = model.objective_
    return record


def ocr_letters():
    """CPU seconds of `fit` and `predict` on the OCR letters, the best of three."""
    from seqlab import LinearChainCRF
    from seqlab.datasets import fetch_ocr_letters

    X, y = fetch_ocr_letters(return_X_y=True)
    model = LinearChainCRF().fit(X, y)  # compile the kernels
    return _best_times(model, X, y)


def embeddings():
    """CPU seconds of `fit` and `predict` on word vectors of 300 dimensions with 9 labels."""
    import numpy as np

    from seqlab import LinearChainCRF

    random = np.random.default_rng(0)
    vectors = random.normal(size=(2000, 300)) / np.sqrt(300)
    label_of_word = random.integers(0, 9, 2000)
    words = [random.integers(0, 2000, random.integers(5, 40)) for _ in range(1500)]
    X = [vectors[sentence] for sentence in words]
    y = [label_of_word[sentence] for sentence in words]
    return _best_times(LinearChainCRF(c2=0.01, tol=1e-3).fit(X, y), X, y)


def _best_times(model, X, y):
    fits, predictions = [], []
    for _ in range(3):
        began = time.process_time()
        model.fit(X, y)
        fits.append(time.process_time() - began)
        began = time.process_time()
        model.predict(X)
        predictions.append(time.process_time() - began)
    record = {"fit seconds": min(fits), "predict seconds": min(predictions)}
    return record | {"objective": model.objective_, "iterations": model.n_iter_}


ROLES = {"memory": memory, "OCR letters": ocr_letters, "embeddings": embeddings}


def main():
    other = other_version()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the roles
    results = {}
    for role in ROLES:
        results[role] = run_role(role)
        if other is not None:
            before = results[f"{role}, before"] = run_role(role, other)
            results[role]["fit ratio"] = before["fit seconds"] / results[role]["fit seconds"]
    columns = ["X", "fit memory", "predict memory", "fit seconds", "fit ratio", "predict seconds"]
    table(results, [*columns, "objective"])
    keep("dense", results)


if __name__ == "__main__":
    if "--role" in sys.argv:
        warnings.simplefilter("ignore")
        print(json.dumps(ROLES[sys.argv[sys.argv.index("--role") + 1]]()))
    else:
        main()
