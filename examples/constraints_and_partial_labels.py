"""Training with partly known labels, and the effect of constraints.

Labels of the training data are hidden at random. A CRF learns from the others and is tested with
and without the IOB2 constraint. A classifier that labels every token independently shows the effect
of the constraint on a model without transitions.
"""

import numpy as np
from sklearn.svm import LinearSVC

from seqlab import IndependentLabeler, LinearChainCRF, Tagger, Templates
from seqlab.datasets import make_addresses
from seqlab.metrics import span_f1

SHARES = (1.0, 0.5, 0.25, 0.1)


def hide(y, share, rng):
    """Keep each label with the given probability, and replace the others by None."""
    return [[label if rng.random() < share else None for label in labels] for labels in y]


def f1_without_and_with(model, X, y):
    return [span_f1(y, model.predict(X, constraints=scheme)) for scheme in (None, "IOB2")]


def main():
    X, y = make_addresses(400, random_state=0, return_X_y=True)
    X_train, y_train, X_test, y_test = X[:250], y[:250], X[250:], y[250:]

    print("F1 of phrases                     free   IOB2")
    alone = Tagger(Templates.default(), IndependentLabeler(LinearSVC())).fit(X_train, y_train)
    free, legal = f1_without_and_with(alone, X_test, y_test)
    print(f"independent tokens, all labels   {free:.3f}  {legal:.3f}")
    for share in SHARES:
        partial = hide(y_train, share, np.random.default_rng(0))
        crf = Tagger(Templates.default(), LinearChainCRF(c2=0.05, tol=1e-3)).fit(X_train, partial)
        free, legal = f1_without_and_with(crf, X_test, y_test)
        print(f"CRF, {share:4.0%} of the labels known    {free:.3f}  {legal:.3f}")


if __name__ == "__main__":
    main()
