"""KernelFeatures: explicit features whose inner products approximate a kernel.

Pivoted Cholesky decomposition: the inputs with the largest remaining ``k(x, x)`` become pivots one after
the other,

    K ~ G G',    residual diagonal d_i = K_ii - |g_i|^2

until the trace of the residual is small enough. The residual is positive semidefinite, so that its trace
is the exact error, and ``|K_ij - g_i . g_j| <= sqrt(d_i d_j)``. For other inputs this is the Nystroem
approximation with the pivots as landmarks.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.convert import as_sequences
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.kernels.functions import Kernel
from seqlab.kernels.merging import merge_equal_rows
from seqlab.kernels.subsequence import SubsequenceKernel
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
# Inputs per block: for the diagonal, all pairs in a block are computed; in transform, rows of this number.
BLOCK_ROWS = 64
# Residual below which an input is a combination of the pivots up to rounding, relative to k(x, x).
ROUNDING = 1e-12


class KernelFeatures(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Replace the features of steps by features whose inner products approximate a kernel.

    Linear models on these features cost a fixed amount per step, whatever the number of training steps.

    Parameters
    ----------
    kernel : Kernel
        Such as `SubsequenceKernel`.
    max_rank : int, default=500
        Maximum number of features.
    tol : float, default=1e-3
        Proportion of the trace of the kernel matrix that the approximation may miss.

    Attributes
    ----------
    pivots_ : matrix of shape (rank, n_columns)
        The inputs of the kernel that are landmarks.
    error_ : float
        Trace of the residual, as a proportion of the trace of the kernel matrix of the distinct inputs.
    max_error_ : float
        Largest absolute error of an entry of that matrix.
    map_ : array of shape (rank, rank)
        The features are ``k(x, pivots_) @ map_``.
    n_features_in_ : int

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : random landmarks, for samples that are rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from seqlab import StructuredSVM, SubsequenceKernel
    >>> from seqlab.kernels import KernelFeatures
    >>> X = [np.eye(4), np.eye(4)[[1, 0, 3, 2]]]
    >>> y = [[0, 0, 1, 1], [1, 0, 0, 1]]
    >>> features = KernelFeatures(SubsequenceKernel(2, window=(1, 1)), tol=1e-6).fit(X)
    >>> features.error_ <= 1e-6
    True
    >>> make_pipeline(features, StructuredSVM(C=10, random_state=0)).fit(X, y).score(X, y)
    1.0
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "kernel": [HasMethods(["inputs", "bind"])],
        "max_rank": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, kernel: Kernel, *, max_rank: int = 500, tol: float = 1e-3) -> None:
        self.kernel = kernel
        self.max_rank = max_rank
        self.tol = tol

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks.

        Parameters
        ----------
        X : Sequences, or list of matrices, one per sequence
        y : ignored
        """
        self._validate_params()
        sequences, _ = as_sequences(X)
        if sequences.n_steps == 0:
            raise InputError("X has no steps")
        self.n_features_in_ = sequences.n_features
        inputs = merge_equal_rows(self.kernel.inputs(sequences)).rows
        pivots, factor, residual, trace = _decompose(
            self.kernel, inputs, max_rank=self.max_rank, tol=self.tol
        )
        self.pivots_ = inputs[pivots]
        lower = factor[pivots]
        self.map_ = np.ascontiguousarray(solve_triangular(lower, np.eye(pivots.size), lower=True).T)
        self.error_ = float(residual.sum() / trace) if trace > 0.0 else 0.0
        self.max_error_ = float(residual.max())
        return self

    def transform(self, X: Any) -> Sequences:
        """Return the new features of every step.

        Parameters
        ----------
        X : Sequences, or list of matrices, one per sequence
        """
        check_is_fitted(self)
        sequences, _ = as_sequences(X)
        if sequences.n_features != self.n_features_in_:
            raise InputError(
                f"X has {sequences.n_features} features, but KernelFeatures is expecting "
                f"{self.n_features_in_} features as input"
            )
        inputs, place = merge_equal_rows(self.kernel.inputs(sequences))
        bound = self.kernel.bind(self.pivots_)
        out = np.empty((inputs.shape[0], self.map_.shape[1]))
        for first in range(0, inputs.shape[0], BLOCK_ROWS):
            part = slice(first, min(first + BLOCK_ROWS, inputs.shape[0]))
            out[part] = matmul(bound.rows(inputs[part]), self.map_)
        return Sequences(out[place], sequences.offsets)

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if state_checks.has_fitted_attributes(self):
            n_columns = state_checks.check_int(self.n_features_in_, "n_features_in_", 1)
            if isinstance(self.kernel, SubsequenceKernel):
                n_columns *= self.kernel.width
            pivots = state_checks.check_matrix(self.pivots_, "pivots_", (None, n_columns))
            rank = pivots.shape[0]
            state_checks.check_array(self.map_, "map_", (rank, rank), "f")


def _decompose(
    kernel: Kernel, inputs: Any, *, max_rank: int, tol: float
) -> tuple[NDArray[np.int64], Floats, Floats, float]:
    """Return pivots, factor G (n_inputs, rank), residual diagonal and the trace of the kernel matrix."""
    n = inputs.shape[0]
    bound, diagonal = kernel.bind(inputs), _diagonal(kernel, inputs)
    trace, residual = float(diagonal.sum()), diagonal.copy()
    # One column per pivot is a row here, so that it is contiguous.
    rows = np.zeros((min(max_rank, n), n))
    pivots: list[int] = []
    while len(pivots) < rows.shape[0]:
        pivot = int(residual.argmax())
        if residual[pivot] <= ROUNDING * diagonal.max() or residual.sum() <= tol * trace:
            break
        k = len(pivots)
        column = bound.rows(inputs[pivot : pivot + 1])[0]
        if k:
            column -= matmul(np.ascontiguousarray(rows[:k, pivot][None, :]), rows[:k])[0]
        rows[k] = column / np.sqrt(residual[pivot])
        rows[k, pivots] = 0.0  # earlier pivots have no residual
        residual = np.maximum(residual - rows[k] ** 2, 0.0)
        residual[pivot] = 0.0
        pivots.append(pivot)
    if not pivots:
        raise InputError("k(x, x) is 0 for every step of X: the kernel has no features")
    factor = np.ascontiguousarray(rows[: len(pivots)].T)
    return np.array(pivots, dtype=np.int64), factor, residual, trace


def _diagonal(kernel: Kernel, inputs: Any) -> Floats:
    """Return ``k(x, x)`` of every input."""
    out = np.empty(inputs.shape[0])
    for first in range(0, out.size, BLOCK_ROWS):
        part = inputs[first : first + BLOCK_ROWS]
        out[first : first + BLOCK_ROWS] = np.diagonal(kernel.bind(part).rows(part))
    return out
