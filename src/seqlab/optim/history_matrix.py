"""The limited-memory inverse Hessian that L-BFGS and OWL-QN share.

Nocedal's two-loop recursion over the last ``memory`` pairs (Nocedal & Wright, *Numerical Optimization*,
algorithm 7.4). A pair whose curvature is not safely positive is skipped, which keeps the matrix
positive definite and every direction a descent direction.
"""

from __future__ import annotations

import numpy as np

from seqlab.optim._kernels import dot, two_loop
from seqlab.optim.state import Vector


class InverseHessian:
    """Ring buffer of (step, gradient change) pairs and the product with a gradient."""

    def __init__(self, n_params: int, memory: int) -> None:
        self._steps = np.empty((memory, n_params))
        self._changes = np.empty((memory, n_params))
        self._curvatures = np.ones(memory)
        self._n_pairs = 0
        self._newest = -1
        self._diagonal = 1.0

    @property
    def is_empty(self) -> bool:
        """Whether no pair is stored, so that directions are plain gradients."""
        return self._n_pairs == 0

    def clear(self) -> None:
        """Forget all pairs."""
        self._n_pairs = 0
        self._diagonal = 1.0

    def update(self, step: Vector, change: Vector) -> bool:
        """Store a pair if its curvature is safely positive; say whether it was stored."""
        curvature = float(dot(step, change))
        change_norm2 = float(dot(change, change))
        if curvature <= np.finfo(np.float64).eps * change_norm2:
            return False
        memory = self._curvatures.size
        self._newest = (self._newest + 1) % memory
        self._steps[self._newest] = step
        self._changes[self._newest] = change
        self._curvatures[self._newest] = curvature
        self._n_pairs = min(self._n_pairs + 1, memory)
        self._diagonal = curvature / change_norm2
        return True

    def apply(self, gradient: Vector, out: Vector) -> None:
        """``out = H gradient``."""
        two_loop(
            gradient,
            self._steps,
            self._changes,
            self._curvatures,
            self._n_pairs,
            self._newest,
            self._diagonal,
            out,
        )
