"""The quadratic model of the proximal quasi-Newton solver: the limited-memory BFGS matrix in compact form.

    B = s D - Q M Q',   Q = (s D S, Y),   M^-1 = [ s S'DS   L          ]
                                                 [ L'      -diag(S'Y)  ]

for the preconditioner D, steps S, gradient changes Y, and L the part of S'Y below its diagonal (Byrd, Nocedal
& Schnabel 1994). The scale ``s`` is chosen from the last pair, between the two usual values. D is diagonal
except for dense blocks of a few weights each; see `BlockTerms` for how they are treated.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqlab.optim._block_kernels import descend_block
from seqlab.optim._model_kernels import (
    descend_coordinates,
    diagonal_quadratic,
    linear_change,
    multiply_rows,
    store_rows,
)
from seqlab.optim._sign_search import search_signs
from seqlab.optim._tile_kernels import (
    TILE,
    UNKNOWN,
    fill_tiles,
    find_active,
    minimise_tiles,
    store_direction,
)
from seqlab.optim.block_problem import N_SWEEPS
from seqlab.optim.block_terms import BlockTerms
from seqlab.optim.preconditioner import Preconditioner
from seqlab.optim.state import Vector
from seqlab.utils.linalg import dot, matmul, multiply
from seqlab.utils.threads import run_chunks

# Newton steps to the minimum of the model; three to six are usual. If more are needed, which is rare,
# coordinate descent follows. It ends if a sweep gains less than a share of all sweeps before.
MAX_STEPS = 20
MAX_SWEEPS = 50
SWEEP_TOL = 0.01
# Share of the weights whose signs may still change in the last Newton step: they hardly matter. With shares
# of 0 to 0.03, six data sets took the same number of iterations, within 2 %. The first `FEW` weights do not
# count: if there are no others, each may matter. After `PATIENCE` steps they do: a few signs may alternate.
MAX_CHANGED, FEW, PATIENCE = 0.02, 1000, 6
# Systems of equations that the search for the signs of a block solves at most, each of which takes about as
# long as a pass over the data. On correlated numbers, 6 systems take half of the time of 200, in as many
# iterations. The decrease is then too small, and is exact with the second number. If other weights are not in
# the block, more signs must be right for the Newton steps to converge.
MAX_SOLVES, EXACT_SOLVES, NEWTON_SOLVES = 6, 2_000, 20
# If all weights are in one block: the share of the decrease at which the search ends, unless the result must
# be exact; and the factor of the decrease if it has ended before.
SEARCH_TOL, EARLY_END = 0.01, 2.0
# The scale of the preconditioner is a geometric mean of ``y'D^-1 y / s'y``, which makes steps short, and of
# ``s'y / s'Ds``, which makes them long. With this exponent of the second, six data sets took 0.92 times as
# many iterations to 0.1 % as with 0, and 0.98 times as many as with 0.5.
LENGTH = 0.25


class QuadraticModel:
    """Ring buffer of (step, gradient change) pairs, and the minimum of the model with an L1 penalty.

    Parameters
    ----------
    preconditioner : Preconditioner
        Approximate Hessian, up to a factor.
    memory : int
        Number of pairs to keep, rounded up to an even number.
    n_jobs : int, optional
        Number of threads.
    """

    def __init__(
        self, preconditioner: Preconditioner, memory: int, *, n_jobs: int | None = None
    ) -> None:
        self._set_preconditioner(preconditioner)
        self._memory = memory = memory + memory % 2  # even, for the kernels
        self._n_jobs = n_jobs
        self._pairs = np.zeros((self.diagonal.size, 2 * memory))
        self._order: list[int] = []  # places of the pairs, oldest first
        self._step_step = np.zeros((memory, memory))  # step i . D step j
        self._step_change = np.zeros((memory, memory))  # step i . change j
        self._inverse = np.zeros((2 * memory, 2 * memory))
        self._scale = 1.0
        self._n_updates = 0
        self._last_moved = np.full(self.diagonal.size, -1 - memory)  # update of each weight
        self._active = np.empty(self.diagonal.size, dtype=np.int64)
        self._buffer = np.empty(0)

    def _set_preconditioner(self, preconditioner: Preconditioner) -> None:
        self._preconditioner = preconditioner
        self.diagonal = preconditioner.working_diagonal()
        self._block = BlockTerms(preconditioner)
        self._in_block = np.zeros(self.diagonal.size, dtype=bool)
        self._in_block[preconditioner.indices] = True

    @property
    def is_empty(self) -> bool:
        """Whether no pair is stored."""
        return not self._order

    @property
    def has_block(self) -> bool:
        """Whether the preconditioner has a dense block."""
        return self._preconditioner.has_block

    def clear(self, preconditioner: Preconditioner | None = None) -> None:
        """Delete all pairs; replace the preconditioner if one is given."""
        self._set_preconditioner(preconditioner or self._preconditioner)
        self._order.clear()
        self._pairs[:] = 0.0
        self._inverse[:] = 0.0
        self._scale = 1.0

    def remove_blocks(self) -> None:
        """Replace the preconditioner by its diagonal, and delete all pairs."""
        self.clear(Preconditioner(self._preconditioner.diagonal))

    def replace_preconditioner(self, preconditioner: Preconditioner) -> None:
        """Replace the preconditioner and keep all pairs."""
        steps = {place: self._step(place) for place in self._order}
        self._set_preconditioner(preconditioner)
        if self.is_empty:
            return
        block, memory = self._block.indices, self._memory
        for place, step in steps.items():
            change = np.ascontiguousarray(self._pairs[:, memory + place])
            scaled = self.diagonal * step
            self._pairs[:, place] = step
            added = self._block.add_pair(place, step[block], change[block], self._pairs)
            scaled[block] = self.diagonal[block] * self._pairs[block, place]
            for other, other_step in steps.items():
                self._step_step[place, other] = dot(scaled, other_step)
            # The last one remains: the scale is chosen from the newest pair.
            norm2 = float(dot(change / self.diagonal, change)) + added[3, 0]
            self._set_scale(place, norm2)
        self._set_inverse()

    def _set_scale(self, place: int, change_norm2: float) -> None:
        """Choose the scale from a pair; ``change_norm2`` is ``y'D^-1 y``."""
        curvature, step_norm2 = self._step_change[place, place], self._step_step[place, place]
        largest, smallest = change_norm2 / curvature, curvature / step_norm2
        # With few weights, one of three data sets took 1.6 times as long with longer steps.
        length = LENGTH if self.diagonal.size > FEW else 0.0
        self._scale = float(largest ** (1.0 - length) * smallest**length)

    def _step(self, place: int) -> Vector:
        """Return the step of a pair."""
        step = np.ascontiguousarray(self._pairs[:, place])
        if self._block.indices.size:
            step[self._block.indices] = self._block.step(place)
        return step

    def update(self, w: Vector, w_new: Vector, gradient: Vector, gradient_new: Vector) -> bool:
        """Store the pair of two points if its curvature is clearly positive; return whether it was."""
        memory = self._memory
        if len(self._order) == memory:
            place = self._order.pop(0)
        else:
            place = min(set(range(memory)) - set(self._order))
        arrays = w, w_new, gradient, gradient_new, self.diagonal, self._pairs, self._last_moved
        self._n_updates += 1
        # Their rows hold products with the block, which are not zero even if only other weights move.
        self._last_moved[self._block.indices] = self._n_updates

        def run(begin: int, stop: int) -> NDArray[np.float64]:
            out = np.zeros((4, memory))
            store_rows(*arrays, self._n_updates, place, begin, stop, out)
            return out

        products = np.sum(run_chunks(run, w.size, self._n_jobs), axis=0)
        block = self._block.indices
        step, change = w_new[block] - w[block], gradient_new[block] - gradient[block]
        products += self._block.add_pair(place, step, change, self._pairs)
        curvature, change_norm2 = products[1, place], products[3, 0]
        # In the metric of the diagonal: one column of large scale must not decide.
        if curvature <= np.finfo(np.float64).eps * change_norm2:
            self._pairs[:, [place, memory + place]] = 0.0
            self._block.remove_pair(place)
            self._n_updates -= 1  # counts pairs: no older pair is overwritten
            self._set_inverse()
            return False
        self._order.append(place)
        self._step_step[place] = self._step_step[:, place] = products[0, :memory]
        self._step_change[place] = products[1, :memory]
        self._step_change[:, place] = products[2, :memory]
        self._set_scale(place, change_norm2)
        self._set_inverse()
        return True

    def minimise(
        self, w: Vector, gradient: Vector, c1: Vector, direction: Vector, *, exact: bool = False
    ) -> float:
        """Set ``direction`` to the step that minimises model and penalty; return their decrease.

        If a block is ill-conditioned, the minimum is not found, and the decrease may be smaller than that
        of the minimum, unless ``exact``.
        """
        direction[:] = 0.0
        active = self._active[: find_active(w, gradient, c1, self._in_block, self._active)]
        block = self._block.indices
        in_block = (w[block] != 0.0) | (np.abs(gradient[block]) > c1[block])
        if len(self._preconditioner.blocks) == 1 and block.size == w.size:
            found = self._solve_whole(w, gradient, c1, in_block, direction, exact=exact)
            if found is not None:
                return found
        arrays = w, gradient, c1, active, in_block
        n_solves = EXACT_SOLVES if exact else NEWTON_SOLVES
        decrease = self._solve(*arrays, np.zeros(2 * self._memory), direction, n_solves)
        if decrease is not None:
            return decrease
        every = np.sort(np.concatenate([active, block[in_block]]))
        direction[:] = 0.0
        swept_decrease, products = self._sweep(w, gradient, c1, every, direction)
        swept = direction.copy()
        # The signs are almost right now.
        decrease = self._solve(*arrays, self._inverse @ products, direction, n_solves)
        if decrease is not None and decrease >= swept_decrease:
            return decrease
        direction[:] = swept
        return swept_decrease

    def _solve(
        self,
        w: Vector,
        gradient: Vector,
        c1: Vector,
        active: NDArray[np.int64],
        is_active: NDArray[np.bool_],
        shift: Vector,
        direction: Vector,
        max_solves: int,
    ) -> float | None:
        """Minimise by semi-smooth Newton steps; return the decrease, or None if they do not converge.

        Given ``u = M Q'd``, the model is a sum over weights and blocks. Its minimum ``d(u)`` is a soft
        threshold of each weight, and a small problem for each block. The steps solve ``u = M Q'd(u)``, a
        piecewise linear system of the size of the memory; the solution is exact when no weight changes its
        sign any more, and good enough when few do. ``shift`` is the first u. ``active`` are weights that are
        not in blocks, ``is_active`` says which weights of blocks are active.
        """
        places = np.array(self._order, dtype=np.int64)
        columns = np.concatenate([places, self._memory + places])
        size, block, n_tiles = columns.size, self._block.indices, -(-active.size // TILE)
        inverse, shift = self._inverse[columns[:, None], columns], shift[columns]
        rows = self._pairs[block[:, None], columns]  # of Q
        rows[:, : places.size] *= self._scale * self.diagonal[block, None]
        of_block = gradient[block], w[block], c1[block]
        part = np.zeros(block.size)
        signs = np.full((n_tiles, TILE), UNKNOWN, dtype=np.int8)
        block_signs = np.full(block.size, UNKNOWN, dtype=np.int8)
        tiles, terms, changes = self._tile_arrays(n_tiles, size)
        grams: dict[int, Vector] = {}  # of each chunk of weights

        def fill(begin: int, stop: int) -> None:
            fill_tiles(
                w, gradient, c1, active, self.diagonal, self._scale, self._pairs, places, begin, stop,
                tiles, terms,
            )  # fmt: skip

        def run(begin: int, stop: int) -> tuple[int, Vector]:
            products = np.zeros(size)
            gram = grams.setdefault(begin, np.zeros((size, size)))
            n_changed = minimise_tiles(
                tiles, terms, shift, begin // TILE, -(-stop // TILE), signs, changes,
                products, gram,
            )  # fmt: skip
            return n_changed, products

        run_chunks(fill, active.size, self._n_jobs)
        n_exact = FEW
        for n_done in range(MAX_STEPS):
            if n_done == PATIENCE:
                n_exact = 0
            found = run_chunks(run, active.size, self._n_jobs)
            n_changed = sum(one[0] for one in found)
            products = np.sum([one[1] for one in found], axis=0)
            if block.size:
                slopes, weights, penalties = of_block
                slopes = slopes - multiply(rows, shift)
                before = block_signs
                block_signs = self._block.minimise(
                    slopes, weights, penalties, self._scale, is_active, part, max_solves=max_solves
                )
                n_block = int(np.count_nonzero(block_signs != before))
                n_changed += n_block
                products = products + multiply(np.ascontiguousarray(rows.T), part)
            if self.is_empty or n_changed <= MAX_CHANGED * max(
                active.size + block.size - n_exact, 0
            ):
                store_direction(active, changes, direction)
                direction[block] = part
                every = np.zeros(2 * self._memory)
                every[columns] = products
                decrease = self._decrease(w, gradient, c1, direction, every)
                # If some signs are wrong, the objective may increase along the direction.
                return decrease if decrease >= 0.0 else None
            residual = shift - inverse @ products
            half = np.sum([grams[begin] for begin in sorted(grams)], axis=0)
            gram = half + np.tril(half, -1).T
            try:
                if block.size:
                    if n_block:  # otherwise it is that of the last step
                        of_moving = self._block.gram(rows, block_signs, self._scale)
                    gram = gram + of_moving
                jacobian = np.eye(size) - inverse @ gram
                shift = shift - np.linalg.solve(jacobian, residual)
            except np.linalg.LinAlgError:
                return None
            if not np.isfinite(shift).all():
                return None
        return None

    def _tile_arrays(self, n_tiles: int, n_columns: int) -> tuple[Vector, Vector, Vector]:
        """Return arrays for tiles, terms and changes; their memory is that of the last call."""
        sizes = n_tiles * TILE * np.array([0, n_columns, 4, 1])
        ends = np.cumsum(sizes)
        if self._buffer.size < ends[-1]:
            self._buffer = np.empty(ends[-1])
        tiles, terms, changes = (self._buffer[a:b] for a, b in pairwise(ends))
        return (
            tiles.reshape(n_tiles, n_columns, TILE),
            terms.reshape(n_tiles, 4, TILE),
            changes.reshape(n_tiles, TILE),
        )

    def _solve_whole(
        self,
        w: Vector,
        gradient: Vector,
        c1: Vector,
        is_active: NDArray[np.bool_],
        direction: Vector,
        *,
        exact: bool,
    ) -> float | None:
        """Minimise if one block, which is small, has all weights; None if B is not definite."""
        matrix = self._scale * self._preconditioner.blocks[0].matrix
        if not self.is_empty:
            rows = self._pairs.copy()
            rows[:, : self._memory] *= self._scale * self.diagonal[:, None]
            matrix -= matmul(matmul(rows, self._inverse), np.ascontiguousarray(rows.T))
        if not (np.diag(matrix) > 0.0).all():
            return None
        arrays = gradient, w, c1, 1.0, is_active
        descend_block(matrix, *arrays, N_SWEEPS, direction)
        max_solves, tol = (EXACT_SOLVES, 0.0) if exact else (MAX_SOLVES, SEARCH_TOL)
        is_minimum = search_signs(matrix, *arrays, max_solves, tol, direction)
        quadratic = float(dot(direction, multiply(matrix, direction)))
        decrease = -(float(linear_change(w, gradient, c1, direction)) + 0.5 * quadratic)
        if not decrease >= 0.0:
            direction[:] = 0.0
            return None
        # If the search has ended early, the minimum is lower.
        return decrease if is_minimum else EARLY_END * decrease

    def _decrease(
        self, w: Vector, gradient: Vector, c1: Vector, direction: Vector, products: Vector
    ) -> float:
        """Return the decrease of model and penalty along ``direction``."""
        quadratic = float(diagonal_quadratic(self.diagonal, direction))
        quadratic = self._scale * (quadratic + self._block.quadratic(direction))
        quadratic -= float(products @ self._inverse @ products)
        return -(float(linear_change(w, gradient, c1, direction)) + 0.5 * quadratic)

    def _sweep(
        self, w: Vector, gradient: Vector, c1: Vector, active: NDArray[np.int64], direction: Vector
    ) -> tuple[float, Vector]:
        """Minimise by coordinate descent; return the decrease and ``Q'd``."""
        rows, curvature = np.empty((active.size, 2 * self._memory)), np.empty(active.size)

        def run(begin: int, stop: int) -> None:
            multiply_rows(
                active, self.diagonal, self._scale, self._pairs, self._inverse, begin, stop, rows,
                curvature,
            )  # fmt: skip

        run_chunks(run, active.size, self._n_jobs)
        rank = np.full(self.diagonal.size, -1, dtype=np.int64)
        rank[self._block.indices] = np.arange(self._block.indices.size)
        rest, first = self._block.rest_rows()
        products = np.zeros(2 * self._memory)
        decrease = descend_coordinates(
            w, gradient, c1, active, self.diagonal, self._scale, self._pairs, rows, curvature,
            rank[active], self._scale * rest, first, MAX_SWEEPS, SWEEP_TOL, direction, products,
        )  # fmt: skip
        return float(decrease), products

    def _set_inverse(self) -> None:
        """Compute M, with zeros for places without a pair."""
        memory, order = self._memory, np.array(self._order, dtype=np.int64)
        self._inverse[:] = 0.0
        if order.size == 0:
            return
        products = self._step_change[order[:, None], order]
        n = order.size
        matrix = np.zeros((2 * n, 2 * n))
        matrix[:n, :n] = self._scale * self._step_step[order[:, None], order]
        matrix[n:, :n] = np.triu(products.T, 1)
        matrix[:n, n:] = matrix[n:, :n].T
        np.fill_diagonal(matrix[n:, n:], -products.diagonal())
        # Equilibrated: steps and changes have very different scales.
        roots = 1.0 / np.sqrt(np.abs(matrix.diagonal()))
        inverse = np.linalg.inv(matrix * roots[:, None] * roots) * roots[:, None] * roots
        places = np.concatenate([order, memory + order])
        self._inverse[places[:, None], places] = inverse
