"""Word vectors beside strings: what unlabelled text adds to few labelled sequences.

Word vectors are computed from addresses without labels (how often words occur near each other, reduced to a
few dimensions), and joined with the features of `Templates`. A transformer for a `SequenceUnion` may return a
list of arrays, one per sequence: vectors of any other origin are added in the same way.
"""

from collections import Counter

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD

from seqlab import LinearChainCRF, Tagger, Templates
from seqlab.datasets import make_addresses
from seqlab.features import SequenceUnion
from seqlab.metrics import span_f1


class WordVectors(TransformerMixin, BaseEstimator):
    """Look up the vector of each word; unknown words get zeros."""

    def __init__(self, index, vectors):
        self.index = index
        self.vectors = vectors

    def fit(self, X, y=None):
        """Do nothing: the vectors are given."""
        return self

    def transform(self, X):
        """Return one array of vectors per sequence."""
        table = np.vstack([self.vectors, np.zeros(self.vectors.shape[1])])
        return [table[[self.index.get(word.lower(), -1) for (word,) in sequence]] for sequence in X]

    def get_feature_names_out(self, input_features=None):
        """Names of the dimensions."""
        return np.array([f"v{k}" for k in range(self.vectors.shape[1])], dtype=object)


def word_vectors(X, n_dimensions=30, window=2, min_count=2):
    """Vectors from positive pointwise mutual information with the neighbours on each side."""
    words = [[word.lower() for (word,) in sequence] for sequence in X]
    counts = Counter(word for sequence in words for word in sequence)
    frequent = sorted(word for word, n in counts.items() if n >= min_count)
    index = {word: i for i, word in enumerate(frequent)}
    n_words, pairs = len(index), Counter()
    for sequence in words:
        codes = [index.get(word, -1) for word in sequence]
        for t, code in enumerate(codes):
            for lag in range(1, min(window, len(codes) - 1 - t) + 1):
                if code >= 0 and codes[t + lag] >= 0:
                    pairs[code, codes[t + lag] + n_words] += 1  # after a word
                    pairs[codes[t + lag], code] += 1  # before a word
    places = np.array(list(pairs))
    n = np.array(list(pairs.values()), dtype=float)
    of_word = np.bincount(places[:, 0], n, n_words)[places[:, 0]]
    of_neighbour = np.bincount(places[:, 1], n, 2 * n_words)[places[:, 1]]
    information = np.maximum(np.log(n * n.sum() / (of_word * of_neighbour)), 0.0)
    matrix = sp.csr_matrix((information, places.T), shape=(n_words, 2 * n_words))
    vectors = TruncatedSVD(n_dimensions, random_state=0).fit_transform(matrix)
    return index, vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def main():
    unlabelled, _ = make_addresses(4000, random_state=1, return_X_y=True)
    X, y = make_addresses(1060, random_state=0, return_X_y=True)
    X_train, y_train, X_test, y_test = X[:60], y[:60], X[60:], y[60:]
    vectors = WordVectors(*word_vectors(unlabelled))
    features = {
        "strings": Templates.default(),
        "strings and vectors": SequenceUnion([("text", Templates.default()), ("word", vectors)]),
    }
    for name, transformer in features.items():
        tagger = Tagger(transformer, LinearChainCRF(c2=0.05)).fit(X_train, y_train)
        print(f"{name:20} F1 {span_f1(y_test, tagger.predict(X_test)):.3f}")


if __name__ == "__main__":
    main()
