"""GraphM3N: optimality against a generic solver, the relaxation, the duality gap."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from tests.models.graphs.problems import make_graphs

from seqlab import GraphM3N


def primal_by_enumeration(model, X, y, C):
    """A function of w: the objective, with the maximum over all labelings of small graphs."""
    data = model._read_training(X, y, None, None)
    bound = model._bind(data)
    rows, losses, owner = [], [], []
    for i, (begin, stop) in enumerate(zip(data.X.offsets[:-1], data.X.offsets[1:], strict=True)):
        gold = data.codes[begin:stop]
        phi_gold = bound.joint_features(gold, np.array([i])).toarray()[0]
        for labels in product(range(bound.n_labels), repeat=int(stop - begin)):
            codes = np.array(labels)
            rows.append(phi_gold - bound.joint_features(codes, np.array([i])).toarray()[0])
            losses.append(np.sum(codes != gold))
            owner.append(i)
    rows, losses, owner = np.array(rows), np.array(losses, dtype=float), np.array(owner)
    n = len(X)

    def primal(w):
        slack = losses - rows @ w
        return 0.5 * w @ w + C * sum(slack[owner == i].max() for i in range(n))

    def quadratic_program():
        """The same problem as a smooth program with slack variables."""
        d = rows.shape[1]
        start = np.concatenate([np.zeros(d), [losses[owner == i].max() for i in range(n)]])
        indicator = np.eye(n)[owner]
        constraint = {
            "type": "ineq",
            "fun": lambda v: rows @ v[:d] + v[d:][owner] - losses,
            "jac": lambda v: np.hstack([rows, indicator]),
        }
        found = minimize(
            lambda v: 0.5 * v[:d] @ v[:d] + C * v[d:].sum(),
            start,
            jac=lambda v: np.concatenate([v[:d], np.full(n, C)]),
            constraints=[constraint],
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-10},
        )
        assert found.success
        return found.fun

    return primal, quadratic_program


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("directed", [True, False])
def test_the_optimum_equals_that_of_a_generic_solver(C, directed):
    X, y = make_graphs(n_graphs=3, n_nodes=3, n_labels=2, n_features=2, n_edges=4)
    model = GraphM3N(C=C, directed=directed, tol=1e-7)
    primal, quadratic_program = primal_by_enumeration(model, X, y, C)
    model.fit(X, y)
    w = np.concatenate([model.coef_.T.ravel(), model.intercept_, model.edge_coef_.ravel()])
    assert primal(w) == pytest.approx(model.objective_, rel=1e-6)
    assert model.objective_ == pytest.approx(quadratic_program(), rel=1e-4)


def test_the_gap_is_certified_and_shrinks_to_tol():
    X, y = make_graphs(n_graphs=8)
    model = GraphM3N(C=1.0, tol=1e-4).fit(X, y)
    history = model.history_
    assert model.converged_
    assert history["gap"][-1] <= 1e-4 * model.objective_
    assert (np.diff(history["dual"]) >= -1e-8).all()
    assert max(history["dual"]) <= min(history["objective"]) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_is_an_upper_bound_that_is_tight_on_forests(seed):
    X, y = make_graphs(seed=seed, n_graphs=4, n_edges=14, n_labels=2)
    exact = GraphM3N(C=1.0, tol=1e-5).fit(X, y)
    relaxed = GraphM3N(C=1.0, tol=1e-5, inference="lp").fit(X, y)
    assert relaxed.objective_ >= exact.objective_ * (1 - 1e-4)
    forest = [(x, [[0, 1], [1, 2], [3, 4]]) for x, _ in X]
    exact = GraphM3N(C=1.0, tol=1e-6).fit(forest, y)
    relaxed = GraphM3N(C=1.0, tol=1e-6, inference="lp").fit(forest, y)
    assert relaxed.objective_ == pytest.approx(exact.objective_, rel=1e-5)


def test_on_a_frustrated_cycle_the_relaxation_sees_more_loss_than_any_labeling():
    # Neighbours on a triangle must differ, which two labels cannot do, but halves of labels can.
    X, y = [(np.zeros((3, 1)), [[0, 1], [1, 2], [2, 0]])], [["a", "b", "a"]]
    values = {}
    for method in ("exact", "lp"):
        model = GraphM3N(inference=method)
        data = model._read_training(X, y, None, None)
        bound = model._bind(data)
        w = np.zeros(bound.n_params)
        w[bound.structure.first_table :] = -10.0 * np.eye(2).ravel()
        block = data.X.block(0, 1)
        scores = bound.add_costs(bound.scores(bound.source(w), block), np.eye(2)[1 - data.codes])
        values[method] = bound.relaxed_argmax(scores).value[0]
    assert values == {"exact": pytest.approx(-10.0 + 3.0), "lp": pytest.approx(1.5)}


def test_it_learns_to_use_the_edges():
    X, y = make_graphs(seed=5, n_graphs=40, n_features=2)
    nodes = [(x, []) for x, _ in X]
    train, test = slice(0, 25), slice(25, 40)
    with_edges = GraphM3N(C=0.3, tol=1e-5).fit(X[train], y[train]).score(X[test], y[test])
    without = GraphM3N(C=0.3, tol=1e-5).fit(nodes[train], y[train]).score(nodes[test], y[test])
    assert with_edges > without + 0.05


def test_too_few_passes_give_a_warning():
    X, y = make_graphs()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = GraphM3N(C=10.0, max_iter=2).fit(X, y)
    assert not model.converged_
    assert len(model.predict(X)) == len(X)
