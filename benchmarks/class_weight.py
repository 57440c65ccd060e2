"""Macro recall of LinearChainCRF with class_weight="balanced" and without, on six data sets.

The form of the weighted loss was chosen among eight on addresses, signatures and activities at c2 = 0.1; noun
phrases, parts of speech and chunks took no part in that choice. The loss has no constants to tune.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from _common import keep, main, table


def read(name):
    """Return training and test sequences with their labels."""
    import numpy as np

    from seqlab import LineFeatures, Templates, datasets

    if name == "activities":
        data = datasets.fetch_kasteren()
        X, y = list(data.data), list(data.target)
        return X[:14], y[:14], X[14:], y[14:]
    features, n_train, n_test = Templates.default(), 300, 1000
    if name == "addresses":
        X, y = datasets.make_addresses(1000, random_state=0, return_X_y=True)
        n_train, n_test = 350, 650
    elif name == "signatures":
        X, y = datasets.fetch_email_signatures(return_X_y=True)
        features, n_train, n_test = LineFeatures(), 100, 300
    else:
        fetch = {
            "noun phrases": datasets.fetch_ptb_sample,
            "parts of speech": datasets.fetch_ud_english_ewt,
            "chunks": datasets.fetch_conll2000,
        }[name]
        X, y = fetch(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(X))[: n_train + n_test]
    X, y = [X[i] for i in order], [y[i] for i in order]
    X_train = features.fit_transform(X[:n_train])
    return X_train, y[:n_train], features.transform(X[n_train:]), y[n_train:]


def measure(name):
    import numpy as np
    from sklearn.metrics import accuracy_score, recall_score

    from seqlab import LinearChainCRF

    X, y, X_test, y_test = read(name)
    gold = np.concatenate([np.asarray(labels) for labels in y])
    counts = np.unique(gold, return_counts=True)[1]
    record = {"majority": 100 * counts.max() / gold.size}
    LinearChainCRF(max_iter=2, tol=1.0, class_weight="balanced").fit(X, y)  # compiles
    for short, class_weight in (("", None), ("balanced ", "balanced")):
        model = LinearChainCRF(class_weight=class_weight, n_jobs=1)
        began = time.process_time()
        model.fit(X, y)
        record[f"{short}cpu"] = time.process_time() - began
        for part, (Xs, ys) in {"train": (X, y), "test": (X_test, y_test)}.items():
            truth = np.concatenate([np.asarray(labels) for labels in ys])
            found = np.concatenate(model.predict(Xs))
            record[f"{short}{part} accuracy"] = 100 * accuracy_score(truth, found)
            record[f"{short}{part} recall"] = 100 * recall_score(
                truth, found, average="macro", labels=model.classes_, zero_division=0
            )
    return record


NAMES = (
    "addresses",
    "signatures",
    "activities",
    "noun phrases",
    "parts of speech",
    "chunks",
)

if __name__ == "__main__":
    results = main({name: lambda name=name: measure(name) for name in NAMES})
    if results:
        table(
            results,
            [
                "majority",
                "train accuracy",
                "balanced train accuracy",
                "test accuracy",
                "balanced test accuracy",
                "test recall",
                "balanced test recall",
                "cpu",
                "balanced cpu",
            ],
        )
        keep("class_weight", results)
