"""Kernel functions on the rows of matrices.

A kernel is bound to the rows it will be compared with many times, ``bound = kernel.bind(B)``; then
``bound.rows(A)`` is the matrix of ``k(a, b)``. Every entry is computed in a fixed order of summation, so
that it does not depend on the other rows of ``A``, and ``k(a, b) == k(b, a)`` bit for bit. What the rows
are for the steps of sequences is up to the kernel, ``kernel.inputs(X)``: the features of a step, or those
of a window.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.kernels._kernels import polynomial_in_place
from seqlab.kernels.binary_rows import multiply_binary, pack_binary
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
Matrix = Any  # array or CSR matrix
# Entries up to which sparse rows are made dense (128 MB): products of dense rows are faster unless almost
# all entries are zero, and sparse and dense data then give identical values.
MAX_DENSE = 1 << 24
# Rows computed at a time: enough for fast products, few enough for temporary arrays of some 10 MB.
BLOCK_ROWS = 256
# Entries of a block of rows that stays in the L2 cache.
MAX_CACHED = 1 << 18


class BoundKernel(Protocol):
    """A kernel with fixed right-hand rows."""

    def rows(self, A: Matrix) -> Floats:
        """Return ``k(a, b)`` for the rows of ``A`` and the fixed rows, shape (n_rows, n_fixed_rows)."""
        ...


class Kernel(Protocol):
    """A similarity of rows: symmetric, with positive semidefinite matrices."""

    def inputs(self, X: Sequences) -> Matrix:
        """Return the row of each step that the kernel compares."""
        ...

    def bind(self, B: Matrix) -> BoundKernel:
        """Fix the right-hand rows."""
        ...


class _StepKernel:
    """A kernel that compares the features of steps."""

    def inputs(self, X: Sequences) -> Matrix:
        """Return the row of each step that the kernel compares: its features."""
        return X.matrix


class LinearKernel(_StepKernel):
    """``k(a, b) = a . b``."""

    def bind(self, B: Matrix) -> BoundKernel:
        """Fix the right-hand rows."""
        return _BoundProducts(B, lambda squares: squares, lambda products, *_: products)


class PolynomialKernel(_StepKernel):
    """``k(a, b) = (gamma a . b + coef0) ** degree``.

    Parameters
    ----------
    degree : int
    coef0, gamma : float
    normalize : bool
        Divide by ``sqrt(k(a, a) k(b, b))``, so that ``k(a, a) = 1``. The kernel is 0 if ``k(a, a)`` is not
        positive.
    """

    def __init__(self, degree: int, coef0: float, gamma: float, *, normalize: bool) -> None:
        self.degree, self.coef0, self.gamma = degree, coef0, gamma
        self.normalize = normalize

    def bind(self, B: Matrix) -> BoundKernel:
        """Fix the right-hand rows."""
        return _BoundProducts(B, self._scale, self._values)

    def _values(self, products: Floats, left: Floats, right: Floats) -> Floats:
        polynomial_in_place(
            products, self.degree, float(self.coef0), float(self.gamma), left, right
        )
        return products

    def _scale(self, squares: Floats) -> Floats:
        if not self.normalize:
            return np.ones(squares.size)
        own = _power(self.gamma * squares + self.coef0, self.degree)
        return np.where(own > 0.0, 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0)), 0.0)


class RBFKernel(_StepKernel):
    """``k(a, b) = exp(-gamma |a - b|^2)``.

    Parameters
    ----------
    gamma : float
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def bind(self, B: Matrix) -> BoundKernel:
        """Fix the right-hand rows."""
        return _BoundProducts(B, lambda squares: squares, self._values, is_centered=True)

    def _values(self, products: Floats, squares_a: Floats, squares_b: Floats) -> Floats:
        # The squares are added first, so that the result is symmetric bit for bit.
        distances = squares_a[:, None] + squares_b[None, :]
        products *= 2.0
        distances -= products
        np.maximum(distances, 0.0, out=distances)
        distances *= -self.gamma
        return np.exp(distances, out=distances)


class CallableKernel(_StepKernel):
    """A kernel given as a function of two matrices.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` returns the matrix of ``k(a, b)``. Results do not depend on the number of threads
        only if an entry does not depend on the other rows.
    """

    def __init__(self, function: Callable[[Matrix, Matrix], Any]) -> None:
        self.function = function

    def bind(self, B: Matrix) -> BoundKernel:
        """Fix the right-hand rows."""
        return _BoundFunction(self.function, B)


class PrecomputedKernel(_StepKernel):
    """The rows are kernel values already: ``A[i, j] = k(a_i, b_j)``."""

    def bind(self, B: Matrix) -> BoundKernel:
        """Fix the right-hand rows; only their number matters."""
        return _BoundValues()


