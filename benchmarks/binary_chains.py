"""200 binary chains on the same X: CPU seconds on one thread.

1,000 words of NETtalk, one column per letter in a window of three letters on each side; 200 random divisions
of the labels (phoneme and stress) into two sets, as in an output code. X is prepared once; each chain is a
`LinearChainCRF` at ``tol=1e-3``.
"""

from __future__ import annotations

import time

from _common import keep, table

N_WORDS, N_CHAINS, WINDOW = 1000, 200, 3


def load():
    """Return words as `Sequences`, and their labels."""
    import numpy as np

    from seqlab import SequenceVectorizer
    from seqlab.datasets import fetch_nettalk

    words, labels = fetch_nettalk(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(words))[:N_WORDS]

    def attributes(word):
        letters = ["_"] * WINDOW + [letter for (letter,) in word] + ["_"] * WINDOW
        steps = range(len(word))
        return [[f"{k}={letters[t + k]}" for k in range(2 * WINDOW + 1)] for t in steps]

    X = SequenceVectorizer().fit_transform([attributes(words[i]) for i in chosen])
    return X, [labels[i] for i in chosen]


def main():
    import numpy as np
    from sklearn.base import clone

    from seqlab import LinearChainCRF
    from seqlab.models.base import fit_prepared

    X, y = load()
    inner = LinearChainCRF(tol=1e-3)
    data = inner._read_training(X, y, None, None)
    random = np.random.default_rng(1)
    divisions = random.integers(0, 2, (N_CHAINS, data.n_labels))
    divisions[:, :2] = 0, 1  # both sets have a label
    two = np.array([0, 1])

    def fit(bits):
        return fit_prepared(clone(inner), data.with_labels(bits[data.codes], two))

    fit(divisions[0])  # compile the kernels
    began, wall = time.process_time(), time.perf_counter()
    models = [fit(bits) for bits in divisions]
    record = {
        "CPU seconds": time.process_time() - began,
        "seconds": time.perf_counter() - wall,
        "labels": data.n_labels,
        "steps": X.n_steps,
        "mean iterations": float(np.mean([model.n_iter_ for model in models])),
        "sum of objectives": float(sum(model.objective_ for model in models)),
        "converged": sum(model.converged_ for model in models),
    }
    table({"200 binary chains": record}, list(record))
    keep("binary_chains", record)


if __name__ == "__main__":
    main()
