"""Preconditioners: approximate Hessians that are diagonal except for dense blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.optim.state import Vector
from seqlab.utils.cholesky import factorise, solve_cholesky

Indices = NDArray[np.int64]


class DenseBlock(NamedTuple):
    """Positive definite block of a matrix."""

    indices: Indices
    matrix: Vector  # empty if it is not kept
    roots: Vector  # of its diagonal
    lower: Vector  # the Cholesky factor of its correlations

    def solve(self, right: Vector) -> Vector:
        """Return the product of the inverse with a vector."""
        out: Vector = solve_cholesky(self.lower, right / self.roots) / self.roots
        return out


def factorise_block(indices: Indices, matrix: Vector, *, keep: bool) -> DenseBlock | None:
    """Return a block with its factor; None if it is not positive definite.

    The factor overwrites the matrix, unless it is to be kept.
    """
    # Equilibrated: features may have very different scales.
    roots = np.sqrt(np.diag(matrix))
    if indices.size == 0 or not (np.isfinite(roots) & (roots > 0.0)).all():
        return None
    lower = matrix.copy() if keep else matrix
    lower /= roots[:, None]
    lower /= roots
    if not factorise(lower):
        return None
    return DenseBlock(indices, matrix if keep else np.empty((0, 0)), roots, lower)


class Preconditioner:
    """Positive definite matrix, diagonal except for blocks of a few hundred weights.

    Parameters
    ----------
    diagonal : array of shape (n_params,)
        Its entries for the weights of the blocks count only if the blocks are removed.
    blocks : list of (indices, block), optional
        Disjoint weights and their symmetric blocks. A block that is not positive definite is ignored.
    keep_blocks : bool, default=True
        Keep the blocks beside their factors, which a `QuadraticModel` needs. Otherwise the factors overwrite
        them.

    Attributes
    ----------
    blocks : list of DenseBlock
    indices : int64 array
        The weights of all blocks.
    """

    # First step of a line search. A diagonal treats correlated features as independent, so its steps are too
    # long: on 19 of 24 problems the line search chose 0.14 to 0.42.
    first_step = 0.3

    def __init__(
        self,
        diagonal: Vector,
        blocks: list[tuple[Indices, Vector]] | None = None,
        *,
        keep_blocks: bool = True,
    ) -> None:
        self.diagonal = diagonal
        found = [factorise_block(*block, keep=keep_blocks) for block in blocks or []]
        self.blocks = [block for block in found if block is not None]
        none = np.empty(0, dtype=np.int64)
        self.indices = np.concatenate([none, *(block.indices for block in self.blocks)])

    @property
    def has_block(self) -> bool:
        """Whether some weights have a dense block."""
        return self.indices.size > 0

    def diagonal_inverse(self) -> Vector:
        """Return the inverse of the diagonal part, with zeros for the weights of the blocks."""
        inverse: Vector = 1.0 / self.diagonal
        inverse[self.indices] = 0.0
        return inverse

    def working_diagonal(self) -> Vector:
        """Return the diagonal of the whole matrix."""
        diagonal = self.diagonal.copy()
        for block in self.blocks:
            diagonal[block.indices] = np.diag(block.matrix)
        return diagonal

    def solve_block(self, right: Vector) -> Vector:
        """Return the product of the inverse with a vector whose entries are in the order of ``indices``."""
        out, first = np.empty_like(right), 0
        for block in self.blocks:
            last = first + block.indices.size
            out[first:last] = block.solve(right[first:last])
            first = last
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
        blocks: list[tuple[Indices, Vector]],
        directions: sp.csr_matrix,
        hessian: Vector,
    ) -> None:
        super().__init__(diagonal, blocks, keep_blocks=False)
        if not self.has_block:
            return
        is_single = np.ones(diagonal.size, dtype=bool)
        is_single[self.indices] = False
        self._single = diagonal[is_single]
        # Directions run through all weights.
        self.indices = np.concatenate([self.indices, np.flatnonzero(is_single)])
        self._directions = directions[:, self.indices].tocsr()
        self._transposed = self._directions.T.tocsr()
        every = np.arange(hessian.shape[0])
        hessian[every, every] *= 1.0 + self.RIDGE
        self._coarse = factorise_block(every, hessian, keep=False)

    def solve_block(self, right: Vector) -> Vector:
        """Return the product of the inverse with a vector whose entries are in the order of ``indices``."""
        n_single = self._single.size
        out = super().solve_block(right)
        out[right.size - n_single :] = right[right.size - n_single :] / self._single
        if self._coarse is not None:
            along = self._coarse.solve(self._directions @ right)
            out += self._transposed @ along
        return out
