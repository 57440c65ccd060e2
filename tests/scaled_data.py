"""Data whose columns can be rescaled, and optima that do not depend on the scale; benchmarks use them too."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from seqlab import LinearChainCRF
from seqlab.learning import Likelihood, PenalisedObjective


def gaussian_data(n_sequences=60, n_features=20, n_labels=5, seed=0):
    random = np.random.default_rng(seed)
    means = 0.7 * random.normal(size=(n_labels, n_features))
    transitions = random.dirichlet(np.full(n_labels, 0.7), size=n_labels)
    X, y = [], []
    for n_steps in random.integers(5, 15, n_sequences):
        labels = [random.integers(n_labels)]
        while len(labels) < n_steps:
            labels.append(random.choice(n_labels, p=transitions[labels[-1]]))
        y.append(np.array(labels))
        X.append(means[y[-1]] + random.normal(size=(n_steps, n_features)))
    return X, y


def tight_optimum(X, y, c2, *, n_runs=3, **options):
    """Return the optimum by SciPy, in coordinates scaled by the curvature at zero."""
    model = LinearChainCRF(c2=c2)
    data = model._read_training(X, y, None, None)
    bound = model._bind(data)
    objective = PenalisedObjective(Likelihood(bound, data.codes, data.sequence_weights), c2)
    roots = np.sqrt(bound.curvature_at_zero(data.sequence_weights) + 2 * c2)

    def scaled(v):
        value, gradient = objective.loss_gradient(v / roots)
        return value, gradient / roots

    v = np.zeros(roots.size)
    options = {"maxiter": 5000, "maxfun": 9000, "maxcor": 30, "ftol": 1e-15} | options
    for _ in range(n_runs):
        v = minimize(scaled, v, jac=True, method="L-BFGS-B", options=options).x
    return scaled(v)[0]
