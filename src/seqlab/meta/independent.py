"""IndependentLabeler: any scikit-learn classifier, applied to each step independently.

The steps of all sequences are the classifier's samples; neighbouring steps are not used. It is the baseline
of every sequential method, and the inner learner of some (stacking, output codes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores
from seqlab.learning import TrainingData
from seqlab.models.chain_labeler import ChainLabeler, DistributionMixin


def _has_proba(self: IndependentLabeler) -> bool:
    inner = getattr(self, "estimator_", self.estimator)
    return inner is None or hasattr(inner, "predict_proba")


def _has_scores(self: IndependentLabeler) -> bool:
    inner = getattr(self, "estimator_", self.estimator)
    return _has_proba(self) or hasattr(inner, "decision_function")


class IndependentLabeler(DistributionMixin, ChainLabeler):
    """Label each step independently with a scikit-learn classifier.

    The probability of a labeling is the product of the classifier's probabilities.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        ``LogisticRegression(max_iter=1000)`` if None.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    uses_codes_ : bool
        Whether it was trained on label codes instead of labels.
    classes_ : array of shape (n_labels,)

    See Also
    --------
    LinearChainCRF : the same features, with transitions.

    Notes
    -----
    Methods exist if the classifier supports them: `predict_proba` and `sequence_log_proba` need its
    ``predict_proba``; `predict_nbest`, `decision_function` and constraints need that or its
    ``decision_function``.

    Examples
    --------
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> from seqlab import IndependentLabeler
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dog"], ["w=barks"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> labeler = IndependentLabeler(BernoulliNB()).fit(X, y)
    >>> labeler.predict([[["w=dog"]]])
    [array(['NOUN'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None]
    }

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
    ) -> IndependentLabeler:
        """Fit the classifier on all steps.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
            The classifier must support sample weights.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> None:
        inner = LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator
        if is_regressor(inner):
            raise InputError(f"{type(inner).__name__} is a regressor; labels need a classifier")
        self.estimator_ = clone(inner)
        options = {}
        if data.is_weighted:
            if not has_fit_parameter(self.estimator_, "sample_weight"):
                name = type(self.estimator_).__name__
                raise InputError(f"{name} does not support sample_weight")
            options["sample_weight"] = data.step_weights
        # The user's labels (class weights refer to them), except for types that a classifier could
        # misread: it takes floats that are not integers for regression targets.
        self.uses_codes_ = self.classes_.dtype.kind not in "biuU"
        labels = data.codes if self.uses_codes_ else self.classes_[data.codes]
        try:
            self.estimator_.fit(data.X.matrix, labels, **options)
        except ValueError as error:
            if self.classes_.size > 1:
                raise
            only, name = self.classes_.tolist()[0], type(self.estimator_).__name__
            raise InputError(f"y has only one class ({only!r}); {name} needs two") from error

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels = self.classes_.size
        state_checks.check_type(self.uses_codes_, "uses_codes_", bool, np.bool_)
        labels = self.classes_.tolist()
        state_checks.require(labels == sorted(labels), "classes_")
        label = state_checks.probe_classifier(self.estimator_, self.n_features_in_)
        known = np.arange(n_labels) if self.uses_codes_ else self.classes_
        found = getattr(self.estimator_, "classes_", label)
        state_checks.require(set(np.asarray(found).tolist()) <= set(known.tolist()), "estimator_")
        state_checks.require(label.tolist()[0] in known.tolist(), "estimator_")
        if _has_scores(self) and n_labels > 1:
            row = np.zeros((1, self.n_features_in_))
            state_checks.require(self._step_scores(row).shape == (1, n_labels), "estimator_")

    def _predict(self, X: Sequences, mask: Any = None) -> NDArray[np.int64]:
        if mask is not None:
            if not _has_scores(self):
                name = type(self.estimator_).__name__
                raise InputError(f"constraints need scores, but {name} does not provide any")
            return super()._predict(X, mask)
        if X.n_steps == 0:
            return np.zeros(0, dtype=np.int64)
        found = self.estimator_.predict(X.matrix)
        return found.astype(np.int64) if self.uses_codes_ else np.searchsorted(self.classes_, found)

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        n_labels = self.classes_.size
        unary = np.zeros((0, n_labels))
        if block.n_steps > 0:
            unary = self._step_scores(block.matrix[block.steps])
        return ChainScores(unary, np.zeros((n_labels, n_labels)), offsets=block.offsets)

    def _step_scores(self, matrix: Any) -> NDArray[np.float64]:
        """Return log-probabilities if the classifier has them, else its decision values."""
        if hasattr(self.estimator_, "predict_proba"):
            with np.errstate(divide="ignore"):
                return np.log(self.estimator_.predict_proba(matrix))
        decision = self.estimator_.decision_function(matrix)
        return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision

    predict_proba = available_if(_has_proba)(DistributionMixin.predict_proba)
    sequence_log_proba = available_if(_has_proba)(DistributionMixin.sequence_log_proba)
    predict_nbest = available_if(_has_scores)(ChainLabeler.predict_nbest)

    @available_if(_has_scores)
    def decision_function(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the score of each label at each step: log-probabilities, or decision values.

        Up to a constant per sequence these are the max-marginals of the other labelers. Under
        constraints they are exactly the max-marginals.

        Parameters
        ----------
        X, lengths, constraints : see `predict`
        """
        if constraints is not None:
            return super().decision_function(X, lengths=lengths, constraints=constraints)
        sequences, layout = self._read(X, lengths)
        blocks = self._run(sequences, lambda scores, *_: scores.unary, None)
        stacked = np.concatenate([np.zeros((0, self.classes_.size)), *blocks])
        return layout.restore(stacked, sequences.offsets)
