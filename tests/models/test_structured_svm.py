"""StructuredSVM: solvers, rescalings, losses and bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from margin_data import joint_features, make_chains, primal_objective
from seqlab import M3N, StructuredSVM
from seqlab.data import InputError
from seqlab.data.tags import tags_to_phrases


@pytest.fixture
def data():
    return make_chains(seed=6, n=8, longest=4)


def weights(model):
    return np.concatenate(
        [model.coef_.T.ravel(), model.transitions_.ravel(), model.start_, model.end_]
    )


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("solver", ["bcfw", "cutting_plane", "n-slack", "1-slack"])
def test_objective_equals_enumeration_and_all_solvers_agree(data, solver, rescaling):
    X, y = data
    reference = StructuredSVM(
        C=0.4, tol=1e-7, rescaling=rescaling, solver="bcfw", random_state=1
    ).fit(X, y)
    model = StructuredSVM(C=0.4, tol=1e-6, rescaling=rescaling, solver=solver, random_state=0)
    model.fit(X, y)
    slack = rescaling == "slack"
    exact = primal_objective(weights(model), X, y, 3, 0.4, rescale_slack=slack)
    assert model.objective_ == pytest.approx(exact)
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-5)
    assert model.converged_
    kernel = StructuredSVM(
        C=0.4, tol=1e-6, rescaling=rescaling, solver=solver, kernel=lambda a, b: a @ b.T,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert kernel.objective_ == pytest.approx(reference.objective_, rel=1e-5)


@pytest.mark.parametrize("solver", ["auto", "1-slack"])
def test_slack_rescaling_converges_on_a_long_sequence(solver):
    """Wrong labels number 1 to 80, so planes differ in length by a factor of thousands."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, size=80)
    X = random.normal(size=(80, 4)) + 1.5 * np.eye(4)[labels]
    model = StructuredSVM(rescaling="slack", solver=solver, max_iter=300).fit([X], [labels])
    assert model.converged_
    assert model.history_["gap"][-1] <= 1e-3 * model.objective_


@pytest.mark.parametrize("solver", ["cutting_plane", "1-slack"])
def test_cutting_planes_converge_if_many_planes_are_needed(solver):
    """Planes that are dropped too early are found again, and the dual never rises."""
    random = np.random.default_rng(0)
    means = random.normal(size=(6, 20))
    y = [random.integers(0, 6, size=5) for _ in range(100)]
    X = [means[labels] + 0.5 * random.normal(size=(5, 20)) for labels in y]
    model = StructuredSVM(solver=solver, tol=0.01, max_iter=300).fit(X, y)
    assert model.converged_
    reference = StructuredSVM(tol=0.01, random_state=0).fit(X, y)
    assert model.objective_ == pytest.approx(reference.objective_, rel=0.02)


def test_margin_rescaling_equals_m3n(data):
    X, y = data
    a = StructuredSVM(C=0.4, tol=1e-7, kernel="poly", random_state=0).fit(X, y)
    b = M3N(C=0.4, tol=1e-7, kernel="poly", random_state=0).fit(X, y)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)


def test_subgradient_runs_all_passes_without_a_certificate(data):
    X, y = data
    best = StructuredSVM(C=0.4, tol=1e-7, random_state=0).fit(X, y).objective_
    model = StructuredSVM(C=0.4, solver="subgradient", max_iter=500, random_state=0).fit(X, y)
    assert model.n_iter_ == 500
    assert not model.converged_
    assert "gap" not in model.history_
    assert best <= model.objective_ <= 1.02 * best


def test_loss_matrix_sets_the_cost_of_each_confusion(data):
    X, y = data
    loss = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
    model = StructuredSVM(C=0.3, loss=loss, tol=1e-7, random_state=0).fit(X, y)
    w = weights(model)
    total = 0.5 * w @ w
    for x, gold in zip(X, y, strict=True):
        total += primal_objective(w, [x], [gold], 3, 0.3, costs=loss[gold]) - 0.5 * w @ w
    assert model.objective_ == pytest.approx(total)
    ones = StructuredSVM(C=0.3, loss=1.0 - np.eye(3), tol=1e-7, random_state=0).fit(X, y)
    hamming = StructuredSVM(C=0.3, tol=1e-7, random_state=0).fit(X, y)
    assert ones.objective_ == hamming.objective_


def test_bad_losses_raise_errors(data):
    X, y = data
    for loss, words in [
        (np.ones((2, 2)), "there are 3 labels"),
        (np.ones((3, 3)), "the right label must cost 0"),
        (-1.0 + np.eye(3), "not negative"),
        (np.full((3, 3), np.nan), "must be finite"),
    ]:
        with pytest.raises(InputError, match=words):
            StructuredSVM(loss=loss).fit(X, y)
    with pytest.raises(ValueError, match="loss"):
        StructuredSVM(loss="zero_one").fit(X, y)
    for options in ({"loss": 1.0 - np.eye(3)}, {"class_weight": "balanced"}):
        with pytest.raises(InputError, match="needs loss='hamming' without class_weight"):
            StructuredSVM(rescaling="slack", **options).fit(X, y)


def test_span_loss_counts_missed_and_wrong_phrases(data):
    """The objective is computed by enumeration; all solvers agree."""
    X, y = data
    tags = np.array(["B", "I", "O"])
    y = [tags[labels] for labels in y]
    found = [
        StructuredSVM(C=0.4, loss="span", solver=solver, tol=1e-6, random_state=0).fit(X, y)
        for solver in ("bcfw", "n-slack", "1-slack")
    ]
    for model in found:
        w = weights(model)
        total = 0.5 * w @ w
        for x, gold in zip(X, y, strict=True):
            codes = np.searchsorted(tags, gold)
            right = set(tags_to_phrases(gold.tolist()))
            worst = 0.0
            for labels in itertools.product(range(3), repeat=len(gold)):
                other = set(tags_to_phrases(tags[list(labels)].tolist()))
                psi = joint_features(x, codes, 3) - joint_features(x, labels, 3)
                worst = max(worst, len(right ^ other) - w @ psi)
            total += 0.4 * worst
        assert model.objective_ == pytest.approx(total)
        assert model.objective_ == pytest.approx(found[0].objective_, rel=1e-5)
        assert model.converged_
    with pytest.raises(InputError, match="needs labels that are tags"):
        StructuredSVM(loss="span").fit(X, [["x"] * len(labels) for labels in y])
    for options in ({"rescaling": "slack"}, {"class_weight": "balanced"}):
        with pytest.raises(InputError, match=r"class_weight"):
            StructuredSVM(loss="span", **options).fit(X, y)
