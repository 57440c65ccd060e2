"""LowerBound: a certified lower bound on the minimum of a strongly convex objective, from several points.

If ``f`` is strongly convex with constant mu, a point ``w_j`` with value ``f_j`` and gradient ``g_j`` gives

    f(v)  >=  b_j + a_j . v + mu/2 |v|^2,    a_j = g_j - mu w_j,   b_j = f_j + mu/2 |w_j|^2 - g_j . w_j

for all v, and so does every convex combination of these functions. Minimised over v, the combination with
weights alpha gives

    min f  >=  alpha . b - |sum_j alpha_j a_j|^2 / (2 mu).

With one point this is ``f - |g|^2 / (2 mu)``. The gradients of quasi-Newton methods oscillate in directions
of large curvature, and a combination of several points averages that out: in 42 fits, at the first point
within 0.1 % of the optimum, it was 1.0 to 7.3 times (in the median 1.7 times) nearer than the best single
point so far.

The vectors are not stored: their inner products follow from those of the differences ``d = a_j - a_(j-1)``,
which L-BFGS computes anyway.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgesv

from seqlab.optim.state import Vector
from seqlab.utils.linalg import dot

# Changes of the set of points with weight; any weights give a bound, so an early end is harmless.
MAX_CHANGES = 20
# Added to the diagonal of the inner products, relative to their trace: points may nearly coincide.
RIDGE = 1e-13
# Relative rounding error of the inner products; what it can add to the bound is subtracted. If a column has
# values of 1e12, the products are so large that nothing is left of the bound (`test_crf_scales.py`).
ROUNDING = 1e-13


class LowerBound:
    """Lower bound on the minimum of an objective, improved by every point of a descent.

    Parameters
    ----------
    strong_convexity : float
        The constant mu, positive.

    Attributes
    ----------
    value : float
        The bound.
    """

    def __init__(self, strong_convexity: float) -> None:
        self.strong_convexity = strong_convexity
        self.value = -np.inf
        self._weights = np.ones(0)  # of the points, newest first
        self._constants = np.empty(0)  # b_j
        self._along = np.empty(0)  # products of the newest a with the differences
        self._square = 0.0  # of the newest a

    def restart(self, value: float, w: Vector, gradient: Vector) -> None:
        """Forget all points but one."""
        constant, self._square = self._describe(value, w, gradient)
        self._constants, self._weights = np.array([constant]), np.ones(1)
        self._along = np.empty(0)
        self._update(np.array([[self._square]]))

    def add(self, value: float, w: Vector, gradient: Vector, products: Vector) -> None:
        """Add the next point of a descent.

        Parameters
        ----------
        value : float
        w, gradient : arrays of shape (n_params,)
        products : array of shape (n, n)
            Inner products of the last differences, newest first.
        """
        n = min(products.shape[0], self._constants.size)
        products = products[:n, :n]
        constant, square = self._describe(value, w, gradient)
        newest = 0.5 * (square + products[0, 0] - self._square)
        self._along = np.concatenate([[newest], self._along[: n - 1] + products[0, 1:]])
        self._square = square
        self._constants = np.concatenate([[constant], self._constants[:n]])
        # Point j is the newest minus the first j differences.
        sums = np.concatenate([np.zeros((1, n)), np.tril(np.ones((n, n)))])
        along = sums @ self._along
        gram = square - along[:, None] - along + sums @ products @ sums.T
        weights = np.concatenate([[0.0], self._weights[:n]])
        weights[0] = 1.0 - weights[1:].sum()
        self._weights = maximise_on_simplex(self._constants, gram / self.strong_convexity, weights)
        self._update(gram)

    def _update(self, gram: Vector) -> None:
        """Update the bound; ``gram`` has the inner products of the points."""
        weights, twice_mu = self._weights, 2.0 * self.strong_convexity
        bound = float(self._constants @ weights - weights @ gram @ weights / twice_mu)
        largest = np.abs(self._constants).max() + np.abs(gram).max() / twice_mu
        bound -= ROUNDING * float(largest)
        if np.isfinite(bound):
            self.value = max(self.value, bound)

    def _describe(self, value: float, w: Vector, gradient: Vector) -> tuple[float, float]:
        """Return ``b`` and ``|a|^2`` of a point."""
        mu = self.strong_convexity
        square, slope = float(dot(w, w)), float(dot(gradient, w))
        norm2 = float(dot(gradient, gradient))
        return value + 0.5 * mu * square - slope, norm2 - 2.0 * mu * slope + mu * mu * square


def maximise_on_simplex(linear: Vector, matrix: Vector, start: Vector) -> Vector:
    """Maximise ``linear . x - x' matrix x / 2`` over x >= 0 with sum 1, by an active-set method.

    ``matrix`` is positive semidefinite and has a few dozen rows; ``start`` is feasible. The result is always
    feasible, and the maximum unless it takes more than `MAX_CHANGES` sets.
    """
    n = linear.size
    # The conditions of the maximum on a set of points: equal slopes, and a sum of 1.
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = matrix
    system[n, n] = 0.0
    diagonal = np.einsum("ii->i", system)[:n]
    ridge = RIDGE * float(diagonal.sum())
    diagonal += ridge
    right = np.append(linear, 1.0)
    x = start.copy()
    for _ in range(MAX_CHANGES):
        slope = linear - matrix @ x
        level = float(x @ slope)  # the common slope of the support at the maximum
        best = int(slope.argmax())
        if not np.isfinite(level) or slope[best] - level <= 1e-9 * abs(level) + ridge:
            break
        support = x > 0.0
        support[best] = True
        while True:
            chosen = support.nonzero()[0]
            rows = np.append(chosen, n)
            # `numpy.linalg.solve` takes twice as long for so small a system.
            _, _, solution, failed = dgesv(system[rows][:, rows], right[rows])
            if failed:
                return x
            target = solution[:-1]
            current = x[chosen]
            falling = (target < 0.0).nonzero()[0]
            if falling.size == 0:
                x[chosen] = target
                break
            # Move until the first weight is zero, and remove it.
            shares = current[falling] / (current[falling] - target[falling])
            first = int(shares.argmin())
            x[chosen] = np.maximum(current + shares[first] * (target - current), 0.0)
            x[chosen[falling[first]]] = 0.0
            support[chosen[falling[first]]] = False
        x /= x.sum()
    return x
