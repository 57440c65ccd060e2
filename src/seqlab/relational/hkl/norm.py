"""The hierarchical norm of rho-norm kernel learning, its variational form and its dual norm.

The nodes ``v`` of a lattice are conjunctions; ``D(v)`` are the descendants of a node (longer conjunctions,
and itself), ``A(v)`` its ancestors (sub-conjunctions, and itself). With ``d_v = a^|v|`` the norm is

    Omega(f) = sum_v d_v |f_D(v)|_rho,    1 < rho <= 2,

which is zero on whole sets of descendants. For every point ``gamma`` of the simplex

    Omega(f)^2 <= (sum_w delta_w |f_w|^rho)^(2 / rho),    delta_w = sum_{v in A(w)} d_v^rho gamma_v^(1 - rho)

with equality at ``gamma_v ~ d_v |f_D(v)|_rho``. Its conjugate at ``gamma``, as a function of the squared
lengths ``q_w`` of the dual vectors, is half of

    Phi(gamma, q) = (sum_w zeta_w q_w^r)^(1 / r),    zeta_w = delta_w^(1 / (1 - rho))

with ``r = rho / (2 (rho - 1))``.

``Phi`` is concave in ``gamma``; its maximum is the squared dual norm of Omega.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError

Floats = NDArray[np.float64]

# Smallest entry of gamma: its powers with negative exponent stay finite.
MIN_GAMMA = 1e-12
# Fixed-point steps that sharpen the bound on the dual norm.
N_SHARPENING = 30
NOT_FINITE = (
    "the weights of conjunctions are not finite: choose length_penalty closer to 1 or rho closer to 2, or "
    "another C"
)


class ConjugateValues(NamedTuple):
    """``Phi`` and its derivatives at a point."""

    phi: float
    eta: Floats  # 2 d(Phi / 2) / d q_w: the weight of each node's kernel
    ratios: Floats  # (d psi / d gamma_v) / psi with psi = Phi^r; all 1 at the maximum


class HierarchicalNorm:
    """The norm on given nodes of one or more lattices.

    Parameters
    ----------
    ancestors : CSR matrix of shape (n_nodes, n_nodes)
        Entry (w, v) is 1 if v is an ancestor of w, or w itself.
    d : array of shape (n_nodes,)
        Penalty of each node.
    rho : float
    """

    def __init__(self, ancestors: sp.csr_matrix, d: Floats, rho: float) -> None:
        self.ancestors = ancestors
        self.descendants = ancestors.T.tocsr()
        self.d, self.rho = d, float(rho)
        self.r = self.rho / (2.0 * (self.rho - 1.0))

    def group_norms(self, lengths: Floats) -> Floats:
        """Return ``|f_D(v)|_rho`` of every node, from the lengths ``|f_w|``."""
        largest = float(lengths.max(initial=0.0))
        if largest == 0.0:
            return np.zeros_like(lengths)
        powers = (lengths / largest) ** self.rho
        return largest * (self.descendants @ powers) ** (1.0 / self.rho)

    def value(self, lengths: Floats) -> float:
        """Return ``Omega``, from the lengths ``|f_w|``."""
        return float((self.d * self.group_norms(lengths)).sum())

    def best_gamma(self, lengths: Floats) -> Floats:
        """Return the point of the simplex at which the variational form equals ``Omega^2``."""
        return normalize(self.d * self.group_norms(lengths))

    def delta(self, gamma: Floats) -> Floats:
        """Return ``delta_w`` of every node."""
        return self.ancestors @ (self.d**self.rho * gamma ** (1.0 - self.rho))

    def variational_value(self, lengths: Floats, gamma: Floats) -> float:
        """Return ``(sum_w delta_w |f_w|^rho)^(2 / rho)``, an upper bound on ``Omega^2``."""
        largest = max(float(lengths.max(initial=0.0)), 1e-300)
        total = float((self.delta(gamma) * (lengths / largest) ** self.rho).sum())
        return largest**2 * total ** (2.0 / self.rho)

    def conjugate(self, gamma: Floats, q: Floats) -> ConjugateValues:
        """Return ``Phi``, the weights of the kernels, and the relative derivatives by ``gamma``.

        Computed in logarithms: for rho close to 1 the powers leave the range of floating point.

        Raises
        ------
        NumericalError
            If a value is not finite.
        """
        with np.errstate(all="ignore"):
            values = self._conjugate(gamma, q)
            # One sum instead of three comparisons: it is not finite if one of its terms is not.
            total = values.phi + float(values.eta.sum()) + float(values.ratios.sum())
        if not np.isfinite(total):
            raise NumericalError(NOT_FINITE)
        return values

    def _conjugate(self, gamma: Floats, q: Floats) -> ConjugateValues:
        delta = self.delta(gamma)
        if not q.any():
            eta = delta ** (1.0 / (1.0 - self.rho)) if self.r == 1.0 else np.zeros_like(q)
            return ConjugateValues(0.0, eta, np.ones_like(q))
        log_q = np.log(q)
        log_zeta = -np.log(delta) / (self.rho - 1.0)
        terms = log_zeta + self.r * log_q
        top = terms.max()
        log_psi = top + np.log(np.exp(terms - top).sum())
        powers = (self.r - 1.0) * log_q if self.r > 1.0 else 0.0
        eta = np.exp(log_zeta + powers + (1.0 / self.r - 1.0) * log_psi)
        shares = np.exp(terms - log_psi)
        sums = self.descendants @ (shares / delta)
        ratios = self.d**self.rho * gamma**-self.rho * sums
        return ConjugateValues(float(np.exp(log_psi / self.r)), eta, ratios)

    def gradient(self, gamma: Floats, q: Floats) -> Floats:
        """Return the derivative of ``-Phi / 2`` by ``gamma``: of the partial dual ``g(gamma)``."""
        values = self.conjugate(gamma, q)
        return -0.5 / self.r * values.phi * values.ratios

    def dual_norm_bound(self, gamma: Floats, q: Floats) -> float:
        """Return an upper bound on the squared dual norm, the maximum of ``Phi`` over the simplex.

        ``psi = Phi^r`` is concave and homogeneous in ``gamma``, so the largest of its derivatives at any
        point bounds its maximum. The point is moved towards the maximum first.
        """
        best = np.inf
        for _ in range(N_SHARPENING):
            values = self.conjugate(gamma, q)
            bound = values.phi * float(values.ratios.max(initial=1.0)) ** (1.0 / self.r)
            if bound >= best * (1.0 - 1e-6):
                return min(best, bound)
            best = bound
            gamma = normalize(gamma * values.ratios ** (1.0 / self.rho))
        return best


def normalize(gamma: Floats) -> Floats:
    """Return the point of the simplex in the direction of ``gamma``, without entries close to zero."""
    total = float(gamma.sum())
    if total == 0.0:
        return np.full(gamma.size, 1.0 / gamma.size)
    gamma = np.maximum(gamma / total, MIN_GAMMA)
    return gamma / gamma.sum()
