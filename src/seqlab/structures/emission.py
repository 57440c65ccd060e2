"""EmissionTable: weights laid out for scoring many steps.

The counterpart of `MixedRows` for data that are read once: features that go with many labels get dense rows,
the others keep their short lists, and one number per feature says which. Laying out costs a pass over the
weights and pays where the data are about as large as the model.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.inference._kernels.dense import padded_width
from seqlab.structures import _mixed_kernels
from seqlab.structures.mixed_rows import min_dense

Floats = NDArray[np.float64]


class EmissionTable:
    """Weights of (label, feature) pairs, ready to score rows.

    Parameters
    ----------
    coef : CSC matrix of shape (n_labels, n_features)
    """

    def __init__(self, coef: sp.csc_matrix) -> None:
        self.n_labels = coef.shape[0]
        starts, self._columns, self._weights = coef.indptr, coef.indices, coef.data
        plan, n_dense = _mixed_kernels.feature_plan(
            np.diff(starts), starts, min_dense(self.n_labels)
        )
        self._rows = np.zeros((n_dense, padded_width(self.n_labels)))
        self._table = np.zeros((plan.size, 2), dtype=np.int64)
        _mixed_kernels.fill_table(
            plan, starts, self._columns, self._weights, self._rows, self._table
        )

    def emit(self, X: sp.csr_matrix, first: int, last: int) -> Floats:
        """Scores of rows first..last, shape (last - first, n_labels)."""
        out = np.empty((last - first, self.n_labels))
        _mixed_kernels.emit_table(
            X.indptr, X.indices, X.data, self._table, self._columns, self._weights, self._rows,
            first, last, out,
        )  # fmt: skip
        return out
