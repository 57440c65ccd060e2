"""The prior of a Markov chain at each position, and chains that alternate between two sets of labels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from random_chains import random_chain
from seqlab.models.combinators._propagation import is_alternating, propagate_prior


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 200))
def test_the_propagated_prior_is_stored_until_it_converges(seed, n_labels, longest):
    random = np.random.default_rng(seed)
    start, transitions = random_chain(random, n_labels)
    prior = propagate_prior(start, transitions, longest)
    assert prior.table.shape[0] <= longest
    expected, reached = start, start > 0
    for t in range(longest):
        if t:
            expected = expected @ transitions
            reached = (reached[:, None] & (transitions > 0)).any(axis=0)
        found = np.exp(prior.at(np.array([t]))[0])
        np.testing.assert_array_equal(found > 0, reached)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-290)


def test_an_alternating_prior_converges_to_two_rows():
    prior = propagate_prior(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), 100_000)
    assert prior.table.shape[0] < 10  # not one row per position
    assert np.exp(prior.at(np.array([0, 1, 50_000, 99_999]))).tolist() == [
        [1, 0], [0, 1], [1, 0], [0, 1],
    ]  # fmt: skip


def test_is_alternating():
    swap = np.array([[False, True], [True, False]])
    assert is_alternating(np.array([True, False]), swap)
    assert not is_alternating(np.array([True, True]), swap)
    assert not is_alternating(np.array([True, False]), np.ones((2, 2), dtype=bool))
    assert not is_alternating(np.array([True]), np.zeros((1, 1), dtype=bool))  # single steps only
    ring = np.roll(np.eye(4, dtype=bool), 1, axis=1)
    assert is_alternating(np.eye(4, dtype=bool)[0], ring)
    assert not is_alternating(np.eye(3, dtype=bool)[0], ring[:3, :3] | np.eye(3, k=-2, dtype=bool))
