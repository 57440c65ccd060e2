"""Approximate Hessian of a penalised likelihood: preconditioners, and the curvature of slow directions.

Features that are frequent and almost collinear (a constant, "is not a title", "is not upper case") are the
reason why quasi-Newton methods converge slowly on text: the diagonal of the Hessian is large for each of
them, but the curvature in the direction of a difference of two is hardly more than that of the penalty. So
the weights with the largest diagonal entries get a dense block: on 30 problems with c1 = 0 this took 0.58
times as many iterations, with c1 = 0.1 0.74 times as many. For the other weights of a long fit the square
root of the diagonal is a compromise. Late in a fit with an L1 penalty the diagonal itself is better.

If there are few features, each label has its own block (see `seqlab.structures.chain.label_blocks`), and the
transitions have the diagonal, corrected along directions that run through several blocks: the OCR letters
took 10 instead of 49 iterations with c2 = 1, 19 instead of 156 with c2 = 0.1 (14 and 59 with blocks alone).
With an L1 penalty there are the blocks alone, and weights of a feature move together where only the penalty
changes (see `PenalisedObjective.reduce_penalty`): 14 fits to numbers that are correlated took 13 to 103
iterations instead of 72 to 954. A block of the transitions did not help.

After ten iterations with an L1 penalty the block is that of weights which are not zero, all transitions among
them, with the covariances between steps. On three problems with slow fits, 95 to 99 % of the error, in the
metric of the block without these covariances, was along one to eleven directions through the transitions, to
which that block gave 100 to 2,400 times their curvature. On 15 data sets, fits with c1 = 0.1 took 0.82 times
as many iterations (mails about half), and ended nearer to the optimum.

If there are few weights and labels stay the same for many steps, all of the Hessian is computed, with the
covariances between steps (see `seqlab.structures.chain.hessian`); in long fits, whatever the labels. On eight
random problems on which fits had ended too early, tight fits took 42 to 88 iterations instead of 140 to
2,736.

If columns are numbers that are almost collinear, the objective may be flat far from the optimum. So before a
point is accepted, a block is computed without the shrinkage of correlations that is otherwise prudent, and
with all weights if they are few: six of about 2,000 random fits had ended 0.1 to 0.4 % above the optimum.

A decrement computed from the diagonal underestimates the distance from the optimum for the same reason. There
the geometric mean of the diagonal and the curvature of the penalty is used: on 31 problems it was 0.3 to 20
times the true distance, whereas the decrement from the diagonal was 0.06 to 10 times it, and the certain
bound 1.4 to 1,000 times.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.likelihood import PenalisedObjective
from seqlab.optim import BlockPreconditioner, Preconditioner
from seqlab.structures import SquareShares
from seqlab.utils.linalg import dot

Floats = NDArray[np.float64]
# Smallest curvature of a weight, for features of scale 1: limits steps of weights without data and penalty.
MIN_CURVATURE = 1e-3
# The same for slow directions.
MIN_SLOW_CURVATURE = 1e-5
# Smallest share of the squares of a feature that is not due to outliers or an offset.
MIN_SHARE = 1e-12
# With a smaller share, next to values 1e6 times as large as typical ones, no curvature is reliable.
MIN_RELIABLE_SHARE = 1e-11
# If a share is smaller, next to large offsets or outliers, the block of nonzero weights is not used: one fit
# took more than 1,000 iterations with it, and 140 without.
MIN_TYPICAL_SHARE = 1e-3
# Factor of the data part of the diagonal. About twenty features are active in a step of text, and moving all
# of them has far more curvature than the diagonal says; the curvature of the penalty is exact. With a factor
# of 1 the solver would divide both by the same number, and weights of rare features would move too slowly.
# On 30 problems factors of 2, 3 and 4 took 0.96, 0.94 and 0.92 times as many iterations.
COLLECTIVE = 3.0
# Factor of the decrement of slow directions. If there is a block, the decrement without it counts half.
CAUTION = 3.0
# Number of iterations after which the preconditioner is computed anew, then after three, seven, ... times as
# many.
FIRST_RENEWAL = 5
# Number of iterations after which the whole Hessian is computed, if that is possible, or, with an L1 penalty,
# a block of nonzero weights; and after which the whole Hessian is precise, because it no longer changes fast.
# It may take a share of the time of the iterations before: a long fit can afford more. So may a block of
# nonzero weights if labels stay the same for many steps, when covariances between steps matter most: with at
# most 200 weights in a block, two fits to records of sensors took 66 and 74 iterations, with `LONG_SHARE` 122
# and 179, and with blocks of labels 463 and 728.
HESSIAN_FROM, LATE = 10, 30
HESSIAN_SHARE = 0.7
# Before a point is accepted, blocks of labels may take this share of the time of the fit. If columns are
# nearly collinear, no other model sees that the objective only seems to be flat.
CHECK_SHARE = 0.3
# With an L1 penalty, a block of nonzero weights, and those of labels, may take this share of the time of the
# iterations before. For the first one, 0.2 took as long on 15 data sets. With blocks of labels, 25 fits to
# few sequences of many columns took 0.3 to 1 times as many iterations as without such a share, in 0.4 to 1.1
# times the time. With 0.2 they took fewer iterations, but one took 1.4 times as long as with 0.1.
LONG_SHARE = 0.1
# Smallest share of the curvature of its single weights that a direction through several blocks has: the
# Hessian among such directions comes from a sample.
MIN_DIRECTION_SHARE = 1e-5
# Factor of the decrement of slow directions if there are blocks of labels. It changes up to twentyfold from
# one iteration to the next, and in the last iterations of three fits was 0.6 to 50 times the true distance;
# so it only says that an optimum is not near.
ROUGH_CAUTION = 0.1
# Share of the diagonal that is added to a Hessian, against rounding errors.
RIDGE = 1e-8


class LikelihoodCurvature:
    """Approximate Hessian of a `PenalisedObjective`; implements `seqlab.optim.CurvatureModel`.

    Parameters
    ----------
    objective : PenalisedObjective
    sparse : bool, default=False
        Whether there is an L1 penalty.
    """

    def __init__(self, objective: PenalisedObjective, *, sparse: bool = False) -> None:
        self.objective = objective
        self.sparse = sparse
        self.slow: Floats | None = None
        squares = objective.term.squared_scales()
        # Features that are always zero count as if their scale were 1.
        self._squares = np.ones(1) if squares is None else np.where(squares > 0.0, squares, 1.0)
        self.is_even = squares is None
        counted = 1.0 if objective.penalised is None else objective.penalised.astype(np.float64)
        self._penalty = 2.0 * objective.c2 * counted
        # The smallest curvatures are relative to the weights of samples.
        is_counted = objective.term.weights > 0.0
        self._unit = (
            float(np.mean(objective.term.weights, where=is_counted)) if is_counted.any() else 1.0
        )
        self._block: Preconditioner | None = None  # the last one with a block
        self._n_done = 0
        self._is_near = False  # whether the fit started near the optimum
        # Whether a point was about to be accepted. Blocks are then precise.
        self._is_checked = False

    def at_zero(self, zero: Floats) -> Preconditioner | None:
        """Return a preconditioner that makes a solver independent of the scale of features.

        It is the diagonal of the Hessian at zero, with one frequency for all features: with their true
        frequencies, 150 sentences of CoNLL-2000 took 1.7 (c2 = 1) to 4.1 (c2 = 0.01) times as many
        iterations. Under an L1 penalty the square roots of their frequencies are better. Multiplied by a
        factor such that the first step is as long as the diagonal model of the objective suggests.
        None if it is not available, if squares overflow, or if it would be constant. ``zero`` is the
        starting point: its value and gradient are kept for the solver.
        """
        diagonal = self.objective.term.curvature_at_zero()
        if diagonal is None or not np.isfinite(self._squares).all():
            return None
        frequency = 1.0 if self.is_even else float(np.mean(diagonal / self._squares))
        total = self._add_penalty(diagonal)
        self._set_slow(total)
        if self.sparse:
            scales = self._roots(total)
        elif not self.is_even:
            scales = frequency * self._squares + self._penalty
        else:
            return None
        return Preconditioner(_fit_length(scales, total, self.objective.loss_gradient(zero)[1]))

    def after_passes(self, w: Floats, gradient: Floats, *, weak: bool) -> Preconditioner:
        """Return the preconditioner at the end of stochastic passes: the diagonal, or its square root.

        With a weak penalty the passes end far from the optimum, the model becomes more confident after
        that, and the curvature at ``w`` is no longer valid: CoNLL-2000 with c2 = 0.01 then takes 79
        evaluations with the root and more than 120 with the diagonal; with c2 = 1 it is 17 and 10. With an
        L1 penalty the root is better too.
        """
        self._is_near = not (weak or self.sparse)
        found = self._approximate(w, gradient)
        assert found is not None, "a structure with stochastic passes computes its curvature"
        return found

    def renew(self, n_done: int, w: Floats, gradient: Floats) -> Preconditioner | None:
        """Return a new preconditioner after 5, 15, 35, 75, ... iterations; None otherwise.

        If the fit started near the optimum, the first of these is skipped.
        """
        self._n_done = n_done
        doublings, rest = divmod(n_done + FIRST_RENEWAL, 2 * FIRST_RENEWAL)
        if rest or doublings & (doublings - 1) or (doublings == 1 and self._is_near):
            return None
        return self._approximate(w, gradient)

    def check(self, w: Floats) -> Preconditioner | None:
        """Return a preconditioner for a point that is about to be accepted, and update ``slow``.

        None if all features have scale 1: then the diagonal computed last is good enough, and a pass over
        the data is a noticeable share of a fast fit.
        """
        if self.is_even:
            return None
        self._is_checked = True
        self.objective.term.afford_label_blocks(CHECK_SHARE * self._n_done, sparse=self.sparse)
        diagonal = self._compute(w)
        if diagonal is None:
            return None
        return self._with_block(w, diagonal, diagonal * self._shares)

    def slow_decrement(self, gradient: Floats) -> float | None:
        """Return the decrease predicted by the curvature of slow directions; None if that is not known."""
        if self.slow is None or isinstance(self._block, BlockPreconditioner):
            return None  # the decrease of the objective is steadier; see `rough_decrement`
        decrement = 0.5 * float(dot(gradient / self.slow, gradient))
        if self._block is None:
            return CAUTION * decrement
        chosen = self._block.indices
        of_block = gradient[chosen]
        others = decrement - 0.5 * float(dot(of_block / self.slow[chosen], of_block))
        with_block = others + 0.5 * float(dot(of_block, self._block.solve_block(of_block)))
        return CAUTION * max(with_block, 0.5 * decrement)

    def rough_decrement(self, gradient: Floats) -> float:
        """Return a tenth of the decrement of slow directions if there are blocks of labels, else 0."""
        if self.slow is None or not isinstance(self._block, BlockPreconditioner):
            return 0.0
        return 0.5 * ROUGH_CAUTION * float(dot(gradient / self.slow, gradient))

    def _approximate(self, w: Floats, gradient: Floats) -> Preconditioner | None:
        """Return a preconditioner for the Hessian at ``w``; None if it is not available."""
        if self.sparse:
            self.objective.term.afford_label_blocks(LONG_SHARE * self._n_done, sparse=True)
        diagonal = self._compute(w)
        if diagonal is None:
            return None
        is_late = self.sparse and self._n_done >= LATE
        if self._is_near:
            scales = self._data_part(diagonal)
            scales *= COLLECTIVE - 1.0
            scales += diagonal
            return self._with_block(w, diagonal, scales)
        scales = diagonal if is_late else self._roots(diagonal)
        return self._with_block(w, diagonal, _fit_length(scales, diagonal, gradient))

    def _with_block(self, w: Floats, diagonal: Floats, scales: Floats) -> Preconditioner:
        """Return a preconditioner with blocks of the Hessian, if there are any, and ``scales`` elsewhere."""
        data = self._data_part(diagonal)
        has_long_runs = self.sparse and self.objective.term.has_long_runs
        found = (
            self._whole_hessian(w, diagonal, data, scales)
            or (has_long_runs and self._nonzero_block(w, diagonal, data, scales))
            or self._label_blocks(diagonal, data, diagonal if self._is_near else scales)
            or self._nonzero_block(w, diagonal, data, scales)
            or self._largest_block(w, diagonal, data, scales)
            or None
        )
        self._block = found if found is not None and found.has_block else None
        return found or Preconditioner(scales)

    def _whole_hessian(
        self, w: Floats, diagonal: Floats, data: Floats, scales: Floats
    ) -> Preconditioner | None:
        """Return the Hessian with covariances between steps, if there are few weights."""
        if self._n_done < HESSIAN_FROM:
            return None
        is_late = self._n_done >= LATE
        hessian = self.objective.term.hessian(
            w,
            max_passes=HESSIAN_SHARE * self._n_done,
            precise=is_late,
            any_labels=(is_late or self._is_checked) and self.is_reliable,
        )
        if hessian is None:
            return None
        hessian[np.diag_indices_from(hessian)] += self._added_curvature(diagonal, data)
        every = np.arange(diagonal.size)
        found = Preconditioner(scales, [(every, hessian)], keep_blocks=self.sparse)
        return found if found.has_block else None

    def _label_blocks(
        self, diagonal: Floats, data: Floats, scales: Floats
    ) -> Preconditioner | None:
        """Return a block for the weights of each label, if there are few features.

        With an L1 penalty there are no directions through several blocks.
        """
        model = self.objective.term.label_blocks(data, sparse=self.sparse, precise=self._is_checked)
        if model is None:
            return None
        penalty = diagonal - data
        for chosen, block in model.blocks:
            block[np.diag_indices_from(block)] += penalty[chosen]
        if self.sparse:
            found = Preconditioner(scales, model.blocks)
            return found if found.has_block else None
        directions = model.directions
        hessian = model.hessian + (directions.multiply(penalty) @ directions.T).toarray()
        least = MIN_DIRECTION_SHARE * (directions.multiply(directions) @ diagonal)
        hessian[np.diag_indices_from(hessian)] += least
        found = BlockPreconditioner(scales, model.blocks, directions, hessian)
        return found if found.has_block else None

    def _nonzero_block(
        self, w: Floats, diagonal: Floats, data: Floats, scales: Floats
    ) -> Preconditioner | None:
        """Return a block, with covariances between steps, for weights that an L1 penalty leaves nonzero.

        In the first iterations these still change, and before a point is accepted the block must be precise.
        """
        if not self.sparse or self._is_checked or self._n_done < HESSIAN_FROM:
            return None
        if np.min(self._shares, initial=1.0) < MIN_TYPICAL_SHARE:
            return None
        term = self.objective.term
        share = HESSIAN_SHARE if term.has_long_runs else LONG_SHARE
        found = term.nonzero_block(w, data, max_passes=share * self._n_done)
        if found is None:
            return None
        chosen, block = found
        block[np.diag_indices_from(block)] += self._added_curvature(diagonal, data)[chosen]
        preconditioner = Preconditioner(scales, [(chosen, block)])
        return preconditioner if preconditioner.has_block else None

    def _added_curvature(self, diagonal: Floats, data: Floats) -> Floats:
        """Return what is added to the diagonal of a Hessian of the data: the penalty, or a little more.

        Without a penalty there are directions of almost no curvature: steps must be limited.
        """
        least = np.maximum(diagonal - data, MIN_CURVATURE * self._unit * self._squares)
        added: Floats = least + RIDGE * diagonal
        return added

    def _largest_block(
        self, w: Floats, diagonal: Floats, data: Floats, scales: Floats
    ) -> Preconditioner | None:
        """Return a block for the weights with the largest diagonal entries."""
        found = self.objective.term.curvature_block(
            w, data, sparse=self.sparse, precise=self._is_checked
        )
        if found is None:
            return None
        chosen, block = found
        block[np.diag_indices_from(block)] += (diagonal - data)[chosen]
        return Preconditioner(scales, [(chosen, block)], keep_blocks=self.sparse)

    def _compute(self, w: Floats) -> Floats | None:
        """Return the diagonal of the Hessian at ``w``, and store the curvature of slow directions."""
        diagonal = self.objective.term.curvature(w)
        if diagonal is None:
            return None
        diagonal = self._add_penalty(diagonal)
        self._set_slow(diagonal)
        return diagonal

    def _add_penalty(self, diagonal: Floats) -> Floats:
        """Add the curvature of the penalty in place; weights without data and penalty get a minimum."""
        diagonal += self._penalty
        return np.maximum(diagonal, MIN_CURVATURE * self._unit * self._squares, out=diagonal)

    def _data_part(self, diagonal: Floats) -> Floats:
        """Return a diagonal without the curvature of the penalty."""
        data = diagonal - self._penalty
        return np.maximum(data, 0.0, out=data)

    def _set_slow(self, diagonal: Floats) -> None:
        """Set ``slow``, the geometric mean of the diagonal and the least curvature of each weight.

        The part of outliers and of the offset of a column in the diagonal is removed: next to a few rows of
        values of 1e6, or to the mean of a time stamp, the gradient of everything else would count as
        negligible, although the objective is far from its optimum. So would the gradient of a column in
        which a missing value is 999999, if its scale were that of the outlier.
        """
        least = np.sqrt(np.maximum(self._penalty, MIN_SLOW_CURVATURE * self._unit))
        squares = self._squares * self._square_shares.without_outliers
        least = least * np.sqrt(np.maximum(squares / np.median(squares), 1.0))
        slow = diagonal * self._shares
        self.slow = np.sqrt(slow, out=slow)
        self.slow *= least

    def _roots(self, diagonal: Floats) -> Floats:
        """Return the square root of a diagonal, in units in which every feature has scale 1."""
        roots: Floats = np.sqrt(diagonal) * np.sqrt(self._squares)
        return roots

    @cached_property
    def is_reliable(self) -> bool:
        """Whether the curvature says how far the optimum is: not if a feature has extreme outliers."""
        return bool(np.min(self._shares, initial=1.0) >= MIN_RELIABLE_SHARE)

    @cached_property
    def _shares(self) -> Floats:
        shares = self._square_shares
        return np.maximum(shares.without_outliers * shares.without_offset, MIN_SHARE)

    @cached_property
    def _square_shares(self) -> SquareShares:
        found = None if self.is_even else self.objective.term.square_shares()
        return SquareShares(np.ones(1), np.ones(1)) if found is None else found


def _fit_length(scales: Floats, diagonal: Floats, gradient: Floats) -> Floats:
    """Multiply a preconditioner by a factor: its first step then minimises the model with ``diagonal``."""
    step = gradient / scales
    curvature = float(np.sum(step * step * diagonal))
    return scales * (curvature / max(float(np.sum(step * gradient)), 1e-300) or 1.0)
