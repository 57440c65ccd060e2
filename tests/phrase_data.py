"""Random phrase sets with noisy features, for tests of phrase models."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from seqlab import PhraseInference
from seqlab.data import Phrase, PhraseSet


def make_data(types=("NP",), n_sequences=40, seed=0, noise=0.6):
    """Return random phrase sets and noisy features of their decisions: 4 + n_types columns per token."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        length = int(rng.integers(3, 12))
        phrases, t = [], 0
        while t < length:
            stop = min(length, t + int(rng.integers(1, 4)))
            if rng.random() < 0.6:
                phrases.append(Phrase(t, stop, types[rng.integers(len(types))]))
            t = stop
        features = rng.normal(scale=noise, size=(length, 4 + len(types)))
        for start, stop, type_ in phrases:
            features[start, 0] += 1.5
            features[stop - 1, 1] += 1.5
            features[start:stop, 2] += 1.5
            features[start:stop, 4 + types.index(type_)] += 1.5
        X.append(features)
        y.append(PhraseSet(phrases, length))
    return X, y


def quick_model(**options):
    options = {"cost": "map", "random_state": 0, **options}
    return PhraseInference(LogisticRegression(C=10.0, max_iter=500), **options)
