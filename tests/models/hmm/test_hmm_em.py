"""HMM with missing labels: EM equals a plain Baum-Welch, never gets worse, and can be interrupted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from blocks import count_parallel_tasks
from seqlab import HMM
from seqlab.data.errors import InputError, NoLegalLabelingError
from seqlab.datasets import make_hmm_sequences
from seqlab.learning import Monitor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def few_labels(kind, seed=0, n=16, n_labelled=5):
    """Return observations of three labels in runs; only the first sequences are labelled."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        labels = [int(random.integers(3))]
        while len(labels) < 8:
            labels.append(labels[-1] if random.random() < 0.7 else int(random.integers(3)))
        codes = np.array(labels)
        if kind == "gaussian":
            steps = random.normal(codes[:, None] * [1.0, -1.0], 0.8)
        elif kind == "multinomial":
            steps = random.poisson(0.5 + 2.0 * (codes[:, None] == np.arange(3)))
        elif kind == "bernoulli":
            steps = random.random((8, 4)) < 0.2 + 0.5 * (codes[:, None] == np.arange(4))
        else:
            wrong = random.random((8, 1)) < 0.3
            steps = np.where(wrong, random.integers(0, 4, (8, 1)), codes[:, None])
        X.append(steps.astype(float))
        y.append(labels if i < n_labelled else [None] * 8)
    return X, y


def baum_welch_step(X, y, start, transitions, emit, estimate):
    """Run one textbook iteration; returns the log-likelihood before it, and the new counts."""
    n_labels = start.size
    starts, pairs, total = np.zeros(n_labels), np.zeros((n_labels, n_labels)), 0.0
    posteriors = []
    for x, labels in zip(X, y, strict=True):
        b = emit(x)  # (n_steps, n_labels)
        for t, label in enumerate(labels):
            if label is not None:
                b[t] *= np.arange(n_labels) == label
        n_steps = len(x)
        alpha, beta = np.zeros((n_steps, n_labels)), np.ones((n_steps, n_labels))
        alpha[0] = start * b[0]
        for t in range(1, n_steps):
            alpha[t] = (alpha[t - 1] @ transitions) * b[t]
        for t in range(n_steps - 2, -1, -1):
            beta[t] = transitions @ (b[t + 1] * beta[t + 1])
        z = alpha[-1].sum()
        total += np.log(z)
        gamma = alpha * beta / z
        starts += gamma[0]
        for t in range(1, n_steps):
            pairs += alpha[t - 1][:, None] * transitions * b[t] * beta[t] / z
        posteriors.append(gamma)
    return total, starts, pairs, estimate(np.concatenate(X), np.concatenate(posteriors))


def test_categorical_em_equals_baum_welch():
    e = 0.05
    X, y = few_labels("categorical")
    fits = [HMM(smoothing=e, max_iter=k, tol=0.0).fit(X, y) for k in range(1, 8)]
    first = fits[0]
    assert first.emission_kind_ == "categorical"
    symbols = first.emissions_.categories[0]

    def estimate(x, posteriors):
        counts = np.array([posteriors[x[:, 0] == symbol].sum(axis=0) for symbol in symbols])
        counts = np.vstack([counts, np.zeros(3)]) + e
        return (counts / counts.sum(axis=0)).T

    start, transitions, emissions = (
        first.start_,
        first.transitions_,
        first.emissions_.probabilities[0],
    )
    for model in fits:
        np.testing.assert_allclose(model.start_, start, rtol=1e-10)
        np.testing.assert_allclose(model.transitions_, transitions, rtol=1e-10)
        np.testing.assert_allclose(model.emissions_.probabilities[0], emissions, rtol=1e-10)

        def emit(x, emissions=emissions):
            return emissions[:, np.searchsorted(symbols, x[:, 0])].T.copy()

        total, starts, pairs, new = baum_welch_step(X, y, start, transitions, emit, estimate)
        assert model.history_["log_likelihood"][-1] == pytest.approx(total, rel=1e-12)
        prior = e * sum(np.log(p).sum() for p in (start, transitions, emissions))
        assert model.history_["objective"][-1] == pytest.approx(-(total + prior), rel=1e-12)
        start = (starts + e) / (starts + e).sum()
        transitions = (pairs + e) / (pairs + e).sum(axis=1, keepdims=True)
        emissions = new


