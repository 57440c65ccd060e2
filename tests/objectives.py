"""Objectives with known optima, for the tests of solvers."""

from __future__ import annotations

import numpy as np


class Quadratic:
    """``1/2 w'Aw - b'w``: its optimum is known in closed form."""

    def __init__(self, A, b):
        self.A, self.b = A, b
        self.n_params = b.size
        self.strong_convexity = float(np.linalg.eigvalsh(A)[0])

    def loss_gradient(self, w):
        Aw = self.A @ w
        return float(0.5 * w @ Aw - self.b @ w), Aw - self.b


class Logistic:
    """Logistic loss of data that are not separable, penalised or not."""

    def __init__(self, random, n=200, d=10, c2=0.0):
        self.X = random.normal(size=(n, d))
        self.y = np.sign(self.X @ random.normal(size=d) + random.normal(size=n) * 2)
        self.c2 = c2
        self.n_params = d
        self.strong_convexity = 2 * c2

    def loss_gradient(self, w):
        margin = self.y * (self.X @ w)
        gradient = -self.X.T @ (self.y / (1 + np.exp(margin))) + 2 * self.c2 * w
        return float(np.logaddexp(0, -margin).sum() + self.c2 * w @ w), gradient


def last(states):
    *_, state = states
    return state


def quadratic(seed, n=30):
    random = np.random.default_rng(seed)
    root = random.normal(size=(n, n))
    return Quadratic(root @ root.T + np.eye(n), random.normal(size=n))
