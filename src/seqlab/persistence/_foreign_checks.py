"""Checks of estimators of scikit-learn whose compiled code follows stored arrays without checks.

Most estimators of scikit-learn predict with NumPy, which raises an error for arrays that do not fit. Support
vector machines, nearest neighbours and k-means call compiled code with pointers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.errors import InputError
from seqlab.data.state_checks import check_named_estimators


def check_foreign(estimator: Any) -> None:
    """Raise an `InputError` if arrays of a fitted estimator do not belong together."""
    for kind in type(estimator).__mro__:
        check = _CHECKS.get(f"{kind.__module__}.{kind.__qualname__}")
        if check is not None:
            check(estimator)


def _check_libsvm(svm: Any) -> None:
    """Support vectors, their numbers per class and their coefficients, as libsvm reads them."""
    if not hasattr(svm, "support_vectors_"):
        return
    vectors, support = svm.support_vectors_, svm.support_
    n, n_features = vectors.shape
    counts = svm._n_support
    is_classifier = "classes_" in vars(svm)
    n_classes = len(svm.classes_) if is_classifier else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    n_rows = n_classes - 1
    _require(support.shape == (n,) and support.dtype == np.int32, "support_")
    _require(n_features == svm.n_features_in_ or svm.kernel == "precomputed", "support_vectors_")
    if sp.issparse(vectors):
        _require(vectors.format == "csr" and vectors.dtype == np.float64, "support_vectors_")
        _require(vectors.indices.dtype == np.int32, "support_vectors_")
    else:
        _require(vectors.dtype == np.float64 and vectors.flags.c_contiguous, "support_vectors_")
    _require(counts.dtype == np.int32 and counts.ndim == 1 and (counts >= 0).all(), "n_support_")
    if is_classifier:
        _require(counts.size == n_classes and int(counts.sum()) == n, "n_support_")
    for name in ("_dual_coef_", "dual_coef_"):
        coef = getattr(svm, name)
        _require(coef.shape == (n_rows, n) and coef.dtype == np.float64, name)
        if sp.issparse(coef):
            _require(coef.format == "csr", name)
    for name in ("_intercept_", "intercept_"):
        value = getattr(svm, name)
        _require(value.shape == (n_pairs,) and value.dtype == np.float64, name)
    for name in ("_probA", "_probB"):
        value = getattr(svm, name)
        sizes = (0, n_pairs) if is_classifier else (0, 1, n_pairs)
        _require(value.ndim == 1 and value.size in sizes and value.dtype == np.float64, name)
    _require(svm._probA.size >= svm._probB.size or not is_classifier, "_probB")
    _require(type(svm._sparse) is bool and svm._sparse == sp.issparse(vectors), "_sparse")


def _check_neighbors(model: Any) -> None:
    rows = getattr(model, "_fit_X", None)
    if rows is None:
        return
    _require(rows.ndim == 2 and rows.shape[1] == model.n_features_in_, "_fit_X")
    _require(rows.dtype.kind == "f" and model.n_samples_fit_ == rows.shape[0], "_fit_X")


def _check_kmeans(model: Any) -> None:
    centers = getattr(model, "cluster_centers_", None)
    if centers is None:
        return
    _require(isinstance(centers, np.ndarray) and centers.ndim == 2, "cluster_centers_")
    _require(centers.shape == (model.n_clusters, model.n_features_in_), "cluster_centers_")
    _require(centers.dtype.kind == "f", "cluster_centers_")


def _check_pipeline(pipeline: Any) -> None:
    check_named_estimators(pipeline.steps, "steps")
    check_named_estimators(pipeline.steps[:-1], "steps", "transform")
    _require(pipeline.steps, "steps")


def _check_union(union: Any) -> None:
    check_named_estimators(union.transformer_list, "transformer_list", "transform")


def _require(condition: Any, name: str) -> None:
    if not condition:
        raise InputError(f"{name} does not agree with its other attributes")


_CHECKS = {
    "sklearn.pipeline.FeatureUnion": _check_union,
    "sklearn.pipeline.Pipeline": _check_pipeline,
    "sklearn.svm._base.BaseLibSVM": _check_libsvm,
    "sklearn.neighbors._base.NeighborsBase": _check_neighbors,
    "sklearn.cluster._kmeans._BaseKMeans": _check_kmeans,
}
