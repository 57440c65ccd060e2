"""HMM by counting: parameters, probabilities and sampling, compared with independent computations."""

from __future__ import annotations

import copy
import itertools
import tracemalloc
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

from seqlab import HMM
from seqlab.data import InputError
from seqlab.data.errors import NoLegalLabelingError
from seqlab.datasets import make_hmm_sequences
from seqlab.models.hmm._em import BLOCK_DOUBLES

X = [["walk", "shop", "clean"], ["clean", "clean", "shop"], ["walk", "walk"], ["shop"]]
y = [["sun", "rain", "rain"], ["rain", "rain", "rain"], ["sun", "sun"], ["rain"]]


def random_data(kind, seed=0, n=12, n_labels=3, n_features=3):
    """Return sequences whose observations depend on the label, for one kind of emissions."""
    random = np.random.default_rng(seed)
    data, target = [], []
    for _ in range(n):
        labels = random.integers(0, n_labels, random.integers(2, 7))
        if kind == "gaussian":
            steps = random.normal(labels[:, None] + np.arange(n_features), 1.0)
        elif kind == "multinomial":
            steps = random.poisson(1 + (labels[:, None] == np.arange(n_features)) * 2)
        elif kind == "bernoulli":
            shape = (labels.size, n_features)
            steps = random.random(shape) < 0.3 + 0.4 * (labels[:, None] == np.arange(n_features))
        else:
            noise = random.integers(0, 4, (labels.size, 2))
            steps = np.where(random.random((labels.size, 2)) < 0.6, labels[:, None], noise)
        data.append(steps.astype(float))
        target.append(labels.tolist())
    return data, target


KINDS = ["categorical", "bernoulli", "multinomial", "gaussian"]


def joint(model, emit, n_steps):
    """Return log P(x, y) of every labeling of one sequence; emit(t, s) = log P(x_t | s)."""
    n_labels = model.classes_.size
    with np.errstate(divide="ignore"):
        start, moves = np.log(model.start_), np.log(model.transitions_)
        end = np.zeros(n_labels) if model.end_ is None else np.log(model.end_)
    found = {}
    for path in itertools.product(range(n_labels), repeat=n_steps):
        total = start[path[0]] + end[path[-1]] + sum(emit(t, s) for t, s in enumerate(path))
        found[path] = total + sum(moves[a, b] for a, b in itertools.pairwise(path))
    return found


# --- estimates ---------------------------------------------------------------------------------


def test_without_smoothing_parameters_are_relative_frequencies():
    hmm = HMM(smoothing=0).fit(X, y)
    first = Counter(labels[0] for labels in y)
    pairs = Counter(pair for labels in y for pair in itertools.pairwise(labels))
    shown = Counter(
        (s, o)
        for steps, labels in zip(X, y, strict=True)
        for o, s in zip(steps, labels, strict=True)
    )
    labels, symbols = ["rain", "sun"], ["walk", "shop", "clean"]
    assert hmm.classes_.tolist() == labels
    assert hmm.vectorizer_.vocabularies_[0].names.tolist() == symbols
    for i, a in enumerate(labels):
        assert hmm.start_[i] == first[a] / len(y)
        for j, b in enumerate(labels):
            assert hmm.transitions_[i, j] == pairs[a, b] / sum(pairs[a, c] for c in labels)
        total = sum(shown[a, o] for o in symbols)
        expected = [shown[a, o] / total for o in symbols]
        np.testing.assert_array_equal(hmm.emissions_.probabilities[0][i], [*expected, 0.0])


