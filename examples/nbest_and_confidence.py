"""n-best lists, confidence, and calibration of the probabilities.

Prints the best labelings of an ambiguous address with their probabilities. Then checks on held-out
data how often labels predicted with probability p are correct, and how many errors a person finds
who reviews only the least certain sequences.
"""

from itertools import pairwise

import numpy as np

from seqlab import LinearChainCRF, Tagger, Templates
from seqlab.datasets import make_addresses

BINS = (0.0, 0.5, 0.7, 0.9, 0.99, 1.0)


def main():
    X, y = make_addresses(800, random_state=0, return_X_y=True)
    tagger = Tagger(Templates.default(), LinearChainCRF(c2=0.1)).fit(X[:400], y[:400])
    X_test, y_test = X[400:], y[400:]

    address = ["12", "Lincoln", "Park", "Jackson"]
    print(" ".join(address))
    for labels, log_proba in tagger.predict_nbest([[(word,) for word in address]], n=3)[0]:
        print(f"  {np.exp(log_proba):.3f}  {' '.join(labels)}")

    predicted = tagger.predict(X_test)
    proba = [p.max(axis=1) for p in tagger.predict_proba(X_test)]
    correct = [labels == np.array(gold) for labels, gold in zip(predicted, y_test, strict=True)]

    print("\nprobability        tokens   share correct")
    confidence, hits = np.concatenate(proba), np.concatenate(correct)
    for low, high in pairwise(BINS):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            print(f"  {low:.2f} to {high:.2f}     {inside.sum():6}   {hits[inside].mean():.2f}")

    least_certain_first = np.argsort([p.min() for p in proba])
    wrong = np.array([not one.all() for one in correct])[least_certain_first]
    quarter = len(wrong) // 4
    print(f"\n{wrong.sum()} of {len(wrong)} addresses have an error;")
    print(f"{wrong[:quarter].sum()} of these are among the {quarter} least certain ones")


if __name__ == "__main__":
    main()
