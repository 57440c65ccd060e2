"""Different ways to the same result: batches, order, threads, forks, scaled and log space."""

import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

from oracle import make_mask, make_scores, sequences_of
from seqlab.data.errors import InputError
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
    sample,
    viterbi,
)
from seqlab.inference._prepare import chain_arrays
from seqlab.inference.kernels import forward_backward, forward_backward_log
from seqlab.inference.kernels.beam import beam_one, beam_workspace
from seqlab.utils import threads

ANSWERS = {
    "log_partition": lambda s, **kw: (log_partition(s, **kw),),
    "marginals": marginals,
    "pair_marginals": pair_marginals,
    "expected_transitions": expected_transitions,
    "viterbi": viterbi,
    "max_marginals": lambda s, **kw: (max_marginals(s, **kw),),
    "kbest": lambda s, **kw: [a for found in kbest(s, 3, **kw) for pair in found for a in pair],
    "sample": lambda s, **kw: (sample(s, 2, random_state=0, **kw),),
    "loss_augmented": lambda s, **kw: loss_augmented(s, np.zeros(s.n_steps, dtype=int), **kw),
    "beam": lambda s, **kw: beam(s, 2, **kw),
    "beam_marginals": lambda s, **kw: beam_marginals(s, 2, **kw),
    "beam_pair_marginals": lambda s, **kw: beam_pair_marginals(s, 2, **kw),
}


@pytest.fixture(params=[False, True], ids=["constant", "per_step"])
def scores(request):
    rng = np.random.default_rng(11)
    return make_scores(rng, rng.integers(0, 12, size=120), 5, per_step=request.param)


@pytest.fixture
def many_blocks(monkeypatch):
    """Blocks so small that the data of a test fill dozens of them."""
    defaults = threads.block_bounds.__kwdefaults__
    monkeypatch.setitem(defaults, "block_work", 1000)


def same_bits(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_equal_serial_bit_for_bit(name, n_jobs, scores, many_blocks):
    answer = ANSWERS[name]
    assert threads.block_bounds(scores.offsets, 64).size > 10
    assert same_bits(answer(scores, n_jobs=n_jobs), answer(scores))


@pytest.mark.parametrize("name", ["viterbi", "expected_transitions", "sample"])
def test_concurrent_callers(name, scores, many_blocks):
    answer = ANSWERS[name]
    expected = answer(scores)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(answer, scores, n_jobs=2) for _ in range(12)]
        assert all(same_bits(future.result(), expected) for future in futures)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_fork(scores, many_blocks):
    """A child forked after threaded inference can itself run threaded inference."""
    expected = expected_transitions(scores, n_jobs=2)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=lambda: sender.send_bytes(
            pickle.dumps(tuple(expected_transitions(scores, n_jobs=2)))
        )
    )
    child.start()
    assert receiver.poll(60)
    assert same_bits(pickle.loads(receiver.recv_bytes()), expected)
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("name", sorted(set(ANSWERS) - {"sample", "kbest", "expected_transitions"}))
def test_batch_equals_separate_calls(name, scores):
    answer = ANSWERS[name]
    together = answer(scores)
    apart = [answer(piece) for piece in sequences_of(scores)]
    for field, joint in enumerate(together):
        assert np.array_equal(joint, np.concatenate([a[field] for a in apart]))


def test_permuted_sequences_permute_the_answer(scores):
    pieces = sequences_of(scores)
    order = np.random.default_rng(1).permutation(len(pieces))
    chosen = [pieces[i] for i in order]
    pairwise = scores.pairwise
    if scores.per_step:
        pairwise = np.concatenate([p.pairwise for p in chosen])
    offsets = np.concatenate([[0], np.cumsum([p.n_steps for p in chosen])])
    shuffled = ChainScores(
        np.concatenate([p.unary for p in chosen]), pairwise, scores.start, scores.end, offsets
    )
    before, after = expected_transitions(scores), expected_transitions(shuffled)
    assert np.array_equal(after.log_z, before.log_z[order])
    assert_allclose(after.transitions, before.transitions, rtol=1e-12)
    assert np.array_equal(viterbi(shuffled).score, viterbi(scores).score[order])


def test_weight_two_equals_a_repeated_sequence(scores):
    piece = max(sequences_of(scores), key=lambda p: p.n_steps)
    pairwise = np.concatenate([piece.pairwise] * 2) if scores.per_step else piece.pairwise
    twice = ChainScores(
        np.concatenate([piece.unary] * 2),
        pairwise,
        piece.start,
        piece.end,
        np.array([0, piece.n_steps, 2 * piece.n_steps]),
    )
    assert_allclose(
        expected_transitions(piece, [2.0]).transitions,
        expected_transitions(twice).transitions,
        rtol=1e-13,
    )