def test_gaussian_em_equals_baum_welch():
    X, y = few_labels("gaussian")
    fits = [HMM(smoothing=0.0, max_iter=k, tol=0.0).fit(X, y) for k in range(1, 6)]
    start, transitions = fits[0].start_, fits[0].transitions_
    means, variances = fits[0].emissions_.means, fits[0].emissions_.variances

    def emit(x):
        scaled = (x[:, None, :] - means) ** 2 / variances
        return np.prod(np.exp(-scaled / 2) / np.sqrt(2 * np.pi * variances), axis=2)

    def estimate(x, posteriors):
        n = posteriors.sum(axis=0)[:, None]
        middle = posteriors.T @ x / n
        return middle, np.array([posteriors[:, s] @ (x - middle[s]) ** 2 for s in range(3)]) / n

    for model in fits:
        np.testing.assert_allclose(model.transitions_, transitions, rtol=1e-9)
        np.testing.assert_allclose(model.emissions_.means, means, rtol=1e-9)
        np.testing.assert_allclose(model.emissions_.variances, variances, rtol=1e-9)
        total, starts, pairs, (means_, variances_) = baum_welch_step(
            X, y, start, transitions, emit, estimate
        )
        assert model.history_["log_likelihood"][-1] == pytest.approx(total, rel=1e-11)
        start, transitions = starts / starts.sum(), pairs / pairs.sum(axis=1, keepdims=True)
        means, variances = means_, variances_


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["categorical", "bernoulli", "multinomial", "gaussian", "full"])
def test_the_objective_never_rises(kind, smoothing, seed):
    form = "gaussian" if kind == "full" else kind
    X, y = few_labels(form, seed)
    y[6] = [0, None, None, {0, 2}, None, None, {1, 2}, None]
    model = HMM(
        emissions=form,
        smoothing=smoothing,
        covariance="full" if kind == "full" else "diag",
        variance_floor=0.2,  # large enough to have an effect
        model_end=seed == 1,
        max_iter=30,
        tol=0.0,
    ).fit(X, y)
    objective = np.array(model.history_["objective"])
    assert model.n_iter_ == objective.size > 5
    assert (np.diff(objective) <= 1e-9 * np.abs(objective[1:])).all()
    assert objective[-1] < objective[0]
    if smoothing == 0:
        np.testing.assert_allclose(objective, -np.array(model.history_["log_likelihood"]))
    # The last recorded value belongs to the stored parameters.
    assert model.log_likelihood(X, y).sum() == pytest.approx(model.history_["log_likelihood"][-1])


def test_missing_values_and_structural_zeros_keep_em_monotone():
    for kind in ("gaussian", "bernoulli"):
        X, y = few_labels(kind)
        for i, x in enumerate(X):
            x[i % 8, i % 2] = np.nan
        model = HMM(
            emissions=kind, allow_missing=True, constraints="seen", max_iter=20, tol=0.0
        ).fit(X, y)
        objective = np.array(model.history_["objective"])
        assert (np.diff(objective) <= 1e-9 * np.abs(objective[1:])).all()
        seen = model.transition_counts_ > 0
        assert not seen.all()
        assert (model.transitions_[~seen] == 0.0).all()
        assert (model.transitions_[seen] > 0.0).all()


def test_counts_of_known_labels_do_not_change():
    # Unlabelled sequences of weight 0 change nothing.
    X, y = few_labels("categorical")
    weights = np.array([1.0] * 5 + [0.0] * 11)
    model = HMM(smoothing=0.2, tol=0.0, max_iter=5).fit(X, y, sample_weight=weights)
    alone = HMM(smoothing=0.2).fit(X[:5], y[:5])
    np.testing.assert_allclose(model.transitions_, alone.transitions_)
    # If one sequence is unlabelled, the counts are those of the other sequences plus one.
    total = HMM(smoothing=0.0, tol=0.0, max_iter=2).fit(X[:6], [*y[:5], [None] * 8])
    n_known, n_steps = len(y[:5]), 6
    starts = np.bincount([labels[0] for labels in y[:5]], minlength=3)
    assert (total.start_ * n_steps >= starts - 1e-9).all()
    assert total.start_.sum() * n_steps - n_known == pytest.approx(1.0)


