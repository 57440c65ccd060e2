"""The limited-memory inverse Hessian that L-BFGS and OWL-QN share.

Nocedal's two-loop recursion over the last ``memory`` pairs (Nocedal & Wright, *Numerical Optimization*,
algorithm 7.4). A pair whose curvature is not safely positive is skipped, which keeps the matrix
positive definite and every direction a descent direction.
"""

from __future__ import annotations

import numpy as np

from seqlab.optim._kernels import dot, scaled_norm2, two_loop
from seqlab.optim.state import Vector


class InverseHessian:
    """Ring buffer of (step, gradient change) pairs and the product with a gradient.

    Parameters
    ----------
    n_params : int
    memory : int
        Pairs kept.
    preconditioner : array of shape (n_params,), optional
        Approximate diagonal of the Hessian. The matrix starts from its inverse, which makes a badly
        scaled problem (frequent and rare features side by side) well scaled.
    """

    def __init__(self, n_params: int, memory: int, preconditioner: Vector | None = None) -> None:
        self._preconditioner = np.empty(0) if preconditioner is None else preconditioner
        self._steps = np.empty((memory, n_params))
        self._changes = np.empty((memory, n_params))
        self._curvatures = np.ones(memory)
        self._n_pairs = 0
        self._newest = -1
        self._scale = 1.0

    @property
    def is_empty(self) -> bool:
        """Whether no pair is stored."""
        return self._n_pairs == 0

    def clear(self) -> None:
        """Forget all pairs."""
        self._n_pairs = 0
        self._scale = 1.0

    def update(self, w: Vector, w_new: Vector, gradient: Vector, gradient_new: Vector) -> bool:
        """Store the pair of two points if its curvature is safely positive; say whether it was."""
        memory = self._curvatures.size
        place = (self._newest + 1) % memory
        # The oldest pair makes room at once: where the new one is refused, one pair less is kept.
        self._n_pairs = min(self._n_pairs, memory - 1)
        step, change = self._steps[place], self._changes[place]
        np.subtract(w_new, w, out=step)
        np.subtract(gradient_new, gradient, out=change)
        curvature = float(dot(step, change))
        change_norm2 = float(dot(change, change))
        if curvature <= np.finfo(np.float64).eps * change_norm2:
            return False
        self._newest = place
        self._curvatures[place] = curvature
        self._n_pairs += 1
        if self._preconditioner.size:
            change_norm2 = float(scaled_norm2(change, self._preconditioner))
        self._scale = curvature / change_norm2
        return True

    @property
    def is_scaled(self) -> bool:
        """Whether the length of a direction means anything: a pair or a preconditioner is known."""
        return self._n_pairs > 0 or self._preconditioner.size > 0

    def apply(self, gradient: Vector, out: Vector) -> None:
        """``out = H gradient``."""
        two_loop(
            gradient,
            self._steps,
            self._changes,
            self._curvatures,
            self._n_pairs,
            self._newest,
            self._scale,
            self._preconditioner,
            out,
        )
