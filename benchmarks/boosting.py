"""Regression trees of 20 leaves on NETtalk: the grower of BoostedCRF against those of scikit-learn.

One tree is fitted to the gradient of a two-label chain on 1,000 words (window of three letters, previous
label). scikit-learn's growers get one row per step and previous label, as in the original algorithm; the
previous label is a column of its own. `HistGradientBoostingRegressor` runs one iteration. CPU seconds, mean
of 20 trees.
"""

from __future__ import annotations

import time

from _common import keep, main, table

N_WORDS, N_TREES, N_LEAVES = 1000, 20, 20


def problem():
    """Return the sequences and their two-label codes: whether a letter is a vowel sound."""
    import numpy as np

    from seqlab import SequenceVectorizer
    from seqlab.datasets import fetch_nettalk
    from seqlab.features import Window

    words, labels = fetch_nettalk(task="phoneme", return_X_y=True)
    chosen = np.random.RandomState(0).permutation(len(words))[:N_WORDS]
    X = SequenceVectorizer().fit_transform([[list(t) for t in words[i]] for i in chosen])
    X = Window(before=1, after=1).fit_transform(X)
    vowels = set("aAcEeIioOuUWxyY@^|")
    return X, np.array([label in vowels for i in chosen for label in labels[i]], dtype=np.int64)


def gradients():
    """Return the binned rows and the gradients after five rounds of boosting."""
    from itertools import islice

    import numpy as np

    from seqlab.learning.boosting import BinnedRows, Boosting, FeatureTreeGrower
    from seqlab.structures.chain import ChainStructure

    X, codes = problem()
    grower = FeatureTreeGrower(BinnedRows.from_sequences(X), max_leaf_nodes=N_LEAVES)
    bound = ChainStructure.without_weights(X.n_features, 2).bind(X)
    boosting = Boosting(bound, grower, codes, np.ones(len(X)), learning_rate=0.5, newton=False)
    list(islice(boosting.states(), 5))
    return X, grower, boosting


def seconds_of(fit):
    """Return the mean CPU time of a fit; the first, which may compile, is not counted."""
    fit()
    began = time.process_time()
    for _ in range(N_TREES):
        fit()
    return (time.process_time() - began) / N_TREES


def seqlab():
    _, grower, boosting = gradients()
    sums, counts = boosting.sums, boosting._counts
    seconds = seconds_of(lambda: grower.grow(sums.gradient[1], counts, sums.scale))
    return {"rows": grower.n_rows, "milliseconds": 1000 * seconds}


def expanded():
    """Return one row per distinct step and previous label, the mean gradient and the weight of each."""
    import numpy as np
    import scipy.sparse as sp

    X, grower, boosting = gradients()
    sums, counts = boosting.sums, boosting._counts / boosting.sums.scale
    first = np.unique(grower.row_of_step, return_index=True)[1]
    matrix = X.matrix[first]
    parts, targets, weights = [], [], []
    for c in range(3):
        used = np.flatnonzero(counts[:, c] > 0)
        previous = sp.csr_matrix(np.eye(3)[np.full(used.size, c)])
        parts.append(sp.hstack([matrix[used], previous]))
        targets.append(sums.gradient[1][used, c] / sums.scale / counts[used, c])
        weights.append(counts[used, c])
    return sp.vstack(parts).tocsr(), np.concatenate(targets), np.concatenate(weights)


def decision_tree():
    from sklearn.tree import DecisionTreeRegressor

    X, target, weight = expanded()
    dense = X.toarray().astype("float32")
    tree = DecisionTreeRegressor(max_leaf_nodes=N_LEAVES, random_state=0)
    seconds = seconds_of(lambda: tree.fit(dense, target, sample_weight=weight))
    return {"rows": X.shape[0], "milliseconds": 1000 * seconds}


def histogram_tree():
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, target, weight = expanded()
    dense = X.toarray()
    one = HistGradientBoostingRegressor(
        max_iter=1,
        max_leaf_nodes=N_LEAVES,
        learning_rate=1.0,
        min_samples_leaf=1,
        early_stopping=False,
    )
    two = HistGradientBoostingRegressor(
        max_iter=11,
        max_leaf_nodes=N_LEAVES,
        learning_rate=1e-9,
        min_samples_leaf=1,
        early_stopping=False,
    )
    # The difference of 11 and 1 iterations is the time of ten trees without binning.
    first = seconds_of(lambda: one.fit(dense, target, sample_weight=weight))
    more = seconds_of(lambda: two.fit(dense, target, sample_weight=weight))
    return {"rows": X.shape[0], "milliseconds": 100 * (more - first)}


if __name__ == "__main__":
    results = main(
        {
            "DecisionTreeRegressor": decision_tree,
            "HistGradientBoosting, per tree": histogram_tree,
            "seqlab": seqlab,
        }
    )
    if results:
        table(results, ["rows", "milliseconds"])
        keep("boosting", results)