def test_values_by_hand_with_smoothing():
    # start: rain 2, sun 2 of 4. rain -> rain 3; sun -> rain 1, sun -> sun 1.
    # rain: shop 3, clean 3; sun: walk 3. V = 3 symbols and the unseen one.
    e = 0.5
    hmm = HMM(smoothing=e).fit(X, y)
    np.testing.assert_allclose(hmm.start_, [(2 + e) / (4 + 2 * e)] * 2)
    np.testing.assert_allclose(hmm.transitions_, [[3.5 / 4, 0.5 / 4], [1.5 / 3, 1.5 / 3]])
    np.testing.assert_allclose(
        hmm.emissions_.probabilities[0],
        [[0.5 / 8, 3.5 / 8, 3.5 / 8, 0.5 / 8], [3.5 / 5, 0.5 / 5, 0.5 / 5, 0.5 / 5]],
    )
    separate = HMM(smoothing=0, emission_smoothing=e).fit(X, y)
    assert separate.transitions_[0].tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(
        separate.emissions_.probabilities[0], hmm.emissions_.probabilities[0]
    )
    assert hmm.n_iter_ == 1
    assert hmm.converged_
    assert hmm.history_["log_likelihood"] == pytest.approx([hmm.log_likelihood(X, y).sum()])


def test_the_end_is_one_more_successor():
    hmm = HMM(smoothing=0, model_end=True).fit(X, y)
    np.testing.assert_allclose(hmm.end_, [3 / 6, 1 / 3])
    np.testing.assert_allclose(hmm.transitions_, [[3 / 6, 0], [1 / 3, 1 / 3]])
    smoothed = HMM(smoothing=1, model_end=True).fit(X, y)
    np.testing.assert_allclose(smoothed.end_, [4 / 9, 2 / 6])
    np.testing.assert_allclose(smoothed.transitions_.sum(axis=1) + smoothed.end_, 1.0)


def perturbed(model, random, size):
    """Return a copy with slightly different parameters."""
    other = copy.deepcopy(model)

    def shake(p):
        p = p * np.exp(random.normal(scale=size, size=p.shape))
        return p / p.sum(axis=-1, keepdims=True)

    other.start_, other.transitions_ = shake(model.start_), shake(model.transitions_)
    found = other.emissions_
    if model.emission_kind_ == "categorical":
        found.probabilities = [shake(p) for p in found.probabilities]
    elif model.emission_kind_ == "multinomial":
        found.probabilities = shake(found.probabilities)
    elif model.emission_kind_ == "bernoulli":
        noise = np.exp(random.normal(scale=size, size=found.probabilities.shape))
        odds = found.probabilities / (1 - found.probabilities) * noise
        found.probabilities = odds / (1 + odds)
    else:
        found.means = found.means + random.normal(scale=size, size=found.means.shape)
        if hasattr(found, "covariances"):
            found.covariances = found.covariances * np.exp(
                random.normal(scale=size, size=(len(found.means), 1, 1))
            )
        else:
            found.variances = found.variances * np.exp(
                random.normal(scale=size, size=found.variances.shape)
            )
    return other


@pytest.mark.parametrize("kind", [*KINDS, "full"])
def test_the_likelihood_of_training_data_is_maximal(kind):
    form = "gaussian" if kind == "full" else kind
    data, target = random_data(form, n=40)
    model = HMM(emissions=form, smoothing=0, covariance="full" if kind == "full" else "diag")
    model.fit(data, target)
    best = model.log_likelihood(data, target).sum()
    assert np.isfinite(best)
    random = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        others = [
            perturbed(model, random, size).log_likelihood(data, target).sum() for _ in range(25)
        ]
        assert max(others) < best


# --- probabilities -----------------------------------------------------------------------------


@pytest.mark.parametrize("constraints", [None, "seen"])
def test_categorical_probabilities_sum_to_one(constraints):
    hmm = HMM(smoothing=0.3, constraints=constraints).fit(X, y)
    for n_steps in (1, 2, 3):
        observations = list(
            itertools.product(["walk", "shop", "clean", "never seen"], repeat=n_steps)
        )
        given_x = np.exp(hmm.log_likelihood([list(observation) for observation in observations]))
        assert given_x.sum() == pytest.approx(1.0, rel=1e-12)
        paths = list(itertools.product(hmm.classes_.tolist(), repeat=n_steps))
        pairs = [(list(w), list(p)) for w in observations for p in paths]
        both = np.exp(hmm.log_likelihood([w for w, _ in pairs], [p for _, p in pairs]))
        assert both.sum() == pytest.approx(1.0, rel=1e-12)


