"""Max-margin learners: all solvers meet, generic QP solvers and hand cases agree."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize

from margin_data import enumerate_planes, make_chains, make_problem, primal_objective
from seqlab.data import InputError, Sequences
from seqlab.learning import MAX_GROUPS, BlockAscent, CuttingPlane, SubgradientDescent
from seqlab.structures.chain import ChainStructure
from seqlab.structures.margins import MarginProblem, WeightModel
from structures.star import StarStructure

L = 3


def solve(model, solver, tol=1e-6, max_iter=3000):
    """The last state of a learner, and its lowest dual and primal objectives."""
    random = np.random.RandomState(0)
    if solver in ("1-slack", "cutting_plane"):
        n_groups = 1 if solver == "1-slack" else MAX_GROUPS
        states = CuttingPlane(model, tol=tol, n_groups=n_groups).states()
    elif solver == "subgradient":
        states = SubgradientDescent(model, random=random).states()
    elif solver == "smo":
        states = BlockAscent(model, model.marginal_dual(), tol=tol, random=random).states()
    else:
        gain = 0.05 if solver == "n-slack" else np.inf
        states = BlockAscent(
            model, model.plane_dual(), tol=tol, random=random, n_cached=2, cached_gain=gain
        ).states()
    seen = []
    for state in islice(states, max_iter):
        seen.append(state)
        if state.converged:
            break
    return seen


MARGIN = ["smo", "bcfw", "n-slack", "1-slack", "cutting_plane", "subgradient"]


@pytest.mark.parametrize("rescale_slack", [False, True])
def test_all_solvers_meet_and_no_dual_exceeds_a_primal(rescale_slack):
    X, y = make_chains(seed=1)
    bound, problem = make_problem(X, y, L, rescale_slack=rescale_slack)
    primals, duals = [], []
    for solver in MARGIN[rescale_slack:]:
        n_iter = 10_000 if solver == "subgradient" else 1000
        seen = solve(bound.margin_model(problem), solver, max_iter=n_iter)
        w = seen[-1].point
        exact = primal_objective(w, X, y, L, 0.7, rescale_slack=rescale_slack)
        assert seen[-1].objective == pytest.approx(exact, rel=1e-10)
        primals.extend(state.objective for state in seen)
        duals.extend(state.info["dual"] for state in seen if "dual" in state.info)
        assert seen[-1].objective <= min(primals) * (1 + 1e-3), solver
        if solver != "subgradient":
            assert seen[-1].converged
            rises = np.diff([state.info["dual"] for state in seen])
            assert (rises >= -1e-9).all(), solver  # the dual never decreases
    assert max(duals) <= min(primals) * (1 + 1e-12)
    assert max(duals) == pytest.approx(min(primals), rel=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_optimum_equals_a_generic_qp_over_all_labelings(seed):
    X, y = make_chains(seed=seed, n=3, longest=3, n_labels=2)
    bound, problem = make_problem(X, y, 2, C=0.5)
    found = solve(bound.margin_model(problem), "smo", tol=1e-9)[-1].objective
    planes = [enumerate_planes(x, gold, 2) for x, gold in zip(X, y, strict=True)]
    losses = np.concatenate([a for a, _ in planes])
    vectors = np.concatenate([b for _, b in planes])
    ends = np.cumsum([a.size for a, _ in planes])
    blocks = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    gram = vectors @ vectors.T
    start = np.concatenate([np.eye(1, s.stop - s.start)[0] * 0.5 for s in blocks])
    result = minimize(
        lambda a: 0.5 * a @ gram @ a - losses @ a,
        start,
        jac=lambda a: gram @ a - losses,
        bounds=[(0, None)] * start.size,
        constraints=[{"type": "eq", "fun": lambda a, s=s: a[s].sum() - 0.5} for s in blocks],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert -result.fun == pytest.approx(found, rel=1e-5)


def test_factored_dual_equals_a_generic_qp_over_node_and_edge_marginals():
    """Variables: edge marginals of one chain of three steps; nodes follow from them."""
    random = np.random.default_rng(3)
    X, gold, C = [random.normal(size=(3, 2))], np.array([0, 1, 1]), 0.8
    bound, problem = make_problem(X, [gold], 2, C=C)
    found = solve(bound.margin_model(problem), "smo", tol=1e-9)[-1].objective
    x = X[0]

    def split(m):
        pair = m.reshape(2, 2, 2)  # pair[t] = marginals of the edge from t to t + 1
        node = np.array([pair[0].sum(axis=1), pair[0].sum(axis=0), pair[1].sum(axis=0)])
        return node, pair

    def negative_dual(m):
        node, pair = split(m)
        one = np.eye(2)
        c = C * one[gold] - node
        arcs = C * (np.outer(one[0], one[1]) + np.outer(one[1], one[1])) - pair.sum(axis=0)
        boundary = np.concatenate([c[0], c[2]])
        norm = ((x.T @ c) ** 2).sum() + (arcs**2).sum() + boundary @ boundary
        loss = sum(node[t, s] for t in range(3) for s in range(2) if s != gold[t])
        return 0.5 * norm - loss

    start = np.zeros((2, 2, 2))
    start[0, 0, 1] = start[1, 1, 1] = C
    result = minimize(
        negative_dual,
        start.ravel(),
        bounds=[(0, None)] * 8,
        constraints=[
            {"type": "eq", "fun": lambda m: m[:4].sum() - C},
            {"type": "eq", "fun": lambda m: m[0] + m[2] - m[4] - m[5]},
            {"type": "eq", "fun": lambda m: m[1] + m[3] - m[6] - m[7]},
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert -result.fun == pytest.approx(found, rel=1e-6)


def test_one_search_finds_the_worst_labeling_of_each_range_of_errors():
    X, y = make_chains(seed=4, n=4, longest=4)
    bound, problem = make_problem(X, y, L, rescale_slack=True)
    model = bound.margin_model(problem)
    w = np.random.default_rng(0).normal(size=model.vector().size)
    model.set(w)
    found = model.find_many_violators()
    assert len(found) == 4  # the worst of all; 1, 2-3 and 4 errors
    for i, (x, gold) in enumerate(zip(X, y, strict=True)):
        losses, planes = enumerate_planes(x, gold, L, rescale_slack=True)
        heights = losses - planes @ w
        assert found[0].slack[i] == pytest.approx(max(heights.max(), 0.0))
        for one, (low, high) in zip(found[1:], [(1, 1), (2, 3), (4, 7)], strict=True):
            inside = (low <= losses) & (losses <= high)
            expected = heights[inside].max() if inside.any() else 0.0
            assert one.slack[i] == pytest.approx(expected)
            assert one.losses[i] == np.sum(one.labels[bound.X.offsets[i] :][: len(gold)] != gold)
    np.testing.assert_array_equal(found[0].slack, model.find_violators().slack)


@pytest.mark.parametrize(("C", "expected"), [(1.0, 0.25), (0.25, 0.1875)])
@pytest.mark.parametrize("solver", ["smo", "bcfw", "n-slack", "1-slack"])
def test_hand_case_of_one_step_and_two_labels(C, expected, solver):
    """f = e_y: the dual is a - a^2 with a = min(C, 1/2) and w = (a, -a)."""
    X = Sequences.from_list([np.ones((1, 1))])
    structure = ChainStructure.from_data(
        X, np.array([0]), 2, all_states=True, all_transitions=True, boundary=False
    )
    problem = MarginProblem(np.array([0]), np.array([[0.0, 1.0]]), np.array([C]))
    state = solve(structure.bind(X).margin_model(problem), solver, tol=1e-12)[-1]
    assert state.objective == pytest.approx(expected)
    assert state.info["dual"] == pytest.approx(expected)
    a = min(C, 0.5)
    np.testing.assert_allclose(state.point[:2], [a, -a])


def test_first_step_on_the_hand_case_closes_the_gap():
    """Block-coordinate Frank-Wolfe: gap 1 at the start, 0 after one step of size 0.5."""
    X = Sequences.from_list([np.ones((1, 1))])
    structure = ChainStructure.from_data(
        X, np.array([0]), 2, all_states=True, all_transitions=True, boundary=False
    )
    problem = MarginProblem(np.array([0]), np.array([[0.0, 1.0]]), np.ones(1))
    for make in ("plane_dual", "marginal_dual"):
        model = structure.bind(X).margin_model(problem)
        dual = getattr(model, make)()
        first = dual.measure()
        assert first.primal - first.dual == pytest.approx(1.0)
        assert dual.run_pass(np.array([0])) == 1
        after = dual.measure()
        assert after.primal - after.dual == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(model.vector()[:2], [0.5, -0.5])


def test_sequences_of_one_step_equal_the_crammer_singer_svm():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, size=40)
    features = random.normal(size=(40, 4)) + 1.2 * np.eye(4)[labels]
    X = Sequences(features, np.arange(41))
    structure = ChainStructure.from_data(
        X, labels, 3, all_states=True, all_transitions=True, boundary=False
    )
    costs = 1.0 - np.eye(3)[labels]
    problem = MarginProblem(labels, costs, np.full(40, 0.3))
    state = solve(structure.bind(X).margin_model(problem), "smo", tol=1e-7)[-1]
    from sklearn.svm import LinearSVC

    svm = LinearSVC(
        multi_class="crammer_singer", C=0.3, fit_intercept=False, tol=1e-10, max_iter=100_000
    ).fit(features, labels)
    ours = state.point[:12].reshape(4, 3).T
    np.testing.assert_allclose(ours, svm.coef_, atol=2e-3)


def test_generic_model_of_any_structure_agrees_with_the_compiled_chain():
    X, y = make_chains(seed=2)
    bound, problem = make_problem(X, y, L)
    compiled = solve(bound.margin_model(problem), "bcfw", tol=1e-8)[-1]
    for solver in ("bcfw", "n-slack", "1-slack", "cutting_plane"):
        generic = solve(WeightModel(bound, problem), solver, tol=1e-6, max_iter=500)[-1]
        assert generic.objective == pytest.approx(compiled.objective, rel=1e-5)
    averaged = solve(WeightModel(bound, problem), "subgradient", max_iter=60)[-1]
    assert averaged.objective == pytest.approx(compiled.objective, rel=0.1)


def test_solvers_meet_on_a_star():
    random = np.random.default_rng(5)
    X = Sequences.from_list([random.normal(size=(n, 2)) for n in (1, 3, 4, 2)])
    codes = random.integers(0, 2, size=X.n_steps)
    bound = StarStructure(2, 2).bind(X)
    problem = MarginProblem(codes, 1.0 - np.eye(2)[codes], np.full(4, 0.5))
    found = [
        solve(bound.margin_model(problem), solver, tol=1e-7, max_iter=500)[-1]
        for solver in ("bcfw", "n-slack", "1-slack")
    ]
    for state in found:
        assert state.converged
        assert state.objective == pytest.approx(found[0].objective, rel=1e-5)
    with pytest.raises(InputError, match="no dual over marginals"):
        bound.margin_model(problem).marginal_dual()
    with pytest.raises(InputError, match="slack rescaling"):
        bound.margin_model(problem._replace(rescale_slack=True))
