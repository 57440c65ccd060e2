"""The HMM generator: tables, frequencies and Bayes ceilings."""

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab.data import InputError
from seqlab.datasets import hmm_bayes_ceilings, make_hmm_sequences


def test_tables_have_the_structure_of_the_paper():
    data = make_hmm_sequences(2, 5, preset="transition", random_state=0)
    assert data.emission.shape == data.transition.shape == (40, 40)
    for table, own, others in ((data.emission, 0.2, 8), (data.transition, 0.6, 2)):
        np.testing.assert_allclose(table.sum(axis=1), 1)
        np.testing.assert_allclose(np.diag(table), own)
        off = table - np.diag(np.diag(table))
        assert ((off > 0).sum(axis=1) == others).all()
        np.testing.assert_allclose(off[off > 0], (1 - own) / others)
    np.testing.assert_allclose(data.start, 1 / 40)


def test_frequencies_match_the_true_parameters():
    data = make_hmm_sequences(
        400, 500, preset="both", n_labels=8, n_observations=9, encoding="index", random_state=1
    )
    transitions, emissions, starts = np.zeros((8, 8)), np.zeros((8, 9)), np.zeros(8)
    for x, y in zip(data.data, data.target, strict=True):
        np.add.at(transitions, (y[:-1], y[1:]), 1)
        np.add.at(emissions, (y, x[:, 0]), 1)
        starts[y[0]] += 1
    for counts, truth in ((transitions, data.transition), (emissions, data.emission)):
        total = counts.sum(axis=1, keepdims=True)
        error = np.abs(counts / total - truth)
        # Five standard errors of a proportion.
        assert (error <= 5 * np.sqrt(truth * (1 - truth) / total)).all()
    assert np.abs(starts / 400 - 1 / 8).max() < 5 * np.sqrt(1 / 8 / 400)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [("transition", (0.297, 0.674, 0.934)), ("both", (0.690, 0.963, 0.988))],
)
def test_ceilings_of_the_presets(preset, expected):
    ceilings = [
        make_hmm_sequences(1, 1, preset=preset, random_state=seed).bayes_ceilings
        for seed in range(12)
    ]
    np.testing.assert_allclose(np.mean(ceilings, axis=0), expected, atol=0.03)


def test_ceilings_agree_with_counting_correct_labels():
    """The mean largest posterior is the accuracy of the classifier that chooses it."""
    data = make_hmm_sequences(
        200, 100, preset="both", n_labels=5, n_observations=5, encoding="index", random_state=3
    )
    hits = total = 0
    for x, y in zip(data.data, data.target, strict=True):
        symbols = x[:, 0]
        forward = np.empty((len(y), 5))
        for t, symbol in enumerate(symbols):
            prior = data.start if t == 0 else forward[t - 1] @ data.transition
            forward[t] = prior * data.emission[:, symbol]
            forward[t] /= forward[t].sum()
        backward = np.ones(5)
        best = [forward[-1].argmax()]
        for t in range(len(y) - 2, -1, -1):
            backward = data.transition @ (backward * data.emission[:, symbols[t + 1]])
            backward /= backward.sum()
            best.append((forward[t] * backward).argmax())
        hits += (np.array(best[::-1]) == y).sum()
        total += len(y)
    assert abs(hits / total - data.bayes_ceilings.posterior) < 0.02


def test_ceilings_of_a_model_without_noise_and_without_memory():
    exact = hmm_bayes_ceilings([0.5, 0.5], np.full((2, 2), 0.5), np.eye(2), random_state=0)
    np.testing.assert_allclose(exact, 1)
    blind = hmm_bayes_ceilings([1, 0], np.full((2, 2), 0.5), np.full((2, 3), 1 / 3), random_state=0)
    np.testing.assert_allclose(blind, 0.5)
    # A periodic chain has a time average.
    flip = hmm_bayes_ceilings([1, 0], [[0, 1], [1, 0]], np.ones((2, 1)), random_state=0)
    np.testing.assert_allclose(flip, 0.5)


@pytest.mark.parametrize("encoding", ["onehot", "sparse", "index"])
def test_encodings_agree(encoding):
    X, y = make_hmm_sequences(3, (2, 9), encoding=encoding, random_state=4, return_X_y=True)
    symbols, same = make_hmm_sequences(3, (2, 9), encoding="index", random_state=4, return_X_y=True)
    for x, s, a, b in zip(X, symbols, y, same, strict=True):
        np.testing.assert_array_equal(a, b)
        assert len(a) == x.shape[0] == len(s)
        if encoding == "index":
            continue
        assert sp.issparse(x) == (encoding == "sparse")
        dense = x.toarray() if sp.issparse(x) else x
        np.testing.assert_array_equal(dense.argmax(axis=1), s[:, 0])
        np.testing.assert_array_equal(dense.sum(axis=1), 1)


def test_equal_seeds_and_parameters_that_override_the_preset():
    one = make_hmm_sequences(3, 7, random_state=5, po=0.9)
    two = make_hmm_sequences(3, 7, random_state=5, po=0.9)
    for a, b in zip(one.target, two.target, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.bayes_ceilings == two.bayes_ceilings
    np.testing.assert_allclose(np.diag(one.emission), 0.9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"preset": "emission"},
            "preset must be one of 'transition', 'both', None, got 'emission'",
        ),
        ({"preset": "Transitions"}, "did you mean 'transition'"),
        ({"preset": ["both"]}, "preset must be one of"),
        ({"encoding": "one-hot"}, "did you mean 'onehot'"),
        ({"n_sequences": "both"}, "n_sequences must be an integer, got 'both'.*preset='both'"),
        ({"n_sequences": 0}, "n_sequences must be an integer of at least 1, got 0"),
        ({"n_sequences": -3}, "n_sequences must be an integer of at least 1"),
        ({"n_sequences": 2.5}, "n_sequences must be an integer"),
        ({"n_labels": 1}, "n_labels must be an integer of at least 2"),
        ({"n_observations": 0}, "n_observations must be an integer of at least 2"),
        ({"ko": 0}, "ko must be an integer in"),
        ({"kl": 1.5}, "kl must be an integer in"),
        ({"po": "x"}, "po must be a probability, got 'x'"),
        ({"length": -1}, "length"),
        ({"length": 2.5}, "length"),
        ({"length": "50"}, "length"),
        ({"length": (1, 2, 3)}, "length"),
        ({"preset": None}, "with preset=None, kl, ko, pl, po must be set"),
        ({"encoding": "dense"}, "encoding"),
        ({"ko": 40}, "ko must be an integer in 1..39"),
        ({"pl": 1.5}, "probability"),
        ({"length": 0}, "length"),
        ({"length": (5, 2)}, "length"),
    ],
)
def test_invalid_parameters(options, message):
    with pytest.raises(InputError, match=message):
        make_hmm_sequences(**{"n_sequences": 1, "length": 2, **options})


def test_numpy_integers_and_invalid_numbers_of_steps():
    data = make_hmm_sequences(np.int64(2), np.int32(3), ko=np.int64(2), random_state=0)
    assert [len(y) for y in data.target] == [3, 3]
    for n_steps in (0, -1, 1.5):
        with pytest.raises(InputError, match="n_steps must be an integer of at least 1"):
            hmm_bayes_ceilings([0.5, 0.5], np.eye(2), np.eye(2), n_steps=n_steps)
