"""Time of stacked logistic regression on signature lines and of the classifier alone, on one core and two."""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # no threads inside NumPy and scikit-learn

from _common import clock, keep, main, table

N_REPEATS = 25


def measure(stacked, n_jobs=None):
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from seqlab import IndependentLabeler, StackedSequentialLearner
    from seqlab.datasets import fetch_email_signatures
    from seqlab.features import LineFeatures

    messages, target = fetch_email_signatures(return_X_y=True)
    X = LineFeatures(features="basic").fit_transform(messages)
    y = [np.where(np.array(labels) == "sig", "sig", "other") for labels in target]
    classifier = LogisticRegression(max_iter=1000)
    model = IndependentLabeler(classifier)
    if stacked:
        model = StackedSequentialLearner(classifier, cv=5, n_jobs=n_jobs, random_state=0)
    model.fit(X, y)
    wall, cpu = [], []
    for _ in range(N_REPEATS):
        record, began = {}, time.process_time()
        with clock(record, "train"):
            model.fit(X, y)
        cpu.append(time.process_time() - began)
        wall.append(record["train"])
    return {
        "train": min(wall),
        "cpu": min(cpu),
        "accuracy on the training lines": model.score(X, y),
    }


if __name__ == "__main__":
    results = main(
        {
            "logistic regression": lambda: measure(stacked=False),
            "stacked, K = 5": lambda: measure(stacked=True),
            "stacked, two jobs": lambda: measure(stacked=True, n_jobs=2),
        }
    )
    if results:
        for record in results.values():
            # Processor time, so that other load on the machine does not count.
            record["times the base"] = record["cpu"] / results["logistic regression"]["cpu"]
            record["cores used"] = record["cpu"] / record["train"]
        columns = ["train", "cpu", "times the base", "cores used", "accuracy on the training lines"]
        table(results, columns)
        keep("stacking", results)
