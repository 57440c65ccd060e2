"""Hierarchical kernel learning the slow way: all nodes, all labelings, reweighted quadratic programs."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from scipy.optimize import minimize


def all_nodes(n_inputs):
    """Return every conjunction, the empty one first."""
    return [c for size in range(n_inputs + 1) for c in combinations(range(n_inputs), size)]


def omega(nodes, lengths, a, rho):
    """Return the hierarchical norm of weights with these lengths."""
    total = 0.0
    for v in nodes:
        below = [x for w, x in zip(nodes, lengths, strict=True) if set(v) <= set(w)]
        total += a ** len(v) * sum(x**rho for x in below) ** (1.0 / rho)
    return total


class Problem:
    """All labelings of short chains, as differences of features and losses.

    Parameters
    ----------
    X, y : lists of arrays
        Binary inputs, and codes of labels.
    """

    def __init__(self, X, y, n_labels, *, C, a, rho, label_wise):
        self.n_labels, self.C, self.a, self.rho, self.label_wise = n_labels, C, a, rho, label_wise
        self.nodes = all_nodes(X[0].shape[1])
        self.psi, self.losses = [], []
        for x, gold in zip(X, y, strict=True):
            every = [np.array(z) for z in product(range(n_labels), repeat=len(gold))]
            first = self.features(x, gold)
            self.psi.append(np.array([first - self.features(x, z) for z in every]))
            self.losses.append(np.array([(z != gold).sum() for z in every], dtype=float))
        self.n_emissions = len(self.nodes) * n_labels

    def features(self, x, y):
        n_labels = self.n_labels
        emissions = np.zeros((len(self.nodes), n_labels))
        arcs = np.zeros(n_labels * (n_labels + 2))
        for t, label in enumerate(y):
            for k, node in enumerate(self.nodes):
                emissions[k, label] += all(x[t, b] > 0 for b in node)
            if t:
                arcs[y[t - 1] * n_labels + label] += 1
        arcs[n_labels * n_labels + y[0]] += 1
        arcs[n_labels * (n_labels + 1) + y[-1]] += 1
        return np.concatenate([emissions.ravel(), arcs])

    def norm(self, w):
        """Return Omega of the emission weights."""
        table = w[: self.n_emissions].reshape(len(self.nodes), self.n_labels)
        if self.label_wise:
            columns = np.abs(table).T
        else:
            columns = [np.sqrt((table**2).sum(axis=1))]
        return sum(omega(self.nodes, one, self.a, self.rho) for one in columns)

    def objective(self, w):
        slack = sum((one - psi @ w).max() for psi, one in zip(self.psi, self.losses, strict=True))
        arcs = w[self.n_emissions :]
        return 0.5 * self.norm(w) ** 2 + 0.5 * arcs @ arcs + self.C * slack

    def reweight(self, w):
        """Return the factors of a quadratic bound on Omega^2 that is tight at w."""
        table = w[: self.n_emissions].reshape(len(self.nodes), self.n_labels)
        lengths = np.abs(table) if self.label_wise else np.sqrt((table**2).sum(1, keepdims=True))
        lengths = np.maximum(lengths, 1e-7)
        rho, total, out = self.rho, 0.0, np.zeros_like(lengths)
        for v in self.nodes:
            below = [k for k, w_ in enumerate(self.nodes) if set(v) <= set(w_)]
            norms = (lengths[below] ** rho).sum(axis=0) ** (1.0 / rho)
            total += self.a ** len(v) * norms.sum()
            out[below] += self.a ** len(v) * norms ** (1.0 - rho) * lengths[below] ** (rho - 2.0)
        out = np.broadcast_to(total * out, table.shape)
        return np.concatenate([out.ravel(), np.ones(w.size - self.n_emissions)])

    def solve_quadratic(self, factors, w):
        """Minimise the objective with the penalty ``sum factors w^2 / 2`` instead."""
        m = len(self.psi)
        scale = 1.0 / np.sqrt(factors)
        psi = np.concatenate(self.psi) * scale
        losses = np.concatenate(self.losses)
        sample = np.repeat(np.arange(m), [one.size for one in self.losses])
        jacobian = np.hstack([psi, np.eye(m)[sample]])
        start = np.concatenate(
            [
                w / scale,
                [max((o - p @ w).max(), 0) for p, o in zip(self.psi, self.losses, strict=True)],
            ]
        )
        n = w.size
        linear = np.concatenate([np.zeros(n), np.full(m, self.C)])
        found = minimize(
            lambda z: 0.5 * z[:n] @ z[:n] + linear @ z,
            start,
            jac=lambda z: np.concatenate([z[:n], linear[n:]]),
            constraints={
                "type": "ineq",
                "fun": lambda z: jacobian @ z - losses,
                "jac": lambda z: jacobian,
            },
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-12},
        )
        return found.x[:n] * scale

    def solve(self, n_iter=150):
        """Return the weights after so many reweighted problems (the fixed-point method)."""
        w = self.solve_quadratic(np.ones(self.psi[0].shape[1]), np.zeros(self.psi[0].shape[1]))
        best, lowest = w, self.objective(w)
        for _ in range(n_iter):
            w = self.solve_quadratic(self.reweight(w), w)
            value = self.objective(w)
            if value < lowest:
                best, lowest = w, value
        return best, lowest