def test_known_labels_of_a_sequence_are_respected():
    X, y = few_labels("gaussian")
    y[7] = [None, 1, None, None, {0, 2}, None, None, 2]
    model = HMM(max_iter=10, tol=0.0).fit(X, y)
    full = [[None] * len(x) for x in X]
    # The objective counts the probability of the labelings that agree with the known labels.
    total = model.log_likelihood(X[7:8], y[7:8])[0]
    assert (
        total
        < model.log_likelihood(X[7:8], full[7:8])[0]
        == pytest.approx(model.log_likelihood(X[7:8])[0])
    )
    labels = model.predict(X[7:8], constraints=[y[7]])[0]
    assert labels[1] == 1
    assert labels[7] == 2
    assert labels[4] in (0, 2)


def test_weight_two_equals_a_duplicated_sequence():
    X, y = few_labels("gaussian")
    weights = np.ones(len(X))
    weights[[1, 9]] = 2.0
    a = HMM(max_iter=8, tol=0.0).fit(X, y, sample_weight=weights)
    b = HMM(max_iter=8, tol=0.0).fit([*X, X[1], X[9]], [*y, y[1], y[9]])
    np.testing.assert_allclose(a.transitions_, b.transitions_, rtol=1e-9)
    np.testing.assert_allclose(a.emissions_.means, b.emissions_.means, rtol=1e-9)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    counts = count_parallel_tasks(monkeypatch)
    monkeypatch.setattr("seqlab.models.hmm._em.BLOCK_DOUBLES", 60)  # many small blocks
    for kind in ("gaussian", "categorical", "bernoulli"):
        X, y = few_labels(kind)
        a = HMM(emissions=kind, max_iter=6, tol=0.0).fit(X, y)
        b = HMM(emissions=kind, max_iter=6, tol=0.0, n_jobs=3).fit(X, y)
        assert max(counts) > 3  # more blocks than threads
        counts.clear()
        assert np.array_equal(a.transitions_, b.transitions_)
        assert a.history_["objective"] == b.history_["objective"]


def test_stopping():
    X, y = few_labels("gaussian")
    model = HMM(max_iter=200, tol=1e-5).fit(X, y)
    assert model.converged_
    assert 2 <= model.n_iter_ < 200
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes"):
        short = HMM(max_iter=2, tol=0.0).fit(X, y)
    assert not short.converged_
    assert short.n_iter_ == 2


def test_an_interrupt_keeps_the_last_full_pass(monkeypatch):
    X, y = few_labels("gaussian")
    record, calls = Monitor.record, []

    def interrupting(self, *args, **values):
        record(self, *args, **values)
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Monitor, "record", interrupting)
    model = HMM(tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.converged_ is False
    assert model.n_iter_ == 3
    same = HMM(tol=0.0, max_iter=3).fit(X, y)
    assert np.array_equal(model.transitions_, same.transitions_)
    assert len(model.predict(X)) == len(X)


def test_progress_is_shown(capfd):
    X, y = few_labels("gaussian")
    HMM(verbose=True, max_iter=3, tol=0.0).fit(X, y)
    captured = capfd.readouterr()
    assert "HMM" in captured.err
    assert captured.out == ""


def test_errors_name_unusable_labels():
    X, _ = few_labels("gaussian")
    with pytest.raises(InputError, match="no label of y is known"):
        HMM().fit(X, [[None] * len(x) for x in X])
    # No path of seen transitions connects the known labels.
    chain = [["s", "t"], ["t", "u"], ["s", None, "s"]]
    words = [["a", "b"], ["b", "c"], ["a", "b", "a"]]
    with pytest.raises(NoLegalLabelingError, match="sequence 2"):
        HMM(constraints="seen").fit(words, chain)


def test_unlabelled_sequences_help_if_few_are_labelled():
    data = make_hmm_sequences(
        150, 30, preset="both", n_labels=8, n_observations=30, po=0.3, ko=4, random_state=3
    )
    X, y = data.data, [labels.tolist() for labels in data.target]
    X_test, y_test = X[100:], y[100:]
    few = HMM().fit(X[:3], y[:3]).score(X_test, y_test)
    hidden = [*y[:3], *[[None] * len(x) for x in X[3:100]]]
    more = HMM(tol=1e-5).fit(X[:100], hidden).score(X_test, y_test)
    everything = HMM().fit(X[:100], y[:100]).score(X_test, y_test)
    assert few + 0.05 < more < everything + 0.01
