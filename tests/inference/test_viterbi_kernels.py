"""The Viterbi kernels against NumPy, for full and partly filled vector registers."""

from itertools import pairwise as neighbours

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from seqlab.data.errors import NoLegalLabelingError, NumericalError
from seqlab.inference import ChainScores, viterbi
from seqlab.inference.kernels.viterbi import backtrack, viterbi_block

# Fewer labels than a register holds; one to six registers, full or not; several strips.
LABELS = [*range(1, 27), 31, 32, 33, 47, 48, 49, 70]


def plain_viterbi(unary, pairwise, start, end):
    """Best labeling, the first one in case of ties, and its score."""
    n_steps = len(unary)
    best = np.empty_like(unary)
    best[-1] = unary[-1] + end
    for t in range(n_steps - 2, -1, -1):
        best[t] = unary[t] + (pairwise + best[t + 1]).max(axis=1)
    labels = [int(np.argmax(start + best[0]))]
    for t in range(1, n_steps):
        labels.append(int(np.argmax(pairwise[labels[-1]] + best[t])))
    return labels, (start + best[0]).max()


@pytest.mark.parametrize("n_labels", LABELS)
@pytest.mark.parametrize("tied", [False, True])
def test_same_bits_as_numpy(n_labels, tied):
    rng = np.random.default_rng(n_labels)

    def draw(*shape):
        values = rng.normal(size=shape)
        if tied:
            values = rng.integers(0, 3, size=shape).astype(float)
        return np.where(rng.random(shape) < 0.1, -np.inf, values)

    lengths = [6, 6, 1, 9, 4, 0, 3, 12, 2]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    unary = draw(offsets[-1], n_labels)
    pairwise, start, end = draw(n_labels, n_labels), draw(n_labels), draw(n_labels)
    labels = np.full(offsets[-1], -1)
    scores = np.full(len(lengths), np.nan)
    table = np.full((offsets[-1], n_labels + -n_labels % 4), np.nan)
    chain = unary, pairwise[None], 0, start, end, offsets
    viterbi_block(chain, 0, len(lengths), labels, scores, table)
    for i, (first, last) in enumerate(neighbours(offsets)):
        if first == last:
            assert scores[i] == 0
            continue
        expected, score = plain_viterbi(unary[first:last], pairwise, start, end)
        assert scores[i] == score
        if np.isfinite(score):
            assert_array_equal(labels[first:last], expected)


@pytest.mark.parametrize("n_labels", LABELS)
def test_every_label_can_be_chosen(n_labels):
    table = np.zeros((n_labels, n_labels + -n_labels % 4))
    np.fill_diagonal(table, 1.0)
    labels = np.full(n_labels, -1)
    backtrack(np.zeros((n_labels, n_labels)), 0, table, 0, labels, 0, n_labels)
    assert_array_equal(labels, np.arange(n_labels))


@pytest.mark.parametrize("n_labels", LABELS)
def test_nan_scores_still_give_a_valid_label(n_labels):
    table = np.full((3, n_labels + -n_labels % 4), np.nan)
    labels = np.full(3, -1)
    backtrack(np.zeros((n_labels, n_labels)), 0, table, 0, labels, 0, 3)
    assert ((labels >= 0) & (labels < n_labels)).all()


def test_zero_labels():
    scores = ChainScores(np.zeros((3, 0)), np.zeros((0, 0)), offsets=np.array([0, 3]))
    with pytest.raises(NoLegalLabelingError):
        viterbi(scores)


@pytest.mark.parametrize("n_labels", [2, 4, 8, 16, 24, 40])
def test_overflow_raises(n_labels):
    unary = np.full((5, n_labels), 1e308)
    forbidden = np.full(n_labels, -np.inf)
    scores = ChainScores(unary, np.zeros((n_labels, n_labels)), start=forbidden)
    with pytest.raises((NoLegalLabelingError, NumericalError)):
        viterbi(scores)
