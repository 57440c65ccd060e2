"""StructHKL against brute force over all nodes and labelings, and what it says about itself."""

import time
from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.relational.hkl.lattice_oracle import Problem

import seqlab
from seqlab import PatternHKL, StructHKL, StructuredSVM
from seqlab.data import Sequences
from seqlab.data.errors import InputError, NumericalError
from seqlab.learning import FitResult
from seqlab.optim import FitState
from seqlab.relational.hkl.plane_dual import PlaneDual


def make_chains(n_inputs, n_labels=2, n=6, n_steps=3):
    """Return chains whose labels depend on the conjunction of the first two inputs, with some noise."""
    random = np.random.default_rng(n_inputs)
    X = [(random.random((n_steps, n_inputs)) < 0.6).astype(float) for _ in range(n)]
    y = [(x[:, 0] * x[:, 1] + (x[:, -1] if n_labels > 2 else 0)).astype(int) for x in X]
    y[0][0] = 1 - y[0][0] % 2
    return X, y


def primal(problem, model):
    """Return the exact objective of a fitted model, by enumeration."""
    table = np.zeros((len(problem.nodes), problem.n_labels))
    for k, node in enumerate(model.conjunctions_):
        table[problem.nodes.index(node)] = model.conjunction_coef_[:, k]
    arcs = [model.transitions_.ravel(), model.start_, model.end_]
    return problem.objective(np.concatenate([table.ravel(), *arcs]))


@pytest.mark.parametrize(
    ("n_inputs", "rho", "label_wise", "n_labels", "n_iter"),
    [(2, 2.0, True, 2, 30), (3, 1.5, False, 3, 25), (4, 1.3, True, 2, 25)],
)
def test_equals_brute_force(n_inputs, rho, label_wise, n_labels, n_iter):
    X, y = make_chains(n_inputs, n_labels, n=5, n_steps=2 if n_labels > 2 else 3)
    problem = Problem(X, y, n_labels, C=3.0, a=1.5, rho=rho, label_wise=label_wise)
    _, lowest = problem.solve(n_iter)
    model = StructHKL(C=3.0, rho=rho, length_penalty=1.5, label_wise=label_wise, tol=1e-4)
    model.fit(X, y)
    assert model.converged_
    assert model.objective_ - model.history_["gap"][-1] <= lowest * (
        1 + 1e-9
    )  # the certificate holds
    assert lowest <= model.objective_ * (1 + 1e-3)  # the fixed-point method stops a little above
    # The objective is that of the stored weights: conjunctions with small weights have been dropped.
    assert primal(problem, model) == pytest.approx(model.objective_, rel=1e-10)
    assert model.history_["gap"][-1] <= 1e-4 * model.objective_
    assert any(len(node) == 2 for node in model.conjunctions_)


def test_selected_conjunctions_contain_their_parts():
    X, y = make_chains(4, n=20)
    model = StructHKL(C=20.0, length_penalty=1.2, tol=1e-3).fit(X, y)
    assert max(map(len, model.conjunctions_)) >= 2
    for flags in model.is_selected_:
        chosen = {node for node, used in zip(model.conjunctions_, flags, strict=True) if used}
        for node in chosen:
            for size in range(len(node)):
                assert chosen.issuperset(combinations(node, size))
    assert not model.conjunction_coef_[~model.is_selected_].any()


def test_margin_and_slack_rescaling_differ_and_both_reach_the_tolerance():
    X, y = make_chains(3, n=8)
    margin = StructHKL(C=1.0, tol=1e-3).fit(X, y)
    slack = StructHKL(C=1.0, tol=1e-3, rescaling="slack").fit(X, y)
    for model in (margin, slack):
        assert model.converged_
        assert model.history_["gap"][-1] <= 1e-3 * model.objective_
    assert abs(margin.objective_ - slack.objective_) > 1e-3
    with pytest.raises(InputError, match="class_weight"):
        StructHKL(rescaling="slack", class_weight="balanced").fit(X, y)


def test_finds_a_conjunction_that_single_inputs_cannot_express():
    random = np.random.default_rng(0)
    X = [(random.random((30, 6)) < 0.5).astype(float) for _ in range(6)]
    y = [np.where((x[:, 1] > 0) & (x[:, 4] > 0), "both", "none") for x in X]
    model = StructHKL(C=10.0).fit(X[:4], y[:4])
    strongest = model.rules_[0]
    pairs = {rule.conditions for rule in model.rules_ if len(rule.conditions) > 1}
    assert pairs == {("x1", "x4")}
    assert model.score(X[4:], y[4:]) > 0.95
    assert "if x1 and x4" in model.describe()
    assert model.describe(1) == str(strongest)


