"""Partly known labels: the fused passes, stochastic steps, and which transitions have a weight."""

from __future__ import annotations

import numpy as np
import pytest

from blocks import count_parallel_tasks
from learning.test_likelihood import (
    fused_and_generic,
    gradient,
    loss,
    problem,
    stochastic_passes,
)
from seqlab import LinearChainCRF, Templates
from seqlab.data import InputError, Sequences
from seqlab.datasets import make_addresses
from seqlab.learning import Likelihood, PenalisedObjective
from seqlab.learning.curvature import LikelihoodCurvature
from seqlab.learning.warm_start import WarmStart
from seqlab.optim import lbfgs
from seqlab.structures.chain import ChainStructure, stochastic

LENGTHS = (4, 1, 3, 9, 2, 5, 1, 6, 2, 7)


def assert_same(fused, generic, w, rtol=1e-12, atol=1e-11):
    assert loss(fused, w) == pytest.approx(loss(generic, w), rel=rtol)
    np.testing.assert_allclose(gradient(fused, w), gradient(generic, w), rtol=rtol, atol=atol)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"free": True}])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 9])
def test_fused_passes_give_the_same_objective(options, n_labels):
    objective, w = problem(n_labels=n_labels, lengths=LENGTHS, partial=True, **options)
    assert (objective.term.partial is None) == (n_labels == 1)
    fused, generic = fused_and_generic(objective)
    assert_same(fused, generic, w)
    if n_labels > 1:
        zero = np.zeros_like(w)
        assert fused.term.value_at_zero() == pytest.approx(loss(generic, zero))
        assert fused.strong_convexity == 0.0


def test_extreme_scores_are_computed_in_log_space():
    objective, w = problem(lengths=LENGTHS, partial=True, weighted=True)
    bound = objective.term.bound
    matrix = bound.X.matrix.copy()
    matrix.data[matrix.indptr[8] : matrix.indptr[17]] *= 200.0  # of the longest sequence
    fused, generic = fused_and_generic(objective, Sequences(matrix, bound.X.offsets))
    term = fused.term
    assert 0 < term.bound.passes.run(w, None, term.partial).n_skipped < len(bound.X)
    assert_same(fused, generic, w, rtol=1e-10, atol=1e-8)


def test_sets_with_one_member_are_known_labels():
    objective, w = problem(lengths=LENGTHS, n_labels=5, weighted=True)
    term = objective.term
    allowed = np.eye(5, dtype=bool)[term.codes]
    for hidden in (np.ones(term.codes.size, dtype=bool), np.arange(term.codes.size) % 3 == 0):
        codes = np.where(hidden, -2, term.codes)
        data = Likelihood(term.bound, codes, term.weights, allowed=allowed)
        assert data.partial is not None
        partial = PenalisedObjective(data, objective.c2)
        assert loss(partial, w) == pytest.approx(loss(objective, w), rel=1e-12)
        np.testing.assert_allclose(gradient(partial, w), gradient(objective, w), atol=1e-12)


def test_a_sequence_of_which_nothing_is_known_changes_nothing():
    objective, w = problem(lengths=LENGTHS, partial=True)
    term = objective.term
    codes, allowed = term.codes.copy(), term.partial.allowed.copy()
    steps = slice(term.bound.X.offsets[3], term.bound.X.offsets[4])
    codes[steps], allowed[steps] = -2, True
    some = np.delete(np.arange(len(LENGTHS)), 3)
    every = Likelihood(term.bound, codes, term.weights, allowed=allowed)
    kept = np.ones(codes.size, dtype=bool)
    kept[steps] = False
    others = Likelihood(
        term.bound.structure.bind(term.bound.X[some]),
        codes[kept],
        term.weights[some],
        allowed=allowed[kept],
    )
    assert_same(PenalisedObjective(every, 0.1), PenalisedObjective(others, 0.1), w)
    assert every.value_at_zero(np.array([3])) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_stochastic_step_is_a_gradient_step(monkeypatch, weight):
    monkeypatch.setattr(stochastic, "DAMPING", 0.0)
    objective, _ = problem(lengths=(7,), c2=0.0, partial=True, seed=3)
    objective = next(fused_and_generic(objective, weights=np.array([weight])))
    assert objective.term.partial.arrays.first.size > 1
    passes = stochastic_passes(objective, 0.1)
    point = np.zeros(objective.n_params)
    for _ in range(3):
        value, after = passes.run(np.array([0]))
        assert value == pytest.approx(loss(objective, point))
        step = -0.1 / weight * gradient(objective, point)
        np.testing.assert_allclose(after, point + step, atol=1e-12)
        point = after


def test_results_are_bitwise_identical_for_any_number_of_threads(monkeypatch):
    counts = count_parallel_tasks(monkeypatch)
    lengths = np.random.default_rng(0).integers(1, 30, size=4000)
    objective, w = problem(lengths=lengths, n_labels=12, partial=True)
    serial = next(fused_and_generic(objective)).loss_gradient(w)
    parallel = next(fused_and_generic(objective, n_jobs=2)).loss_gradient(w)
    assert max(counts) > 2  # more blocks than threads
    assert serial[0] == parallel[0]
    np.testing.assert_array_equal(serial[1], parallel[1])


