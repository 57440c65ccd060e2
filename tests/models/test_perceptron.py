"""StructuredPerceptron: lazy averaging, voting, beam search, the mistake bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from seqlab import StructuredPerceptron
from seqlab.data import InputError, Sequences
from seqlab.inference import beam, viterbi
from seqlab.structures import BoundStructure
from seqlab.structures.chain import BoundChain, ChainStructure
from seqlab.structures.chain.online import ChainOnlineWeights
from seqlab.structures.online import DenseOnlineWeights


def example(seed, n_sequences=8, n_labels=3, n_features=6):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 6, n_sequences)
    n = lengths.sum()
    matrix = random.integers(-1, 2, size=(n, n_features)).astype(float)
    X = Sequences(sp.csr_matrix(matrix), np.concatenate([[0], np.cumsum(lengths)]))
    return X, random.integers(0, n_labels, n), random


def reference_perceptron(structure, X, codes, orders, decode):
    """Run the perceptron of Collins (2002); return last weights, their mean, and all weight vectors."""
    w = np.zeros(structure.n_params)
    vectors = []
    for order in orders:
        for i in order:
            one, gold = structure.bind(X[[i]]), codes[X.offsets[i] : X.offsets[i + 1]]
            found = decode(one.scores(one.source(w), one.block(0, 1))).labels
            phi = one.joint_features(gold) - one.joint_features(found)
            w = w + np.asarray(phi.todense()).ravel()
            vectors.append(w)
    return w, np.mean(vectors, axis=0), vectors


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.sampled_from([None, 1, 2, 3]))
def test_lazy_average_equals_the_explicit_average(seed, all_states, boundary, width):
    X, codes, random = example(seed)
    structure = ChainStructure.from_data(
        X, codes, 3, all_states=all_states, all_transitions=all_states, boundary=boundary
    )
    orders = [random.permutation(len(X)) for _ in range(3)]
    decode = viterbi if width is None else lambda scores: beam(scores, width)
    last, average, _ = reference_perceptron(structure, X, codes, orders, decode)
    fused = structure.bind(X).online_weights()
    generic = DenseOnlineWeights(structure.bind(X))
    for online in (fused, generic) if width is None else (fused,):
        for order in orders:
            online.run_pass(codes, np.ones(len(X)), order, beam_width=width or 0)
        np.testing.assert_allclose(online.current(), last, atol=1e-12)
        np.testing.assert_allclose(online.average(), average, atol=1e-12)


def separable(seed=0, n_sequences=30):
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        labels = random.integers(0, 3, size=random.integers(1, 7))
        features = np.zeros((labels.size, 5))
        features[np.arange(labels.size), labels] = 1.0
        features[:, 3:] = random.normal(size=(labels.size, 2)) * 0.1
        X.append(features)
        y.append(labels)
    return X, y


def joint_features(x, labels, n_labels):
    """Return the sums of feature values per label, and the counts of label pairs."""
    per_label, pairs = np.zeros((n_labels, x.shape[1])), np.zeros((n_labels, n_labels))
    np.add.at(per_label, labels, x)
    np.add.at(pairs, (labels[:-1], labels[1:]), 1.0)
    return np.concatenate([per_label.ravel(), pairs.ravel()])


def count_mistakes(X, y, n_passes, update):
    """Count the mistakes of a perceptron that decodes by enumeration; ties go to the first labeling."""
    w, n_mistakes = 0.0, 0
    for _ in range(n_passes):
        for x, gold in zip(X, y, strict=True):
            labelings = [np.array(z) for z in product(range(3), repeat=len(gold))]
            features = np.array([joint_features(x, z, 3) for z in labelings])
            best = int(np.argmax((features * w).sum(axis=1).round(9)))
            if (labelings[best] != gold).any():
                n_mistakes += 1
                w = w + update(joint_features(x, gold, 3), features[best])
    return n_mistakes


def mistake_bound(X, y):
    """Return (R / margin)² of Novikoff (1962) and Collins (2002), with the largest possible margin.

    The margin is the distance of the origin from the convex hull of all phi(x, gold) - phi(x, other).
    Non-negative least squares on these rows and a row of ones gives the nearest point up to scale.
    """
    differences = np.array(
        [
            joint_features(x, gold, 3) - joint_features(x, np.array(z), 3)
            for x, gold in zip(X, y, strict=True)
            for z in product(range(3), repeat=len(gold))
            if list(z) != gold.tolist()
        ]
    )
    rows = np.vstack([differences.T, np.ones(len(differences))])
    shares, _ = nnls(rows, np.append(np.zeros(differences.shape[1]), 1.0))
    margin = np.linalg.norm(shares @ differences) / shares.sum()
    nearest = shares @ differences / shares.sum()
    assert (differences @ nearest).min() == pytest.approx(margin**2)  # separable with this margin
    radius = np.linalg.norm(differences, axis=1).max()
    return (radius / margin) ** 2


def indicator_steps():
    """Return sequences of one step, each with its own feature: one does not help to label another."""
    return [row[None] for row in np.eye(12)], [np.array([1 + i % 2 if i else 0]) for i in range(12)]


def cycles():
    """Return sequences of two steps: a feature determines the first label, the first label the second."""
    first = np.arange(9) % 3
    X = [np.vstack([np.eye(3)[label], np.zeros(3)]) for label in first]
    return X, [np.array([label, (label + 1) % 3]) for label in first]


@pytest.mark.parametrize("data", [indicator_steps, cycles])
def test_mistakes_stay_below_the_bound_for_separable_data(data):
    X, y = data()
    model = StructuredPerceptron(
        max_iter=50,
        combination="last",
        shuffle=False,
        boundary=False,
        all_states=True,
        all_transitions=True,
    ).fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0
    n_mistakes, bound = sum(model.history_["n_updates"]), mistake_bound(X, y)
    assert bound / 3 <= n_mistakes <= bound
    assert n_mistakes == count_mistakes(X, y, 50, lambda gold, found: gold - found)
    # Wrong updates exceed the bound: without the gold labeling, without the label pairs.
    assert count_mistakes(X, y, 50, lambda gold, found: -found) > bound
    if data is cycles:
        states_only = np.arange(18) < 9
        assert count_mistakes(X, y, 50, lambda gold, found: (gold - found) * states_only) > bound


def test_every_weight_vector_votes():
    X, codes, _ = example(4)
    sequences, labels = list(X), X.split(codes)
    model = StructuredPerceptron(combination="voted", max_iter=3, shuffle=False).fit(
        sequences, labels
    )
    structure = model.structure_
    n_passes = model.n_iter_
    orders = [np.arange(len(X))] * n_passes
    _, average, vectors = reference_perceptron(structure, X, codes, orders, viterbi)
    shares = np.zeros((X.n_steps, 3))
    bound = structure.bind(X)
    for w in vectors:  # one vote for the vector after each step
        labels = bound.argmax(bound.scores(bound.source(w), bound.block(0, len(X))))
        shares[np.arange(X.n_steps), labels] += 1 / len(vectors)
    np.testing.assert_allclose(np.concatenate(model.predict_proba(sequences)), shares, atol=1e-12)
    np.testing.assert_array_equal(
        np.concatenate(model.predict(sequences)), model.classes_[shares.argmax(axis=1)]
    )
    weights = np.cumsum(model.votes_.toarray(), axis=0)
    np.testing.assert_allclose(weights[-1], vectors[-1])
    assert model.survival_.sum() == len(vectors)
    np.testing.assert_allclose(np.average(weights, axis=0, weights=model.survival_), average)


def test_two_labels_and_one_step_equal_the_binary_perceptron():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = (X @ random.normal(size=4) + 0.3 * random.normal(size=60) > 0).astype(int)
    model = StructuredPerceptron(
        combination="last", max_iter=5, shuffle=False, boundary=False, all_states=True
    ).fit([x[None] for x in X], [[v] for v in y])
    w = np.zeros(4)  # equals w_1 - w_0 of the structured model, so each mistake counts twice
    for _ in range(model.n_iter_):
        for x, v in zip(X, y, strict=True):
            if (w @ x > 0) != (v == 1):
                w += 2 * x if v == 1 else -2 * x
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], w)


def test_the_seed_determines_the_weights():
    X, y = separable(1)
    fits = [StructuredPerceptron(max_iter=2, random_state=s).fit(X, y).coef_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0].toarray(), fits[1].toarray())
    assert (fits[0] != fits[2]).nnz > 0


def test_a_beam_of_all_labels_is_exact():
    X, y = separable(2)
    exact = StructuredPerceptron(max_iter=3, random_state=0).fit(X, y)
    wide = StructuredPerceptron(max_iter=3, random_state=0, beam_width=3).fit(X, y)
    np.testing.assert_array_equal(exact.coef_.toarray(), wide.coef_.toarray())
    np.testing.assert_array_equal(exact.transitions_, wide.transitions_)


def test_early_update_stops_when_the_gold_label_leaves_the_beam():
    # One sequence, beam width 1, zero weights: ties go to label 0, so gold label 1 leaves the beam at step 0
    # and only that step is updated.
    X = Sequences(sp.csr_matrix(np.eye(3)), [0, 3])
    codes = np.array([1, 1, 1])
    structure = ChainStructure.from_data(X, codes, 2, all_states=True, all_transitions=True)
    state = structure.bind(X).online_weights()
    state.run_pass(codes, np.ones(1), np.array([0]), beam_width=1, early_update=True)
    weights = structure.weights(state.current())
    np.testing.assert_array_equal(weights.coef, [[-1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(weights.start, [-1, 1])
    np.testing.assert_array_equal(weights.end, [0, 0])
    np.testing.assert_array_equal(weights.transitions, 0)


def test_temperature_softens_probabilities():
    X, y = separable(3)
    sharp = StructuredPerceptron(random_state=0).fit(X, y)
    soft = StructuredPerceptron(random_state=0, temperature=100.0).fit(X, y)
    assert (
        np.concatenate(soft.predict_proba(X)).max() < np.concatenate(sharp.predict_proba(X)).max()
    )
    assert not hasattr(sharp, "sequence_log_proba")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"early_update": True}, "beam"),
        ({"keep_gold": True}, "beam"),
        ({"keep_gold": True, "early_update": True, "beam_width": 2}, "never fall out"),
        ({"early_update": True, "beam_width": 2, "combination": "voted"}, "voted"),
    ],
)
def test_contradictory_options_raise(options, words):
    X, y = separable()
    with pytest.raises(InputError, match=words):
        StructuredPerceptron(**options).fit(X, y)


@pytest.mark.parametrize("n_labels", [2, 4, 8, 20])
def test_overflowing_weights_raise(n_labels):
    rng = np.random.default_rng(0)
    X = [rng.choice([-1, 1], size=(6, 5)) * 1.7e308 for _ in range(60)]
    y = [rng.integers(0, n_labels, 6) for _ in range(60)]
    with pytest.raises(InputError, match="weights overflowed in pass"):
        StructuredPerceptron(max_iter=5, random_state=0).fit(X, y)


@pytest.mark.parametrize("combination", ["averaged", "last", "voted"])
@pytest.mark.parametrize("kind", ["fused", "generic"])
def test_an_interrupt_inside_a_pass_keeps_the_last_full_pass(monkeypatch, combination, kind):
    X, codes, _ = example(3, n_sequences=20)
    sequences, labels = list(X), X.split(codes)
    if kind == "generic":
        monkeypatch.setattr(BoundChain, "online_weights", BoundStructure.online_weights)
    online = ChainOnlineWeights if kind == "fused" else DenseOnlineWeights
    run_pass, n_calls = online.run_pass, []

    def interrupting(self, *args, **options):
        found = run_pass(self, *args, **options)
        n_calls.append(1)
        if len(n_calls) == 4:
            raise KeyboardInterrupt
        return found

    options = {"combination": combination, "random_state": 0}
    expected = StructuredPerceptron(max_iter=3, **options).fit(sequences, labels)
    monkeypatch.setattr(online, "run_pass", interrupting)
    model = StructuredPerceptron(**options)
    with pytest.raises(KeyboardInterrupt):
        model.fit(sequences, labels)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(np.asarray(model.coef_), np.asarray(expected.coef_))
    np.testing.assert_array_equal(model.transitions_, expected.transitions_)
    if combination == "voted":
        np.testing.assert_array_equal(model.survival_, expected.survival_)
        assert (model.votes_ != expected.votes_).nnz == 0


def test_order_zero_labels_each_step_from_its_features_alone():
    X, y = separable()
    model = StructuredPerceptron(order=0, random_state=0).fit(X, y)
    assert not model.transitions_.any()
    assert not model.start_.any()
    assert not model.end_.any()
    alone = [np.concatenate([model.predict([row[None]])[0] for row in x]) for x in X]
    assert all((a == b).all() for a, b in zip(alone, model.predict(X), strict=True))


def test_gold_label_is_kept_in_the_beam():
    """With a beam of one that keeps the gold label, the search returns it and never updates."""
    X, codes, _ = example(3)
    structure = ChainStructure.from_data(X, codes, 3, all_states=True)
    online = structure.bind(X).online_weights()
    order = np.arange(len(X))
    found = online.run_pass(codes, np.ones(len(X)), order, beam_width=1, keep_gold=True)
    assert (found.predicted == codes).all()
    assert found.n_wrong == 0
    online = structure.bind(X).online_weights()
    widest = online.run_pass(codes, np.ones(len(X)), order, beam_width=3, keep_gold=True)
    exact = structure.bind(X).online_weights().run_pass(codes, np.ones(len(X)), order)
    assert (widest.predicted == exact.predicted).all()


def test_random_ties_depend_on_the_seed_only():
    X, y = separable()
    models = [
        StructuredPerceptron(ties="random", random_state=seed, max_iter=2, shuffle=False).fit(X, y)
        for seed in (0, 0, 1)
    ]
    first, again, other = (sp.csr_matrix(model.coef_).toarray() for model in models)
    assert (first == again).all()
    assert (first != other).any()
