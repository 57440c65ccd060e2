"""SequenceUnion: the features of several transformers side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion

from seqlab.data import state_checks
from seqlab.data.convert import as_sequences, describe
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences


class SequenceUnion(FeatureUnion):
    """Put the features of several transformers side by side.

    This is scikit-learn's `FeatureUnion` for transformers that return `Sequences` or a list of matrices,
    one per sequence, with the same parameters, attributes and feature names (``words__word[0]=Paris``). If
    a transformer has no ``get_feature_names_out``, its features are named by its name and their number
    (``vectors[0]``). Columns that are mostly nonzero, such as word vectors, may stand beside sparse ones:
    linear chains multiply each kind in the way that is faster.

    Parameters
    ----------
    transformer_list : list of (str, transformer)
    n_jobs : int, optional
    transformer_weights : dict of str to float, optional
        Factors of the features of transformers, by name.
    verbose : bool
    verbose_feature_names_out : bool

    Examples
    --------
    >>> from seqlab.features import Gazetteer, SequenceUnion, Templates
    >>> union = SequenceUnion(
    ...     [("words", Templates([(0, "word")])), ("lists", Gazetteer({"city": ["New York"]}))]
    ... )
    >>> union.fit_transform([["in", "New", "York"]])[0].toarray()
    array([[1., 0., 0., 0., 0.],
           [0., 1., 0., 1., 0.],
           [0., 0., 1., 0., 1.]])
    >>> union.get_feature_names_out()[-2:].tolist()
    ['lists__city:B', 'lists__city:I']

    Word vectors beside words; any transformer may return a list of arrays:

    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> vectors = {"in": [0.1, 0.9], "York": [0.8, 0.2]}
    >>> look_up = FunctionTransformer(
    ...     lambda X: [np.array([vectors.get(word, [0.0, 0.0]) for word in x]) for x in X]
    ... )
    >>> union = SequenceUnion([("words", Templates([(0, "word")])), ("vectors", look_up)])
    >>> union.fit_transform([["in", "New", "York"]])[0].toarray()
    array([[1. , 0. , 0. , 0.1, 0.9],
           [0. , 1. , 0. , 0. , 0. ],
           [0. , 0. , 1. , 0.8, 0.2]])
    >>> union.get_feature_names_out()[-3:].tolist()
    ['words__word[0]=York', 'vectors[0]', 'vectors[1]']
    """

    # Number of columns of each transformer; None before the features are seen.
    _n_columns: dict[str, int] | None = None

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        state_checks.check_named_estimators(self.transformer_list, "transformer_list", "transform")
        state_checks.check_type(self.n_jobs, "n_jobs", int, type(None))
        state_checks.check_type(self.transformer_weights, "transformer_weights", dict, type(None))
        counts = state_checks.check_type(self._n_columns, "_n_columns", dict, type(None))
        for n_columns in (counts or {}).values():
            state_checks.check_int(n_columns, "_n_columns", 0, 2**31)

    def fit(self, X: Any, y: Any = None, **params: Any) -> SequenceUnion:
        """Fit all transformers.

        If one of them does not name its features, X is transformed too, to count them.
        """
        if all(hasattr(transformer, "get_feature_names_out") for _, transformer, _ in self._iter()):
            super().fit(X, y, **params)
        else:
            self.fit_transform(X, y, **params)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Sequences:
        """Fit all transformers and return their features of X."""
        self._n_columns = None
        return super().fit_transform(X, y, **params)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features."""
        named = [
            (name, self._names_of(name, transformer, input_features))
            for name, transformer, _ in self._iter()
        ]
        if not self.verbose_feature_names_out:
            return np.asarray(self._add_prefix_for_feature_names_out(named), dtype=object)
        has_names = {name: hasattr(one, "get_feature_names_out") for name, one, _ in self._iter()}
        prefixed = [
            f"{name}__{one}" if has_names[name] else one for name, names in named for one in names
        ]
        return np.asarray(prefixed, dtype=object)

    def _names_of(self, name: str, transformer: Any, input_features: Any) -> NDArray[np.object_]:
        if hasattr(transformer, "get_feature_names_out"):
            names = transformer.get_feature_names_out(input_features)
        elif self._n_columns is None:
            raise NotFittedError(
                f"the features of {name!r} have no names yet: call fit of this SequenceUnion first"
            )
        else:
            names = [f"{name}[{column}]" for column in range(self._n_columns[name])]
        return np.asarray(names, dtype=object)

    def _iter(self) -> Any:
        """Yield (name, transformer, None): a list cannot be multiplied by a weight, as its matrices can."""
        return ((name, transformer, None) for name, transformer, _ in super()._iter())

    def _hstack(self, Xs: Any) -> Sequences:
        names = [name for name, _, _ in self._iter()]
        parts = [self._to_sequences(name, X) for name, X in zip(names, Xs, strict=True)]
        for part in parts:
            if not np.array_equal(part.offsets, parts[0].offsets):
                raise InputError(
                    "the transformers of a SequenceUnion return different numbers of steps"
                )
        if self._n_columns is None:
            self._n_columns = {
                name: part.n_features for name, part in zip(names, parts, strict=True)
            }
        weights = self.transformer_weights or {}
        matrices = [
            part.matrix * weights[name] if name in weights else part.matrix
            for name, part in zip(names, parts, strict=True)
        ]
        if any(part.is_sparse for part in parts):
            return Sequences(sp.hstack(matrices, format="csr"), parts[0].offsets)
        return Sequences(np.hstack(matrices), parts[0].offsets)

    @staticmethod
    def _to_sequences(name: str, X: Any) -> Sequences:
        """Convert what a transformer returned."""
        if isinstance(X, Sequences):
            return X
        if not isinstance(X, list) and getattr(X, "ndim", 0) != 3:
            raise InputError(
                f"SequenceUnion joins Sequences and lists of matrices, but {name!r} returned "
                f"{describe(X)}"
            )
        try:
            return as_sequences(X)[0]
        except InputError as error:
            raise InputError(f"in the features of {name!r}: {error}") from None