def transitions(labels, sets=(), **options):
    """Return the transitions that have a weight, as strings, for sequences such as "ab?c"."""
    names = "abcd"
    codes = np.array([names.find(label) for label in "".join(labels)])
    allowed = np.eye(len(names), dtype=bool)[codes]
    allowed[codes < 0] = True
    for step, members in sets:
        allowed[step] = [name in members for name in names]
    codes[codes < 0] = -2
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in labels])])
    X = Sequences(np.ones((codes.size, 1)), offsets)
    structure = ChainStructure.from_data(X, codes, len(names), allowed=allowed, **options)
    before, after = np.nonzero(structure.has_transition)
    return {names[a] + names[b] for a, b in zip(before, after, strict=True)}


def test_transitions_next_to_hidden_labels_need_no_weight_if_seen_ones_suffice():
    assert transitions(["abca", "a?c", "??b", "c??", "???"]) == {"ab", "bc", "ca"}
    assert len(transitions(["abca", "a?c"], all_transitions=True)) == 16


def test_transitions_of_the_labelings_with_the_fewest_unseen_ones_have_a_weight():
    # Nothing was seen: all transitions of the hidden label are needed.
    assert transitions(["a?b"]) == {f"a{x}" for x in "abcd"} | {f"{x}b" for x in "abcd"}
    # From a to a in two steps: ab is followed by an unseen transition, or ca comes after one.
    assert transitions(["ab", "ca", "a?a"]) == {"ab", "ca", "ba", "ac"}
    # A set restricts what is possible.
    assert transitions(["ab", "ca", "a?a"], [(5, "cd")]) == {"ab", "ca", "ac"}
    assert transitions(["ab", "a?"], [(3, "cd")]) == {"ab", "ac", "ad"}
    # Unseen transitions count once for each step.
    assert transitions(["abab", "b?", "b?"], [(5, "c"), (7, "c")], min_freq=2) == {"ab", "bc"}
    assert transitions(["abab", "b?"], [(5, "c")], min_freq=2) == {"ab"}


@pytest.fixture(scope="module")
def addresses():
    X, y = make_addresses(300, random_state=0, return_X_y=True)
    return Templates.default().fit_transform(X), [list(labels) for labels in y]


def test_a_model_of_sets_with_one_member_is_that_of_known_labels(addresses):
    X, y = addresses
    known = LinearChainCRF().fit(X, y)
    sets = LinearChainCRF().fit(X, [[{label} for label in labels] for labels in y])
    np.testing.assert_array_equal(sets.coef_.data, known.coef_.data)
    np.testing.assert_array_equal(sets.transitions_, known.transitions_)


@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_one_hidden_label_changes_probabilities_by_its_information_only(addresses, c1):
    X, y = addresses
    known = LinearChainCRF(c1=c1, tol=1e-6).fit(X, y)
    hidden = [list(labels) for labels in y]
    hidden[17][2] = None
    partial = LinearChainCRF(c1=c1, tol=1e-6).fit(X, hidden)
    assert np.isinf(partial.history_["bound"]).all()
    if c1 == 0.0:
        np.testing.assert_array_equal(partial.transitions_ == 0, known.transitions_ == 0)
    a, b = (np.concatenate(model.predict_proba(X)) for model in (known, partial))
    steps = np.concatenate([[0], np.cumsum([len(labels) for labels in y])])
    others = np.r_[0 : steps[17], steps[18] : steps[-1]]
    assert np.abs(a[others] - b[others]).max() < 0.01


def hide(y, share):
    random = np.random.default_rng(0)
    return [[label if random.random() >= share else None for label in labels] for labels in y]


def test_the_warm_start_comes_near_the_optimum(addresses):
    X, y = addresses
    model = LinearChainCRF()
    data = model._read_training(X, hide(y, 0.3), None, None)
    bound = model._bind(data)
    term = Likelihood(bound, data.codes, data.sequence_weights, allowed=data.allowed)
    objective = PenalisedObjective(term, 1.0)
    curvature = LikelihoodCurvature(objective)
    start = WarmStart(objective, term, bound.stochastic_support(), curvature).find_start()
    *_, best = lbfgs(objective, np.zeros(bound.n_params), max_iter=2000, tol=1e-6)
    gap_at_zero = term.value_at_zero() - best.objective
    assert loss(objective, start) - best.objective < 0.05 * gap_at_zero


def test_solvers_find_the_same_objective(addresses):
    X, y = addresses
    objectives = [
        LinearChainCRF(solver=solver, tol=1e-6).fit(X, hide(y, 0.1)).objective_
        for solver in ("auto", "lbfgs", "owlqn")
    ]
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-4)


def test_data_without_a_known_label_raise():
    X, nothing = [np.ones((2, 1)), np.ones((1, 1))], "nothing to learn from"
    for y in ([[None, None], [None]], [[{"a", "b"}, None], [None]]):
        with pytest.raises(InputError, match=nothing):
            LinearChainCRF().fit(X, y)
    with pytest.raises(InputError, match=nothing):
        LinearChainCRF().fit(X, [["a", "b"], [None]], sample_weight=[0.0, 1.0])
    with pytest.raises(InputError, match=r"y\[1\]\[0\] is an empty set"):
        LinearChainCRF().fit(X, [["a", "b"], [set()]])
