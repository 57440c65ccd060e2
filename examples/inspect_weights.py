"""Inspect a model: strongest features and transitions, training history, confusions.

Prints the strongest features of each label; with ``--figure FILE`` draws transitions, confusions and
the training history in one figure.
"""

import argparse

from seqlab import LinearChainCRF, Tagger, Templates
from seqlab.datasets import make_addresses
from seqlab.inspection import top_features, top_transitions


def draw(path, tagger, X, y):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from seqlab.inspection import ConfusionDisplay, HistoryDisplay, TransitionDisplay

    figure, axes = plt.subplots(1, 3, figsize=(22, 7), layout="constrained")
    TransitionDisplay.from_estimator(tagger, ax=axes[0])
    ConfusionDisplay.from_estimator(tagger, X, y, ax=axes[1])
    HistoryDisplay.from_estimator(tagger, ax=axes[2])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="file to draw transitions, confusions and history into")
    args = parser.parse_args()

    X, y = make_addresses(600, random_state=0, return_X_y=True)
    tagger = Tagger(Templates.default(), LinearChainCRF(c1=0.2, c2=0.01, tol=1e-3))
    tagger.fit(X[:500], y[:500])

    for found in top_features(tagger, 3):
        strongest = "   ".join(f"{best.feature} {best.weight:+.1f}" for best in found.positive)
        print(f"{found.label:15} {found.n_weights:4} weights   {strongest}")
    print("\ntransitions with the highest and lowest weights")
    for one in top_transitions(tagger, 4):
        print(f"  {one.weight:+.1f}  {one.source} -> {one.target}")
    if args.figure:
        draw(args.figure, tagger, X[500:], y[500:])
        print(f"figure: {args.figure}")


if __name__ == "__main__":
    main()
