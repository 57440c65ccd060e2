"""The part of one dense block in the quadratic model of the proximal quasi-Newton solver.

Given the unknowns of the limited-memory matrix, this part is a small problem of its own: a quadratic function
with an L1 penalty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.optim._block_kernels import (
    correct_signs,
    descend_block,
    factorise_part,
    gram_of_part,
)
from seqlab.optim._sign_search import search_signs
from seqlab.optim.preconditioner import DenseBlock
from seqlab.optim.state import Vector

# Sweeps of coordinate descent, which find most signs, before the search for the others. More sweeps would
# find them too, but take thousands if columns are almost collinear.
N_SWEEPS = 16
# Corrections of signs that are tried before coordinate descent, and again before the search. With 8 of them,
# nine fits took 0.65 times as long as with one.
MAX_CORRECTIONS = 8


class BlockProblem:
    """The minimum of the part of a block.

    Parameters
    ----------
    block : DenseBlock

    Attributes
    ----------
    rest : array of shape (n_block, n_block)
        The block with a diagonal of zeros.
    """

    def __init__(self, block: DenseBlock) -> None:
        self._block = np.ascontiguousarray(block.matrix)
        self.rest = self._block.copy()
        np.fill_diagonal(self.rest, 0.0)
        n = self._block.shape[0]
        # The last Cholesky factor of a part, and the weights of that part; see `factorise_part`.
        self._factor = np.empty(n * n), np.full(n + 1, -1, dtype=np.int64)
        self._signs: NDArray[np.int8] | None = None  # of the last minimum

    def minimise(
        self,
        slopes: Vector,
        w: Vector,
        c1: Vector,
        scale: float,
        is_active: NDArray[np.bool_],
        direction: Vector,
        *,
        max_solves: int,
    ) -> NDArray[np.int8]:
        """Minimise ``slopes'd + s d'Hd / 2 + sum c1 |w + d|`` over the active weights of the block H.

        ``direction`` is the starting point and receives the result. Given the signs of ``w + d``, the
        solution of linear equations is exact. The signs are those of the last call, or found by coordinate
        descent, with a few corrections, or else by `search_signs`, which solves at most ``max_solves``
        systems of equations. Returns the signs, 0 for weights that are zero or not active.
        """
        arrays = self._block, slopes, w, c1, scale, is_active
        if self._signs is not None:
            signs = self._signs.copy()
            if correct_signs(*arrays, MAX_CORRECTIONS, signs, *self._factor, direction):
                self._signs = signs
                return signs
        signs = descend_block(*arrays, N_SWEEPS, direction)
        if not correct_signs(*arrays, MAX_CORRECTIONS, signs, *self._factor, direction):
            search_signs(*arrays, max_solves, 0.0, direction)
            signs = np.where(is_active, np.sign(w + direction), 0.0).astype(np.int8)
        self._signs = signs
        return signs

    def gram(self, rows: Vector, signs: NDArray[np.int8], scale: float) -> Vector:
        """Return ``Q'(s H)^-1 Q`` over the weights that are not zero; ``rows`` are those of Q.

        Raises `LinAlgError` if rounding errors make a part of H indefinite.
        """
        lower = factorise_part(self._block, signs, *self._factor)
        if lower.shape[0] < np.count_nonzero(signs):
            raise np.linalg.LinAlgError("the block is not positive definite")
        gram: Vector = gram_of_part(lower, self._factor[1], rows) / scale
        return gram
