"""Viterbi decoding of an HMM with seqlab and hmmlearn (``pip install hmmlearn``), same parameters and data.

Both start from arrays and return labels; each time is the best of several runs and includes the emission
probabilities. Categorical and Gaussian emissions, 10 and 40 labels, many short sequences and a few long
ones.
"""

from __future__ import annotations

import time

import numpy as np
from _common import keep, main, table

N_RUNS = 15
SHAPES = {"5,000 x 20": (5000, 20), "10 x 20,000": (10, 20_000)}


def data(n_labels, kind, shape):
    """Stacked observations, labels and lengths."""
    from seqlab.datasets import make_hmm_sequences

    n_sequences, length = shape
    X, y = make_hmm_sequences(
        n_sequences,
        length,
        preset="both",
        n_labels=n_labels,
        n_observations=50,
        encoding="index",
        random_state=0,
        return_X_y=True,
    )
    stacked, labels = np.concatenate(X), np.concatenate(y)
    # Not every symbol occurs, and hmmlearn needs symbols numbered without gaps.
    stacked = np.unique(stacked, return_inverse=True)[1].reshape(-1, 1)
    if kind == "gaussian":  # eight noisy measurements of the label
        random = np.random.default_rng(0)
        centres = random.normal(size=(n_labels, 8))
        stacked = centres[labels] + random.normal(size=(labels.size, 8))
    return stacked, labels, [length] * n_sequences


def fitted(kind, stacked, labels, lengths):
    """A fitted HMM; both libraries use its parameters."""
    from seqlab import HMM

    return HMM(emissions=kind).fit(stacked, labels, lengths=lengths)


def best_of(predict):
    """Shortest time of several runs, and the predicted labels."""
    seconds = []
    for _ in range(N_RUNS + 1):  # the first run compiles or loads the kernels
        began = time.perf_counter()
        labels = predict()
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:]), labels


def measure(decoder, *, by_label):
    """Seconds of a decoder for every case, and a checksum of its labels for comparison.

    ``by_label`` tells that the decoder returns labels, not label indices.
    """
    record = {}
    for kind in ("categorical", "gaussian"):
        for n_labels in (10, 40):
            for name, shape in SHAPES.items():
                case = data(n_labels, kind, shape)
                model = fitted(kind, *case)
                seconds, codes = best_of(decoder(kind, model, *case))
                if by_label:
                    codes = np.searchsorted(model.classes_, codes)
                weights = np.arange(1, codes.size + 1) % 997
                record[f"{kind}, {n_labels} labels, {name}"] = {
                    "seconds": seconds,
                    "checksum": int((codes * weights).sum()),
                }
    return record


def hmmlearn():
    from hmmlearn.hmm import CategoricalHMM, GaussianHMM

    def decoder(kind, model, stacked, labels, lengths):
        n_labels = model.classes_.size
        if kind == "categorical":
            peer = CategoricalHMM(n_labels)
            known = model.emissions_.probabilities[0][:, :-1]
            peer.emissionprob_ = known / known.sum(axis=1, keepdims=True)
            peer.n_features = known.shape[1]
        else:
            peer = GaussianHMM(n_labels, "diag")
            peer.n_features = stacked.shape[1]
            peer.means_ = model.emissions_.means
            peer.covars_ = model.emissions_.variances
        peer.startprob_, peer.transmat_ = model.start_, model.transitions_
        return lambda: peer.predict(stacked, lengths)

    return measure(decoder, by_label=False)


def seqlab(n_jobs=1):
    def decoder(kind, model, stacked, labels, lengths):
        if kind == "categorical":  # hmmlearn has no unseen symbol
            known = model.emissions_.probabilities[0]
            known[:, -1] = 0.0
            known /= known.sum(axis=1, keepdims=True)
        model.set_params(n_jobs=n_jobs)
        return lambda: model.predict(stacked, lengths=lengths)

    return measure(decoder, by_label=True)


if __name__ == "__main__":
    roles = {"hmmlearn": hmmlearn, "seqlab": seqlab, "two threads": lambda: seqlab(2)}
    results = main(roles)
    if results and len(results) == 3:
        cases = {}
        for case, peer in results["hmmlearn"].items():
            mine = results["seqlab"][case]
            cases[case] = {
                "hmmlearn": peer["seconds"],
                "seqlab": mine["seconds"],
                "ratio": peer["seconds"] / mine["seconds"],
                "two threads": peer["seconds"] / results["two threads"][case]["seconds"],
                "same labels": str(peer["checksum"] == mine["checksum"]),
            }
        table(cases, ["hmmlearn", "seqlab", "ratio", "two threads", "same labels"])
        keep("hmm", cases)
