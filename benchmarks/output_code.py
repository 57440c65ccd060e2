"""SequentialOutputCode with 200 columns of boosted trees on NETtalk: threads, and model files.

Threads: wall-clock seconds of training independent columns with one and two threads, the best of three fits
each; only meaningful on an idle machine. Files: size of the model file against that of the fitted arrays of
all columns, each compressed by zlib, and the seconds of `seqlab.save` and `seqlab.load`.
"""

from __future__ import annotations

import tempfile
import time
import warnings
import zlib
from pathlib import Path

from _common import keep, table

N_REPEATS = 3


def seconds_of(function):
    """Return the shortest of several runs, in wall-clock seconds, and the result of the last."""
    best = float("inf")
    for _ in range(N_REPEATS):
        began = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - began)
    return best, result


def compressed_size(model):
    """Return the number of bytes of the arrays that the columns learned, and of the code, compressed."""
    import numpy as np

    arrays = [model.code_]
    for column in model.estimators_:
        arrays += [value for value in vars(column.trees_).values() if isinstance(value, np.ndarray)]
    return sum(len(zlib.compress(array.tobytes())) for array in arrays)


def files(model):
    """Return the size and times of a model file."""
    import seqlab

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.seqlab"
        save_seconds, _ = seconds_of(lambda: seqlab.save(model, path))
        load_seconds, loaded = seconds_of(lambda: seqlab.load(path))
        size = path.stat().st_size
    assert len(loaded.estimators_) == len(model.estimators_)
    arrays = compressed_size(model)
    return {
        "file, kB": size / 1000,
        "arrays, kB": arrays / 1000,
        "file / arrays": size / arrays,
        "save, s": save_seconds,
        "load, s": load_seconds,
    }


def main():
    from sklearn.base import clone

    from seqlab.papers._output_code_runs import load, make_learner, warm_up

    warnings.simplefilter("ignore")
    warm_up("nettalk", "gtb/i")
    results = {}
    for window in (1, 3):
        data = load("nettalk", window, 0)
        learner = make_learner("nettalk", "gtb/i", 0)
        one, model = seconds_of(lambda m=learner, d=data: clone(m).fit(d.X_train, d.y_train))
        learner.set_params(n_jobs=2)
        two, _ = seconds_of(lambda m=learner, d=data: clone(m).fit(d.X_train, d.y_train))
        results[f"window {window}"] = {
            "1 thread, s": one,
            "2 threads, s": two,
            "speed-up": one / two,
            **files(model),
        }
    table(results, list(results["window 1"]))
    keep("output_code", results)


if __name__ == "__main__":
    main()
