"""Segment a sensor-like signal: long runs, weak features, misleading cues.

The labels of a classifier that sees one step at a time flicker; a CRF labels the sequence as a whole.
Prints the accuracy of both; with ``--figure FILE`` draws one test sequence.
"""

import argparse

import numpy as np

from seqlab import IndependentLabeler, LinearChainCRF, Tagger
from seqlab.datasets import make_partition_sequences
from seqlab.features import Window


def draw(path, truth, rows):
    """Draw the true and the predicted labels of one sequence as coloured bands."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = ["truth", *rows]
    bands = np.array([truth, *rows.values()])
    figure, ax = plt.subplots(figsize=(8, 1.0 + 0.45 * len(names)), layout="constrained")
    ax.imshow(bands, aspect="auto", interpolation="nearest", cmap="Set2", vmin=0, vmax=7)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("step")
    for side in ax.spines.values():
        side.set_visible(False)
    for edge in np.arange(0.5, len(names) - 1):
        ax.axhline(edge, color="white", linewidth=4)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="file to draw one test sequence into")
    args = parser.parse_args()

    data = make_partition_sequences(80, n_labels=3, random_state=2)
    X_train, y_train, X_test, y_test = (
        part[cut] for cut in (slice(50), slice(50, None)) for part in (data.data, data.target)
    )
    models = {
        "step by step": IndependentLabeler(),
        "steps with a window": Tagger(Window(before=3, after=3), IndependentLabeler()),
        "CRF": LinearChainCRF(),
        "CRF with a window": Tagger(Window(before=3, after=3), LinearChainCRF()),
    }
    print("share of correct steps on 30 test sequences")
    rows = {}
    shown = int(np.argmax([len(labels) for labels in y_test]))
    for name, model in models.items():
        model.fit(X_train, y_train)
        rows[name] = model.predict(X_test[shown : shown + 1])[0]
        print(f"  {name:20} {model.score(X_test, y_test):.3f}")
    if args.figure:
        draw(args.figure, y_test[shown], rows)
        print(f"figure: {args.figure}")


if __name__ == "__main__":
    main()
