"""Training with hidden labels and with edge features, compared with full labels.

CPU seconds of one thread on 1,500 sentences of CoNLL-2000 with the default settings, and as a ratio to full
labels. Each fit is repeated in turn with the others, and the fastest is reported; compiling is not measured.
"""

from __future__ import annotations

import sys
import time

from _common import conll2000, keep, table

N_SENTENCES, N_REPEATS = 1500, 3
SHARES = (0.01, 0.1, 0.5, 0.9)


def hide(y, share):
    import numpy as np

    random = np.random.default_rng(0)
    return [[None if random.random() < share else label for label in labels] for labels in y]


def main():
    from seqlab import LinearChainCRF, SequenceVectorizer
    from seqlab.metrics import span_f1

    vectorizer = SequenceVectorizer()
    X, y = (part[:N_SENTENCES] for part in conll2000("train"))
    X = vectorizer.fit_transform(X)
    X_test, y_test = conll2000("test")
    X_test = vectorizer.transform(X_test)
    fits = {"full labels": (y, {}), "full labels, c1=0.1, c2=0.1": (y, {"c1": 0.1, "c2": 0.1})}
    for share in SHARES:
        fits[f"{share:.0%} hidden"] = hide(y, share), {}
    fits["1% hidden, c1=0.1, c2=0.1"] = hide(y, 0.01), {"c1": 0.1, "c2": 0.1}
    if "--edges" in sys.argv:
        fits["edge features"] = y, {"edge_features": True}
        fits["edge features, 1% hidden"] = hide(y, 0.01), {"edge_features": True}
    seconds = {name: float("inf") for name in fits}
    models = {}
    for repeat in range(N_REPEATS + 1):  # the first one compiles
        for name, (labels, options) in fits.items():
            began = time.process_time()
            models[name] = LinearChainCRF(n_jobs=1, **options).fit(X, labels)
            if repeat:
                seconds[name] = min(seconds[name], time.process_time() - began)
    rows = {}
    for name, model in models.items():
        reference = "full labels" + (", c1=0.1, c2=0.1" if "c1" in name else "")
        rows[name] = {
            "seconds": seconds[name],
            "ratio": seconds[name] / seconds[reference],
            "iterations": model.n_iter_,
            "objective": model.objective_,
            "F1": span_f1(y_test, model.predict(X_test)),
        }
    table(rows, ["seconds", "ratio", "iterations", "objective", "F1"])
    keep("partial_labels", rows)


if __name__ == "__main__":
    main()
