r"""TemperedClassifier: temperature scaling of class probabilities.

Naive Bayes counts the same evidence once per overlapping feature, so its posteriors are close to 0 or 1 even
if it is wrong; a model that multiplies posteriors along a sequence then repeats its worst errors. Dividing
log-posteriors by a temperature,

    P_T(c | x) \propto P(c | x)^{1 / T} ,

keeps the order of the classes and reduces all log-odds by the same factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils import get_tags, indexable
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Integral, Interval, Real, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.learning import unchanged_on_failure

# Replaces the logarithm of a posterior that is exactly 0.
_LOG_OF_ZERO = float(np.log(np.finfo(np.float64).tiny))
# Range of log-temperatures for "auto": temperatures from 1/6 to 8,000.
_LOG_TEMPERATURES = (-1.8, 9.0)


class TemperedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Temperature scaling: a classifier whose log-posteriors are divided by a temperature.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=None
        None stands for ``MultinomialNB()``.
    temperature : "auto" or float, default="auto"
        Above 1, the classifier becomes less confident; below 1, more confident. "auto" selects the
        temperature with the highest likelihood on held-out folds of the training data.
    cv : int, splitter or iterable of (train, test) indices, default=3
        Folds for "auto".
    max_log_odds : float, optional
        Largest difference between the log-posterior of the best class and of any other, after scaling.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all the data.
    temperature_ : float
        The temperature in use.
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
        If the classifier has this attribute.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : other calibration methods. Its ``method="temperature"``
        starts from posteriors, which for naive Bayes are already rounded to 0 and 1.

    Notes
    -----
    The likelihood is concave in ``1 / temperature``. If ``cv`` is a number, folds are stratified and keep the
    order of the data, so that neighbouring steps of a sequence are mostly in the same fold; examples of a
    class with fewer members than folds are in every training part. Held-out examples of a class that the
    training part does not have are not scored; if no example can be scored, the temperature is 1.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> from seqlab import TemperedClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> once = (rng.random(200) < np.where(y, 0.7, 0.3))[:, None]
    >>> X = np.repeat(once, 20, axis=1)          # the same feature twenty times
    >>> BernoulliNB().fit(X, y).predict_proba(X).max() > 0.9999
    np.True_
    >>> model = TemperedClassifier(BernoulliNB()).fit(X, y)
    >>> round(float(model.predict_proba(X).max()), 2), round(model.temperature_)
    (0.7, 21)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "temperature": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
        "max_log_odds": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        temperature: float | str = "auto",
        cv: Any = 3,
        max_log_odds: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.temperature = temperature
        self.cv = cv
        self.max_log_odds = max_log_odds

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TemperedClassifier:
        """Fit the classifier, and choose the temperature.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            For the classifier, which must accept it, and for the choice of the temperature.
        """
        with unchanged_on_failure(self):
            X, y = indexable(X, y)
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            inner = self._inner_classifier()
            if sample_weight is not None:
                if not has_fit_parameter(inner, "sample_weight"):
                    raise InputError(f"{type(inner).__name__} does not accept sample_weight")
                sample_weight = _check_sample_weight(sample_weight, X)
            self.estimator_ = _fit_clone(inner, X, y, sample_weight)
            self.classes_ = self.estimator_.classes_
            if self.temperature == "auto":
                self.temperature_ = self._choose_temperature(inner, X, y, sample_weight)
            else:
                self.temperature_ = float(self.temperature)
        return self

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if not state_checks.has_fitted_attributes(self):
            return
        n_classes = state_checks.check_classes(self.classes_)
        state_checks.check_number(self.temperature_, "temperature_", 1e-300)
        state_checks.probe_classifier(self.estimator_, self.estimator_.n_features_in_, n_classes)
        labels = np.asarray(self.estimator_.classes_).tolist()
        state_checks.require(labels == self.classes_.tolist(), "classes_")

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Scaled log-posteriors, shape (n_samples, n_classes).

        Parameters
        ----------
        X : see `fit`
        """
        check_is_fitted(self)
        scores = _log_posteriors(self.estimator_, X) / self.temperature_
        if self.max_log_odds is not None:
            scores = np.maximum(scores, scores.max(axis=1, keepdims=True) - self.max_log_odds)
        return _normalise(scores)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Scaled posteriors, shape (n_samples, n_classes).

        Parameters
        ----------
        X : see `fit`
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the highest posterior, which does not depend on the temperature.

        Parameters
        ----------
        X : see `fit`
        """
        check_is_fitted(self)
        best = np.argmax(_log_posteriors(self.estimator_, X), axis=1)
        return self.classes_[best]

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the classifier."""
        return self.estimator_.n_features_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "temperature_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner_classifier())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if inner.classifier_tags is not None:
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def _inner_classifier(self) -> Any:
        return MultinomialNB() if self.estimator is None else self.estimator

    def _choose_temperature(self, inner: Any, X: Any, y: NDArray[Any], sample_weight: Any) -> float:
        """Return the temperature with the highest held-out likelihood."""
        codes = np.searchsorted(self.classes_, y)
        weight = np.ones(codes.size) if sample_weight is None else sample_weight
        parts = []
        for train, test in self._folds(X, codes):
            own = None if sample_weight is None else sample_weight[train]
            model = _fit_clone(inner, _safe_indexing(X, train), y[train], own)
            gold = np.searchsorted(model.classes_, y[test])
            known = model.classes_[np.minimum(gold, model.classes_.size - 1)] == y[test]
            scores = _log_posteriors(model, _safe_indexing(X, test))[known]
            parts.append((scores, gold[known], weight[test][known]))

        def loss(log_temperature: float) -> float:
            return -sum(
                float(
                    weights @ _normalise(scores / np.exp(log_temperature))[range(gold.size), gold]
                )
                for scores, gold, weights in parts
            )

        if all(gold.size == 0 for _, gold, _ in parts):
            return 1.0
        best = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded")
        return float(np.exp(best.x))

    def _folds(self, X: Any, codes: NDArray[np.int64]) -> Iterable[tuple[Any, Any]]:
        if not isinstance(self.cv, Integral):
            yield from check_cv(self.cv, codes, classifier=True).split(X, codes)
            return
        sizes = np.bincount(codes)
        scored = np.flatnonzero(sizes[codes] >= self.cv)
        always = np.flatnonzero(sizes[codes] < self.cv)
        if scored.size:
            for kept, held in StratifiedKFold(self.cv).split(scored, codes[scored]):
                yield np.sort(np.concatenate([scored[kept], always])), scored[held]


def _fit_clone(inner: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    return clone(inner).fit(X, y, **options)


def _log_posteriors(model: Any, X: Any) -> NDArray[np.float64]:
    """Return finite log-posteriors, from the model itself if it has them: probabilities underflow."""
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            found = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        else:
            found = np.log(model.predict_proba(X))
    if np.isnan(found).any():
        row = int(np.argmax(np.isnan(found).any(axis=1)))
        raise InputError(f"{type(model).__name__} gave NaN as a posterior of row {row}")
    zero = np.isneginf(found)
    if zero.any():  # replaced by the smallest finite value
        found = np.where(zero, np.min(found, where=~zero, initial=_LOG_OF_ZERO), found)
    return found


def _normalise(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
