"""Pair marginals of scores per step: their kernel agrees with that of constant scores."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab.inference import ChainScores, Mask, pair_marginals

OFFSETS = np.array([0, 1, 1, 6, 13, 15])


@pytest.mark.parametrize("n_labels", [1, 2, 4, 7])
@pytest.mark.parametrize("is_masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("factor", [1.0, 200.0], ids=["usual scores", "extreme scores"])
def test_repeated_scores_give_the_marginals_of_constant_scores(n_labels, is_masked, factor):
    random = np.random.default_rng(n_labels)
    unary = random.normal(size=(15, n_labels))
    unary[6:13] *= factor  # the other sequences keep the scaled form
    pairwise, start, end = (random.normal(size=s) for s in ((n_labels,) * 2, n_labels, n_labels))
    mask = None
    if is_masked:
        transitions = random.random((n_labels, n_labels)) < 0.7
        np.fill_diagonal(transitions, True)
        steps = random.random((15, n_labels)) < 0.8
        steps[:, 0] = True
        mask = Mask(steps=steps, transitions=transitions)
    constant = pair_marginals(ChainScores(unary, pairwise, start, end, OFFSETS), mask=mask)
    every = np.repeat(pairwise[None], 15, axis=0)
    found = pair_marginals(ChainScores(unary, every, start, end, OFFSETS), mask=mask)
    np.testing.assert_allclose(found.log_z, constant.log_z, rtol=1e-13)
    np.testing.assert_allclose(found.node, constant.node, atol=1e-13)
    np.testing.assert_allclose(found.pair, constant.pair, atol=1e-13)
    later = np.setdiff1d(np.arange(15), OFFSETS[:-1])
    np.testing.assert_allclose(found.pair[later].sum(axis=1), found.node[later], atol=1e-12)
