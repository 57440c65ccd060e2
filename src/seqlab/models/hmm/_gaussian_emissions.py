"""Gaussian emissions: a normal distribution per label, with a lower bound on its variances.

The bound is a fraction of each feature's overall variance. Among all variances above it, the clipped
maximum likelihood estimate is the most probable one; for full covariances, the eigenvalues are clipped after
scaling every feature to overall variance 1. EM therefore never decreases the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from seqlab.data import state_checks
from seqlab.data.sequences import Sequences
from seqlab.models.hmm import _kernels
from seqlab.models.hmm._emissions import (
    Emissions,
    Floats,
    Scorer,
    Statistics,
    check_entries,
    check_not_infinite,
    csr_rows,
)

LOG_2_PI = float(np.log(2 * np.pi))


def overall_moments(X: Sequences, step_weights: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of every feature over all steps; variance 1 for a constant feature."""
    zeros, weights = np.zeros(X.n_features), step_weights[:, np.newaxis]
    # Means around 0, then variances around the means, to avoid cancellation.
    around_zero = GaussianEmissions(1, 0.0, zeros, zeros)
    counts, first, _ = around_zero.statistics(X.matrix, 0, X.n_steps, weights)
    counted = np.maximum(counts[:, 0], np.finfo(np.float64).tiny)
    means = first[:, 0] / counted
    around_means = GaussianEmissions(1, 0.0, means, zeros)
    _, first, second = around_means.statistics(X.matrix, 0, X.n_steps, weights)
    variances = second[:, 0] / counted - (first[:, 0] / counted) ** 2
    # Rounding makes the variance of a constant about this large.
    return means, np.where(variances > 1e-28 * means**2, variances, 1.0)


@dataclass
class NormalEmissions(Emissions):
    """What the normal distributions have in common.

    Parameters
    ----------
    n_labels : int
    floor : float
        Lower bound on variances, as a fraction of the overall variance.
    center, spread : arrays of shape (n_features,)
        Overall mean and variance.
    means : array of shape (n_labels, n_features)
    """

    n_labels: int
    floor: float
    center: Floats
    spread: Floats
    means: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.center.size)

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        n_labels = state_checks.check_int(self.n_labels, "n_labels", 1)
        state_checks.check_number(self.floor, "floor", 0.0)
        n = state_checks.check_array(self.center, "center", (None,), dtype=np.float64).size
        state_checks.check_array(self.spread, "spread", (n,), dtype=np.float64)
        state_checks.check_array(self.means, "means", (n_labels, n), dtype=np.float64)
        state_checks.require(np.isfinite(self.means).all(), "means")