class _BoundProducts:
    """Kernels that depend on inner products and squared norms alone.

    Parameters
    ----------
    B : array or CSR matrix
    scale : function
        Takes the squared norms of rows; returns what ``values`` needs to know about them.
    values : function
        ``values(products, scale_a, scale_b)`` returns the kernel; it may overwrite the products.
    is_centered : bool, default=False
        Subtract the mean of B from all rows, if they are dense: distances of rows far from the origin, such
        as time stamps, would be lost in the rounding errors of products.
    """

    def __init__(
        self,
        B: Matrix,
        scale: Callable[[Floats], Floats],
        values: Callable[..., Floats],
        *,
        is_centered: bool = False,
    ) -> None:
        self._scale, self._values = scale, values
        if sp.issparse(B) and B.shape[0] * B.shape[1] <= MAX_DENSE:
            B = B.toarray()
        packed = None if sp.issparse(B) else pack_binary(B)
        self._bits = None if packed is None else np.ascontiguousarray(packed.T)
        self._center: Floats | None = None
        if is_centered and packed is None and not sp.issparse(B) and B.shape[0]:
            self._center = B.mean(axis=0)
            B = B - self._center
        self._fixed = B
        self._fixed_scale = scale(_squared_norms(B))

    @property
    def best_n_rows(self) -> int:
        """Number of rows for which `rows` is fastest: what it computes stays in the L2 cache, or B does."""
        n = max(self._fixed.shape[0], 1)
        return BLOCK_ROWS if self._bits is None else min(max(MAX_CACHED // n, 1), BLOCK_ROWS)

    @cached_property
    def _transposed(self) -> Matrix:
        B = self._fixed
        return B.T.tocsr() if sp.issparse(B) else np.ascontiguousarray(B.T)

    def rows(self, A: Matrix) -> Floats:
        if sp.issparse(self._fixed):
            products: Floats = (sp.csr_matrix(A) @ self._transposed).toarray()
            return self._values(products, self._scale(_squared_norms(A)), self._fixed_scale)
        dense = np.ascontiguousarray(A.toarray() if sp.issparse(A) else A)
        packed = None if self._bits is None else pack_binary(dense)
        if packed is None or self._bits is None:
            dense = dense if self._center is None else dense - self._center
            products, squares = matmul(dense, self._transposed), _squared_norms(dense)
        else:
            products, squares = np.empty((dense.shape[0], self._bits.shape[1])), dense.sum(axis=1)
            multiply_binary(packed, self._bits, products)
        return self._values(products, self._scale(squares), self._fixed_scale)


class _BoundFunction:
    def __init__(self, function: Callable[[Matrix, Matrix], Any], B: Matrix) -> None:
        self._function = function
        self._B = B

    def rows(self, A: Matrix) -> Floats:
        result = self._function(A, self._B)
        found = result.toarray() if sp.issparse(result) else np.asarray(result)
        expected = (A.shape[0], self._B.shape[0])
        if found.shape != expected:
            raise InputError(
                f"the kernel function returned an array of shape {found.shape}, expected {expected}"
            )
        if found.dtype.kind not in "fiub":
            raise InputError(f"the kernel function returned values of type {found.dtype}")
        return np.array(found, dtype=np.float64, order="C")


class _BoundValues:
    def rows(self, A: Matrix) -> Floats:
        dense = A.toarray() if sp.issparse(A) else A
        return np.ascontiguousarray(dense, dtype=np.float64)


def make_kernel(
    kernel: str | Callable[..., Any],
    *,
    degree: int = 3,
    coef0: float = 1.0,
    gamma: float = 1.0,
    normalize: bool = False,
) -> Kernel:
    """Return the kernel that the parameters of an estimator describe.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "precomputed"}, Kernel or callable
    degree, coef0, gamma, normalize
        See `PolynomialKernel` and `RBFKernel`.
    """
    if callable(kernel):
        has_inputs = hasattr(kernel, "bind") and hasattr(kernel, "inputs")
        return cast(Kernel, kernel) if has_inputs else CallableKernel(kernel)
    if kernel == "precomputed":
        return PrecomputedKernel()
    if kernel == "linear":
        return LinearKernel()
    if kernel == "poly":
        return PolynomialKernel(degree, coef0, gamma, normalize=normalize)
    return RBFKernel(gamma)


def default_gamma(kernel: str | Callable[..., Any], X: Matrix) -> float:
    """Return ``gamma`` for data X: ``1 / (n_features * variance of X)`` for "rbf", else 1."""
    if kernel != "rbf":
        return 1.0
    if sp.issparse(X):
        n_entries = X.shape[0] * X.shape[1]
        mean = float(X.sum()) / n_entries
        n_zeros = n_entries - X.data.size
        variance = float(((X.data - mean) ** 2).sum() + n_zeros * mean**2) / n_entries
    else:
        variance = float(X.var())
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _power(values: Floats, degree: int) -> Floats:
    """Return ``values ** degree`` by multiplication: much faster than `np.power`, and exact for integers."""
    out = values
    for _ in range(degree - 1):
        out = out * values
    return out


def _squared_norms(A: Matrix) -> Floats:
    """Return the squared norm of each row, summed in the order of the columns."""
    csr = A if sp.issparse(A) else sp.csr_matrix(A)
    out = np.zeros(csr.shape[0])
    np.add.at(out, np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)), csr.data**2)
    return out
