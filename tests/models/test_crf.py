"""LinearChainCRF: known special cases, options, constraints, partial labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from seqlab import LinearChainCRF
from seqlab.data import InputError, NoLegalLabelingError
from seqlab.datasets import make_hmm_sequences
from seqlab.inference import Mask
from seqlab.learning import Monitor


@pytest.fixture(scope="module")
def chunks():
    """Sequences of noun and verb phrases with the tags B-N, I-N, B-V and O."""
    random = np.random.default_rng(3)
    X, y = [], []
    for _ in range(40):
        steps, labels = [], []
        for _ in range(random.integers(2, 5)):
            kind = random.choice(["noun", "verb", "other"])
            n = random.integers(1, 4) if kind == "noun" else 1
            for k in range(n):
                steps.append(
                    {"kind": kind if random.random() < 0.8 else "other", "long": bool(n > 2)}
                )
                labels.append("O" if kind == "other" else ("I-" if k else "B-") + kind[0].upper())
        X.append(steps)
        y.append(labels)
    return X, y


def one_step_data(seed=0, n=120, d=4, k=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.argmax(X @ random.normal(size=(d, k)) + random.gumbel(size=(n, k)), axis=1)
    return X, y


@pytest.mark.parametrize("c2", [0.05, 1.0])
def test_sequences_of_one_step_equal_multinomial_logistic_regression(c2):
    X, y = one_step_data()
    crf = LinearChainCRF(c2=c2, boundary=False, tol=1e-13).fit(
        [x[None] for x in X], [[v] for v in y]
    )
    lr = LogisticRegression(C=1 / (2 * c2), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        X, y
    )
    np.testing.assert_allclose(crf.coef_, lr.coef_, atol=1e-5)
    proba = np.concatenate(crf.predict_proba([x[None] for x in X]))
    np.testing.assert_allclose(proba, lr.predict_proba(X), atol=1e-6)


def test_unpenalized_boundary_weights_equal_an_intercept():
    X, y = one_step_data(1)
    sequences = [x[None] for x in X]
    crf = LinearChainCRF(c2=0.5, boundary="unpenalized", tol=1e-9).fit(sequences, [[v] for v in y])
    lr = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(
        np.concatenate(crf.predict_proba(sequences)), lr.predict_proba(X), atol=1e-5
    )


def test_solvers_agree_on_the_optimum(chunks):
    a = LinearChainCRF(c2=0.2, solver="lbfgs", tol=1e-12).fit(*chunks)
    b = LinearChainCRF(c2=0.2, solver="owlqn", tol=1e-12).fit(*chunks)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    np.testing.assert_allclose(a.coef_.toarray(), b.coef_.toarray(), atol=1e-4)


def test_l1_objective_is_the_penalised_loss_and_lies_between_its_bounds(chunks):
    X, y = chunks
    smooth = LinearChainCRF(c2=0.2, tol=1e-10).fit(X, y)
    sparse = LinearChainCRF(c1=0.1, c2=0.2, tol=1e-10).fit(X, y)

    def weights(model):
        parts = (model.coef_.toarray(), model.transitions_, model.start_, model.end_)
        return np.concatenate([part.ravel() for part in parts])

    w = weights(sparse)
    loss = -sparse.sequence_log_proba(X, y).sum()
    assert sparse.objective_ == pytest.approx(loss + 0.1 * abs(w).sum() + 0.2 * (w**2).sum())
    # The penalty can only raise the optimum, by at most its value at the optimum without it.
    highest = smooth.objective_ + 0.1 * abs(weights(smooth)).sum()
    assert smooth.objective_ + 1e-3 < sparse.objective_ < highest - 1e-3
    assert np.count_nonzero(w) < np.count_nonzero(weights(smooth))


def test_objective_is_within_tol_of_the_optimum(chunks):
    best = LinearChainCRF(c2=0.2, tol=1e-13).fit(*chunks).objective_
    for tol in (1e-1, 1e-3, 1e-6):
        model = LinearChainCRF(c2=0.2, tol=tol).fit(*chunks)
        assert model.converged_
        assert model.objective_ - best <= tol * model.objective_
        assert model.objective_ - best <= model.history_["bound"][-1] * (1 + 1e-9) + 1e-9
    assert sorted(model.history_["objective"], reverse=True) == model.history_["objective"]


def test_c1_makes_weights_zero(chunks):
    sizes = []
    for c1 in (0.0, 1.0, 10.0):
        model = LinearChainCRF(c1=c1, c2=0.1, tol=1e-6).fit(*chunks)
        sizes.append(np.count_nonzero(model.coef_.data))
    assert sizes[0] > sizes[1] > sizes[2]


def test_weights_exist_for_pairs_seen_in_training(chunks):
    X, y = chunks
    limited = LinearChainCRF().fit(X, y)
    assert sp.issparse(limited.coef_)
    assert limited.coef_.shape == (4, limited.n_features_in_)
    classes = limited.classes_.tolist()
    assert limited.transitions_[classes.index("O"), classes.index("I-N")] == 0.0
    full = LinearChainCRF(all_states=True, all_transitions=True).fit(X, y)
    assert isinstance(full.coef_, np.ndarray)
    assert full.transitions_[classes.index("O"), classes.index("I-N")] < 0.0
    assert full.objective_ < limited.objective_
    rare = LinearChainCRF(min_freq=20).fit(X, y)
    assert rare.coef_.nnz < limited.coef_.nnz
    bare = LinearChainCRF(boundary=False).fit(X, y)
    assert not bare.start_.any()
    assert not bare.end_.any()


def test_edge_features_learn_transitions_that_depend_on_the_observation():
    # A label equals the previous one if the step has the feature "same", else it changes.
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        label, steps, labels = int(random.integers(2)), [["first=%d"]], []
        steps = [[f"first={label}"]]
        labels = [label]
        for _ in range(6):
            same = random.random() < 0.5
            label = label if same else 1 - label
            steps.append(["same" if same else "change"])
            labels.append(label)
        X.append(steps)
        y.append(labels)
    plain = LinearChainCRF(c2=0.01).fit(X[:40], y[:40])
    edges = LinearChainCRF(c2=0.01, edge_features=True).fit(X[:40], y[:40])
    assert edges.score(X[40:], y[40:]) == 1.0
    assert plain.score(X[40:], y[40:]) < 0.8
    assert edges.edge_coef_.shape == (4, edges.n_features_in_)


def test_constraints(chunks):
    X, y = chunks
    model = LinearChainCRF(c2=5.0).fit(X, y)
    hard = [[{"kind": "noun", "long": True}] * 3 + [{"kind": "other"}] * 2]
    legal = model.predict(hard, constraints="IOB2")[0]
    before = "O"
    for tag in legal:
        assert not tag.startswith("I-") or before[2:] == tag[2:]
        before = tag
    known = model.predict(hard, constraints=[[None, "O", None, {"B-V", "I-N"}, None]])[0]
    assert known[1] == "O"
    assert known[3] in {"B-V", "I-N"}
    proba = model.predict_proba(hard, constraints=[[None, "O", None, {"B-V", "I-N"}, None]])[0]
    classes = model.classes_.tolist()
    assert proba[1, classes.index("O")] == pytest.approx(1.0)
    assert proba[3, [classes.index("B-N"), classes.index("O")]].sum() == 0.0
    only = Mask(start=np.array([label == "B-V" for label in classes]))
    assert model.predict(hard, constraints=only)[0][0] == "B-V"
    best = model.predict_nbest(hard, 3, constraints="IOB2")[0]
    assert best[0][0].tolist() == legal.tolist()
    with pytest.raises(NoLegalLabelingError, match="sequence 1"):
        model.predict([hard[0], hard[0]], constraints=Mask(
            steps=np.concatenate([np.ones((5, 4), bool), np.zeros((5, 4), bool)])
        ))  # fmt: skip
    with pytest.raises(InputError, match=r"constraints\[0\]\[1\] is not a label"):
        model.predict(hard, constraints=[[None, "Q", None, None, None]])
    with pytest.raises(InputError, match="IOB"):
        model.predict(hard, constraints="IOB3")


def test_errors_give_the_sequence_index_across_blocks():
    random = np.random.default_rng(0)
    X = [random.normal(size=(50, 2)) for _ in range(3000)]
    model = LinearChainCRF().fit(X[:20], [list("abcdefghij" * 5)] * 20)
    illegal = np.ones((150_000, 10), dtype=bool)
    illegal[2900 * 50 + 7] = False
    with pytest.raises(NoLegalLabelingError, match=r"sequence 2900 .* position 7"):
        model.predict(X, constraints=Mask(steps=illegal))


def test_partial_labels(chunks):
    X, y = chunks
    full = LinearChainCRF(c2=0.1).fit(X, y)
    everything_known = [[{label} for label in labels] for labels in y]
    same = LinearChainCRF(c2=0.1, all_transitions=True, tol=1e-8).fit(X, everything_known)
    reference = LinearChainCRF(c2=0.1, all_transitions=True, tol=1e-8).fit(X, y)
    assert same.objective_ == pytest.approx(reference.objective_, rel=1e-6)
    half = [
        [label if (i + t) % 3 else None for t, label in enumerate(labels)]
        for i, labels in enumerate(y)
    ]
    partial = LinearChainCRF(c2=0.1).fit(X, half)
    assert partial.classes_.tolist() == full.classes_.tolist()
    assert partial.score(X, y) > full.score(X, y) - 0.1
    # The probability of partial labels is the sum over the labelings that agree with them.
    known = full.sequence_log_proba(X[:1], [[None, *y[0][1:]]])[0]
    parts = [full.sequence_log_proba(X[:1], [[label, *y[0][1:]]])[0] for label in full.classes_]
    assert known == pytest.approx(np.logaddexp.reduce(parts))


def test_weights_set_by_hand_are_used(chunks):
    X, y = chunks
    model = LinearChainCRF().fit(X, y)
    model.coef_ = np.zeros(model.coef_.shape)
    model.transitions_ = np.zeros((4, 4))
    model.start_, model.end_ = np.zeros(4), np.zeros(4)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], 0.25)
    model.coef_[2] = 1.0
    assert (model.predict(X[:1])[0] == model.classes_[2]).all()


def test_accuracy_is_below_the_bayes_ceiling():
    bunch = make_hmm_sequences(200, 50, preset="transition", random_state=1)
    model = LinearChainCRF(c2=0.1).fit(bunch.data[:100], bunch.target[:100])
    score = model.score(bunch.data[100:], bunch.target[100:])
    ceilings = bunch.bayes_ceilings
    window_1, full = ceilings[0], ceilings[-1]
    assert window_1 + 0.1 < score <= full + 0.02


def test_warns_at_max_iter(chunks):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = LinearChainCRF(max_iter=2).fit(*chunks)
    assert model.n_iter_ == 2
    assert not model.converged_


def test_a_failed_or_interrupted_fit_keeps_the_earlier_model(chunks, monkeypatch):
    X, y = chunks
    model = LinearChainCRF().fit(X, y)
    before = model.predict(X)
    other = [[label + "?" for label in labels] for labels in y]
    with pytest.raises(InputError):
        LinearChainCRF.fit(model.set_params(class_weight={"nobody": 2.0}), X, other)
    from seqlab.structures.chain.fused import FusedPasses

    def interrupt(self, *args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(FusedPasses, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(class_weight=None).fit(X, other)
    assert all((a == b).all() for a, b in zip(before, model.predict(X), strict=True))


def test_weights_of_the_wrong_shape_raise(chunks):
    X, y = chunks
    model = LinearChainCRF().fit(X, y)
    model.coef_ = model.coef_[:, :2]
    with pytest.raises(InputError, match="coef has shape"):
        model.predict(X)


@pytest.mark.parametrize("factor", [1e4, 1e8, 1e18, 1e20, 1e100])
def test_the_scale_of_a_column_does_not_change_the_optimum(factor):
    X, y = one_step_data(2)
    factors = np.array([1.0, 1.0, 1.0, factor])
    model = LinearChainCRF(tol=1e-9).fit([X * factors], [y])
    assert model.converged_
    free = LinearChainCRF(tol=1e-9).fit([X * np.array([1.0, 1.0, 1.0, 1e6])], [y])
    assert model.objective_ == pytest.approx(free.objective_, rel=1e-5)


def test_features_whose_squares_overflow_are_not_reported_as_converged():
    X, y = one_step_data(2)
    X = X * np.array([1.0, 1.0, 1.0, 1e160])
    with pytest.warns(ConvergenceWarning, match="feature 3 has values up to"):
        model = LinearChainCRF().fit([X], [y])
    assert not model.converged_


def test_constraints_of_another_scheme_raise(chunks):
    model = LinearChainCRF().fit(*chunks)
    with pytest.raises(InputError, match="another scheme"):
        model.predict(chunks[0], constraints="IOBES")
    with pytest.raises(
        InputError, match=r"do not follow IOB1: B-. after .* is not allowed, but was"
    ):
        model.predict(chunks[0], constraints="IOB1")
    with pytest.raises(InputError, match="X has 40 sequences but constraints has 1"):
        model.predict(chunks[0], constraints=[[None]])


def test_bad_parameters(chunks):
    with pytest.raises(InputError, match="positive number"):
        LinearChainCRF(class_weight={"O": "much"}).fit(*chunks)
    for bad in (
        {"c1": -1},
        {"c2": "x"},
        {"solver": "magic"},
        {"max_iter": 0},
        {"boundary": "maybe"},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            LinearChainCRF(**bad).fit(*chunks)
    with pytest.raises(InputError, match="lbfgs"):
        LinearChainCRF(c1=1.0, solver="lbfgs").fit(*chunks)


def test_extreme_scores_stay_finite():
    X = [np.array([[1e4, -1e4], [-1e4, 1e4], [1e4, 1e4]]), np.array([[1.0, 2.0]])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearChainCRF(c2=1e-6).fit(X, [["a", "b", "a"], ["b"]])
    for p in model.predict_proba(X):
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("options", [{}, {"c1": 0.1}, {"boundary": "unpenalized"}])
@pytest.mark.parametrize("n_sequences", [20, 400])
def test_a_single_label_is_learned_without_warnings(options, n_sequences):
    random = np.random.default_rng(0)
    X = [random.normal(size=(30, 20)) for _ in range(n_sequences)]
    model = LinearChainCRF(**options).fit(X, [["a"] * 30] * n_sequences)
    assert model.converged_
    assert set(model.predict(X[:1])[0]) == {"a"}


def test_verbose_writes_to_standard_error_only(chunks, capfd):
    LinearChainCRF(verbose=True).fit(*chunks)
    out, err = capfd.readouterr()
    assert out == ""
    assert "LinearChainCRF" in err
    assert "objective" in err


def test_interrupt_during_an_evaluation(chunks, monkeypatch):
    from seqlab.learning import PenalisedObjective

    evaluate, calls = PenalisedObjective.loss_gradient, []

    def interrupting(self, w):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return evaluate(self, w)

    monkeypatch.setattr(PenalisedObjective, "loss_gradient", interrupting)
    model = LinearChainCRF()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*chunks)
    assert model.converged_ is False
    assert 1 <= model.n_iter_ <= 7
    assert len(model.history_["objective"]) == model.n_iter_ + 1
    assert len(model.predict(chunks[0])) == len(chunks[0])


def test_monitor_history_has_equal_lengths():
    with Monitor("fit", 3) as monitor:
        for i in range(3):
            monitor.record(i, float(i), gap=1.0)
    assert {len(v) for v in monitor.history.values()} == {3}


def test_load_a_model_stored_before_a_parameter_existed():
    crf = LinearChainCRF(c2=0.5, max_iter=5).fit([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]])
    state = dict(crf.__getstate__())
    del state["class_weight"]
    state["precision"] = "double"  # a parameter that no longer exists
    again = LinearChainCRF.__new__(LinearChainCRF)
    again.__setstate__(state)
    assert again.get_params() == crf.get_params()
    assert [list(labels) for labels in again.predict([[["a"], ["b"]]])] == [["x", "y"]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_a_warm_start_counts_as_an_iteration(monkeypatch, max_iter):
    monkeypatch.setattr("seqlab.learning.is_worthwhile", lambda term, support: True)
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 4)) for _ in range(30)]
    y = [rng.integers(0, 3, 8) for _ in range(30)]
    crf = LinearChainCRF(max_iter=max_iter, tol=1e-12).fit(X, y)
    assert crf.n_iter_ == max_iter


def test_long_sequences_with_pairwise_scores_per_step_are_scored_singly(monkeypatch):
    from seqlab.models import chain_labeler

    blocks = []
    run = chain_labeler.run_blocks
    monkeypatch.setattr(
        chain_labeler, "run_blocks", lambda f, n, jobs: blocks.append(n) or run(f, n, jobs)
    )
    monkeypatch.setattr(chain_labeler, "BLOCK_DOUBLES", 100)
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(30, 2)) for _ in range(4)]
    y = [rng.integers(0, 3, 30) for _ in range(4)]
    for edge_features, n_blocks in ((True, 4), (False, 2)):
        LinearChainCRF(max_iter=2, tol=1.0, edge_features=edge_features).fit(X, y).predict(X)
        assert blocks.pop() == n_blocks


def test_an_interrupt_before_the_first_iteration_leaves_the_estimator_unfitted(monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("seqlab.learning.is_worthwhile", lambda term, support: True)
    monkeypatch.setattr("seqlab.learning.warm_start.WarmStart.find_start", interrupt)
    model = LinearChainCRF()
    with pytest.raises(KeyboardInterrupt):
        model.fit([np.eye(3)], [["a", "b", "a"]])
    with pytest.raises(NotFittedError):
        model.predict([np.eye(3)])