@dataclass
class GaussianEmissions(NormalEmissions):
    """Normal features, independent given the label.

    Parameters
    ----------
    n_labels, floor, center, spread, means : see `NormalEmissions`
    variances : array of shape (n_labels, n_features)
    """

    variances: Any = None

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.check_array(self.variances, "variances", self.means.shape, low=1e-300)

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        check_not_infinite(X)
        return X.matrix

    def make_scorer(self) -> Scorer:
        means = np.ascontiguousarray(self.means.T)
        variances = np.ascontiguousarray(self.variances.T)
        halves, logs = 0.5 / variances, -0.5 * (LOG_2_PI + np.log(variances))
        at_zero = logs - halves * means**2

        def scores(matrix: Any, begin: int, stop: int) -> Floats:
            if isinstance(matrix, np.ndarray):
                out = np.zeros((stop - begin, self.n_labels))
                _kernels.add_normal(matrix[begin:stop], means, halves, logs, out)
                return out
            out = np.tile(at_zero.sum(axis=0), (stop - begin, 1))
            _kernels.add_normal_rows(csr_rows(matrix, begin, stop), means, halves, at_zero, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, weights: Floats) -> Statistics:
        counts, first, second = np.zeros((3, matrix.shape[1], self.n_labels))
        if isinstance(matrix, np.ndarray):
            _kernels.count_moments(matrix[begin:stop], self.center, weights, counts, first, second)
            return counts, first, second
        steps = weights.sum(axis=0)
        counts += steps
        first -= np.outer(self.center, steps)
        second += np.outer(self.center**2, steps)
        rows = csr_rows(matrix, begin, stop)
        _kernels.count_moments_rows(rows, self.center, weights, counts, first, second)
        return counts, first, second

    def estimate(self, statistics: Statistics) -> GaussianEmissions:
        counts, first, second = (array.T for array in statistics)
        counted = counts > 0
        n = np.where(counted, counts, 1.0)
        shifts = np.where(counted, first / n, 0.0)
        variances = np.where(counted, second / n - shifts**2, self.spread)
        return replace(
            self,
            means=self.center + shifts,
            variances=np.maximum(variances, self.floor * self.spread),
        )

    def sample(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        noise = random.standard_normal((codes.size, self.center.size))
        return self.means[codes] + noise * np.sqrt(self.variances[codes])


@dataclass
class FullGaussianEmissions(NormalEmissions):
    """Normal features with a covariance matrix per label.

    Parameters
    ----------
    n_labels, floor, center, spread, means : see `NormalEmissions`
    covariances : array of shape (n_labels, n_features, n_features)
    """

    covariances: Any = None

    def _check_state(self) -> None:
        super()._check_state()
        shape = (*self.means.shape, self.n_features)
        state_checks.check_array(self.covariances, "covariances", shape)
        state_checks.require(np.isfinite(self.covariances).all(), "covariances")
        np.linalg.cholesky(self.covariances)  # raises unless all are positive definite

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        check_not_infinite(X)
        check_entries(X, np.isnan, "missing values need covariance='diag'")
        return X.matrix.toarray() if X.is_sparse else X.matrix

    def make_scorer(self) -> Scorer:
        roots = np.linalg.cholesky(self.covariances)
        eye = np.eye(self.center.size)
        whitening = np.array([solve_triangular(root, eye, lower=True) for root in roots])
        determinants = 2 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        logs = -0.5 * (self.center.size * LOG_2_PI + determinants)
        means = np.ascontiguousarray(self.means.T)

        def scores(matrix: Any, begin: int, stop: int) -> Floats:
            out = np.zeros((stop - begin, self.n_labels))
            _kernels.add_joint_normal(matrix[begin:stop], means, whitening, logs, out)
            return out

        return scores

    def statistics(self, matrix: Any, begin: int, stop: int, weights: Floats) -> Statistics:
        n_features = matrix.shape[1]
        first = np.zeros((n_features, self.n_labels))
        second = np.zeros((self.n_labels, n_features, n_features))
        _kernels.count_products(matrix[begin:stop], self.center, weights, first, second)
        return weights.sum(axis=0), first, second

    def estimate(self, statistics: Statistics) -> FullGaussianEmissions:
        steps, first, second = statistics
        scale = np.sqrt(self.spread)
        means = np.tile(self.center, (self.n_labels, 1))
        covariances = np.tile(np.diag(self.spread), (self.n_labels, 1, 1))
        for s in np.flatnonzero(steps > 0):
            shift = first[:, s] / steps[s]
            means[s] += shift
            scaled = (second[s] / steps[s] - np.outer(shift, shift)) / np.outer(scale, scale)
            values, vectors = np.linalg.eigh(scaled)
            clipped = (vectors * np.maximum(values, self.floor)) @ vectors.T
            covariances[s] = (clipped + clipped.T) / 2 * np.outer(scale, scale)
        return replace(self, means=means, covariances=covariances)

    def sample(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        noise = random.standard_normal((codes.size, self.center.size))
        roots = np.linalg.cholesky(self.covariances)
        return self.means[codes] + np.einsum("ifg,ig->if", roots[codes], noise)
