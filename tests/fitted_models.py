"""Small fitted models of all estimators, for the tests that damage their files.

`NEW_MODELS` has the estimators that the stored files of older versions (tests/fixtures) do not have; the
labelers of tests/conformance.py are added by `fitted_models`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

import seqlab
from conformance import LABELERS, make_data
from seqlab.data import Graph
from seqlab.kernels import KernelFeatures

Fitted = tuple[Any, Any]  # a model, and what it can predict


def numbers() -> tuple[Any, Any]:
    """Return sequences of vectors."""
    X, y = make_data()
    return X[:6], y[:6]


def bags() -> tuple[Any, Any]:
    """Return sequences of bags of atoms."""
    rows = np.random.default_rng(0).integers(0, 4, size=(8, 5))
    X = [[[f"use(object{k})", "at(kitchen)"][: 1 + k % 2] for k in row] for row in rows]
    return X, [["new", *np.where(row[1:] == row[:-1], "again", "new")] for row in rows]


def graphs() -> tuple[Any, Any]:
    """Return graphs with two types of edges."""
    random = np.random.default_rng(1)
    X, y = [], []
    for _ in range(4):
        labels = random.integers(0, 3, size=6)
        features = random.normal(size=(6, 3)) + np.eye(3)[labels]
        edges = np.array([random.choice(6, size=2, replace=False) for _ in range(7)])
        types = random.choice(["cites", "near"], size=len(edges))
        X.append(Graph(features, edges, types))
        y.append(labels.tolist())
    return X, y


def _fit(model: Any, data: Callable[[], tuple[Any, Any]], method: str = "fit") -> Fitted:
    X, y = data()
    return getattr(model, method)(X, y), X[:3]


_KERNEL = seqlab.SubsequenceKernel(2, window=(1, 1))
_QUICK = {"max_iter": 4}
NEW_MODELS: dict[str, Callable[[], Fitted]] = {
    "M3N": lambda: _fit(seqlab.M3N(**_QUICK), numbers),
    "M3N-edges": lambda: _fit(seqlab.M3N(edge_features=True, normalize=True, **_QUICK), bags),
    "M3N-poly": lambda: _fit(seqlab.M3N(kernel="poly", edge_features=True, **_QUICK), bags),
    "M3N-rbf": lambda: _fit(seqlab.M3N(kernel="rbf", **_QUICK), numbers),
    "StructuredSVM": lambda: _fit(seqlab.StructuredSVM(**_QUICK), bags),
    "StructuredSVM-subsequences": lambda: _fit(
        seqlab.StructuredSVM(kernel=_KERNEL, **_QUICK), bags
    ),
    "KernelFeatures": lambda: _fit(
        make_pipeline(KernelFeatures(_KERNEL, max_rank=5), seqlab.LinearChainCRF(max_iter=5)),
        numbers,
    ),
    "GraphCRF": lambda: _fit(seqlab.GraphCRF(max_iter=5), graphs),
    "GraphM3N": lambda: _fit(seqlab.GraphM3N(**_QUICK), graphs),
    "BoostedCRF": lambda: _fit(seqlab.BoostedCRF(max_iter=3), bags),
    "BoostedCRF-categories": lambda: _fit(
        seqlab.BoostedCRF(max_iter=3, order=0, categorical_features=[1]),
        lambda: ([np.abs(np.round(x)) for x in numbers()[0]], numbers()[1]),
    ),
    "RelationalBoostedCRF": lambda: _fit(
        seqlab.RelationalBoostedCRF(max_iter=3, window=(1, 0)), bags
    ),
    "StructHKL": lambda: _fit(seqlab.StructHKL(C=20, tol=0.1), bags),
    "PatternHKL": lambda: _fit(
        seqlab.PatternHKL(C=20, window=(1, 0), min_support=4, tol=0.1), bags
    ),
    "SequentialOutputCode": lambda: _fit(
        seqlab.SequentialOutputCode(seqlab.LinearChainCRF(max_iter=5), random_state=0), bags
    ),
    "SequentialOutputCode-cascade": lambda: _fit(
        seqlab.SequentialOutputCode(
            seqlab.StructuredPerceptron(max_iter=2), cascade=2, decoding="hamming", random_state=0
        ),
        numbers,
    ),
    "SequentialOutputCode-classifier": lambda: _fit(
        seqlab.SequentialOutputCode(BernoulliNB(), random_state=0), numbers
    ),
}


def fitted_models() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, model and input of `NEW_MODELS` and of every labeler of the conformance tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        for name, make in NEW_MODELS.items():
            yield name, *make()
        for entry in LABELERS:
            model, X = _fit(clone(entry.estimator), numbers)
            yield f"conformance-{entry.id}", model, X
