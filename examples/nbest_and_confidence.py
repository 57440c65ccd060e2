"""How sure, and what else could it be: n-best lists, confidence, and what the probabilities are worth.

Prints the best labelings of an ambiguous address with their probabilities, then checks on held-out
data that tokens said to be right with probability p are right about that often, and how many errors
a person finds who looks at the least sure sequences only.
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
    right = [labels == np.array(gold) for labels, gold in zip(predicted, y_test, strict=True)]

    print("\nprobability said   tokens   of them right")
    said, hit = np.concatenate(proba), np.concatenate(right)
    for low, high in pairwise(BINS):
        inside = (said > low) & (said <= high)
        if inside.any():
            print(f"  {low:.2f} to {high:.2f}     {inside.sum():6}   {hit[inside].mean():.2f}")

    least_sure_first = np.argsort([p.min() for p in proba])
    wrong = np.array([not r.all() for r in right])[least_sure_first]
    quarter = len(wrong) // 4
    print(f"\n{wrong.sum()} of {len(wrong)} addresses have an error;")
    print(f"{wrong[:quarter].sum()} of these are among the {quarter} least sure ones")


if __name__ == "__main__":
    main()
