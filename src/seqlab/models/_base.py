"""BaseLabeler: what every labeler shares at its borders.

Reading X and y (once, to `Sequences` and codes), remembering the form they came in, encoding labels,
checking features against those of `fit`, scoring. Subclasses see only the internal form.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from seqlab.data.convert import Layout, as_sequences, is_frame
from seqlab.data.errors import InputError
from seqlab.data.labels import EncodedLabels, encode_labels, sequence_weights
from seqlab.data.sequences import Sequences
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.learning import unchanged_on_failure


@dataclass(slots=True)
class TrainingData:
    """What a labeler learns from, in the internal form.

    Parameters
    ----------
    X : Sequences
        No sequence is empty.
    codes : int64 array of shape (n_steps,)
        Label codes; negative where ``allowed`` says what is known.
    allowed : boolean array of shape (n_steps, n_labels) or None
        Possible labels of each step, where some are not known.
    sequence_weights : array of shape (n_sequences,)
    step_weights : array of shape (n_steps,)
    """

    X: Sequences
    codes: NDArray[np.int64]
    allowed: NDArray[np.bool_] | None
    sequence_weights: NDArray[np.float64]
    step_weights: NDArray[np.float64]


class BaseLabeler(BaseEstimator):
    """Base class of all labelers: input, labels, scoring.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen during fit.
    vectorizer_ : SequenceVectorizer or None
        Turns dicts and bags of strings into columns, where X was given so.
    transition_counts_ : int64 array of shape (n_labels, n_labels)
        How often one label (row) was followed by another (column) in training.
    start_counts_ : int64 array of shape (n_labels,)
        How often each label came first.
    """

    # Whether fit understands unknown (None) and partly known (set) labels.
    _accepts_partial_labels = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # No classifier tag: integer `cv` would then reject sequence targets.
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Around the work of `fit`: where it fails, the estimator is again what it was before."""
        with unchanged_on_failure(self):
            yield

    def _new_vectorizer(self) -> Any:
        """What turns symbolic X into numbers."""
        return SequenceVectorizer()

    def _allows_missing(self) -> bool:
        """Whether NaN may stand for a missing number in X; the labeler then looks for infinity."""
        return False

    def _read_training(self, X: Any, y: Any, sample_weight: Any, lengths: Any) -> TrainingData:
        """Convert and check what `fit` was given; set the attributes every labeler has."""
        sequences, layout = self._read_training_features(X, y, lengths)
        labels = encode_labels(
            y, sequences.offsets, stacked=not layout.is_list, partial=self._accepts_partial_labels
        )
        weights, step_weights = sequence_weights(sample_weight, sequences.offsets)
        self.classes_ = labels.classes
        self.transition_counts_, self.start_counts_ = _count_labels(
            labels.codes, sequences.offsets, labels.classes.size
        )
        return TrainingData(sequences, labels.codes, labels.allowed, weights, step_weights)

    def _read_training_features(self, X: Any, y: Any, lengths: Any) -> tuple[Sequences, Layout]:
        """Convert and check the X that `fit` was given, beside some y."""
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
            raise InputError(f"X[{empty[0]}] is empty: a training sequence has at least one step")
        if sequences.n_features == 0:
            raise InputError(
                f"Found array with 0 feature(s) (shape=({sequences.n_steps}, 0)) while a minimum of "
                f"1 is required by {type(self).__name__}."
            )
        self.vectorizer_ = vectorizer if layout.symbolic else None
        self._check_features(X, sequences, reset=True)
        return sequences, layout

    def _read(self, X: Any, lengths: Any = None) -> tuple[Sequences, Layout]:
        """Convert X of a prediction and check it against the features of `fit`."""
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
        """Codes of given labels among the known classes (unseen ones get a negative code)."""
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
        """Token accuracy: the share of steps whose label is right.

        Labels that were not seen in training count as errors.

        Parameters
        ----------
        X : see `fit`
        y : list of label sequences
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
        lengths : list of int, optional
            Steps per sequence, where X is one stacked matrix.
        """
        sequences, layout = self._read(X, lengths)
        gold = self._read_labels(y, sequences, layout).codes
        predicted = self._predict_codes(sequences)
        _, weights = sequence_weights(sample_weight, sequences.offsets)
        if weights.size == 0:
            raise InputError("there is no step to score")
        return float(np.average(gold == predicted, weights=weights))

    def _predict_codes(self, X: Sequences) -> NDArray[np.int64]:
        raise NotImplementedError  # every concrete labeler has its own decoder


def _count_labels(
    codes: NDArray[np.int64], offsets: NDArray[np.int64], n_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Transitions and first labels of the training data, as far as they are known."""
    inside = np.ones(codes.size, dtype=bool)
    inside[offsets[:-1]] = False
    before, after = np.roll(codes, 1)[inside], codes[inside]
    known = (before >= 0) & (after >= 0)
    pairs = np.bincount(before[known] * n_labels + after[known], minlength=n_labels * n_labels)
    first = codes[offsets[:-1]]
    return pairs.reshape(n_labels, n_labels), np.bincount(first[first >= 0], minlength=n_labels)
