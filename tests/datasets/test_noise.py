"""Swap noise: pairs and sequences keep their steps, and only the order changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from seqlab import IndependentLabeler, LinearChainCRF
from seqlab.data import InputError, Sequences
from seqlab.datasets import make_partition_sequences, swap_steps


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.floats(0, 1), st.integers(0, 99))
def test_pairs_stay_together_and_in_their_sequence(lengths, probability, seed):
    X = [[(i, t) for t in range(n)] for i, n in enumerate(lengths)]
    y = [[100 * i + t for t in range(n)] for i, n in enumerate(lengths)]
    before = [list(x) for x in X]
    noisy = swap_steps(X, y, probability=probability, random_state=seed)
    for i, (x, labels) in enumerate(zip(noisy.X, noisy.y, strict=True)):
        assert all(100 * i + t == label for (_, t), label in zip(x, labels, strict=True))
        assert Counter(x) == Counter(X[i])
        assert [X[i][t] for t in noisy.order[i]] == x
    assert before == X
    again = swap_steps(X, y, probability=probability, random_state=seed)
    assert again.X == noisy.X


def test_probabilities_zero_and_one():
    X = [list(range(50))]
    assert swap_steps(X, X, probability=0, random_state=0).X == X
    moved = [
        np.mean(swap_steps(X, X, probability=p, random_state=0).order[0] != np.arange(50))
        for p in (0.1, 1.0)
    ]
    assert 0.05 < moved[0] < 0.35
    assert moved[1] > 0.8


def test_every_form_of_sequences():
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(n, 3)) for n in (5, 9)]
    y = [np.arange(5), np.arange(9)]
    dense = swap_steps(arrays, y, probability=0.6, random_state=1)
    sparse = swap_steps([sp.csr_matrix(x) for x in arrays], y, probability=0.6, random_state=1)
    stacked = swap_steps(Sequences.from_list(arrays), y, probability=0.6, random_state=1)
    for i in range(2):
        assert np.array_equal(dense.X[i], sparse.X[i].toarray())
        assert np.array_equal(dense.X[i], stacked.X[i])
        assert np.array_equal(dense.y[i], stacked.y[i])
        assert not np.array_equal(dense.X[i], arrays[i])


def test_a_classifier_of_steps_learns_the_same_and_a_chain_does_not():
    X, y = make_partition_sequences(30, random_state=0, return_X_y=True)
    noisy = swap_steps(X, y, random_state=0)
    step = LogisticRegression(tol=1e-12, max_iter=5000)
    a = IndependentLabeler(step).fit(X, y).estimator_.coef_
    b = IndependentLabeler(step).fit(noisy.X, noisy.y).estimator_.coef_
    np.testing.assert_allclose(a, b, atol=1e-6)
    a = LinearChainCRF(c2=0.5).fit(X, y).transitions_
    b = LinearChainCRF(c2=0.5).fit(noisy.X, noisy.y).transitions_
    assert np.abs(a - b).max() > 0.5


def test_invalid_input():
    with pytest.raises(InputError, match="probability must be between 0 and 1, got 2"):
        swap_steps([[1]], [[1]], probability=2)
    with pytest.raises(InputError, match="X has 1 sequences but y has 2"):
        swap_steps([[1]], [[1], [2]])
    with pytest.raises(InputError, match=r"X\[0\] has 2 steps but y\[0\] has 1 labels"):
        swap_steps([[1, 2]], [[1]])
