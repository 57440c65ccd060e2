"""Base classes of the transformers: one for any input, one for tokens, one for feature matrices."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.convert import as_sequences
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences


class SequenceTransformer(TransformerMixin, BaseEstimator):
    """A transformer that returns `Sequences`, which scikit-learn's `set_output` cannot convert."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state_checks.add_new_params(type(self), state))


class TokenTransformer(SequenceTransformer):
    """A transformer of sequences of tokens."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


class FixedTokenTransformer(TokenTransformer):
    """A transformer of tokens that learns nothing: `fit` checks the parameters and names the columns.

    Attributes
    ----------
    feature_names_ : list of str
    """

    feature_names_: list[str]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns, `feature_names_`."""
        check_is_fitted(self)
        return np.array(self.feature_names_, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class MatrixTransformer(SequenceTransformer):
    """A transformer that appends columns to sequences of feature vectors; see `_append`.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_ : ndarray of object
        Names of the columns of the input, ``x0``, ``x1``, ... if it has none.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns of the input, and which ones to append.

        Parameters
        ----------
        X : Sequences, or list of matrices, one per sequence
        y : ignored
        """
        self._learn_columns(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Sequences:
        """Learn which columns to append, and append them."""
        return self._append(self._learn_columns(X))

    def transform(self, X: Any) -> Sequences:
        """Append the columns learned in `fit`."""
        return self._append(self._check_columns(X))

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if state_checks.has_fitted_attributes(self):
            n = state_checks.check_int(self.n_features_in_, "n_features_in_", 0)
            state_checks.check_array(self.feature_names_, "feature_names_", (n,), "OU")

    def _append(self, sequences: Sequences) -> Sequences:
        """Return the sequences with further columns."""
        raise NotImplementedError

    def _learn_columns(self, X: Any) -> Sequences:
        self._validate_params()
        sequences, _ = as_sequences(X)
        self.n_features_in_ = sequences.n_features
        names = sequences.feature_names
        default = [f"x{column}" for column in range(sequences.n_features)]
        self.feature_names_ = np.array(default, dtype=object) if names is None else names
        return sequences

    def _check_columns(self, X: Any) -> Sequences:
        check_is_fitted(self)
        sequences, _ = as_sequences(X)
        if sequences.n_features != self.n_features_in_:
            raise InputError(
                f"X has {sequences.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return sequences

    def _input_names(self, input_features: Any) -> NDArray[np.object_] | list[Any]:
        check_is_fitted(self)
        names = self.feature_names_ if input_features is None else list(input_features)
        if len(names) != self.n_features_in_:
            raise InputError(f"input_features should have {self.n_features_in_} names")
        return names