def test_bernoulli_and_multinomial_probabilities_sum_to_one():
    for kind in ("bernoulli", "multinomial"):
        data, target = random_data(kind)
        hmm = HMM(emissions=kind).fit(data, target)
        if kind == "bernoulli":
            steps = list(itertools.product([0, 1], repeat=3))
        else:  # the number of events is given
            steps = [v for v in itertools.product(range(4), repeat=3) if sum(v) == 3]
        observations = [
            np.array(observation, dtype=float) for observation in itertools.product(steps, repeat=2)
        ]
        assert np.exp(hmm.log_likelihood(observations)).sum() == pytest.approx(1.0, rel=1e-12)


def test_sequences_of_all_lengths_have_probability_one():
    hmm = HMM(smoothing=0.5, model_end=True).fit(X, y)
    total, going = 0.0, hmm.start_
    for n_steps in range(1, 6):
        observations = itertools.product(["walk", "shop", "clean", "never seen"], repeat=n_steps)
        total += np.exp(
            hmm.log_likelihood([list(observation) for observation in observations])
        ).sum()
        going = going @ hmm.transitions_  # probability of longer sequences
        assert total + going.sum() == pytest.approx(1.0, rel=1e-12)


def test_gaussian_log_densities_agree_with_scipy():
    data, target = random_data("gaussian")
    for covariance in ("diag", "full"):
        hmm = HMM(covariance=covariance).fit(data, target)
        found = hmm.emissions_
        for x in data[:4]:
            emitted = np.zeros((len(x), 3))
            for s in range(3):
                if covariance == "diag":
                    one = stats.norm(found.means[s], np.sqrt(found.variances[s]))
                    emitted[:, s] = one.logpdf(x).sum(axis=1)
                else:
                    both = stats.multivariate_normal(found.means[s], found.covariances[s])
                    emitted[:, s] = both.logpdf(x)
            table = joint(hmm, lambda t, s, emitted=emitted: emitted[t, s], len(x))
            expected = np.logaddexp.reduce(list(table.values()))
            assert hmm.log_likelihood([x])[0] == pytest.approx(expected, rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans(), st.sampled_from([0.0, 0.2]))
