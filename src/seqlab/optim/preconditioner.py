"""Preconditioners: approximate Hessians that are diagonal except for dense blocks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
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

    # First step of a line search. A diagonal treats correlated features as independent, so its steps are too
    # long: on 19 of 24 problems the line search chose 0.14 to 0.42.
    first_step = 0.3

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


class BlockPreconditioner(Preconditioner):
    """Positive definite matrix whose inverse is that of several blocks, corrected along some directions.

    The inverse is ``B^-1 + V' H^-1 V``, where ``B`` is diagonal except for the blocks, the rows of ``V`` are
    the directions and ``H`` is the Hessian among them (an additive two-level method).

    Parameters
    ----------
    diagonal : array of shape (n_params,)
        Its entries for the weights of the blocks are not used.
    blocks : list of (indices, block)
        Disjoint weights and their symmetric blocks, which are overwritten. A block that is not positive
        definite is ignored.
    directions : CSR matrix of shape (n_directions, n_params)
    hessian : array of shape (n_directions, n_directions)
        Symmetric. The directions may be linearly dependent.
    """

    # With blocks of labels the line search chose 0.5 or 1 on all of 7 problems (4 data sets).
    first_step = 0.5
    # Share of the diagonal of the Hessian among the directions that is added: they may be dependent.
    RIDGE = 1e-6

    def __init__(
        self,
        diagonal: Vector,
        blocks: list[tuple[NDArray[np.int64], Vector]],
        directions: sp.csr_matrix,
        hessian: Vector,
    ) -> None:
        super().__init__(diagonal)
        parts = [Preconditioner(diagonal, *block, keep_block=False) for block in blocks]
        self._parts = [part for part in parts if part.has_block]
        in_blocks = np.concatenate([self.indices, *(part.indices for part in self._parts)])
        if in_blocks.size == 0:
            return
        is_single = np.ones(diagonal.size, dtype=bool)
        is_single[in_blocks] = False
        self._single = diagonal[is_single]
        self.indices = np.concatenate([in_blocks, np.flatnonzero(is_single)])
        self._directions = directions[:, self.indices].tocsr()
        self._transposed = self._directions.T.tocsr()
        every = np.arange(hessian.shape[0])
        hessian[every, every] *= 1.0 + self.RIDGE
        self._coarse = Preconditioner(np.diag(hessian), every, hessian, keep_block=False)

    def solve_block(self, right: Vector) -> Vector:
        """Return the product of the inverse with a vector whose entries are in the order of ``indices``."""
        out, first = np.empty_like(right), 0
        for part in self._parts:
            last = first + part.indices.size
            out[first:last] = part.solve_block(right[first:last])
            first = last
        out[first:] = right[first:] / self._single
        if self._coarse.has_block:
            along = self._coarse.solve_block(self._directions @ right)
            out += self._transposed @ along
        return out
