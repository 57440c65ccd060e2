"""The part of one dense block in the quadratic model of the proximal quasi-Newton solver.

Given the unknowns of the limited-memory matrix, this part is a small problem of its own: a quadratic function
with an L1 penalty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.optim._model_kernels import descend_block
from seqlab.optim._sign_search import search_signs
from seqlab.optim.preconditioner import DenseBlock
from seqlab.optim.state import Vector
from seqlab.utils.cholesky import factorise, solve_cholesky, solve_lower
from seqlab.utils.linalg import multiply, transposed_matmul

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
        self._factor_of: tuple[bytes, Vector] | None = None
        self._signs = np.empty(0, dtype=np.int8)  # of the last minimum

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
        arrays = slopes, w, c1, scale, is_active
        if self._signs.size and self._correct_signs(self._signs, *arrays, direction):
            return self._signs
        signs = descend_block(self._block, *arrays, N_SWEEPS, direction)
        if not self._correct_signs(signs, *arrays, direction):
            search_signs(self._block, *arrays, max_solves, 0.0, direction)
            self._signs = np.where(is_active, np.sign(w + direction), 0.0).astype(np.int8)
        return self._signs

    def _correct_signs(
        self,
        signs: NDArray[np.int8],
        slopes: Vector,
        w: Vector,
        c1: Vector,
        scale: float,
        is_active: NDArray[np.bool_],
        direction: Vector,
    ) -> bool:
        """Set ``direction`` to the minimum, and the last signs, starting from the given ones.

        Weights whose sign would change become zero, and those at zero whose slope exceeds the penalty move.
        Returns whether this ends.
        """
        signs = np.where(is_active, signs, 0).astype(np.int8)
        for _ in range(MAX_CORRECTIONS):
            moving, is_at_zero = np.flatnonzero(signs), is_active & (signs == 0)
            exact = np.where(is_at_zero, -w, 0.0)
            if moving.size:
                lower = self._factor(moving)
                if lower.size == 0:
                    return False
                right = -(slopes + c1 * signs) / scale - multiply(self._block, exact)
                exact[moving] = solve_cholesky(lower, right[moving])
            slope = slopes + scale * multiply(self._block, exact)
            is_wrong = (signs != 0) & (np.sign(w + exact) != signs)
            starts = is_at_zero & (np.abs(slope) > c1 * (1.0 + 1e-9))
            if not (is_wrong | starts).any():
                direction[:], self._signs = exact, signs
                return True
            signs[is_wrong] = 0
            signs[starts] = -np.sign(slope[starts])
        return False

    def gram(self, rows: Vector, signs: NDArray[np.int8], scale: float) -> Vector:
        """Return ``Q'(s H)^-1 Q`` over the weights that are not zero; ``rows`` are those of Q.

        Raises `LinAlgError` if rounding errors make a part of H indefinite.
        """
        moving = np.flatnonzero(signs)
        if moving.size == 0:
            return np.zeros((rows.shape[1], rows.shape[1]))
        part = np.ascontiguousarray(rows[moving])
        lower = self._factor(moving)
        if lower.size == 0:
            raise np.linalg.LinAlgError("the block is not positive definite")
        solve_lower(lower, part)
        return transposed_matmul(part, part) / scale

    def _factor(self, moving: NDArray[np.int64]) -> Vector:
        """Return the Cholesky factor of a part of the block; the last one is kept."""
        key = moving.tobytes()
        if self._factor_of is None or self._factor_of[0] != key:
            part = np.ascontiguousarray(self._block[np.ix_(moving, moving)])
            self._factor_of = key, part if factorise(part) else np.empty((0, 0))
        return self._factor_of[1]
