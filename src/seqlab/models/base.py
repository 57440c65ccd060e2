"""BaseLabeler: input conversion and scoring, which all labelers share.

`fit` converts X and y once (to `Sequences` and label codes) and checks the weights, then calls `_learn` with
`TrainingData`; prediction converts X, checks its features against those of `fit`, then calls `_predict`.
Subclasses see only the internal form; meta-learners call `_fit_prepared` and `_predict` on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from seqlab.data import state_checks
from seqlab.data.convert import Layout, as_sequences, is_frame
from seqlab.data.errors import InputError
from seqlab.data.labels import (
    PARTIAL,
    UNSEEN,
    EncodedLabels,
    Place,
    encode_labels,
    sequence_weights,
)
from seqlab.data.sequences import Sequences
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.learning import (
    EarlyStopping,
    FitResult,
    TrainingData,
    run_fit,
    split_off_validation,
    unchanged_on_failure,
)
from seqlab.optim import FitState
from seqlab.utils.stack import stack_level_of_caller

# Constraints of the parameters that limit an iterative fit, and of those for early stopping; `_train` uses
# the parameters that an estimator has.
LIMIT_CONSTRAINTS: dict[str, list[Any]] = {
    "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
    "callback": [callable, None],
}
EARLY_STOPPING_CONSTRAINTS: dict[str, list[Any]] = {
    "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}


class BaseLabeler(BaseEstimator):
    """Base class of all labelers: input, labels, scoring.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen during fit.
    vectorizer_ : SequenceVectorizer or None
        Turns dicts and bags of strings into columns; None if X was numeric.
    transition_counts_ : int64 array of shape (n_labels, n_labels)
        How often one label (row) was followed by another (column) in training.
    start_counts_ : int64 array of shape (n_labels,)
        How often each label came first.
    """

    # Whether fit supports unknown (None) and partly known (set) labels.
    _accepts_partial_labels = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # No classifier tag: with it, an integer `cv` would reject sequence targets.
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        lengths: Any,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Convert and check the arguments of `fit`, then learn; an error leaves the estimator unchanged."""
        with unchanged_on_failure(self):
            data = self._read_training(X, y, sample_weight, lengths)
            if X_val is not None or y_val is not None:
                data = replace(data, validation=self._read_validation(X_val, y_val))
            result = self._learn(self._hold_out(data))
        if result is not None:
            result.conclude()
        return self

    def _fit_prepared(self, data: TrainingData) -> Self:
        """Learn from data that a meta-learner has already converted and checked."""
        with unchanged_on_failure(self):
            self.vectorizer_ = None
            self.n_features_in_ = data.X.n_features
            self._set_labels(data)
            result = self._learn(self._hold_out(data))
        if result is not None:
            result.conclude()
        return self

    def _learn(self, data: TrainingData) -> FitResult | None:
        """Learn from prepared data; every labeler implements this method.

        An iterative labeler stores the result of its fit and returns it; the caller then calls
        ``result.conclude()``, which raises a pending interrupt or warns.
        """
        raise NotImplementedError

    def _hold_out(self, data: TrainingData) -> TrainingData:
        """Split off the proportion ``validation_fraction`` of the sequences, if that parameter is set."""
        fraction = getattr(self, "validation_fraction", None)
        if fraction is None or data.validation is not None:
            return data
        random = check_random_state(getattr(self, "random_state", None))
        training, validation = split_off_validation(data, fraction, random)
        self._set_labels(training)
        return replace(training, validation=validation)

    def _train(
        self,
        states: Iterable[FitState],
        data: TrainingData,
        store: Callable[[Any], None],
        *,
        copy: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> FitResult:
        """Run an iterative learner within the limits that the parameters set, and store its result.

        Parameters
        ----------
        states : iterable of FitState
            One per full iteration.
        data : TrainingData
            What the learner is trained on; its ``validation`` part is for early stopping.
        store : callable
            Sets the fitted attributes from the ``point`` of a state.
        copy : callable, optional
            Returns what ``store`` takes, if ``point`` is an object that later iterations change.
        **options
            Of `run_fit`.
        """
        stopping = self._early_stopping(data, store, copy)
        result = run_fit(
            states,
            title=type(self).__name__,
            max_iter=self.max_iter,
            verbose=getattr(self, "verbose", False),
            max_seconds=getattr(self, "max_seconds", None),
            callback=getattr(self, "callback", None),
            early_stopping=stopping,
            **options,
        )
        point = result.state.point
        store(copy(point) if copy is not None and stopping is None else point)
        if stopping is None and hasattr(self, "validation_fraction"):
            self.best_iteration_ = self.best_validation_score_ = None
        result.report_to(self)
        return result

    def _early_stopping(
        self,
        data: TrainingData,
        store: Callable[[Any], None],
        copy: Callable[[Any], Any] | None,
    ) -> EarlyStopping | None:
        """Return an object that scores iterations by their accuracy on held-out data, if there are any."""
        held_out = data.validation
        if held_out is None:
            return None
        is_known = held_out.codes != PARTIAL
        gold, weights = held_out.codes[is_known], held_out.step_weights[is_known]
        if not weights.any():
            raise InputError("the held-out sequences have no known label with a positive weight")

        def score(point: Any) -> float:
            store(point)
            return float(np.average(self._predict(held_out.X)[is_known] == gold, weights=weights))

        return EarlyStopping(score, getattr(self, "n_iter_no_change", 5), copy=copy)

    def _set_labels(self, data: TrainingData) -> None:
        """Set the attributes that are derived from the labels."""
        self.classes_ = data.classes
        self.transition_counts_, self.start_counts_ = data.count_transitions()

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels = state_checks.check_classes(self.classes_)
        state_checks.check_int(self.n_features_in_, "n_features_in_", 1)
        if "transition_counts_" in vars(self):
            shape = (n_labels, n_labels)
            state_checks.check_array(self.transition_counts_, "transition_counts_", shape, "i")
            state_checks.check_array(self.start_counts_, "start_counts_", (n_labels,), "i")
        if "feature_names_in_" in vars(self):
            names = self.feature_names_in_
            state_checks.check_array(names, "feature_names_in_", (self.n_features_in_,), "OU")
        if self.vectorizer_ is not None:
            n_columns = self._vectorizer_columns()
            state_checks.require(n_columns == self.n_features_in_, "vectorizer_")

    def _vectorizer_columns(self) -> int:
        """Return the number of columns of the vectorizer, which must be of the right type."""
        vectorizer = state_checks.check_type(self.vectorizer_, "vectorizer_", SequenceVectorizer)
        return len(vectorizer.vocabulary_)

    def _new_vectorizer(self) -> Any:
        """Return a transformer that turns symbolic X into numbers."""
        return SequenceVectorizer(n_jobs=getattr(self, "n_jobs", None))

    def _allows_missing(self) -> bool:
        """Return whether NaN may mark a missing number; the labeler must then reject infinity itself."""
        return False

    def _read_training(self, X: Any, y: Any, sample_weight: Any, lengths: Any) -> TrainingData:
        """Convert and check the arguments of `fit`; set the attributes that every labeler has."""
        sequences, layout = self._read_training_features(X, y, lengths)
        labels = encode_labels(
            y, sequences.offsets, stacked=not layout.is_list, partial=self._accepts_partial_labels
        )
        weights, step_weights = sequence_weights(sample_weight, sequences.offsets)
        data = TrainingData(
            sequences,
            labels.codes,
            labels.classes,
            labels.allowed,
            weights,
            step_weights,
            sample_weight is not None,
        )
        self._set_labels(data)
        return data

    def _read_validation(self, X_val: Any, y_val: Any) -> TrainingData:
        """Convert and check held-out sequences, after `_read_training`."""
        if X_val is None or y_val is None:
            raise InputError("X_val and y_val must be given together")
        try:
            X, layout = self._read(X_val)
        except ValueError as error:
            raise InputError(f"X_val: {error}") from None
        partial = self._accepts_partial_labels
        labels = self._read_labels(y_val, X, layout, partial=partial, name="y_val")
        unseen = np.flatnonzero(labels.codes == UNSEEN)
        if unseen.size:
            first = Place("y_val", X.offsets)(int(unseen[0]))
            warnings.warn(
                f"{unseen.size} of {X.n_steps} labels of y_val do not occur in y, the first at {first}; they "
                "count as errors in the validation score",
                stacklevel=stack_level_of_caller(),
            )
        ones, codes, allowed = np.ones(len(X)), labels.codes, labels.allowed
        return TrainingData(X, codes, self.classes_, allowed, ones, np.ones(X.n_steps))

    def _read_training_features(self, X: Any, y: Any, lengths: Any) -> tuple[Sequences, Layout]:
        """Convert and check the X that was passed to `fit` together with y."""
        if y is None:
            name = type(self).__name__
            raise InputError(f"{name} requires y to be passed, but the target y is None")
        vectorizer = self._new_vectorizer()
        sequences, layout = as_sequences(
            X,
            lengths,
            vectorizer=vectorizer,
            fit_vectorizer=True,
            check_finite=not self._allows_missing(),
        )
        empty = np.flatnonzero(sequences.lengths == 0)
        if empty.size:
            raise InputError(f"X[{empty[0]}] is empty: a training sequence needs at least one step")
        if sequences.n_features == 0:
            raise InputError(
                f"Found array with 0 feature(s) (shape=({sequences.n_steps}, 0)) while a minimum of "
                f"1 is required by {type(self).__name__}."
            )
        self.vectorizer_ = vectorizer if layout.symbolic else None
        self._check_features(X, sequences, reset=True)
        return sequences, layout

    def _read(self, X: Any, lengths: Any = None) -> tuple[Sequences, Layout]:
        """Convert X for prediction and check it against the features of `fit`."""
        check_is_fitted(self)
        sequences, layout = as_sequences(
            X, lengths, vectorizer=self.vectorizer_, check_finite=not self._allows_missing()
        )
        if layout.empty:  # sequences without steps: there are no features to check
            return Sequences(np.zeros((0, self.n_features_in_)), sequences.offsets), layout
        if self.vectorizer_ is not None and not (layout.symbolic or isinstance(X, Sequences)):
            name = type(self).__name__
            raise InputError(f"this {name} was fitted on dicts or strings, but X holds numbers")
        self._check_features(X, sequences, reset=False)
        return sequences, layout

    def _read_labels(
        self, y: Any, X: Sequences, layout: Layout, *, partial: bool = False, name: str = "y"
    ) -> EncodedLabels:
        """Return the codes of labels among the known classes (negative for unseen labels)."""
        return encode_labels(
            y,
            X.offsets,
            stacked=not layout.is_list,
            classes=self.classes_,
            partial=partial,
            name=name,
        )

    def _check_features(self, X: Any, sequences: Sequences, *, reset: bool) -> None:
        source = sequences
        if self.vectorizer_ is None:
            first = X[0] if isinstance(X, list | tuple) and len(X) else X
            source = first if is_frame(first) else sequences
        validate_data(self, source, reset=reset, skip_check_array=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None) -> float:
        """Return the token accuracy: the proportion of steps whose label is right.

        Labels that were not seen in training count as errors.

        Parameters
        ----------
        X : see `fit`
        y : list of label sequences
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
        lengths : list of int, optional
            Steps per sequence, if X is one stacked matrix.
        """
        sequences, layout = self._read(X, lengths)
        gold = self._read_labels(y, sequences, layout).codes
        predicted = self._predict(sequences)
        _, weights = sequence_weights(sample_weight, sequences.offsets)
        if weights.size == 0:
            raise InputError("X has no steps to score")
        return float(np.average(gold == predicted, weights=weights))

    def _predict(self, X: Sequences) -> NDArray[np.int64]:
        """Return the label codes of prepared data."""
        raise NotImplementedError


def fit_prepared(labeler: Any, data: TrainingData, *, validate: bool = True) -> Any:
    """Fit a labeler on prepared data; with its public `fit` if it does not implement `_learn`.

    ``validate`` is False if a caller that fits many labelers has already checked the parameters.
    """
    if isinstance(labeler, BaseLabeler) and type(labeler)._learn is not BaseLabeler._learn:
        if validate:
            labeler._validate_params()
        return labeler._fit_prepared(data)
    weights = data.sample_weight
    options = {} if weights is None else {"sample_weight": weights}
    return labeler.fit(data.X, data.X.split(data.classes[data.codes]), **options)


def predict_prepared(labeler: Any, X: Sequences, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the labels of prepared data, as codes among ``classes``."""
    if isinstance(labeler, BaseLabeler):
        return np.searchsorted(classes, labeler.classes_)[labeler._predict(X)]
    return np.searchsorted(classes, np.concatenate([classes[:0], *labeler.predict(X)]))
