"""The dense blocks in the quadratic model of the proximal quasi-Newton solver.

Given the unknowns of the limited-memory matrix, the model is a sum over the weights that are in no block, and
over the blocks: see `BlockProblem` for the minimum of the part of one block.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqlab.optim.block_problem import BlockProblem
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.state import Vector
from seqlab.utils.linalg import dot, multiply


class BlockTerms:
    """What blocks add to inner products of pairs, and the minimum of their part of the model.

    Vectors for the weights of the blocks are in the order of ``indices``.

    Parameters
    ----------
    preconditioner : Preconditioner
    """

    def __init__(self, preconditioner: Preconditioner) -> None:
        self.indices = preconditioner.indices
        self._preconditioner = preconditioner
        self._problems = [BlockProblem(block) for block in preconditioner.blocks]
        ends = np.cumsum([0, *(block.indices.size for block in preconditioner.blocks)])
        self._parts = [slice(*pair) for pair in pairwise(ends.tolist())]
        self._diagonal = preconditioner.working_diagonal()[self.indices]
        self._steps: dict[int, Vector] = {}
        self._extra: dict[int, Vector] = {}

    def add_pair(self, place: int, step: Vector, change: Vector, pairs: Vector) -> Vector:
        """Add a pair, of which ``pairs`` holds step and change; return what to add to its products.

        The kernels multiply an entry of a step by the diagonal. The product with the whole block divided by
        the diagonal is stored instead, so that they compute the product with the block.
        """
        if self.indices.size == 0:
            return np.zeros((4, pairs.shape[1] // 2))
        extra = self._multiply_rest(step) / self._diagonal
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
        """Return the step of a pair, for the weights of the blocks."""
        return self._steps[place]

    def quadratic(self, direction: Vector) -> float:
        """Return ``d'Rd``, where R holds the blocks with a diagonal of zeros."""
        part = direction[self.indices]
        return float(dot(part, self._multiply_rest(part))) if part.size else 0.0

    def _multiply_rest(self, vector: Vector) -> Vector:
        out = np.empty_like(vector)
        for problem, part in zip(self._problems, self._parts, strict=True):
            out[part] = multiply(problem.rest, vector[part])
        return out

    def rest_rows(self) -> tuple[Vector, NDArray[np.int64]]:
        """Return R with one row per weight, of its block alone, and the place of that in ``indices``.

        Rows of smaller blocks end with zeros.
        """
        widths = [part.stop - part.start for part in self._parts]
        rows = np.zeros((self.indices.size, max(widths, default=0)))
        for problem, part, width in zip(self._problems, self._parts, widths, strict=True):
            rows[part, :width] = problem.rest
        first = np.repeat([part.start for part in self._parts], widths).astype(np.int64)
        return rows, first

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
        """Minimise ``slopes'd + s d'Hd / 2 + sum c1 |w + d|`` over the active weights of the blocks H.

        ``direction`` is the starting point and receives the result; see `BlockProblem.minimise`. Returns the
        signs, 0 for weights that are zero and for those that are not active.
        """
        signs = np.empty(self.indices.size, dtype=np.int8)
        for problem, part in zip(self._problems, self._parts, strict=True):
            arrays = slopes[part], w[part], c1[part], scale, is_active[part], direction[part]
            signs[part] = problem.minimise(*arrays, max_solves=max_solves)
        return signs

    def gram(self, rows: Vector, signs: NDArray[np.int8], scale: float) -> Vector:
        """Return ``Q'(s H)^-1 Q`` over the weights that are not zero; ``rows`` are those of Q.

        Raises `LinAlgError` if rounding errors make a part of H indefinite.
        """
        total = np.zeros((rows.shape[1], rows.shape[1]))
        for problem, part in zip(self._problems, self._parts, strict=True):
            total += problem.gram(rows[part], signs[part], scale)
        return total
