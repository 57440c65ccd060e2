"""The conditional log-likelihood of a structure, as an objective.

    f(w) = sum_i a_i [ log Z(x_i) - log Z(x_i | allowed_i) ] + c2 |w|^2

``log Z(x | allowed)`` sums over the labelings that agree with what is known; if all labels are known it is
the score of the gold labeling, else the objective is not convex. The gradient is the difference of two
expected feature vectors plus ``2 c2 w``.

The data term is a sum over samples, so it can be computed on parts of the data and summed.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError, NumericalError
from seqlab.learning._kernels import penalised_sum, shift_groups
from seqlab.structures import BoundStructure, LabelCurvature, PartialLabels, SquareShares
from seqlab.utils.threads import run_chunks

Floats = NDArray[np.float64]
# Number of weights in a dense block of the Hessian: at most this, and fewer if its third power exceeds the
# operations of this number of passes over the data. With an L1 penalty it is factorised in every iteration.
MAX_BLOCK = 400
BLOCK_PASSES = {False: 20.0, True: 0.3}
# The same for a block of weights that are not zero, which saves more iterations: on 15 data sets 10 took as
# long as 3. An operation of its kernel takes about four times as long as one of a pass.
NONZERO_PASSES, PRODUCT_COST = 3.0, 4.0
# With an L1 penalty, blocks of labels replace a single block if there are this many times as many weights as
# it has: with 1.1 times, fits took 1.2 times as many iterations with them, with 1.75 times 0.06 and 0.3.
MIN_RATIO = 1.5
# The whole Hessian is worth its time if labels last at least this number of steps on average. Labels that are
# less probable than the second number, precise or not, are left out there.
MIN_RUN = 5.0
MIN_PROBABILITY = {True: 1e-3, False: 1e-2}


class TermValue(NamedTuple):
    """Value and gradient of a data term, ``loss - w . observed`` and ``sum of parts - observed``.

    The parts may come from several machines; the caller sums them in the loop that adds the penalty.
    """

    loss: float
    parts: Floats  # (n_parts, n_params)
    observed: Floats  # (n_params,), or (0,) if already subtracted in the parts


class DataTerm(Protocol):
    """The part of an objective that is a sum over the data."""

    n_params: int
    n_jobs: int | None
    is_convex: bool
    weights: Floats  # (n_samples,)

    @property
    def has_long_runs(self) -> bool:
        """Whether labels stay the same for many steps."""
        ...

    def evaluate(self, w: Floats) -> TermValue:
        """Return value and gradient at ``w``."""
        ...

    def curvature_at_zero(self) -> Floats | None:
        """Return the approximate diagonal of the Hessian at zero; None if it is not known."""
        ...

    def curvature(self, w: Floats) -> Floats | None:
        """Return the approximate diagonal of the Hessian at ``w``; None if it is not known."""
        ...

    def curvature_block(
        self, w: Floats, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return some weights and their block of the Hessian at ``w``; None if it is not known.

        ``diagonal`` is that of the Hessian, ``sparse`` whether there is an L1 penalty. The block has less
        correlation than the data suggest, and may have few weights, unless ``precise``.
        """
        ...

    def nonzero_block(
        self, w: Floats, diagonal: Floats, *, max_passes: float
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return weights that are not zero and their block of the Hessian at ``w``; None if it is not known.

        It has the covariances between steps and takes about as long as ``max_passes`` evaluations.
        """
        ...

    def label_blocks(
        self, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> LabelCurvature | None:
        """Return disjoint sets of weights and their blocks of the Hessian; None if they are not known.

        They belong to the point of the last call of `curvature`, whose result is ``diagonal``. ``sparse``
        says whether there is an L1 penalty; then there are no directions through several blocks. They have
        less correlation than the data suggest, unless ``precise``.
        """
        ...

    def afford_label_blocks(self, max_passes: float, *, sparse: bool = False) -> None:
        """Let `label_blocks`, after the next call of `curvature`, take as long as this number of passes."""
        ...

    def hessian(
        self, w: Floats, *, max_passes: float, precise: bool, any_labels: bool = False
    ) -> Floats | None:
        """Return the Hessian at ``w``; None if it is not known, or if the block is good enough.

        It takes at most about as long as ``max_passes`` evaluations, and less if it need not be ``precise``.
        With ``any_labels``, the block is not good enough whatever the labels are.
        """
        ...

    def remove_invariant_part(self, w: Floats, *, states_only: bool) -> None:
        """Subtract from ``w``, in place, its part in known directions in which the term is constant.

        With ``states_only``, those of the weights of node features.
        """
        ...

    def invariant_groups(self) -> tuple[NDArray[np.int64], int]:
        """Return the first weights of groups, and the size of each group.

        The term stays the same if one number is added to all weights of a group.
        """
        ...

    def squared_scales(self) -> Floats | None:
        """Return the squared scale of the feature of each weight; None if all are 1 or not known."""
        ...

    def square_shares(self) -> SquareShares | None:
        """Return the shares of the squares of features that are not due to outliers, or to an offset."""
        ...


class Likelihood:
    """Negative conditional log-likelihood of a structure; a `DataTerm`.

    Parameters
    ----------
    bound : BoundStructure
        The structure, bound to the training data.
    codes : int64 array of shape (n_positions,)
        Gold labels (negative if not known).
    weights : array of shape (n_samples,)
        Weight of each sample.
    allowed : boolean array of shape (n_positions, n_labels), optional
        Possible labels of each position, if some labels are not known.
    """

    def __init__(
        self,
        bound: BoundStructure,
        codes: NDArray[np.int64],
        weights: Floats,
        *,
        allowed: NDArray[np.bool_] | None = None,
    ) -> None:
        self.bound = bound
        self.codes = codes
        self.weights = weights
        self.partial: PartialLabels | None = None
        if allowed is not None and (codes < 0).any():
            self.partial = bound.partial_labels(codes, allowed)
        self.is_convex = self.partial is None
        if self.partial is not None and not (weights * self.partial.is_informative).any():
            raise InputError(
                "no sequence with a known label counts: there is nothing to learn from"
            )
        self.n_params, self.n_jobs = bound.n_params, bound.n_jobs
        # None if all are 1, which saves multiplications.
        self.varying_weights = weights if np.any(weights != 1.0) else None
        self._observed = bound.observed_features(codes, weights, self.partial)

    def evaluate(self, w: Floats) -> TermValue:
        """Return value and gradient at ``w``; the next call may overwrite the parts."""
        weights = self.varying_weights
        found = self.bound.expected_features(w, weights, self.partial)
        loss = float((found.log_z if weights is None else found.log_z * weights).sum())
        if not math.isfinite(loss):
            bad = int(np.argmax(~np.isfinite(found.log_z)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        return TermValue(loss, found.parts, self._observed)

    def curvature_at_zero(self) -> Floats | None:
        """Return the approximate diagonal of the Hessian at zero, if it is available."""
        return self.bound.curvature_at_zero(self.weights)

    def curvature(self, w: Floats) -> Floats | None:
        """Return the approximate diagonal of the Hessian at ``w``, if it is available."""
        return self.bound.curvature(w, self.varying_weights)

    def curvature_block(
        self, w: Floats, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return the weights that matter most and their block of the Hessian at ``w``, if available."""
        size = self._block_size(sparse=sparse)
        if precise and self.n_params <= MAX_BLOCK:
            size = self.n_params
        if size == 0:
            return None
        return self.bound.curvature_block(w, diagonal, size, self.varying_weights, precise=precise)

    def nonzero_block(
        self, w: Floats, diagonal: Floats, *, max_passes: float
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return weights that are not zero and their block of the Hessian at ``w``, if available."""
        work = self.bound.work_per_pass
        return self.bound.nonzero_block(
            w,
            diagonal,
            min(MAX_BLOCK, int(np.cbrt(NONZERO_PASSES * work))),
            self.varying_weights,
            min_probability=MIN_PROBABILITY[True],
            max_products=max_passes * work / PRODUCT_COST,
        )

    def has_label_blocks(self, *, sparse: bool = False) -> bool:
        """Return whether blocks of labels are available and worthwhile.

        They are not if one block for all weights is possible, which has the transitions too. With an L1
        penalty, nor if it has most of the weights, or if the Hessian is soon computed (see `hessian`).
        """
        size = self._block_size(sparse=sparse)
        if sparse and (self.n_params < MIN_RATIO * size or self._has_hessian()):
            return False
        return self.n_params > size and self.bound.has_label_blocks

    def label_blocks(
        self, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> LabelCurvature | None:
        """Return the weights of each label and their block of the Hessian, if they are worthwhile."""
        is_small = sparse and precise and self.n_params <= MAX_BLOCK  # one precise block is better
        if is_small or not self.has_label_blocks(sparse=sparse):
            return None
        return self.bound.label_blocks(diagonal, sparse=sparse, precise=precise)

    def afford_label_blocks(self, max_passes: float, *, sparse: bool = False) -> None:
        """Let `label_blocks`, after the next call of `curvature`, take as long as this number of passes."""
        if self.n_params > MAX_BLOCK or not sparse:  # else a long fit has the whole Hessian
            self.bound.afford_label_blocks(max_passes)

    def _block_size(self, *, sparse: bool) -> int:
        return min(MAX_BLOCK, int(np.cbrt(BLOCK_PASSES[sparse] * self.bound.work_per_pass)))

    def hessian(
        self, w: Floats, *, max_passes: float, precise: bool, any_labels: bool = False
    ) -> Floats | None:
        """Return the Hessian at ``w`` if there are few weights, and labels stay the same for many steps.

        If they do not, the block, which treats steps as independent, is about as good and takes less time
        in short fits: the Hessian is computed with ``any_labels``.
        """
        if not self._has_hessian(any_labels=any_labels):
            return None
        return self.bound.hessian(
            w,
            self.varying_weights,
            min_probability=MIN_PROBABILITY[precise],
            max_products=max_passes * self.bound.work_per_pass,
        )

    def _has_hessian(self, *, any_labels: bool = False) -> bool:
        is_small = self.n_params <= MAX_BLOCK and self.is_convex
        return is_small and (self.has_long_runs or any_labels)

    @property
    def has_long_runs(self) -> bool:
        """Whether labels stay the same for many steps, on average."""
        return self._mean_run >= MIN_RUN

    @cached_property
    def _mean_run(self) -> float:
        """The number of steps after which the label changes, on average."""
        n_changes = np.count_nonzero(np.diff(self.codes))
        return self.codes.size / (n_changes + 1)

    def remove_invariant_part(self, w: Floats, *, states_only: bool) -> None:
        """Subtract from ``w``, in place, its part in known directions that change no probability."""
        self.bound.remove_invariant_part(w, states_only=states_only)

    def invariant_groups(self) -> tuple[NDArray[np.int64], int]:
        """Return groups of weights to which one number can be added: the first of each, and their size."""
        return self.bound.invariant_groups()

    def squared_scales(self) -> Floats | None:
        """Return the squared scale of the feature of each weight; None if all are 1 or not known."""
        return self.bound.squared_scales()

    def square_shares(self) -> SquareShares | None:
        """Return the shares of the squares of features that are not due to outliers, or to an offset."""
        return self.bound.square_shares()

    def value_at_zero(self, samples: NDArray[np.int64] | None = None) -> float:
        """Return the value at zero weights, for some samples if given, without a pass over the data."""
        log_counts = np.diff(self.bound.X.offsets) * math.log(self.bound.n_labels)
        if self.partial is not None:
            log_counts = log_counts - self.partial.log_counts
        every = self.weights * log_counts
        return float(np.sum(every if samples is None else every[samples]))


class PenalisedObjective:
    """A data term plus ``c2 |w|^2``; implements `seqlab.optim.Objective`.

    Parameters
    ----------
    term : DataTerm
    c2 : float
        Weight of the squared norm.
    penalised : boolean array of shape (n_params,), optional
        Which weights are penalised; all if not given.
    """

    def __init__(
        self, term: DataTerm, c2: float, *, penalised: NDArray[np.bool_] | None = None
    ) -> None:
        self.term = term
        self.c2 = float(c2)
        self.penalised = penalised
        self.n_params = term.n_params
        is_strongly_convex = penalised is None and term.is_convex
        self.strong_convexity = 2.0 * self.c2 if is_strongly_convex else 0.0
        self._last: tuple[Floats, float, Floats] | None = None

    def loss_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return value and gradient; the last result is cached and reused for the same array ``w``."""
        if self._last is None or self._last[0] is not w:
            counted = w if self.penalised is None else np.where(self.penalised, w, 0.0)
            loss, parts, observed = self.term.evaluate(w)
            gradient = np.empty(self.n_params)

            def add_up(begin: int, stop: int) -> float:
                arrays = parts, observed, w, counted
                return float(penalised_sum(*arrays, self.c2, begin, stop, gradient))

            loss += sum(run_chunks(add_up, self.n_params, self.term.n_jobs))
            self._last = (w, loss, gradient)
        return self._last[1:]

    def remove_constant_part(self, w: Floats) -> None:
        """Subtract from ``w``, in place, its part in known directions in which the data term is constant.

        The objective becomes smaller, because the penalty does.
        """
        # Weights without a penalty: the part of the others may then be different from zero at the optimum.
        self.term.remove_invariant_part(w, states_only=self.penalised is not None)

    def reduce_penalty(self, w: Floats, gradient: Floats, c1: Floats) -> float:
        """Move ``w`` to the least penalty along directions in which the data term is constant.

        The penalty is ``sum c1 |w|`` and that with c2; see `shift_groups`. Also updates the gradient, in
        place; returns the decrease.
        """
        return float(shift_groups(w, gradient, c1, self.c2, *self.term.invariant_groups()))