def test_inference_agrees_with_enumeration(seed, n_steps, model_end, smoothing):
    data, target = random_data("categorical", seed, n=6)
    hmm = HMM(emissions="categorical", smoothing=smoothing, model_end=model_end).fit(data, target)
    x = data[seed % 6][:n_steps]

    def emit(t, s):
        total = 0.0
        for k in range(2):
            symbols, p = hmm.emissions_.categories[k], hmm.emissions_.probabilities[k][s]
            code = symbols.tolist().index(x[t, k])
            total += np.log(p[code]) if p[code] > 0 else -np.inf
        return total

    table = joint(hmm, emit, len(x))
    log_z = np.logaddexp.reduce(list(table.values()))
    if log_z == -np.inf:
        with pytest.raises(NoLegalLabelingError):
            hmm.predict([x])
        return
    assert hmm.log_likelihood([x])[0] == pytest.approx(log_z, abs=1e-9)
    node = np.zeros((len(x), 3))
    for path, value in table.items():
        node[np.arange(len(x)), path] += np.exp(value - log_z)
    n_seen = hmm.classes_.size
    np.testing.assert_allclose(hmm.predict_proba([x])[0], node[:, :n_seen], atol=1e-9)
    path = [hmm.classes_.tolist().index(label) for label in hmm.predict([x])[0]]
    assert table[tuple(path)] == pytest.approx(max(table.values()), abs=1e-9)
    labels = [hmm.classes_[list(path)] for path in table]
    given_x = hmm.sequence_log_proba([x] * len(labels), labels)
    np.testing.assert_allclose(given_x, np.array(list(table.values())) - log_z, atol=1e-9)
    best = hmm.predict_nbest([x], 3)[0]
    expected = sorted((v - log_z for v in table.values() if v > -np.inf), reverse=True)[:3]
    np.testing.assert_allclose([score for _, score in best], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "peer"),
    [
        ("bernoulli", BernoulliNB(alpha=0.7)),
        ("multinomial", MultinomialNB(alpha=0.7)),
        ("gaussian", GaussianNB(var_smoothing=0.0)),
    ],
)
def test_sequences_of_one_step_give_naive_bayes(kind, peer):
    data, target = random_data(kind, n=60)
    steps, labels = np.concatenate(data), np.concatenate(target)
    hmm = HMM(emissions=kind, smoothing=0.0, emission_smoothing=0.7, variance_floor=1e-12)
    hmm.fit([row[None] for row in steps], [[label] for label in labels])
    expected = peer.fit(steps, labels).predict_proba(steps)
    found = np.concatenate(hmm.predict_proba([row[None] for row in steps]))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_categorical_emissions_equal_naive_bayes_except_for_unseen_symbols():
    data, target = random_data("categorical", n=60)
    steps, labels = np.concatenate(data), np.concatenate(target)
    hmm = HMM(emissions="categorical", smoothing=0.0).fit(data, target)
    peer = CategoricalNB(alpha=1e-12, force_alpha=True).fit(steps, labels)
    for mine, theirs in zip(hmm.emissions_.probabilities, peer.feature_log_prob_, strict=True):
        np.testing.assert_allclose(mine[:, :-1], np.exp(theirs), atol=1e-10)


# --- sampling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "full"])
def test_a_fit_on_samples_recovers_the_model(kind):
    form = "gaussian" if kind == "full" else kind
    data, target = random_data(form, n=30)
    options = {"emissions": form, "covariance": "full" if kind == "full" else "diag"}
    hmm = HMM(**options).fit(data, target)
    drawn, labels = hmm.sample(300, 10, random_state=0)
    assert len(drawn) == len(labels) == 300
    assert drawn[0].shape == (10, data[0].shape[1])
    again = HMM(**options).fit(drawn, labels)
    np.testing.assert_allclose(again.start_, hmm.start_, atol=0.1)
    np.testing.assert_allclose(again.transitions_, hmm.transitions_, atol=0.06)
    a, b = hmm.emissions_, again.emissions_
    if form == "gaussian":
        np.testing.assert_allclose(b.means, a.means, atol=0.15)
    elif form == "categorical":
        for p, q in zip(a.probabilities, b.probabilities, strict=True):
            np.testing.assert_allclose(q, p, atol=0.06)
    else:
        np.testing.assert_allclose(b.probabilities, a.probabilities, atol=0.06)
    if kind == "full":
        np.testing.assert_allclose(b.covariances, a.covariances, atol=0.25)
    twice = hmm.sample(3, [2, 0, 4], random_state=5), hmm.sample(3, [2, 0, 4], random_state=5)
    for p, q in zip(*(t[0] for t in twice), strict=True):
        assert (p != q).sum() == 0
    assert [len(one) for one in twice[0][1]] == [2, 0, 4]


def test_sampled_symbols_have_the_form_of_the_data():
    assert isinstance(HMM().fit(X, y).sample(1, 3, 0)[0][0][0], str)
    bags = [[[word] for word in steps] for steps in X]
    assert isinstance(HMM().fit(bags, y).sample(1, 3, 0)[0][0][0], list)
    dicts = [[{"w": word, "n": str(len(word))} for word in steps] for steps in X]
    hmm = HMM().fit(dicts, y)
    drawn, labels = hmm.sample(4, 3, 0)
    assert set(drawn[0][0]) == {"w", "n"}
    assert np.isfinite(hmm.log_likelihood(drawn, labels)).all()
    many = [[[word, f"n={len(word)}"] for word in steps] for steps in X]
    hmm = HMM().fit(many, y)
    assert hmm.emission_kind_ == "bernoulli"
    drawn, labels = hmm.sample(4, 3, 0)
    assert np.isfinite(hmm.log_likelihood(drawn, labels)).all()


