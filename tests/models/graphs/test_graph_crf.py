"""GraphCRF: gradients, agreement with the chain CRF, approximations, probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from tests.models.graphs.problems import as_chains, as_sparse, make_graphs

from seqlab import GraphCRF, LinearChainCRF
from seqlab.learning import Likelihood, PenalisedObjective
from seqlab.learning.pseudo_likelihood import PseudoLikelihood

KINDS = ["cites", "links"]


def prepared(X, y, **parameters):
    model = GraphCRF(**parameters)
    data = model._read_training(X, y, None, None)
    return model._bind(data), data


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kinds", [None, KINDS])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("term", [Likelihood, PseudoLikelihood])
def test_gradients_by_finite_differences(directed, kinds, sparse, term):
    X, y = make_graphs(kinds=kinds, n_graphs=3, n_nodes=5)
    bound, data = prepared(as_sparse(X) if sparse else X, y, directed=directed)
    weights = np.array([1.0, 0.5, 2.0])
    objective = PenalisedObjective(term(bound, data.codes, weights), 0.3)
    w = np.random.default_rng(0).normal(size=bound.n_params)
    numeric = approx_fprime(w, lambda v: objective.loss_gradient(v.copy())[0], 1e-6)
    np.testing.assert_allclose(objective.loss_gradient(w)[1], numeric, atol=2e-4)


def test_the_curvature_at_zero_by_finite_differences():
    X, y = make_graphs(kinds=KINDS, n_graphs=2, n_nodes=5, n_edges=5)
    X = [(x, [[0, 1], [1, 2], [3, 4]], kinds[:3]) for x, _, kinds in X]  # forests without loops
    bound, data = prepared(X, y)
    weights, step = np.array([1.0, 2.0]), 1e-4
    term = Likelihood(bound, data.codes, weights)

    def gradient(w):
        return term.evaluate(w).parts.sum(axis=0)

    found = [
        (gradient(step * e)[k] - gradient(-step * e)[k]) / (2 * step)
        for k, e in enumerate(np.eye(bound.n_params))
    ]
    np.testing.assert_allclose(bound.curvature_at_zero(weights), found, atol=1e-5)


def test_joint_features_give_the_score_and_the_expectation_of_indicators():
    X, y = make_graphs(kinds=KINDS)
    bound, data = prepared(X, y)
    w = np.random.default_rng(1).normal(size=bound.n_params)
    np.testing.assert_allclose(
        bound.joint_features(data.codes) @ w, bound.inner_products(data.codes, w), atol=1e-10
    )
    one = np.array([2])
    rows = data.codes[data.X.offsets[2] : data.X.offsets[3]]
    np.testing.assert_allclose(
        (bound.joint_features(rows, one) @ w)[0], bound.inner_products(data.codes, w)[2]
    )


@pytest.mark.parametrize("c2", [0.1, 1.0])
def test_a_chain_given_as_a_graph_is_the_chain_model(c2):
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(n, 3)) for n in (4, 6, 5, 7, 1)]
    y = [rng.integers(0, 3, len(x)) for x in X]
    chain = LinearChainCRF(
        c2=c2, boundary=False, all_states=True, all_transitions=True, tol=1e-10
    ).fit(X, y)
    graph = GraphCRF(c2=c2, fit_intercept=False, tol=1e-10).fit(as_chains(X), y)
    assert graph.objective_ == pytest.approx(chain.objective_, rel=1e-8)
    np.testing.assert_allclose(graph.coef_, np.asarray(chain.coef_), atol=1e-4)
    np.testing.assert_allclose(graph.edge_coef_[0], chain.transitions_, atol=1e-4)
    new = [rng.normal(size=(9, 3))]
    np.testing.assert_array_equal(graph.predict(as_chains(new))[0], chain.predict(new)[0])
    np.testing.assert_allclose(
        graph.predict_proba(as_chains(new))[0], chain.predict_proba(new)[0], atol=1e-4
    )
    labels = [rng.integers(0, 3, 9)]
    np.testing.assert_allclose(
        graph.sequence_log_proba(as_chains(new), labels),
        chain.sequence_log_proba(new, labels),
        atol=1e-3,
    )


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood"])
def test_without_edges_it_is_logistic_regression(objective):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    model = GraphCRF(c2=0.5, fit_intercept=False, tol=1e-10, objective=objective).fit(
        [(x, [])], [y]
    )
    other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(model.predict_proba([(x, [])])[0], other.predict_proba(x), atol=1e-5)


def test_edges_help_and_directions_matter():
    X, y = make_graphs(seed=5, n_graphs=40, n_features=2)
    train, test = slice(0, 25), slice(25, 40)
    accuracy = {}
    for name, graphs in {
        "nodes": [(x, []) for x, _ in X],
        "links": X,
    }.items():
        accuracy[name] = GraphCRF(c2=0.1).fit(graphs[train], y[train]).score(graphs[test], y[test])
    assert accuracy["links"] > accuracy["nodes"] + 0.05
    directed = GraphCRF(c2=0.1).fit(X[train], y[train])
    symmetric = GraphCRF(c2=0.1, directed=False).fit(X[train], y[train])
    np.testing.assert_allclose(symmetric.edge_coef_, symmetric.edge_coef_.transpose(0, 2, 1))
    assert directed.objective_ < symmetric.objective_


def test_types_have_tables_of_their_own_and_unseen_types_none():
    X, y = make_graphs(kinds=KINDS, n_graphs=20)
    model = GraphCRF(c2=0.1).fit(X, y)
    assert model.edge_types_.tolist() == KINDS
    assert model.edge_coef_.shape == (2, 3, 3)
    x, edges, _ = X[0]
    with pytest.warns(
        UserWarning, match=r"X\[0\]: none of its edges is of a type that fit has seen"
    ):
        found = model.predict_proba([(x, edges, ["new"] * len(edges))])[0]
    np.testing.assert_allclose(found, model.predict_proba([(x, [], [])])[0])
    numbers = [
        (x, e, np.array([[kind == k for k in KINDS] for kind in kinds])) for x, e, kinds in X
    ]
    same = GraphCRF(c2=0.1).fit(numbers, y)
    np.testing.assert_array_equal(same.edge_coef_, model.edge_coef_)


def test_loopy_training_ends_near_the_exact_optimum():
    X, y = make_graphs(seed=1, n_graphs=10, n_edges=9)
    exact = GraphCRF(c2=1.0).fit(X, y)
    loopy = GraphCRF(c2=1.0, inference="loopy", max_rounds=1000).fit(X, y)
    assert loopy.converged_
    assert loopy.objective_ == pytest.approx(exact.objective_, rel=0.02)
    assert np.mean(np.concatenate(loopy.predict(X)) == np.concatenate(exact.predict(X))) > 0.95
    relaxed = GraphCRF(c2=1.0, inference="lp", max_rounds=1000).fit(X, y)
    assert np.mean(np.concatenate(relaxed.predict(X)) == np.concatenate(loopy.predict(X))) > 0.95


def test_the_warning_says_if_belief_propagation_does_not_converge():
    rng = np.random.default_rng(0)
    n = 8
    edges = [(i, j) for i in range(n) for j in range(i)]
    X = [(rng.normal(size=(n, 2)), edges) for _ in range(3)]
    y = [rng.integers(0, 2, n) for _ in range(3)]
    model = GraphCRF(c2=1e-4, inference="loopy", damping=0.0, max_rounds=1, max_iter=5)
    with pytest.warns(ConvergenceWarning, match="belief propagation does not converge on"):
        model.fit(X, y)


def test_the_scale_of_a_feature_does_not_matter():
    X, y = make_graphs(seed=4, n_graphs=20)
    large = [(x * np.array([1, 1e4, 1, 1]), e) for x, e in X]
    model = GraphCRF(c2=1e-6, tol=1e-6).fit(X, y)
    scaled = GraphCRF(c2=1e-6, tol=1e-6).fit(large, y)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-3)
