"""Learners and data for the tests of stacked sequential learning."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB


class Counting(ClassifierMixin, BaseEstimator):
    """Gaussian naive Bayes that records the shape of the data of each fit."""

    calls: list[tuple[int, int]] = []

    def fit(self, X, y, sample_weight=None):
        type(self).calls.append(X.shape)
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


class Watching(Counting):
    """Records which values of the first column, the origin of a row, occur in both fit and prediction."""

    overlaps: list[set[float]] = []

    def fit(self, X, y, sample_weight=None):
        self.known_ = set(X[:, 0])
        return super().fit(X, y)

    def predict_proba(self, X):
        type(self).overlaps.append(self.known_ & set(X[:, 0]))
        return super().predict_proba(X)


class Oracle(ClassifierMixin, BaseEstimator):
    """Predicts the last column of narrow data; on wider data it is a logistic regression without it."""

    def __init__(self, width=4):
        self.width = width

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.inner_ = None
        if X.shape[1] > self.width:  # without the column that holds the label
            self.inner_ = LogisticRegression().fit(np.delete(X, self.width - 1, axis=1), y)
        return self

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def predict_proba(self, X):
        if self.inner_ is not None:
            return self.inner_.predict_proba(np.delete(X, self.width - 1, axis=1))
        return np.eye(self.classes_.size)[X[:, -1].astype(int)]


def random_sequences(n_labels=3, n_sequences=12, seed=0):
    random = np.random.default_rng(seed)
    y = [np.sort(random.integers(0, n_labels, size=6 + i % 4)) for i in range(n_sequences)]
    y[0][:n_labels] = np.arange(n_labels)  # every label occurs
    X = [np.eye(n_labels)[labels] + random.normal(size=(labels.size, n_labels)) for labels in y]
    return X, y


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


# ----- C5 of the specification
