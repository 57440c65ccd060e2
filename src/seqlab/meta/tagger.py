"""Tagger: features and labeler as one estimator.

Like `sklearn.pipeline.Pipeline`, but it also forwards what only labelers have (`predict_nbest`,
`sequence_log_proba`, constraints).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.models.crf import LinearChainCRF
from seqlab.utils.signals import signals_at_safe_points


def _labeler_has(name: str) -> Callable[[Tagger], bool]:
    def check(self: Tagger) -> bool:
        labeler = getattr(self, "labeler_", self.labeler)
        return hasattr(LinearChainCRF() if labeler is None else labeler, name)

    return check


def _warn_of_pair_templates(features: Any) -> None:
    """Warn if templates ask for features of label pairs, which labelers do not support."""
    richer = [text for text in getattr(features, "bigram_templates_", []) if "%" in text]
    if richer:
        warnings.warn(
            f"the template {richer[0]!r} asks for label pairs with observations, which is not supported: a "
            "label pair has one weight (LinearChainCRF(edge_features=True) adds one for each feature)",
            UserWarning,
            stacklevel=3,
        )


class Tagger(BaseEstimator):
    """Feature extraction and a labeler, as one estimator.

    Parameters
    ----------
    features : transformer or None, default=None
        Turns the input (tokens, lines, dicts) into the features of the labeler; None passes X on
        unchanged.
    labeler : labeler or None, default=None
        ``LinearChainCRF()`` if None.

    Attributes
    ----------
    features_ : transformer or None
        The fitted transformer.
    labeler_ : labeler
        The fitted labeler.
    classes_ : array of shape (n_labels,)
        The labeler's classes. ``n_iter_``, ``converged_`` and ``history_`` are the labeler's too.

    Notes
    -----
    Parameters of the parts are named ``features__...`` and ``labeler__...`` in `set_params` and
    grid searches.

    Examples
    --------
    >>> from seqlab import LinearChainCRF, SequenceVectorizer, Tagger
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}]]
    >>> y = [["DET", "NOUN"], ["NOUN"]]
    >>> tagger = Tagger(SequenceVectorizer(), LinearChainCRF(c2=0.1)).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    [array(['DET', 'NOUN'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "features": [HasMethods(["fit", "transform"]), None],
        "labeler": [HasMethods(["fit", "predict"]), None],
    }

    def __init__(self, features: Any = None, labeler: Any = None) -> None:
        self.features = features
        self.labeler = labeler

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        lengths: Any = None,
        groups: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Tagger:
        """Fit the transformer, then the labeler on the transformed data.

        Parameters
        ----------
        X : any input that ``features`` accepts
        y : list of label sequences
        sample_weight, lengths : passed on to the labeler
        groups : array of shape (n_sequences,), optional
            Passed on to the labeler, which must support it, as `StackedSequentialLearner` does.
        X_val, y_val : like X and y, optional
            Held-out sequences for early stopping, if the labeler supports it, as `LinearChainCRF` does. The
            transformer is not fitted on them.
        """
        features = None if self.features is None else clone(self.features)
        labeler = LinearChainCRF() if self.labeler is None else clone(self.labeler)
        with signals_at_safe_points():
            if features is not None:
                X = features.fit_transform(X, y)
                _warn_of_pair_templates(features)
                X_val = None if X_val is None else features.transform(X_val)
            options = {"sample_weight": sample_weight, "lengths": lengths}
            special = {"groups": groups, "X_val": X_val, "y_val": y_val}
            for name, value in special.items():
                if value is not None and not has_fit_parameter(labeler, name):
                    raise InputError(f"{type(labeler).__name__} does not support {name}")
            options |= special
            try:
                labeler.fit(X, y, **{k: v for k, v in options.items() if v is not None})
            finally:
                # Also after an interrupt that left a usable labeler; after an error the earlier one stays.
                if hasattr(labeler, "classes_"):
                    self.features_, self.labeler_ = features, labeler
        return self

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if not state_checks.has_fitted_attributes(self):
            return
        features, labeler = self.features_, self.labeler_
        state_checks.require(
            hasattr(labeler, "classes_") and hasattr(labeler, "predict"), "labeler_"
        )
        if features is not None:
            state_checks.require(hasattr(features, "transform"), "features_")
            n_features = getattr(features, "n_features_out_", None)
            if n_features is not None:
                state_checks.require(labeler.n_features_in_ == n_features, "labeler_")

    @property
    def classes_(self) -> Any:
        """The labeler's classes."""
        return self.labeler_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features that the transformer, or else the labeler, saw during fit."""
        check_is_fitted(self, "labeler_")
        first = self.labeler_ if self.features_ is None else self.features_
        return first.n_features_in_

    @property
    def n_iter_(self) -> Any:
        """Number of iterations of the labeler."""
        return self.labeler_.n_iter_

    @property
    def converged_(self) -> Any:
        """Whether the labeler's training converged."""
        return self.labeler_.converged_

    @property
    def history_(self) -> Any:
        """The labeler's training history."""
        return self.labeler_.history_

    def predict(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the labels of each sequence; see the labeler's `predict`."""
        return self._call_labeler("predict", X, lengths=lengths, constraints=constraints)

    @available_if(_labeler_has("predict_proba"))
    def predict_proba(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the probability of each label at each step; see the labeler's `predict_proba`."""
        return self._call_labeler("predict_proba", X, lengths=lengths, constraints=constraints)

    @available_if(_labeler_has("predict_nbest"))
    def predict_nbest(
        self, X: Any, n: int = 5, *, lengths: Any = None, constraints: Any = None
    ) -> Any:
        """Return the ``n`` best labelings of each sequence; see the labeler's `predict_nbest`."""
        return self._call_labeler("predict_nbest", X, n, lengths=lengths, constraints=constraints)

    @available_if(_labeler_has("decision_function"))
    def decision_function(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the score of each label at each step; see the labeler's `decision_function`."""
        return self._call_labeler("decision_function", X, lengths=lengths, constraints=constraints)

    @available_if(_labeler_has("sequence_log_proba"))
    def sequence_log_proba(self, X: Any, y: Any, *, lengths: Any = None) -> Any:
        """Return the log-probability of each labeling; see the labeler's `sequence_log_proba`."""
        return self._call_labeler("sequence_log_proba", X, y, lengths=lengths)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None) -> float:
        """Return the token accuracy; see the labeler's `score`."""
        return self._call_labeler("score", X, y, sample_weight=sample_weight, lengths=lengths)

    def _call_labeler(self, method: str, X: Any, *args: Any, **options: Any) -> Any:
        """Call a method of the labeler on transformed X, with the options that are not None."""
        check_is_fitted(self, "labeler_")
        if self.features_ is not None:
            X = self.features_.transform(X)
        given = {name: value for name, value in options.items() if value is not None}
        return getattr(self.labeler_, method)(X, *args, **given)