def test_lengths_are_sampled_if_the_end_is_modelled():
    hmm = HMM(model_end=True).fit(X, y)
    drawn, labels = hmm.sample(4000, random_state=0)
    assert min(map(len, drawn)) == 1
    lengths = np.array([len(one) for one in labels])
    # P(length > n), computed from the chain.
    going = hmm.start_
    for n_steps in (1, 2, 3):
        going = going @ hmm.transitions_
        assert (lengths > n_steps).mean() == pytest.approx(going.sum(), abs=0.03)
    last = np.mean([one[-1] == "sun" for one in labels if len(one) == 1])
    expected = hmm.start_ * hmm.end_
    assert last == pytest.approx(expected[1] / expected.sum(), abs=0.04)
    for bad in (-1, 2.5, [1, 2], "3"):
        with pytest.raises(InputError, match="lengths must be"):
            hmm.sample(3, bad)
    with pytest.raises(InputError, match="n must be"):
        hmm.sample(-1, 2)
    with pytest.raises(InputError, match="model_end=True"):
        HMM().fit(X, y).sample(2)


def test_accuracy_is_close_to_the_bayes_rate():
    data = make_hmm_sequences(
        200, 50, preset="both", n_labels=10, n_observations=10, random_state=0
    )
    hmm = HMM().fit(data.data[:150], data.target[:150])
    assert hmm.emission_kind_ == "categorical"
    # Tolerance: five standard errors plus the effect of smoothing.
    counts = np.bincount(np.concatenate(data.target[:150]), minlength=10)[:, None]
    for found, truth in [
        (hmm.transitions_, data.transition),
        (hmm.emissions_.probabilities[0][:, :-1], data.emission),
    ]:
        error = 5 * np.sqrt(truth * (1 - truth) / counts) + 1.5 / counts
        assert (np.abs(found - truth) < error).all()
    accuracy = hmm.score(data.data[150:], data.target[150:])
    assert accuracy == pytest.approx(data.bayes_ceilings.posterior, abs=0.03)
    assert SimpleNamespace(**hmm.history_).iteration == [1]


def test_sparse_rows_stay_sparse():
    n_features = 1_000_000  # 40 dense rows would be 320 MB
    random = np.random.default_rng(0)
    rows = []
    for _ in range(10):
        columns = random.integers(0, n_features, (4, 5))
        indptr = np.arange(0, 21, 5)
        rows.append(sp.csr_matrix((np.ones(20), columns.ravel(), indptr), shape=(4, n_features)))
    labels = [["a", "b", "a", "b"]] * 10
    for kind in ("bernoulli", "multinomial", "gaussian"):
        tracemalloc.start()
        hmm = HMM(emissions=kind).fit(rows, labels)
        assert hmm.score(rows, labels) == 1.0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 250e6, kind


def test_memory_does_not_grow_with_the_number_of_blocks():
    n_labels, n_symbols = 1000, 1000
    codes = np.arange(40_000) % n_labels
    X = [codes[k : k + 100, None] for k in range(0, codes.size, 100)]
    y = [codes[k : k + 100] for k in range(0, codes.size, 100)]
    tracemalloc.start()
    try:
        HMM(emissions="categorical").fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    table = 8 * n_labels * n_symbols
    n_blocks = sum(map(len, X)) * n_labels // BLOCK_DOUBLES
    assert n_blocks == 40
    assert peak < 20 * table  # transitions, emissions, their copies and the scores of a block
