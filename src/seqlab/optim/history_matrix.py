"""The limited-memory inverse Hessian of L-BFGS and OWL-QN.

Nocedal's two-loop recursion over the last ``memory`` pairs (Nocedal & Wright, *Numerical Optimization*,
algorithm 7.4), computed on inner products: all pairs are read once for their products with the gradient and
once to combine them. The usual form also reads and writes the result once per pair in each loop. A pair whose
curvature is not clearly positive is skipped; so the matrix stays positive definite and every direction is a
descent direction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from seqlab.optim._kernels import combine, history_dots, store_pair
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.state import Vector
from seqlab.utils.linalg import BLOCK, dot
from seqlab.utils.threads import run_chunks


class InverseHessian:
    """Ring buffer of (step, gradient change) pairs, and the product of the matrix with a gradient.

    Parameters
    ----------
    n_params : int
    memory : int
        Number of pairs to keep.
    preconditioner : Preconditioner, optional
        Approximate Hessian. The matrix starts from its inverse, which makes a badly scaled problem (with
        both frequent and rare features) well scaled.
    n_jobs : int, optional
        Number of threads.
    """

    def __init__(
        self,
        n_params: int,
        memory: int,
        preconditioner: Preconditioner | None = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self._n_params, self._n_jobs = n_params, n_jobs
        self._set_preconditioner(preconditioner)
        n_blocks = -(-n_params // BLOCK)
        self._pairs = np.empty((n_blocks, 2 * memory, min(BLOCK, n_params)))
        self._used = np.zeros(memory, dtype=bool)
        self._rows: list[int] = []  # rows of the pairs in use, newest first
        self._step_change = np.zeros((memory, memory))  # step i . change j
        self._change_change = np.zeros((memory, memory))  # in the metric of the preconditioner
        self._plain = np.zeros((2, memory, memory))  # step i . step j and change i . change j
        # Gradient changes of the weights in the block, and their products with its inverse.
        self._block_changes: dict[int, Vector] = {}
        self._solved_changes: dict[int, Vector] = {}
        self._scale = 1.0
        # A gradient and its products with the steps and, in the metric, with the changes.
        self._known: tuple[Vector, Vector, Vector] | None = None

    def _set_preconditioner(self, preconditioner: Preconditioner | None) -> None:
        self._preconditioner, self._known = preconditioner, None
        # Kernels use the diagonal part; the block, which is small, is added to their results.
        self._inverse = np.empty(0) if preconditioner is None else preconditioner.diagonal_inverse()
        self._block = (
            np.empty(0, dtype=np.int64) if preconditioner is None else preconditioner.indices
        )

    @property
    def is_empty(self) -> bool:
        """Whether no pair is stored."""
        return not self._rows

    @property
    def is_scaled(self) -> bool:
        """Whether directions have a meaningful length: a pair or a preconditioner is known."""
        return bool(self._rows) or self._inverse.size > 0

    @property
    def first_step(self) -> float | None:
        """First step of a line search if no pair is stored; None without a preconditioner."""
        return None if self._preconditioner is None else self._preconditioner.first_step

    def clear(self, preconditioner: Preconditioner | None = None) -> None:
        """Delete all pairs; replace the preconditioner if one is given."""
        if preconditioner is not None:
            self._set_preconditioner(preconditioner)
        self._rows.clear()
        self._used[:] = False
        self._scale, self._known = 1.0, None

    def replace_preconditioner(self, preconditioner: Preconditioner) -> None:
        """Replace the preconditioner and keep all pairs."""
        self._set_preconditioner(preconditioner)
        changes = {row: self._change(row) for row in self._rows}
        for place, row in enumerate(self._rows):
            self._set_block_change(row, changes[row][self._block])
            scaled = changes[row] * self._inverse
            scaled[self._block] = self._solved_changes[row]
            for other in self._rows[: place + 1]:
                product = dot(scaled, changes[other])
                self._change_change[row, other] = self._change_change[other, row] = product
        if self._rows:
            newest = self._rows[0]
            curvature = self._step_change[newest, newest]
            self._scale = float(curvature / self._change_change[newest, newest])

    def _change(self, row: int) -> Vector:
        """Return a gradient change as one vector."""
        change: Vector = self._pairs[:, self._used.size + row].ravel()[: self._n_params]
        return change

    def _solve_block(self, right: Vector) -> Vector:
        if self._preconditioner is None or right.size == 0:
            return right
        return self._preconditioner.solve_block(right)

    def _set_block_change(self, row: int, change: Vector) -> None:
        self._block_changes[row], self._solved_changes[row] = change, self._solve_block(change)

    def _block_products(self, right: Vector) -> Vector:
        """Return the products of the changes with a vector in the metric of the block, over its weights."""
        out = np.zeros(self._used.size)
        for row, change in self._solved_changes.items() if right.size else ():
            if self._used[row]:
                out[row] = dot(change, right)
        return out

    def update(self, w: Vector, w_new: Vector, gradient: Vector, gradient_new: Vector) -> bool:
        """Store the pair of two points if its curvature is clearly positive; return whether it was."""
        memory = self._used.size
        # The oldest pair is removed first: if the new one is rejected, one pair fewer is kept.
        place = self._rows.pop() if len(self._rows) == memory else int(np.argmin(self._used))
        self._used[place] = True
        arrays = w, w_new, gradient, gradient_new, self._inverse, self._pairs

        def run(begin: int, stop: int) -> NDArray[np.float64]:
            out = np.zeros((7, memory))
            store_pair(*arrays, place, self._used, begin, stop, out)
            return out

        products = np.sum(run_chunks(run, w.size, self._n_jobs), axis=0)
        change = gradient_new[self._block] - gradient[self._block]
        self._set_block_change(place, change)
        products[2] += self._block_products(change)
        curvature, change_norm2 = products[0, place], products[2, place]
        # In the metric of the preconditioner: one column of large scale must not decide.
        if curvature <= np.finfo(np.float64).eps * change_norm2:
            self._used[place], self._known = False, None
            return False
        self._rows.insert(0, place)
        self._step_change[:, place] = products[0]
        self._step_change[place] = products[1]
        self._change_change[place] = self._change_change[:, place] = products[2]
        self._plain[:, place] = self._plain[:, :, place] = products[3:5]
        self._scale = float(curvature / products[2, place])
        self._known = gradient_new, products[5], products[6]
        return True

    def difference_products(self, shift: float) -> Vector:
        """Return the inner products of ``change - shift * step`` of all pairs, newest first."""
        rows = np.ix_(self._rows, self._rows)
        mixed = self._step_change[rows]
        of_steps, of_changes = self._plain[0][rows], self._plain[1][rows]
        products: Vector = of_changes - shift * (mixed + mixed.T) + shift * shift * of_steps
        return products

    def descend(self, gradient: Vector, out: Vector) -> float:
        """Set ``out = -H gradient``; return the decrease ``g' H g / 2`` that the quadratic model predicts.

        The decrease is infinite if nothing is known of the curvature yet.
        """
        memory = self._used.size
        arrays = gradient, self._inverse, self._pairs, self._used

        def dots(begin: int, stop: int) -> NDArray[np.float64]:
            result = np.zeros((2, memory))
            history_dots(*arrays, begin, stop, result)
            return result

        of_steps, of_changes = np.zeros(memory), np.zeros(memory)
        if self._rows:
            if self._known is not None and self._known[0] is gradient:
                _, step_gradient, change_gradient = self._known
            else:
                step_gradient, change_gradient = np.sum(
                    run_chunks(dots, gradient.size, self._n_jobs), axis=0
                )
            change_gradient = change_gradient + self._block_products(gradient[self._block])
            self._recursion(step_gradient, change_gradient, of_steps, of_changes)

        def run(begin: int, stop: int) -> None:
            combine(*arrays, -self._scale, -of_steps, of_changes, begin, stop, out)

        run_chunks(run, gradient.size, self._n_jobs)
        if self._block.size:
            rest = gradient[self._block]
            for row in self._rows:
                rest -= of_changes[row] * self._block_changes[row]
            out[self._block] -= self._scale * self._solve_block(rest)
        return -0.5 * float(dot(gradient, out)) if self.is_scaled else math.inf

    def _recursion(
        self, step_gradient: Vector, change_gradient: Vector, of_steps: Vector, of_changes: Vector
    ) -> None:
        """Run the two loops on coefficients: of the changes from new to old, of the steps from old to new."""
        for k in self._rows:
            product = step_gradient[k] - self._step_change[k] @ of_changes
            of_changes[k] = product / self._step_change[k, k]
        for k in reversed(self._rows):
            product = self._scale * (change_gradient[k] - self._change_change[k] @ of_changes)
            product += self._step_change[:, k] @ of_steps
            of_steps[k] = of_changes[k] - product / self._step_change[k, k]
