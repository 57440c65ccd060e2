"""A classifier whose posteriors are written down, for tests of what is built on posteriors."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Lookup(ClassifierMixin, BaseEstimator):
    """``predict_proba`` of a row is the entry of ``table`` that its first feature numbers.

    Columns of the table are the classes seen in training, or all of ``labels`` where given.
    """

    def __init__(self, table=None, labels=None):
        self.table = table
        self.labels = labels

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        rows = np.asarray(self.table, dtype=float)[np.asarray(X)[:, 0].astype(int)]
        if self.labels is None:
            return rows
        rows = rows[:, [list(self.labels).index(label) for label in self.classes_]]
        with np.errstate(invalid="ignore"):
            return rows / rows.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
