"""Training time and accuracy against the number of labels: exact CRF, perceptrons, output codes.

Sequences are drawn from an HMM with as many symbols as labels ("both"). Prints a table and keeps the
results, from which ``plots.py`` draws the picture of the guide; results of earlier runs with other numbers of
labels or other learners stay. CPU seconds of training on one thread, without compilation.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

from _common import RESULTS, keep

from seqlab import LinearChainCRF, SequentialOutputCode, StructuredPerceptron
from seqlab.data import Sequences
from seqlab.datasets import make_hmm_sequences
from seqlab.features import Window

N_LABELS = (10, 30, 100, 300, 1000)
N_TRAIN, N_TEST, LENGTH = 200, 100, 50
LEARNERS = {
    "CRF, exact": lambda: LinearChainCRF(c2=0.1),
    "perceptron, exact": lambda: StructuredPerceptron(random_state=0),
    "perceptron, beam of 5": lambda: StructuredPerceptron(beam_width=5, random_state=0),
    "output code, independent": lambda: SequentialOutputCode(
        StructuredPerceptron(), random_state=0
    ),
    "output code, cascade of 5": lambda: SequentialOutputCode(
        StructuredPerceptron(), cascade=5, random_state=0
    ),
}


def load(n_labels):
    drawn, y = make_hmm_sequences(
        N_TRAIN + N_TEST,
        LENGTH,
        preset="both",
        n_labels=n_labels,
        n_observations=n_labels,
        encoding="sparse",
        random_state=0,
        return_X_y=True,
    )
    X = Window(before=1, after=1).fit_transform(Sequences.from_list(drawn))
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


def measure(n_labels, names):
    """Return (name, seconds, accuracy) of each learner."""
    X, y, X_test, y_test = load(n_labels)
    out = []
    for name in names:
        began = time.process_time()
        model = LEARNERS[name]().fit(X, y)
        seconds = time.process_time() - began
        out.append((name, seconds, 100 * model.score(X_test, y_test)))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="*", default=N_LABELS)
    parser.add_argument("--learners", nargs="*", choices=list(LEARNERS), default=list(LEARNERS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    measure(10, options.learners)  # compile
    path = RESULTS / "many_labels.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    found = {name: stored.get(name, {}) for name in LEARNERS}
    print(f"{'labels':>6}  {'learner':26} {'seconds':>8} {'accuracy':>8}")
    for n_labels in options.labels:
        for name, seconds, accuracy in measure(n_labels, options.learners):
            found[name][str(n_labels)] = {
                "seconds": round(seconds, 3),
                "accuracy": round(accuracy, 2),
            }
            print(f"{n_labels:6}  {name:26} {seconds:8.2f} {accuracy:8.1f}", flush=True)
        keep("many_labels", found)


if __name__ == "__main__":
    main()
