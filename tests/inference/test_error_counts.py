"""Error-count Viterbi against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from seqlab.data import InputError
from seqlab.inference import ChainScores, error_count_scores
from seqlab.inference.kernels.error_count import (
    error_count_workspace,
    fill_error_counts,
    trace_errors,
)


def by_enumeration(scores, gold):
    best = np.full(scores.n_steps + 1, -np.inf)
    for labeling, value in oracle.legal(scores):
        k = sum(a != b for a, b in zip(labeling, gold, strict=True))
        best[k] = max(best[k], value)
    return best


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_best_scores_equal_enumeration(n_labels, per_step):
    random = np.random.default_rng(n_labels)
    for _ in range(10):
        lengths = random.integers(1, 5, size=3)
        scores = oracle.make_scores(random, lengths, n_labels, per_step=per_step)
        gold = random.integers(0, n_labels, size=scores.n_steps)
        found = error_count_scores(scores, gold)
        for i, one in enumerate(oracle.sequences_of(scores)):
            part = gold[scores.offsets[i] : scores.offsets[i + 1]]
            np.testing.assert_allclose(found[i], by_enumeration(one, part))


def test_traced_labelings_have_the_score_and_the_number_of_errors():
    random = np.random.default_rng(7)
    for _ in range(20):
        n_steps = int(random.integers(1, 6))
        scores = oracle.make_scores(random, [n_steps], 3)
        gold = random.integers(0, 3, size=n_steps)
        tables, back = error_count_workspace(3, n_steps)
        best, labels = np.empty(n_steps + 1), np.empty(n_steps, dtype=np.int64)
        arrays = scores.unary, scores.pairwise[None], 0, scores.start, scores.end
        now = fill_error_counts(*arrays, gold, 0, n_steps, tables, back, best)
        for k in range(n_steps + 1):
            trace_errors(k, now, scores.end, gold, n_steps, tables, back, labels)
            assert (labels != gold).sum() == k
            value = dict(oracle.legal(scores))[tuple(labels.tolist())]
            assert value == pytest.approx(best[k])


def test_unknown_gold_labels_count_as_errors_and_bad_shapes_raise():
    scores = ChainScores(np.array([[1.0, 0], [3, 1]]), np.zeros((2, 2)))
    assert error_count_scores(scores, [-1, 1])[0].tolist() == [-np.inf, 2.0, 4.0]
    empty = ChainScores(np.zeros((0, 2)), np.zeros((2, 2)), offsets=np.array([0, 0]))
    assert [one.tolist() for one in error_count_scores(empty, [])] == [[0.0]]
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        error_count_scores(scores, [0])
    with pytest.raises(InputError, match="integers"):
        error_count_scores(scores, [0.5, 1.0])