@pytest.mark.parametrize("name", ["conjunctions_", "rules_"])
def test_an_unfitted_model_has_no_rules(name):
    with pytest.raises(NotFittedError):
        getattr(StructHKL(), name)


def test_without_conjunctions_it_is_a_chain_of_biases():
    X, y = make_chains(3, n=10)
    model = StructHKL(max_length=0, rho=2.0, C=0.5, label_wise=False, tol=1e-6).fit(X, y)
    assert model.conjunctions_ == [()]
    # One node: Omega is the 2-norm of the biases, as in a structural SVM with one constant feature.
    constant = [np.ones((len(x), 1)) for x in X]
    svm = StructuredSVM(C=0.5, tol=1e-8, random_state=0).fit(constant, y)
    assert model.objective_ == pytest.approx(svm.objective_, rel=1e-5)


def test_names_the_limit_that_ended_the_search():
    X, y = make_chains(4, n=20)
    model = StructHKL(C=50.0, length_penalty=1.01, max_nodes=10, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="max_nodes=10") as caught:
        model.fit(X, y)
    assert "max_iter" not in str(caught[0].message)
    # It ends as soon as the weights of the active conjunctions are optimal, not at max_iter.
    gaps = np.array(model.history_["active_gap"]) / model.history_["objective"]
    assert not model.converged_
    assert gaps[-1] <= 1e-3
    assert (gaps[:-1] > 0.5e-3).all()
    # The advice is the same if the time ends in that iteration.
    result = FitResult(
        FitState(None, 1.0, message="the search reached max_nodes=10"),
        1, {"seconds": [1.0]}, "StructHKL", 9, "iterations", True, stop_reason="max_seconds",
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="max_nodes=10"):
        result.conclude()


@pytest.mark.parametrize("penalty", [1e200, 1e-250])
def test_weights_beyond_the_range_of_numbers_are_an_error(penalty):
    X, y = make_chains(4, n=6, n_steps=12)
    with pytest.raises(NumericalError, match="length_penalty"):
        StructHKL(C=10.0, length_penalty=penalty).fit(X, y)


def test_the_time_limit_holds_inside_an_iteration():
    X, y = make_chains(5, n=12, n_steps=12)
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = StructHKL(C=1e9, max_seconds=0.2).fit(X, y)
    # Processor time, because other programs may run; the limit counts real time.
    assert time.process_time() - began < 2.0
    assert model.history_["seconds"][-1] >= 0.2
    assert np.isfinite(model.objective_)


def test_repeated_steps_cost_nothing_and_change_nothing():
    X, y = make_chains(3, n=6)
    once = StructHKL(C=2.0, tol=1e-4).fit(X, y)
    twice = StructHKL(C=1.0, tol=1e-4).fit(X * 2, y * 2)
    assert twice.objective_ == pytest.approx(once.objective_, rel=2e-4)


def test_rules_have_the_names_of_the_columns(tmp_path):
    random = np.random.default_rng(0)
    x = (random.random((60, 2)) < 0.5).astype(float)
    y = [np.where(x[:, 0] > 0, "in", "out")]
    named = Sequences(x, [0, 60], feature_names=["front door", "use(cup)"])
    model = StructHKL(C=1.0).fit(named, y)
    assert model.rules_[0].conditions == ("front door",)
    np.testing.assert_array_equal(model.predict([x])[0], y[0])  # without names
    seqlab.save(model, tmp_path / "model")
    assert seqlab.load(tmp_path / "model").describe() == model.describe()
    patterns = PatternHKL(window=(0, 0), C=1.0).fit(named, y)
    assert {str(one) for one in patterns.patterns_} == {"on('front door')[t]", "use(cup)[t]"}
    assert StructHKL(C=1.0).fit([x], y).rules_[0].conditions == ("x0",)


def test_a_stalled_descent_solves_its_programs_more_accurately(monkeypatch):
    """If errors of the programs hide the descent, the same accuracy would reject every further step."""
    X, y = make_chains(4, n=20)
    solve, accuracies = PlaneDual.solve, []

    def rise(self, gamma, accuracy):
        accuracies.append(accuracy)
        found = solve(self, gamma, accuracy)
        return found._replace(value=found.value + len(accuracies))

    monkeypatch.setattr(PlaneDual, "solve", rise)
    with pytest.warns(ConvergenceWarning, match="max_iter=6"):
        StructHKL(C=3.0, tol=1e-9, max_iter=6).fit(X, y)
    of_descent = sorted({one for one in accuracies if one < 1e-8}, reverse=True)
    np.testing.assert_allclose(of_descent[-2:], 0.1 * np.array(of_descent[-3:-1]))
