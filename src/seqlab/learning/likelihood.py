"""The conditional log-likelihood of a structure, as an objective.

    f(w) = sum_i a_i [ log Z(x_i) - log Z(x_i | allowed_i) ] + c2 |w|^2

``log Z(x | allowed)`` sums over the labelings that agree with what is known of the labels; if all
labels are known it is the score of the gold labeling. The gradient is the difference of two expected
feature vectors plus ``2 c2 w``.

With class weights the first term becomes the softmax-margin (Gimpel & Smith 2010): a label other than the
gold one costs ``log(class_weight[gold])`` more, so that classes of weight above 1 are missed less often.
The objective stays convex and exact.

The data term is a sum over samples: terms of parts of the data, bound to the same structure, add up.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.learning._kernels import add_parts
from seqlab.structures import BoundStructure, MissCosts
from seqlab.utils.linalg import dot
from seqlab.utils.threads import in_chunks

Floats = NDArray[np.float64]


class DataTerm(Protocol):
    """The part of an objective that is a sum over the data."""

    n_params: int

    def add_to(self, w: Floats, gradient: Floats) -> float:
        """Add the gradient at ``w`` to ``gradient``; return the value."""
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
        What is known of the labels, if some are not known.
    miss_cost : array of shape (n_positions,), optional
        Log cost of missing the gold label.
    """

    def __init__(
        self,
        bound: BoundStructure,
        codes: NDArray[np.int64],
        weights: Floats,
        *,
        allowed: NDArray[np.bool_] | None = None,
        miss_cost: Floats | None = None,
    ) -> None:
        self.bound = bound
        self.codes = codes
        self.weights = weights
        self.allowed = allowed
        self.costs = None if miss_cost is None else MissCosts(codes, miss_cost)
        self.n_params = bound.n_params
        # None saves a multiplication per sample, and per position.
        self.varying_weights = weights if np.any(weights != 1.0) else None
        observed = allowed is None
        self._observed = bound.total_features(codes, weights) if observed else np.zeros(0)

    def add_to(self, w: Floats, gradient: Floats) -> float:
        """Add the gradient at ``w`` to ``gradient``; return the value."""
        weights, observed = self.varying_weights, self._observed
        found = self.bound.expected_features(w, weights, self.costs, self.allowed)
        loss = float((found.log_z if weights is None else found.log_z * weights).sum())

        def add(begin: int, stop: int) -> float:
            return float(add_parts(found.parts, observed, w, begin, stop, gradient))

        return loss - sum(in_chunks(add, self.n_params, self.bound.n_jobs))

    def value_at_zero(self, samples: NDArray[np.int64] | None = None) -> float:
        """Return the value at zero weights, of some samples if given.

        Without a pass over the data if all labels cost the same.
        """
        every = self.weights * np.diff(self.bound.X.offsets)
        if self.costs is None and self.allowed is None:
            some = every if samples is None else every[samples]
            return float(np.log(self.bound.n_labels) * np.sum(some))
        value = self.add_to(np.zeros(self.n_params), np.zeros(self.n_params))
        return value if samples is None else value * samples.size / max(every.size, 1)


class PenalisedObjective:
    """A data term plus ``c2 |w|^2``; an `seqlab.optim.Objective`.

    Parameters
    ----------
    term : DataTerm
    c2 : float
        Weight of the squared norm.
    penalised : boolean array of shape (n_params,), optional
        Weights that the penalty counts; all if not given.
    """

    def __init__(
        self, term: DataTerm, c2: float, *, penalised: NDArray[np.bool_] | None = None
    ) -> None:
        self.term = term
        self.c2 = float(c2)
        self.penalised = penalised
        self.n_params = term.n_params
        self.strong_convexity = 2.0 * self.c2 if penalised is None else 0.0
        self._last: tuple[Floats, float, Floats] | None = None

    def loss_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; the last answer is kept for the same array."""
        if self._last is None or self._last[0] is not w:
            counted = w if self.penalised is None else np.where(self.penalised, w, 0.0)
            gradient = 2.0 * self.c2 * counted
            loss = self.c2 * dot(counted, counted) + self.term.add_to(w, gradient)
            self._last = (w, float(loss), gradient)
        return self._last[1:]

    def add_curvature(self, diagonal: Floats) -> Floats:
        """Return the diagonal of a Hessian of the data term with that of the penalty added."""
        counted = 1.0 if self.penalised is None else self.penalised.astype(np.float64)
        # Without data or penalty a weight would get an infinite step; half an observation will do.
        return np.maximum(diagonal + 2.0 * self.c2 * counted, 1e-3)
