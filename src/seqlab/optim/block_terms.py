"""The dense block in the quadratic model of the proximal quasi-Newton solver.

Given the unknowns of the limited-memory matrix, the model is a sum over the weights, except for those of the
block. Their part is a small problem of its own: a quadratic function with an L1 penalty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.optim._model_kernels import descend_block
from seqlab.optim._sign_search import search_signs
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.state import Vector
from seqlab.utils.cholesky import factorise, solve_cholesky, solve_cholesky_rows
from seqlab.utils.linalg import dot, matmul, multiply

# Sweeps of coordinate descent, which find most signs, before the search for the others. More sweeps would
# find them too, but take thousands if columns are almost collinear.
N_SWEEPS = 16


class BlockTerms:
    """What a block adds to inner products of pairs, and the minimum of its part of the model.

    Parameters
    ----------
    preconditioner : Preconditioner
    """

    def __init__(self, preconditioner: Preconditioner) -> None:
        self.indices = preconditioner.indices
        self._preconditioner = preconditioner
        self._block = np.ascontiguousarray(preconditioner.block)
        self._diagonal = np.diag(self._block).copy()
        self.rest = self._block - np.diag(self._diagonal)
        self._steps: dict[int, Vector] = {}
        self._extra: dict[int, Vector] = {}
        self._factor_of: tuple[bytes, Vector] | None = None
        self._signs = np.empty(0, dtype=np.int8)  # of the last minimum

    def add_pair(self, place: int, step: Vector, change: Vector, pairs: Vector) -> Vector:
        """Add a pair, of which ``pairs`` holds step and change; return what to add to its products.

        The kernels multiply an entry of a step by the diagonal. The product with the whole block divided by
        the diagonal is stored instead, so that they compute the product with the block.
        """
        if self.indices.size == 0:
            return np.zeros((4, pairs.shape[1] // 2))
        extra = multiply(self.rest, step) / self._diagonal
        added = np.zeros((4, pairs.shape[1] // 2))
        added[0, place] = dot(step, extra * self._diagonal)
        for other, other_extra in self._extra.items():
            if other != place:
                added[2, other] = -dot(other_extra, change)
        added[3, 0] = dot(
            change, self._preconditioner.solve_block(change) - change / self._diagonal
        )
        pairs[self.indices, place] = step + extra
        self._steps[place], self._extra[place] = step, extra
        return added

    def remove_pair(self, place: int) -> None:
        """Forget a pair."""
        self._steps.pop(place, None)
        self._extra.pop(place, None)

    def step(self, place: int) -> Vector:
        """Return the step of a pair, for the weights of the block."""
        return self._steps[place]

    def quadratic(self, direction: Vector) -> float:
        """Return ``d'Rd``."""
        part = direction[self.indices]
        return float(dot(part, multiply(self.rest, part))) if part.size else 0.0

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

        ``direction`` is the starting point and receives the result. Coordinate descent and `search_signs`
        find the signs of ``w + d``; given these, the solution of linear equations is exact. The signs of the
        last call are tried first. The search solves at most ``max_solves`` systems of equations. Returns the
        signs, 0 for weights that are zero and for those that are not active.
        """
        arrays = slopes, w, c1, scale, is_active
        if self._signs.size and self._solve_for_signs(self._signs, *arrays, direction):
            return self._signs
        self._signs = descend_block(self._block, *arrays, N_SWEEPS, direction)
        if not self._solve_for_signs(self._signs, *arrays, direction):
            search_signs(self._block, *arrays, max_solves, 0.0, direction)
            self._signs = np.where(is_active, np.sign(w + direction), 0.0).astype(np.int8)
        return self._signs

    def _solve_for_signs(
        self,
        signs: NDArray[np.int8],
        slopes: Vector,
        w: Vector,
        c1: Vector,
        scale: float,
        is_active: NDArray[np.bool_],
        direction: Vector,
    ) -> bool:
        """Set ``direction`` to the minimum if ``w + d`` has the given signs there; return whether it has."""
        if (signs[~is_active] != 0).any():
            return False
        moving, at_zero = np.flatnonzero(signs), is_active & (signs == 0)
        exact = np.where(at_zero, -w, 0.0)
        if moving.size:
            lower = self._factor(moving)
            if lower.size == 0:
                return False
            right = -(slopes + c1 * signs) / scale - multiply(self._block, exact)
            exact[moving] = solve_cholesky(lower, right[moving])
        if (np.sign((w + exact)[moving]) != signs[moving]).any():
            return False
        slope = slopes + scale * multiply(self._block, exact)
        if (np.abs(slope[at_zero]) > c1[at_zero] * (1.0 + 1e-9)).any():
            return False
        direction[:] = exact
        return True

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
        solved = solve_cholesky_rows(lower, np.ascontiguousarray(part.T))
        return matmul(solved / scale, part)

    def _factor(self, moving: NDArray[np.int64]) -> Vector:
        """Return the Cholesky factor of a part of the block; the last one is kept."""
        key = moving.tobytes()
        if self._factor_of is None or self._factor_of[0] != key:
            part = np.ascontiguousarray(self._block[np.ix_(moving, moving)])
            self._factor_of = key, part if factorise(part) else np.empty((0, 0))
        return self._factor_of[1]
