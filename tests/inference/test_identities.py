"""Values computed by hand, and identities that hold for chains of any size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from oracle import make_mask, make_scores
from seqlab.inference import (
    ChainScores,
    Mask,
    beam,
    beam_pair_marginals,
    expected_transitions,
    kbest,
    log_partition,
    loss_augmented,
    marginals,
    max_marginals,
    pair_marginals,
    path_scores,
    sample,
    viterbi,
)

HAND = ChainScores(np.array([[1.0, 0], [0, 0], [0, 1]]), np.eye(2))


def test_hand_example():
    """Two labels, three steps: values computed by hand."""
    result = marginals(HAND)
    assert_allclose(np.exp(result.log_z), [91.215275], rtol=1e-7)
    assert_allclose(result.log_z, [4.513222], rtol=1e-6)
    truth = [[0.690399, 0.309601], [0.5, 0.5], [0.309601, 0.690399]]
    assert_allclose(result.node, truth, atol=1e-6)


def test_hand_example_four_way_tie():
    result = viterbi(HAND)
    assert result.labels.tolist() == [0, 0, 0]
    assert result.score.tolist() == [3.0]
    tied = [labels.tolist() for labels, score in kbest(HAND, 8)[0] if score == 3.0]
    assert tied == [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]]
    assert beam(HAND, 2).labels.tolist() == [0, 0, 0]


problems = st.builds(
    lambda seed, lengths, n_labels, per_step, integers: make_scores(
        np.random.default_rng(seed), lengths, n_labels, per_step=per_step, integers=integers
    ),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 30), min_size=0, max_size=6),
    st.integers(1, 11),
    st.booleans(),
    st.booleans(),
)
checked = settings(max_examples=60, deadline=None)


@checked
@given(problems)
def test_marginals_sum_to_one_and_pairs_to_nodes(scores):
    result = pair_marginals(scores)
    assert_allclose(result.node.sum(axis=1), 1.0, rtol=1e-12)
    first = scores.offsets[:-1][np.diff(scores.offsets) > 0]
    later = np.setdiff1d(np.arange(scores.n_steps), first)
    assert np.all(result.pair[first] == 0)
    assert_allclose(result.pair[later].sum(axis=1), result.node[later], atol=1e-13)
    assert_allclose(result.pair[later].sum(axis=2), result.node[later - 1], atol=1e-13)
    counts = expected_transitions(scores)
    assert_allclose(counts.transitions, result.pair.sum(axis=0), atol=1e-12)


@checked
@given(problems, st.floats(-50, 50))
def test_adding_a_constant_changes_only_log_z(scores, constant):
    shifted = ChainScores(
        scores.unary + constant, scores.pairwise, scores.start, scores.end, scores.offsets
    )
    lengths = np.diff(scores.offsets)
    before, after = marginals(scores), marginals(shifted)
    assert_allclose(after.log_z, before.log_z + constant * lengths, atol=1e-9)
    assert_allclose(after.node, before.node, atol=1e-11)


@checked
@given(problems)
def test_reversing_the_chain_transposes(scores):
    order = np.concatenate(
        [
            np.arange(a, b)[::-1]
            for a, b in zip(scores.offsets[:-1], scores.offsets[1:], strict=True)
        ]
        or [np.zeros(0, dtype=int)]
    ).astype(int)
    pairwise = scores.pairwise.T
    if scores.per_step:
        # The transition into step t becomes the transition out of it: reversed row r is the original r + 1.
        pairwise = scores.pairwise[np.minimum(order + 1, scores.n_steps - 1)].swapaxes(1, 2)
    mirrored = ChainScores(scores.unary[order], pairwise, scores.end, scores.start, scores.offsets)
    forwards, backwards = marginals(scores), marginals(mirrored)
    assert_allclose(backwards.log_z, forwards.log_z, atol=1e-10)
    assert_allclose(backwards.node, forwards.node[order], atol=1e-12)
    assert_allclose(viterbi(mirrored).score, viterbi(scores).score, atol=1e-10)
    if not scores.per_step:
        assert_allclose(
            expected_transitions(mirrored).transitions,
            expected_transitions(scores).transitions.T,
            atol=1e-11,
        )


@checked
@given(problems)
def test_best_answers_agree(scores):
    best = viterbi(scores)
    lengths = np.diff(scores.offsets)
    assert_allclose(path_scores(scores, best.labels), best.score, atol=1e-10)
    assert_allclose(max_marginals(scores).max(axis=1), np.repeat(best.score, lengths), atol=1e-10)
    for i, found in enumerate(kbest(scores, 4)):
        labels, values = zip(*found, strict=True)
        assert labels[0].tolist() == best.labels[slice(*scores.offsets[i : i + 2])].tolist()
        assert list(values) == sorted(values, reverse=True)
        assert len({tuple(y.tolist()) for y in labels}) == len(labels)
    wide = beam(scores, scores.n_labels)
    assert wide.labels.tolist() == best.labels.tolist()
    narrow = beam(scores, 2)
    assert np.all(narrow.score <= best.score + 1e-10)
    assert_allclose(path_scores(scores, narrow.labels), narrow.score, atol=1e-10)
    assert np.all(log_partition(scores) >= best.score - 1e-10)


@checked
@given(problems)
def test_wide_beam_is_exact_and_narrow_beam_sums_to_one(scores):
    exact = pair_marginals(scores)
    wide = beam_pair_marginals(scores, scores.n_labels)
    assert_allclose(wide.log_z, exact.log_z, atol=1e-10)
    assert_allclose(wide.node, exact.node, atol=1e-11)
    assert_allclose(wide.pair, exact.pair, atol=1e-11)
    gold = sample(scores, 1, random_state=0)[0]
    narrow = beam_pair_marginals(scores, 2, gold)
    assert_allclose(narrow.node.sum(axis=1), 1.0, atol=1e-12)
    assert np.all((narrow.node > 0).sum(axis=1) <= 2)
    assert np.all(narrow.node[np.arange(scores.n_steps), gold] > 0)
    assert np.all(narrow.log_z <= exact.log_z + 1e-10)


@checked
@given(problems, st.integers(0, 2**32 - 1))
def test_loss_augmented_without_cost_is_viterbi(scores, seed):
    gold = np.random.default_rng(seed).integers(scores.n_labels, size=scores.n_steps)
    free = loss_augmented(scores, gold, np.zeros(scores.n_steps))
    assert free.labels.tolist() == viterbi(scores).labels.tolist()
    # The augmented maximum is at least the score of the gold labeling, whose loss is 0.
    assert np.all(loss_augmented(scores, gold).score >= path_scores(scores, gold) - 1e-10)


@pytest.mark.parametrize("n_labels", [1, 2, 5])
@pytest.mark.parametrize("n_steps", [1, 7, 40])
def test_uniform_scores_count_paths(n_steps, n_labels):
    scores = ChainScores(np.zeros((n_steps, n_labels)), np.zeros((n_labels, n_labels)))
    assert_allclose(log_partition(scores), n_steps * np.log(n_labels), atol=1e-12)


def test_uniform_scores_count_legal_paths():
    """Two labels, no two 1s in a row: the Fibonacci numbers."""
    mask = Mask(transitions=np.array([[True, True], [True, False]]))
    lengths = np.arange(1, 11)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores = ChainScores(np.zeros((offsets[-1], 2)), np.zeros((2, 2)), offsets=offsets)
    counts = np.exp(log_partition(scores, mask=mask))
    assert_allclose(counts, [2, 3, 5, 8, 13, 21, 34, 55, 89, 144])
    assert [len(found) for found in kbest(scores, 10**6, mask=mask)] == counts.round().tolist()


def test_single_step_is_softmax():
    rng = np.random.default_rng(0)
    scores = make_scores(rng, [1] * 5, 4)
    logits = scores.unary + scores.start + scores.end
    exponentials = np.exp(logits)
    assert_allclose(
        marginals(scores).node, exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-13
    )


def test_inputs_are_not_modified():
    rng = np.random.default_rng(1)
    scores = make_scores(rng, [4, 3], 3)
    mask = make_mask(rng, scores)
    names = ("unary", "pairwise", "start", "end", "offsets")
    before = [getattr(scores, name).copy() for name in names]
    gold = viterbi(scores, mask=mask).labels
    for call in (
        log_partition,
        marginals,
        pair_marginals,
        expected_transitions,
        viterbi,
        max_marginals,
    ):
        call(scores, mask=mask)
    kbest(scores, 3, mask=mask)
    sample(scores, 3, 0, mask=mask)
    loss_augmented(scores, gold, mask=mask)
    beam_pair_marginals(scores, 3, gold, mask=mask)
    for name, value in zip(names, before, strict=True):
        assert np.array_equal(getattr(scores, name), value)
