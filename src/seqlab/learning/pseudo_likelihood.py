"""The pseudo-likelihood of a structure (Besag 1975), as a data term.

    f(w) = - sum_x a_x sum_i log P(y_i | labels of all other nodes, x)

It needs no inference over whole labelings and is convex, exact and cheap on any graph.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError
from seqlab.learning.likelihood import TermValue
from seqlab.structures.values import ExpectedFeatures, LabelCurvature

Floats = NDArray[np.float64]


class ConditionalSupport(Protocol):
    """A structure that gives the distribution of each node's label, given the labels of the others."""

    n_params: int
    n_jobs: int | None

    def conditional_features(
        self, w: Floats, codes: NDArray[np.int64], weights: Floats | None = None
    ) -> ExpectedFeatures:
        """Return the losses of all samples and the gradient of their weighted sum."""
        ...

    def curvature_at_zero(self, weights: Floats) -> Floats | None:
        """Return the approximate diagonal of the Hessian at zero weights."""
        ...

    def squared_scales(self) -> Floats | None:
        """Return the mean square of the feature of each weight."""
        ...


class PseudoLikelihood:
    """Negative log-pseudo-likelihood; a `seqlab.learning.likelihood.DataTerm`.

    Parameters
    ----------
    bound : ConditionalSupport
        A structure, bound to the training data.
    codes : int64 array of shape (n_positions,)
        Gold labels, all known.
    weights : array of shape (n_samples,)
    """

    is_convex = True

    def __init__(
        self, bound: ConditionalSupport, codes: NDArray[np.int64], weights: Floats
    ) -> None:
        self.bound, self.codes, self.weights = bound, codes, weights
        self.n_params, self.n_jobs = bound.n_params, bound.n_jobs
        self.is_convex = True

    def evaluate(self, w: Floats) -> TermValue:
        """Return value and gradient at ``w``."""
        found = self.bound.conditional_features(w, self.codes, self.weights)
        loss = float((found.log_z * self.weights).sum())
        if not math.isfinite(loss):
            bad = int(np.argmax(~np.isfinite(found.log_z)))
            raise NumericalError("the pseudo-likelihood of graph {sequence} is not finite", bad)
        return TermValue(loss, found.parts, np.zeros(0))

    @property
    def has_long_runs(self) -> bool:
        """False: the positions of a graph have no order."""
        return False

    def curvature_at_zero(self) -> Floats | None:
        """Return the approximate diagonal of the Hessian at zero, if it is available."""
        return self.bound.curvature_at_zero(self.weights)

    def curvature(self, w: Floats) -> Floats | None:
        """Return None: the diagonal of the Hessian is not available."""
        return None

    def curvature_block(
        self, w: Floats, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return None: no block of the Hessian is known."""
        return None

    def nonzero_block(
        self, w: Floats, diagonal: Floats, *, max_passes: float
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return None: no block of the Hessian is known."""
        return None

    def label_blocks(
        self, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> LabelCurvature | None:
        """Return None: no blocks of the Hessian are known."""
        return None

    def afford_label_blocks(self, max_passes: float, *, sparse: bool = False) -> None:
        """Do nothing: there are no such blocks."""

    def hessian(
        self, w: Floats, *, max_passes: float, precise: bool, any_labels: bool = False
    ) -> Floats | None:
        """Return None: the Hessian is not available."""
        return None

    def remove_invariant_part(self, w: Floats, *, states_only: bool) -> None:
        """Do nothing: no direction is known in which the term is constant."""

    def invariant_groups(self) -> tuple[NDArray[np.int64], int]:
        """Return no groups."""
        return np.empty(0, dtype=np.int64), 1

    def square_shares(self) -> None:
        """Return None: outliers are not treated separately."""
        return

    def squared_scales(self) -> Floats | None:
        """Return the squared scale of the feature of each weight; None if not known."""
        return self.bound.squared_scales()