def test_constant_equals_per_step():
    rng = np.random.default_rng(12)
    constant = make_scores(rng, [6, 1, 9], 4)
    per_step = ChainScores(
        constant.unary,
        np.repeat(constant.pairwise[np.newaxis], constant.n_steps, axis=0),
        constant.start,
        constant.end,
        constant.offsets,
    )
    for name, answer in ANSWERS.items():
        for a, b in zip(answer(constant), answer(per_step), strict=True):
            assert_allclose(a, b, rtol=1e-12, atol=1e-13, err_msg=name)


def in_log_space(scores, want):
    """The log-space kernel on every sequence, even if the scaled form is exact."""
    chain = chain_arrays(scores)
    n, width = scores.n_labels, scores.n_labels
    log_z, node = np.zeros(scores.n_sequences), np.zeros((scores.n_steps, n))
    pair, transitions = np.zeros((scores.n_steps, n, n)), np.zeros((n, n))
    for i in range(scores.n_sequences):
        t0, t1 = scores.offsets[i : i + 2].tolist()
        if t0 == t1:
            continue
        log_z[i] = forward_backward_log.forward_backward_log_one(
            chain, i, 1.0, want, np.zeros((t1 - t0, width)),
            np.zeros((t1 - t0, width)), np.zeros(width), np.zeros(width), node, pair, transitions,
        )  # fmt: skip
    return log_z, node, pair, transitions


@pytest.mark.parametrize("masked", [False, True])
def test_scaled_equals_log(scores, masked):
    mask = None
    if masked:  # some labels at some steps, and some transitions from label 3
        transitions = np.ones((5, 5), dtype=bool)
        transitions[3, :3] = False
        steps = np.random.default_rng(2).random((scores.n_steps, 5)) < 0.8
        steps[:, :2] = True
        mask = Mask(steps=steps, transitions=transitions)
    log_z, node, pair, _ = in_log_space(scores.masked(mask), forward_backward.PAIR)
    result = pair_marginals(scores, mask=mask)
    assert_allclose(result.log_z, log_z, rtol=1e-13, atol=1e-13)
    assert_allclose(result.node, node, atol=1e-14)
    assert_allclose(result.pair, pair, atol=1e-14)
    transitions = in_log_space(scores.masked(mask), forward_backward.TRANSITIONS)[3]
    assert_allclose(expected_transitions(scores, mask=mask).transitions, transitions, rtol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_beam_stops_early_if_gold_is_not_kept(scores, width):
    """The result is the best prefix, or the whole labeling if gold is always kept."""
    arrays = chain_arrays(scores)
    rng = np.random.default_rng(3)
    gold = rng.integers(5, size=scores.n_steps)
    longest = int(np.diff(scores.offsets).max())
    workspace = beam_workspace(5, longest, width)
    labels = np.zeros(scores.n_steps, dtype=np.int64)
    full = beam(scores, width)
    for i in range(scores.n_sequences):
        t0, t1 = scores.offsets[i : i + 2].tolist()
        score, n_done = beam_one(*arrays[:5], t0, t1, gold, False, *workspace, labels)
        if n_done < t1 - t0:
            assert gold[t0 + n_done - 1] not in workspace[0][n_done - 1][: workspace[1][n_done - 1]]
        prefix = ChainScores(
            scores.unary[t0 : t0 + n_done],
            scores.pairwise[t0 : t0 + n_done] if scores.per_step else scores.pairwise,
            scores.start,
            scores.end if n_done == t1 - t0 else None,
        )
        if n_done:
            best = beam(prefix, width)
            assert labels[t0 : t0 + n_done].tolist() == best.labels.tolist()
            assert_allclose(score, best.score[0])
        kept, n_done = beam_one(*arrays[:5], t0, t1, full.labels, False, *workspace, labels)
        assert n_done == t1 - t0
        assert kept == full.score[i]


def test_sample_sources_of_randomness(scores):
    seeded = sample(scores, 2, random_state=5)
    assert np.array_equal(seeded, sample(scores, 2, random_state=np.random.default_rng(5)))
    legacy = sample(scores, 2, random_state=np.random.RandomState(5))
    assert np.array_equal(legacy, sample(scores, 2, random_state=np.random.RandomState(5)))
    assert sample(scores, 0).shape == (0, scores.n_steps)
    assert sample(scores, 1, None).shape == (1, scores.n_steps)
    with pytest.raises(InputError, match="random_state"):
        sample(scores, 1, random_state="seed")


def test_read_only_scores(scores):
    """Read-only arrays (memory maps, shared offsets) are accepted."""
    for name in ("unary", "pairwise", "offsets"):
        getattr(scores, name).flags.writeable = False
    assert viterbi(scores).labels.shape == (scores.n_steps,)


def test_masks_combine():
    rng = np.random.default_rng(14)
    small = make_scores(rng, [4], 3)
    mask = make_mask(rng, small)
    assert_allclose(
        log_partition(small, mask=Mask(steps=mask.steps) & Mask(transitions=mask.transitions)),
        log_partition(
            small.masked(Mask(steps=mask.steps)), mask=Mask(transitions=mask.transitions)
        ),
    )
