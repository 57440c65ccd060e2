"""Training time and accuracy against the number of labels: exact CRF, perceptrons, output codes.

Sequences are drawn from an HMM with as many symbols as labels ("both"). Prints a table, and draws the picture
of the guide with ``--picture FILE``. Processor seconds of training on one thread, without compilation.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

from seqlab import LinearChainCRF, SequentialOutputCode, StructuredPerceptron
from seqlab.data import Sequences
from seqlab.datasets import make_hmm_sequences
from seqlab.features import Window

N_LABELS = (10, 30, 100, 300, 1000)
N_TRAIN, N_TEST, LENGTH = 200, 100, 50
# A learner is not trained with more labels than this: the exact CRF takes minutes.
LIMITS = {"CRF, exact": 300}
LEARNERS = {
    "CRF, exact": lambda: LinearChainCRF(c2=0.1),
    "perceptron, exact": lambda: StructuredPerceptron(random_state=0),
    "perceptron, beam of 5": lambda: StructuredPerceptron(
        beam_width=5, early_update=True, random_state=0
    ),
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
        if n_labels > LIMITS.get(name, n_labels):
            continue
        began = time.process_time()
        model = LEARNERS[name]().fit(X, y)
        seconds = time.process_time() - began
        out.append((name, seconds, 100 * model.score(X_test, y_test)))
    return out


def draw(found, path):
    """Draw seconds and accuracy against the number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name in LEARNERS:
        points = [(n, s, a) for n, rows in found.items() for one, s, a in rows if one == name]
        labels, seconds, accuracy = zip(*points, strict=True)
        left.plot(labels, seconds, marker="o", label=name)
        right.plot(labels, accuracy, marker="o", label=name)
    for axis, text in ((left, "seconds of training"), (right, "steps with the right label, %")):
        axis.set(xscale="log", xlabel="labels", ylabel=text)
        axis.grid(alpha=0.3)
    left.set_yscale("log")
    right.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--labels", type=int, nargs="*", default=N_LABELS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    measure(10, LEARNERS)  # compile
    found = {}
    print(f"{'labels':>6}  {'learner':26} {'seconds':>8} {'accuracy':>8}")
    for n_labels in options.labels:
        found[n_labels] = measure(n_labels, LEARNERS)
        for name, seconds, accuracy in found[n_labels]:
            print(f"{n_labels:6}  {name:26} {seconds:8.2f} {accuracy:8.1f}", flush=True)
    if options.picture is not None:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
