"""Conjunctions: products of features of the same step.

For chosen columns ``a < b < ...`` and sizes 2 to k, the product ``x_a x_b ...`` becomes a feature
named ``a&b``, if some step of the training data has it different from zero. For binary features
that is "a and b". A step with m chosen features that are not zero has ``C(m, 2) + ... + C(m, k)``
products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Integral, Interval
from sklearn.utils.validation import check_is_fitted

from seqlab.data.convert import as_sequences
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features.window import names_of


class Conjunctions(  # type: ignore[call-arg]  # scikit-learn's __init_subclass__
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Append products of features of the same step.

    Parameters
    ----------
    size : int
        Largest number of features in a product.
    columns : sequence of int or str, optional
        The features to combine, by number or by name; all where not given.
    min_count : int
        Products seen at fewer steps in `fit` are dropped.
    keep : bool
        Whether the given features stay, before the products.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_ : ndarray of object
        Names of the input's columns.
    products_ : int32 array of shape (n_products, size)
        The columns of each product, ascending, filled up with -1.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.features import Conjunctions
    >>> both = Conjunctions(size=2, keep=False)
    >>> both.fit_transform([np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 2.0]])])[0].toarray()
    array([[1., 0.],
           [0., 2.]])
    >>> both.get_feature_names_out().tolist()
    ['x0&x1', 'x0&x2']
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "size": [Interval(Integral, 2, None, closed="left")],
        "columns": ["array-like", None],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "keep": ["boolean"],
    }

    def __init__(
        self,
        *,
        size: int = 2,
        columns: Sequence[int | str] | None = None,
        min_count: int = 1,
        keep: bool = True,
    ) -> None:
        self.size = size
        self.columns = columns
        self.min_count = min_count
        self.keep = keep

    def fit(self, X: Any, y: Any = None) -> Conjunctions:
        """Learn which products occur.

        Parameters
        ----------
        X : Sequences, or list of matrices, one per sequence
        y : ignored
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Sequences:
        """Learn which products occur and append them."""
        return self._extend(self._fit(X))

    def transform(self, X: Any) -> Sequences:
        """Append the products known from `fit`."""
        check_is_fitted(self)
        sequences, _ = as_sequences(X)
        if sequences.n_features != self.n_features_in_:
            raise InputError(
                f"X has {sequences.n_features} features, but Conjunctions is expecting "
                f"{self.n_features_in_} features as input"
            )
        return self._extend(sequences)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features; a product is ``a&b``."""
        check_is_fitted(self)
        names = self.feature_names_ if input_features is None else list(input_features)
        if len(names) != self.n_features_in_:
            raise InputError(f"input_features should have {self.n_features_in_} names")
        products = [
            "&".join(str(names[column]) for column in product if column >= 0)
            for product in self.products_.tolist()
        ]
        return np.array([*(names if self.keep else ()), *products], dtype=object)

    def _fit(self, X: Any) -> Sequences:
        from seqlab.features._kernels import add_rows

        self._validate_params()
        sequences, _ = as_sequences(X)
        self.n_features_in_ = sequences.n_features
        self.feature_names_ = names_of(sequences)
        self._chosen()
        found = self._products_of(sequences)
        n_found = found.codes.shape[1]
        keys = np.empty((n_found, self.size), np.int32)
        counts = np.zeros(n_found, np.int64)
        n_products = add_rows(
            *_table_arguments(found.codes),
            keys,
            _empty_slots(n_found),
            counts,
            0,
            np.empty(n_found, np.int32),
        )
        # Codes are shifted by one, so that the filler is 0 and not "nothing".
        self.products_ = keys[:n_products][counts[:n_products] >= self.min_count] - 1
        return sequences

    def _extend(self, sequences: Sequences) -> Sequences:
        from seqlab.features._kernels import find_rows, rebuild_slots

        found = self._products_of(sequences)
        keys = np.ascontiguousarray(self.products_ + 1, np.int32)
        slots = _empty_slots(keys.shape[0])
        rebuild_slots(keys, keys.shape[0], slots)
        numbers = np.empty(found.codes.shape[1], np.int32)
        find_rows(*_table_arguments(found.codes), keys, slots, numbers)
        known = numbers >= 0
        entries = (found.values[known], (found.steps[known], numbers[known]))
        products = sp.csr_matrix(entries, shape=(sequences.n_steps, keys.shape[0]))
        if self.keep:
            products = sp.hstack([sp.csr_matrix(sequences.matrix), products], format="csr")
        return Sequences(products, sequences.offsets)

    def _chosen(self) -> NDArray[np.bool_]:
        """Which columns are combined."""
        if self.columns is None:
            return np.ones(self.n_features_in_, bool)
        numbers = {str(name): number for number, name in enumerate(self.feature_names_)}
        chosen = np.zeros(self.n_features_in_, bool)
        for column in self.columns:
            number = numbers.get(column, -1) if isinstance(column, str) else column
            if not 0 <= number < self.n_features_in_:
                raise InputError(
                    f"columns names {column!r}, but X has {self.n_features_in_} features"
                    + (" and none of that name" if isinstance(column, str) else "")
                )
            chosen[number] = True
        return chosen

    def _products_of(self, sequences: Sequences) -> _Products:
        from seqlab.features._product_kernels import count_products, fill_products

        matrix = sp.csr_matrix(sequences.matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        kept = self._chosen()[matrix.indices]
        indptr = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr].astype(np.int64)
        indices, data = matrix.indices[kept].astype(np.int32), matrix.data[kept]
        total = count_products(indptr, self.size)
        found = _Products(
            np.zeros((self.size, total), np.int32), np.empty(total, np.int64), np.empty(total)
        )
        fill_products(indptr, indices, data, self.size, *found)
        return found


class _Products(NamedTuple):
    """Products of all steps, one per column of `codes`."""

    codes: NDArray[np.int32]  # (size, n_products), column + 1, 0 as filler
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def _table_arguments(codes: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    return codes, np.arange(codes.shape[0], dtype=np.int64), np.empty(0, bool)


def _empty_slots(n_rows: int) -> NDArray[np.int32]:
    size = 16
    while size < 2 * n_rows:
        size *= 2
    return np.full(size, -1, np.int32)
