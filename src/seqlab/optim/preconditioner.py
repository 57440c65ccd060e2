"""Preconditioner: an approximate Hessian that is diagonal except for a dense block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.optim.state import Vector
from seqlab.utils.cholesky import factorise, solve_cholesky


class Preconditioner:
    """Positive definite matrix, diagonal except for a block of a few hundred weights.

    Parameters
    ----------
    diagonal : array of shape (n_params,)
        Its entries for the weights of the block are not used.
    indices : int64 array of shape (n_block,), optional
        Weights of the block.
    block : array of shape (n_block, n_block), optional
        Symmetric. A block that is not positive definite is ignored.
    keep_block : bool, default=True
        Keep the block beside its factor, which a `QuadraticModel` needs. Otherwise the factor overwrites it.
    """

    def __init__(
        self,
        diagonal: Vector,
        indices: NDArray[np.int64] | None = None,
        block: Vector | None = None,
        *,
        keep_block: bool = True,
    ) -> None:
        self.diagonal = diagonal
        self.indices = np.empty(0, dtype=np.int64)
        self.block = np.empty((0, 0))
        self._roots = np.empty(0)
        self._lower = np.empty((0, 0))
        if indices is None or block is None or indices.size == 0:
            return
        # Equilibrated: features may have very different scales.
        roots = np.sqrt(np.diag(block))
        if not (np.isfinite(roots) & (roots > 0.0)).all():
            return
        lower = block.copy() if keep_block else block
        lower /= roots[:, None]
        lower /= roots
        if factorise(lower):
            self.indices, self._roots, self._lower = indices, roots, lower
            self.block = block if keep_block else self.block

    @property
    def has_block(self) -> bool:
        """Whether some weights have a dense block."""
        return self.indices.size > 0

    def diagonal_inverse(self) -> Vector:
        """Return the inverse of the diagonal part, with zeros for the weights of the block."""
        inverse: Vector = 1.0 / self.diagonal
        inverse[self.indices] = 0.0
        return inverse

    def working_diagonal(self) -> Vector:
        """Return the diagonal of the whole matrix."""
        diagonal = self.diagonal.copy()
        diagonal[self.indices] = np.diag(self.block)
        return diagonal

    def solve_block(self, right: Vector) -> Vector:
        """Return the product of the inverse of the block with a vector of its size."""
        out: Vector = solve_cholesky(self._lower, right / self._roots) / self._roots
        return out
