"""Conjunctions: products of features of the same step.

For selected columns ``a < b < ...`` and sizes 2 to k, the product ``x_a x_b ...`` becomes a feature named
``a&b`` if it is not zero at some step of the training data. For binary features this means "a and b". A
step with m selected features that are not zero has ``C(m, 2) + ... + C(m, k)`` products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Integral, Interval

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features._base import MatrixTransformer


class Conjunctions(MatrixTransformer):
    """Append products of features of the same step.

    Parameters
    ----------
    size : int
        Largest number of features in a product.
    columns : sequence of int or str, optional
        The features to combine, by number or by name; all features by default.
    min_count : int
        Products that occur at fewer steps in `fit` are dropped.
    keep : bool
        Whether to keep the input features, in front of the products.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_ : ndarray of object
        Names of the columns of the input.
    products_ : int32 array of shape (n_products, size)
        The columns of each product, ascending, padded with -1.

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

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features; a product is ``a&b``."""
        names = self._input_names(input_features)
        products = [
            "&".join(str(names[column]) for column in product if column >= 0)
            for product in self.products_.tolist()
        ]
        return np.array([*(names if self.keep else ()), *products], dtype=object)

    def _learn_columns(self, X: Any) -> Sequences:
        from seqlab.features._kernels.code_tables import add_rows, count_slots

        sequences = super()._learn_columns(X)
        found = self._find_products(sequences)
        n_found = found.codes.shape[1]
        keys = np.empty((n_found, self.size), np.int32)
        counts = np.zeros(n_found, np.int64)
        n_products = add_rows(
            *_table_arguments(found.codes),
            keys,
            np.full(count_slots(n_found), -1, np.int32),
            counts,
            0,
            np.empty(n_found, np.int32),
        )
        # Codes are shifted by one: the padding is 0, because -1 would mean "no feature".
        self.products_ = keys[:n_products][counts[:n_products] >= self.min_count] - 1
        return sequences

    def _check_state(self) -> None:
        super()._check_state()
        if state_checks.has_fitted_attributes(self):
            shape, n = (None, self.size), self.n_features_in_
            state_checks.check_array(
                self.products_, "products_", shape, "i", low=-1, high=n, dtype=np.int32
            )

    def _append(self, sequences: Sequences) -> Sequences:
        from seqlab.features._kernels.code_tables import count_slots, fill_slots, find_rows

        found = self._find_products(sequences)
        keys = np.ascontiguousarray(self.products_ + 1, np.int32)
        slots = np.full(count_slots(keys.shape[0]), -1, np.int32)
        fill_slots(keys, keys.shape[0], slots)
        numbers = np.empty(found.codes.shape[1], np.int32)
        find_rows(*_table_arguments(found.codes), keys, slots, numbers)
        known = numbers >= 0
        entries = (found.values[known], (found.steps[known], numbers[known]))
        products = sp.csr_matrix(entries, shape=(sequences.n_steps, keys.shape[0]))
        if self.keep:
            products = sp.hstack([sp.csr_matrix(sequences.matrix), products], format="csr")
        return Sequences(products, sequences.offsets)

    def _selected(self) -> NDArray[np.bool_]:
        """Mask of the columns to combine."""
        if self.columns is None:
            return np.ones(self.n_features_in_, bool)
        numbers = {str(name): number for number, name in enumerate(self.feature_names_)}
        selected = np.zeros(self.n_features_in_, bool)
        for column in self.columns:
            number = numbers.get(column, -1) if isinstance(column, str) else column
            if not 0 <= number < self.n_features_in_:
                raise InputError(
                    f"columns contains {column!r}, but X has {self.n_features_in_} features"
                    + (", none with that name" if isinstance(column, str) else "")
                )
            selected[number] = True
        return selected

    def _find_products(self, sequences: Sequences) -> _Products:
        from seqlab.features._kernels.products import count_products, fill_products

        matrix = sp.csr_matrix(sequences.matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        kept = self._selected()[matrix.indices]
        indptr = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr].astype(np.int64)
        indices, data = matrix.indices[kept].astype(np.int32), matrix.data[kept]
        n = count_products(indptr, self.size)
        found = _Products(np.zeros((self.size, n), np.int32), np.empty(n, np.int64), np.empty(n))
        fill_products(indptr, indices, data, self.size, *found)
        return found


class _Products(NamedTuple):
    """Products of all steps, one per column of `codes`."""

    codes: NDArray[np.int32]  # (size, n_products): column + 1, padded with 0
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def _table_arguments(codes: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    """The arguments ``codes, reads, skip`` of the table kernels."""
    return codes, np.arange(codes.shape[0], dtype=np.int64), np.empty(0, bool)
