"""Boosting of chains with two labels: several rounds in one compiled call.

The columns of an output code are such models. A round of them takes less than a millisecond, so that calls
from Python would take a good part of the time, and threads would wait for each other. The rounds are those
of `Boosting`, up to the last bits of exponentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.learning.boosting import Boosting, FeatureTreeGrower, GrownTrees
from seqlab.learning.boosting.boosting import MAX_HALVINGS
from seqlab.learning.boosting.growers import add_leaves, grow_trees
from seqlab.optim import FitState
from seqlab.structures.chain.pair_passes import add_two_label_sums
from seqlab.utils.linalg import dot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]

# Rounds of one call: as many as pass over this number of steps, which takes some milliseconds. An interrupt
# waits for them, and the times in the history of a fit are those of the calls.
STEPS_PER_CALL, MAX_ROUNDS_PER_CALL = 100_000, 16
GOES_ON, CONVERGED, NO_STEP, OUT_OF_RANGE = range(4)


class TwoLabelBoosting(Boosting):
    """Rounds of tree boosting for a chain with two labels, exact and with previous labels.

    Parameters
    ----------
    *arguments, **options
        See `Boosting`.
    max_iter : int
        Number of rounds that are needed at most.
    """

    grower: FeatureTreeGrower

    def __init__(self, *arguments: Any, max_iter: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.max_iter = max_iter
        self._calls: list[GrownTrees] = []  # the trees of all rounds of a call, times their steps

    def first_rounds(self, n_rounds: int) -> list[tuple[float, list[Any]]]:
        """Return the steps and trees of the first rounds; here several rounds are one item."""
        out, n_left = [], n_rounds
        for trees in self._calls:
            n_own = min(n_left, (trees.tree_offsets.size - 1) // 2)
            if n_own > 0:
                out.append((1.0, [_first_trees(trees, 2 * n_own)]))
            n_left -= n_own
        return out + super().first_rounds(n_left)

    def states(self) -> Iterator[FitState]:
        """Yield a state after each round; its point is the number of rounds."""
        objective = self._evaluate(beam=None)
        n_together = min(
            max(STEPS_PER_CALL // max(self.bound.X.n_steps, 1), 1), MAX_ROUNDS_PER_CALL
        )
        n_done = 0
        while True:
            n_wanted = max(min(n_together, self.max_iter - n_done), 1)
            steps, objectives = np.zeros((2, n_wanted))
            arguments: Any = (
                objective, self.learning_rate, self.tol, self.scores.node, self.scores.pair,
                self.codes, self.scores.rows, self.weights, self.bound.X.offsets, self.sums.scale,
                self.sums.gradient, self.sums.curvature, self._curvature, *self.grower.arguments,
                steps, objectives,
            )  # fmt: skip
            n_new, status, step, trees, last = run_rounds(*arguments)
            self._calls.append(_as_trees(trees))
            for r in range(n_new):
                converged = status == CONVERGED and r == n_new - 1
                info = {"step": float(steps[r])}
                yield FitState(n_done + r + 1, float(objectives[r]), converged=converged, info=info)
            n_done += n_new
            objective = float(objectives[n_new - 1]) if n_new else objective
            if status == CONVERGED:
                return
            if status == NO_STEP:
                yield FitState(n_done, objective, converged=True, info={"step": 0.0})
                return
            if status == OUT_OF_RANGE:
                pending = [GrownTrees(*last)]
                yield from self._continue(n_done, objective, pending, step)
                return

    def _continue(
        self, n_before: int, objective: float, pending: list[Any], step: float
    ) -> Iterator[FitState]:
        """Yield the other rounds, whose scores need log space, one by one."""
        self._label_blocks = [slice(0, 2)]
        for state in self._rounds_from([objective], (pending, step)):
            state.point += n_before
            yield state


def _as_trees(arrays: Any) -> GrownTrees:
    """Return trees whose rows are not needed any more."""
    nothing = np.zeros(0, dtype=np.int64)
    without_rows: Any = *arrays, nothing.astype(np.int32), nothing, nothing
    return GrownTrees(*without_rows)


def _first_trees(trees: GrownTrees, n_trees: int) -> GrownTrees:
    offsets = trees.tree_offsets[: n_trees + 1]
    nodes = slice(0, offsets[-1])
    return _as_trees((offsets, *(array[nodes] for array in trees[1:8])))


@njit(nogil=True, cache=True)
def run_rounds(
    objective: float,
    learning_rate: float,
    tol: float,
    node: Floats,
    pair: Floats,
    codes: Ints,
    rows: Ints32,
    weights: Floats,
    offsets: Ints,
    scale: float,
    gradient: Ints,
    curvature: Ints,
    tree_curvature: Ints,
    indptr: Ints32,
    entries: Ints32,
    list_begin: Ints32,
    listed_rows: Ints32,
    bin_begin: Ints32,
    default_bin: Ints32,
    is_categorical: Bools,
    l2: float,
    min_curvature: float,
    max_leaf_nodes: int,
    max_value: float,
    min_gain: float,
    steps: Floats,
    objectives: Floats,
) -> Any:
    """Run up to ``steps.size`` rounds.

    Parameters
    ----------
    objective : float
        At the current scores.
    learning_rate, tol : float
    node, pair : arrays
        The scores; changed in place.
    codes, rows, weights, offsets : arrays
        The data.
    scale, gradient, curvature
        Of the `PairSums` at the current scores; changed in place.
    tree_curvature : int64 array
        What the trees divide by: ``curvature``, or the weights of the cells for least squares.
    indptr, ..., min_gain
        See `grow_tree`.
    steps, objectives : arrays of shape (n_rounds,)
        Receive those of the rounds.

    Returns
    -------
    n_done : int
    status : int
        `GOES_ON`, `CONVERGED`, `NO_STEP` (the trees of one more round have been taken back) or
        `OUT_OF_RANGE` (the trees of one more round have been added, times ``step``).
    step : float
    trees : tuple of arrays
        Those of `grow_trees` for all rounds, up to ``gain``, with values and gains times the step.
    last : tuple of arrays
        Those of `grow_trees` for the last round.
    """
    n_rounds, n_columns = steps.size, gradient.shape[2]
    log_likelihood = np.empty(offsets.size - 1)
    tree_offsets = np.zeros(2 * n_rounds + 1, dtype=np.int64)
    status, n_done, step, n_halved = GOES_ON, 0, 0.0, -1
    # Each function is called in one place only, because it is compiled into this one.
    while True:
        if n_halved < 0:  # a new round
            last = grow_trees(
                gradient, tree_curvature, scale, indptr, entries, list_begin, listed_rows,
                bin_begin, default_bin, is_categorical, l2, min_curvature, max_leaf_nodes,
                max_value, min_gain, learning_rate, node, pair,
            )  # fmt: skip
            step, n_halved = learning_rate, 0
            if n_done == 0:
                most = 2 * n_rounds * (last[1].size // 2 + 1)
                feature, place = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
                child = np.empty(most, dtype=np.int32)
                goes_left = np.empty((most, last[4].shape[1]), dtype=np.bool_)
                member = np.empty((most, n_columns), dtype=np.bool_)
                value, gain = np.empty(most), np.empty(most)
        gradient[:] = 0
        curvature[:] = 0
        is_in_range = add_two_label_sums(
            node, pair, codes, rows, weights, offsets, scale, gradient, curvature, log_likelihood
        )
        new = -dot(weights, log_likelihood)
        if not is_in_range or not np.isfinite(new):
            status = OUT_OF_RANGE
            break
        if new > objective:
            if n_halved < MAX_HALVINGS:
                step *= 0.5
            else:
                status = NO_STEP
            add_leaves(
                last[0], last[1], last[5], last[6], last[8], last[9], last[10], -step, node, pair
            )
            if status == NO_STEP:
                break
            n_halved += 1
            continue
        n_halved = -1
        a = tree_offsets[2 * n_done]
        b = a + last[1].size
        tree_offsets[2 * n_done + 1], tree_offsets[2 * n_done + 2] = a + last[0][1], b
        if b > feature.size:
            size = max(2 * feature.size, b)
            feature, place, child = longer(feature, size), longer(place, size), longer(child, size)
            goes_left, member = longer_rows(goes_left, size), longer_rows(member, size)
            value, gain = longer(value, size), longer(gain, size)
        for i in range(b - a):
            feature[a + i], place[a + i], child[a + i] = last[1][i], last[2][i], last[3][i]
            value[a + i], gain[a + i] = last[6][i] * step, last[7][i] * step
            for j in range(goes_left.shape[1]):
                goes_left[a + i, j] = last[4][i, j]
            for j in range(n_columns):
                member[a + i, j] = last[5][i, j]
        steps[n_done], objectives[n_done] = step, new
        is_slow = abs(objective - new) <= tol * abs(objective)
        objective = new
        n_done += 1
        if is_slow:
            status = CONVERGED
            break
        if n_done == n_rounds:
            break
    n = tree_offsets[2 * n_done]
    trees = (
        tree_offsets[: 2 * n_done + 1].copy(), feature[:n].copy(), place[:n].copy(),
        child[:n].copy(), goes_left[:n].copy(), member[:n].copy(), value[:n].copy(),
        gain[:n].copy(),
    )  # fmt: skip
    return n_done, status, step, trees, last


@njit(nogil=True, cache=True)
def longer(array: Any, size: int) -> Any:
    """Return a longer copy of an array."""
    out = np.empty(size, dtype=array.dtype)
    for i in range(array.size):
        out[i] = array[i]
    return out


@njit(nogil=True, cache=True)
def longer_rows(array: Any, size: int) -> Any:
    """Return a copy of an array with more rows."""
    out = np.empty((size, array.shape[1]), dtype=array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            out[i, j] = array[i, j]
    return out
