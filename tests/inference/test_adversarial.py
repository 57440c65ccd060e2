"""Long chains, huge scores, empty input, and scores that have no valid result."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from oracle import make_scores
from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError
from seqlab.inference import (
    ChainScores,
    Mask,
    beam,
    beam_marginals,
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

ALL = {
    "log_partition": log_partition,
    "marginals": marginals,
    "pair_marginals": pair_marginals,
    "expected_transitions": expected_transitions,
    "viterbi": viterbi,
    "max_marginals": max_marginals,
    "kbest": lambda s, **kw: kbest(s, 3, **kw),
    "sample": lambda s, **kw: sample(s, 2, random_state=0, **kw),
    "loss_augmented": lambda s, **kw: loss_augmented(s, np.zeros(s.n_steps, dtype=int), **kw),
    "beam": lambda s, **kw: beam(s, 2, **kw),
    "beam_marginals": lambda s, **kw: beam_marginals(s, 2, **kw),
    "beam_pair_marginals": lambda s, **kw: beam_pair_marginals(s, 2, **kw),
}


@pytest.fixture(params=ALL)
def answer(request):
    return ALL[request.param]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_legal_labeling_names_sequence_and_position(answer, n_jobs):
    scores = make_scores(np.random.default_rng(0), [4, 0, 5, 6], 3)
    steps = np.ones((scores.n_steps, 3), dtype=bool)
    steps[scores.offsets[3] + 2] = False
    with pytest.raises(
        NoLegalLabelingError,
        match=r"sequence 3 has no legal labeling: every path is forbidden by position 2",
    ):
        answer(scores, mask=Mask(steps=steps), n_jobs=n_jobs)


@pytest.mark.parametrize(
    ("mask", "position"),
    [
        (Mask(start=np.zeros(3, dtype=bool)), 0),
        (Mask(transitions=np.zeros((3, 3), dtype=bool)), 1),
        (Mask(end=np.zeros(3, dtype=bool)), 3),
    ],
)
def test_no_legal_labeling_by_each_part(answer, mask, position):
    scores = make_scores(np.random.default_rng(1), [4], 3)
    with pytest.raises(NoLegalLabelingError, match=f"sequence 0 .* position {position}$"):
        answer(scores, mask=mask)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_score_names_sequence_and_position(answer, value):
    scores = make_scores(np.random.default_rng(2), [3, 0, 5], 3)
    scores.unary[3 + 4, 1] = value
    with pytest.raises(NumericalError, match="sequence 2 at position 4 is NaN or"):
        answer(scores)


@pytest.mark.parametrize("part", ["pairwise", "start", "end"])
@pytest.mark.parametrize("per_step", [False, True])
def test_bad_score_elsewhere_names_the_part(answer, part, per_step):
    scores = make_scores(np.random.default_rng(3), [3, 5], 3, per_step=per_step)
    getattr(scores, part)[..., 1] = np.nan
    with pytest.raises(NumericalError, match=part):
        answer(scores)


def test_pairwise_of_a_first_step_is_never_read(answer):
    scores = make_scores(np.random.default_rng(4), [3, 1, 0, 4], 3, per_step=True)
    expected = answer(scores)
    scores.pairwise[[0, 3, 4]] = np.nan
    actual = answer(scores)
    assert str(actual) == str(expected)


def test_overflow_is_not_reported_as_a_constraint():
    scores = ChainScores(np.full((3, 2), -1e308), np.zeros((2, 2)))
    with pytest.raises(NumericalError, match="sequence 0"):
        log_partition(scores)


def test_empty_input(answer):
    empty = ChainScores(np.zeros((0, 3)), np.zeros((3, 3)), offsets=np.array([0]))
    answer(empty)
    only_empty = ChainScores(np.zeros((0, 3)), np.zeros((3, 3)), offsets=np.array([0, 0, 0]))
    answer(only_empty)


def test_empty_sequences_have_one_labeling():
    only_empty = ChainScores(np.zeros((0, 3)), np.zeros((3, 3)), offsets=np.array([0, 0, 0]))
    assert log_partition(only_empty).tolist() == [0.0, 0.0]
    assert viterbi(only_empty).score.tolist() == [0.0, 0.0]
    assert [[(y.tolist(), v) for y, v in found] for found in kbest(only_empty, 2)] == [
        [([], 0.0)]
    ] * 2
    assert kbest(ChainScores(np.zeros((0, 3)), np.zeros((3, 3)), offsets=np.array([0])), 2) == []
    assert path_scores(only_empty, []).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n_labels", [1, 2, 4])
def test_a_hundred_thousand_steps(n_labels):
    """The marginals of a periodic chain do not depend on its length."""
    rng = np.random.default_rng(5)
    pairwise = rng.normal(size=(n_labels, n_labels))
    period = rng.normal(size=(10, n_labels))
    long = ChainScores(np.tile(period, (10_000, 1)), pairwise)
    short = ChainScores(np.tile(period, (20, 1)), pairwise)
    result = marginals(long)
    assert_allclose(result.node.sum(axis=1), 1.0, rtol=1e-13)
    assert_allclose(result.node[50_000:50_010], marginals(short).node[100:110], rtol=1e-11)
    per_period = np.diff(
        [log_partition(ChainScores(np.tile(period, (n, 1)), pairwise))[0] for n in (20, 21)]
    )
    growth = result.log_z[0] - log_partition(short)[0]
    assert_allclose(growth, per_period[0] * 9_980, rtol=1e-10)
    best = viterbi(long)
    assert_allclose(path_scores(long, best.labels), best.score, rtol=1e-11)
    assert len(kbest(long, 2)[0]) == min(2, n_labels)
    assert_allclose(expected_transitions(long).transitions.sum(), 99_999, rtol=1e-12)


@pytest.mark.parametrize("per_step", [False, True])
def test_huge_scores(per_step):
    """Scores of +-1e4 against extended precision on the same recursion."""
    rng = np.random.default_rng(6)
    scores = make_scores(rng, [400], 4, per_step=per_step, scale=1e4)
    pairs = pair_marginals(scores)
    alpha = np.longdouble(scores.start) + scores.unary[0]
    for t in range(1, 400):
        arcs = scores.pairwise[t] if per_step else scores.pairwise
        alpha = np.logaddexp.reduce(alpha[:, np.newaxis] + arcs, axis=0) + scores.unary[t]
    assert_allclose(pairs.log_z, float(np.logaddexp.reduce(alpha + scores.end)), rtol=1e-14)
    assert_allclose(pairs.node.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(pairs.pair[1:].sum(axis=1), pairs.node[1:], atol=1e-11)
    assert_allclose(pairs.pair.sum(axis=0), expected_transitions(scores).transitions, atol=1e-10)
    best = viterbi(scores)
    # At this scale the best labeling has probability 1.
    assert_allclose(pairs.log_z, best.score, rtol=1e-12)
    assert np.array_equal(pairs.node.argmax(axis=1), best.labels)
    assert np.array_equal(sample(scores, 1, 0)[0], best.labels)


def test_huge_scores_on_a_long_chain_stay_exact():
    """Two labels without transitions between them; each is better by 1e4 for half of the steps."""
    n_steps = 100_000
    unary = np.zeros((n_steps, 2))
    unary[: n_steps // 2, 0] = 1e4
    unary[n_steps // 2 :, 1] = 1e4
    unary[0, 0] += np.log(3.0)
    mask = Mask(transitions=np.eye(2, dtype=bool))
    result = marginals(ChainScores(unary, np.zeros((2, 2))), mask=mask)
    assert_allclose(result.node, np.tile([0.75, 0.25], (n_steps, 1)), rtol=1e-6)


def test_legal_label_whose_prefix_probability_underflows():
    """A legal path with probability exp(-4000) up to the middle, and 1/4 in the end."""
    n_steps = 80
    unary = np.zeros((n_steps, 2))
    unary[:40, 1] = -100.0
    unary[40:, 0] = -100.0
    unary[0, 0] = np.log(3.0)
    scores = ChainScores(unary, np.zeros((2, 2)))
    mask = Mask(transitions=np.eye(2, dtype=bool))
    for result in (marginals(scores, mask=mask), beam_marginals(scores, 2, mask=mask)):
        assert_allclose(result.node, np.tile([0.75, 0.25], (n_steps, 1)), rtol=1e-11)
        assert_allclose(result.log_z, [-4000 + np.log(4.0)], rtol=1e-12)
    counts = expected_transitions(scores, mask=mask).transitions
    assert_allclose(counts, np.diag([0.75, 0.25]) * (n_steps - 1), rtol=1e-11)
    draws = sample(scores, 2000, 0, mask=mask)
    assert np.all(draws == draws[:, :1])
    assert abs(draws[:, 0].mean() - 0.25) < 0.04


def test_unreachable_labels_change_nothing():
    """A label that no path reaches, and that would be more probable by exp(8000) otherwise."""
    unary = np.zeros((80, 3))
    unary[:, 2] = 100.0
    start = np.array([0.0, 0.0, -np.inf])
    transitions = np.array([[True, True, False], [True, True, False], [True, True, True]])
    mask = Mask(transitions=transitions)
    result = pair_marginals(ChainScores(unary, np.zeros((3, 3)), start), mask=mask)
    assert_allclose(result.log_z, [80 * np.log(2.0)], rtol=1e-11)
    assert_allclose(result.node, np.tile([0.5, 0.5, 0.0], (80, 1)), rtol=1e-13)
    assert_allclose(result.pair[1:, :2, :2], 0.25, rtol=1e-13)


def test_dead_ends_change_nothing():
    """Only one label has allowed successors, at every step, and it is not always the best one."""
    rng = np.random.default_rng(7)
    n_steps, n_labels = 300, 6
    unary = rng.normal(scale=20.0, size=(n_steps, n_labels))
    transitions = np.zeros((n_labels, n_labels), dtype=bool)
    transitions[0] = True
    scores = ChainScores(unary, rng.normal(size=(n_labels, n_labels)))
    result = marginals(scores, mask=Mask(transitions=transitions))
    assert_allclose(result.node[:-1, 0], 1.0, rtol=1e-13)
    last = unary[-1] + scores.pairwise[0]
    assert_allclose(result.node[-1], np.exp(last) / np.exp(last).sum(), rtol=1e-12)


def test_wrong_arguments():
    scores = make_scores(np.random.default_rng(8), [3, 2], 3)
    with pytest.raises(InputError, match="offsets must not decrease"):
        viterbi(ChainScores(scores.unary, scores.pairwise, offsets=np.array([0, 4, 2, 5])))
    with pytest.raises(InputError, match="gold of sequence 1 at position 1 is 3"):
        loss_augmented(scores, [0, 0, 0, 0, 3])
    with pytest.raises(InputError, match="gold must be integers"):
        loss_augmented(scores, np.zeros(5))
    with pytest.raises(InputError, match="labels must be integers of shape"):
        path_scores(scores, [0, 1])
    with pytest.raises(InputError, match="loss_weights"):
        loss_augmented(scores, [0] * 5, np.ones(4))
    with pytest.raises(InputError, match="weights must have shape"):
        expected_transitions(scores, [1.0])
    with pytest.raises(InputError, match="width"):
        beam(scores, 0)
    with pytest.raises(InputError, match="at least 1"):
        kbest(scores, 0)
    with pytest.raises(InputError, match="negative"):
        sample(scores, -1)
    with pytest.raises(InputError, match=r"mask\.steps"):
        viterbi(scores, mask=Mask(steps=np.ones((2, 2), dtype=bool)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"steps": [True, False]}, r"mask\.steps must have 2 dimensions, got shape \(2,\)"),
        ({"steps": [[1, 2]]}, r"mask\.steps\[0, 1\] is 2, expected True or False"),
        ({"steps": [[1, 0.5]]}, r"mask\.steps must be boolean.*float64"),
        ({"steps": np.zeros((2, 2))}, r"mask\.steps must be boolean"),
        ({"steps": [[True], [True, False]]}, r"mask\.steps must be a boolean array"),
        ({"steps": [[True, None]]}, r"mask\.steps must be boolean.*object"),
        ({"transitions": np.ones((2, 3), dtype=bool)}, r"mask\.transitions must be square"),
        ({"transitions": np.ones((2, 2, 2), dtype=bool)}, r"transitions must have 2 dimensions"),
        ({"start": [[True]]}, r"mask\.start must have 1 dimensions"),
        ({"end": [0, -1]}, r"mask\.end\[1\] is -1"),
        ({"end": ["a"]}, r"mask\.end must be boolean"),
        ({"start": True}, r"mask\.start must have 1 dimensions"),
    ],
)
def test_masks_are_checked_on_creation(parts, message):
    with pytest.raises(InputError, match=message):
        Mask(**parts)


def test_masks_of_lists_and_integers():
    transitions = np.eye(2, dtype=np.int8)
    mask = Mask(steps=[[1, 0], [1, 1]], transitions=transitions, start=[True, False])
    assert mask.steps.dtype == mask.transitions.dtype == mask.start.dtype == bool
    assert mask.end is None
    assert transitions.dtype == np.int8
    scores = ChainScores(np.array([[0.0, 5.0], [0.0, 1.0]]), np.zeros((2, 2)))
    assert viterbi(scores, mask=mask).labels.tolist() == [0, 0]
    given = np.ones((2, 2), dtype=bool)
    assert Mask(steps=given).steps is given
    assert Mask(steps=np.zeros((0, 2))).steps.dtype == bool
    both = mask & Mask(steps=[[1, 1], [0, 1]], end=[0, 1])
    assert both.steps.tolist() == [[True, False], [False, True]]
    with pytest.raises(InputError, match="steps have the shapes"):
        mask & Mask(steps=[[1, 1]])
