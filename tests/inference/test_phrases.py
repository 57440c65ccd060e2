"""Phrase sets by shortest path against exhaustive search, values computed by hand, and each other."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import count_parallel_tasks, use_small_blocks
from phrase_oracle import found, phrase_sets, random_posteriors, set_cost
from seqlab.data import InputError, NoLegalLabelingError, NumericalError, open_close_mask
from seqlab.inference import (
    ChainScores,
    Mask,
    PhraseCandidates,
    PhraseCosts,
    best_phrases,
    viterbi,
)

KINDS = ("product", "log_odds", "map")


def costs_of(kind, opened, closed, n_types, **options):
    if kind != "map":
        opened, closed = opened[:, :n_types], closed[:, :n_types]
    return getattr(PhraseCosts, kind)(opened, closed, **options)


@pytest.mark.parametrize("method", ["quadratic", "fast", "auto"])
def test_hand_example(method):
    opened, closed = np.array([[0.9], [0.2], [0.6]]), np.array([[0.3], [0.8], [0.7]])
    values = [
        best_phrases(PhraseCosts.product(opened[:n], closed[:n]), method=method).cost[0]
        for n in range(4)
    ]
    np.testing.assert_allclose(values, [0, -0.27, -0.72, -1.14], atol=1e-12)
    best = best_phrases(PhraseCosts.product(opened, closed), method=method)
    assert found(best) == ((0, 2, 0), (2, 3, 0))


def test_number_of_sets_is_every_second_fibonacci_number():
    assert [len(list(phrase_sets(n, 1))) for n in range(6)] == [1, 2, 5, 13, 34, 89]


problem = {
    "n_steps": st.integers(0, 5),
    "n_types": st.integers(1, 2),
    "seed": st.integers(0, 10_000),
    "tau": st.sampled_from([0.0, 0.2, 0.5, -0.3]),
}


@pytest.mark.parametrize("kind", KINDS)
@given(**problem)
@settings(max_examples=60, deadline=None)
def test_equals_exhaustive_search(kind, n_steps, n_types, seed, tau):
    rng = np.random.default_rng(seed)
    opened, closed = random_posteriors(rng, n_steps, n_types)
    threshold = tau * np.arange(1, n_types + 1)
    scored = [
        (set_cost(kind, opened, closed, phrases, threshold, n_types), phrases)
        for phrases in phrase_sets(n_steps, n_types)
    ]
    lowest, phrases = min(scored)
    costs = costs_of(kind, opened, closed, n_types, threshold=threshold)
    methods = ["quadratic", "auto"] + ([] if kind == "log_odds" else ["fast"])
    answers = [best_phrases(costs, method=method) for method in methods]
    answers.append(best_phrases(costs.candidates()))
    unique = sum(cost < lowest + 1e-9 for cost, _ in scored) == 1
    for answer in answers:
        np.testing.assert_allclose(answer.cost[0], lowest, rtol=1e-9, atol=1e-9)
        if unique:
            assert found(answer) == phrases


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n_steps", "n_types", "n_sets"), [(7, 1, 610), (8, 1, 1597), (7, 2, None)]
)
def test_equals_exhaustive_search_on_longer_sequences(kind, n_steps, n_types, n_sets):
    sets = list(phrase_sets(n_steps, n_types))
    assert n_sets is None or len(sets) == n_sets
    threshold = np.array([0.1, 0.15])[:n_types]
    for seed in range(3):
        opened, closed = random_posteriors(np.random.default_rng(seed), n_steps, n_types)
        lowest, phrases = min(
            (set_cost(kind, opened, closed, one, threshold, n_types), one) for one in sets
        )
        answer = best_phrases(costs_of(kind, opened, closed, n_types, threshold=threshold))
        np.testing.assert_allclose(answer.cost[0], lowest, rtol=1e-10)
        assert found(answer) == phrases


@pytest.mark.parametrize("kind", KINDS)
@given(
    **problem, shortest=st.integers(1, 2), extra=st.integers(0, 2), prune=st.sampled_from([0, 0.2])
)
@settings(max_examples=40, deadline=None)
def test_limits_and_pruning_equal_exhaustive_search(
    kind, n_steps, n_types, seed, tau, shortest, extra, prune
):
    rng = np.random.default_rng(seed)
    opened, closed = random_posteriors(rng, n_steps, n_types)
    longest = np.full(n_types, shortest + extra)
    longest[0] += 1

    def legal(phrases):
        return all(
            shortest <= stop - start <= longest[k]
            and opened[start, k] >= prune
            and closed[stop - 1, k] >= prune
            for start, stop, k in phrases
        )

    threshold = np.full(n_types, tau)
    lowest = min(
        set_cost(kind, opened, closed, phrases, threshold, n_types)
        for phrases in phrase_sets(n_steps, n_types)
        if legal(phrases)
    )
    costs = costs_of(kind, opened, closed, n_types, threshold=tau, min_probability=prune)
    costs = costs.limited(shortest, longest)
    for answer in (best_phrases(costs), best_phrases(costs.candidates())):
        np.testing.assert_allclose(answer.cost[0], lowest, rtol=1e-9, atol=1e-9)
        assert legal(found(answer))


@given(
    seed=st.integers(0, 10_000),
    n_steps=st.integers(1, 200),
    n_types=st.integers(1, 3),
    levels=st.sampled_from([None, 2, 4]),
    tau=st.sampled_from([0.0, 0.25, 0.6]),
    prune=st.sampled_from([0.0, 0.25]),
)
@settings(max_examples=150, deadline=None)
def test_envelope_equals_quadratic(seed, n_steps, n_types, levels, tau, prune):
    """With many ties (``levels``) the phrases may differ, but not their cost."""
    rng = np.random.default_rng(seed)
    opened, closed = rng.random((2, n_steps, n_types))
    if levels is not None:
        opened, closed = np.round(opened * levels) / levels, np.round(closed * levels) / levels
    costs = PhraseCosts.product(opened, closed, threshold=tau, min_probability=prune)
    quadratic = best_phrases(costs, method="quadratic")
    envelope = best_phrases(costs, method="fast")
    np.testing.assert_allclose(envelope.cost, quadratic.cost, rtol=1e-12, atol=1e-12)
    again = sum(tau - opened[a, k] * closed[b - 1, k] for a, b, k in found(envelope))
    np.testing.assert_allclose(again, quadratic.cost[0], rtol=1e-9, atol=1e-9)
    if levels is None:
        assert found(envelope) == found(quadratic)


def test_running_minimum_equals_quadratic():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n_steps, n_types = int(rng.integers(1, 60)), int(rng.integers(1, 4))
        opened, closed = random_posteriors(rng, n_steps, n_types)
        costs = PhraseCosts.map(opened, closed, threshold=0.3)
        fast, slow = best_phrases(costs, method="fast"), best_phrases(costs, method="quadratic")
        np.testing.assert_allclose(fast.cost, slow.cost, rtol=1e-12)
        assert found(fast) == found(slow)


@pytest.mark.parametrize("inside_weight", [0.0, 0.1, 0.5, 2.0])
def test_inside_weight_equals_exhaustive_search(inside_weight):
    sets = list(phrase_sets(5, 2))
    for seed in range(5):
        opened, closed = random_posteriors(np.random.default_rng(seed), 5, 2)
        lowest = min(
            set_cost("map", opened, closed, one, [0.2, 0.2], 2, inside_weight) for one in sets
        )
        costs = PhraseCosts.map(opened, closed, threshold=0.2, inside_weight=inside_weight)
        for method in ("fast", "quadratic"):
            np.testing.assert_allclose(best_phrases(costs, method=method).cost[0], lowest)


def test_map_is_viterbi_on_the_open_close_chain():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 30, size=40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    opened, closed = random_posteriors(rng, int(offsets[-1]), 1)
    legal = open_close_mask()
    unary = np.full((2 * offsets[-1], 6), -np.inf)  # O, nOi, nOo, C, nCi, nCo
    unary[0::2, :3] = np.log(opened)
    unary[1::2, 3:] = np.log(closed)
    chain = ChainScores(unary, np.zeros((6, 6)), offsets=2 * offsets)
    best = viterbi(
        chain, mask=Mask(transitions=legal.transitions, start=legal.start, end=legal.end)
    )
    ours = best_phrases(PhraseCosts.map(opened, closed, offsets))
    np.testing.assert_allclose(ours.cost, -best.score, rtol=1e-12)
    opens = np.flatnonzero(best.labels[0::2] == 0)
    closes = np.flatnonzero(best.labels[1::2] == 3) + 1
    assert np.array_equal(ours.phrases.start, opens)
    assert np.array_equal(ours.phrases.stop, closes)


def test_map_with_impossible_decisions():
    """With probabilities of 0 and 1 there is only one path, with cost 0."""
    opened = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    closed = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1.0]])
    for method in ("fast", "quadratic"):
        best = best_phrases(PhraseCosts.map(opened, closed), method=method)
        assert found(best) == ((0, 2, 0),)
        assert best.cost[0] == 0.0


def test_listed_candidates_equal_exhaustive_search():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n_steps = int(rng.integers(1, 6))
        every = [(a, b) for a in range(n_steps) for b in range(a + 1, n_steps + 1)]
        chosen = [every[i] for i in rng.permutation(len(every))[: rng.integers(0, len(every) + 1)]]
        cost = {phrase: float(rng.normal()) for phrase in chosen}
        outside = rng.normal(size=n_steps) * 0.5
        lowest = min(
            sum(cost[a, b] for a, b, _ in phrases)
            + outside.sum()
            - sum(outside[a:b].sum() for a, b, _ in phrases)
            for phrases in phrase_sets(n_steps, 1)
            if all((a, b) in cost for a, b, _ in phrases)
        )
        starts, stops = [a for a, _ in chosen], [b for _, b in chosen]
        candidates = PhraseCandidates(
            starts, stops, [0] * len(chosen), list(cost.values()), outside
        )
        np.testing.assert_allclose(best_phrases(candidates).cost[0], lowest, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_equals_single_sequences_for_any_number_of_threads(kind, monkeypatch):
    use_small_blocks(monkeypatch, 1000)
    counts = count_parallel_tasks(monkeypatch)
    rng = np.random.default_rng(1)
    lengths = [0, 3, 1, 0, 150, 7, 0, 40, 60]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    opened, closed = random_posteriors(rng, int(offsets[-1]), 2)
    costs = costs_of(kind, opened, closed, 2, offsets=offsets, threshold=0.1)
    together = best_phrases(costs)
    threads = best_phrases(costs, n_jobs=2)
    assert max(counts) > 2  # more blocks than threads
    assert np.array_equal(together.cost, threads.cost)
    assert found(together) == found(threads)
    alone = []
    for i, begin in enumerate(offsets[:-1].tolist()):
        one = best_phrases(costs.sequence(i))
        assert one.cost[0] == together.cost[i]
        alone += [(a + begin, b + begin, k) for a, b, k in found(one)]
    assert tuple(alone) == found(together)


def test_ties_go_to_the_step_outside_and_the_earliest_start():
    flat = np.full((3, 2), 0.5)
    for method in ("quadratic", "fast"):
        assert (
            found(best_phrases(PhraseCosts.product(flat, flat, threshold=0.25), method=method))
            == ()
        )
    one = PhraseCosts.product([[0.5], [0.5]], [[0.0], [1.0]])
    assert found(best_phrases(one)) == ((0, 2, 0),)
    assert found(best_phrases(one.candidates())) == ((0, 2, 0),)


def test_chosen_phrases_are_disjoint_and_sorted():
    rng = np.random.default_rng(5)
    opened, closed = rng.random((2, 500, 3))
    offsets = np.array([0, 120, 120, 300, 500])
    for prune in (0.0, 0.4):
        best = best_phrases(PhraseCosts.product(opened, closed, offsets, min_probability=prune))
        start, stop, type_ = best.phrases
        assert (start[1:] >= stop[:-1]).all()
        assert (opened[start, type_] >= prune).all()
        assert (closed[stop - 1, type_] >= prune).all()
        crossed = np.searchsorted(offsets, start, side="right") != np.searchsorted(
            offsets, stop - 1, side="right"
        )
        assert not crossed.any()


def test_a_step_that_must_be_covered():
    costs = PhraseCosts.product([[0.9], [0.1], [0.1]], [[0.9], [0.1], [0.1]], threshold=0.5)
    assert found(best_phrases(costs)) == ((0, 1, 0),)
    covered = best_phrases(costs.covering(np.array([False, False, True])))
    assert found(covered)[-1][1] == 3
    everything = best_phrases(costs.covering(np.ones(3, dtype=bool)))
    assert sum(stop - start for start, stop, _ in found(everything)) == 3
    pruned = PhraseCosts.product([[0.9], [0.1]], [[0.9], [0.1]], [0, 0, 2], min_probability=0.5)
    with pytest.raises(NoLegalLabelingError, match="sequence 1 has no legal phrase set"):
        best_phrases(pruned.covering(np.ones(2, dtype=bool)))


def test_bad_input_is_named():
    good = np.full((3, 1), 0.5)
    for value in (np.nan, -0.1, 1.5, np.inf):
        bad = good.copy()
        bad[2, 0] = value
        with pytest.raises(NumericalError, match="close_proba of sequence 1 at position 1 is"):
            PhraseCosts.product(good, bad, [0, 1, 3])
    with pytest.raises(InputError, match="same steps and types"):
        PhraseCosts.product(good, good[:2])
    with pytest.raises(InputError, match="two more"):
        PhraseCosts.map(good, good)
    with pytest.raises(InputError, match="offsets"):
        PhraseCosts.product(good, good, [0, 2])
    with pytest.raises(InputError, match="inside_weight"):
        PhraseCosts.map(np.full((2, 3), 1 / 3), np.full((2, 3), 1 / 3), inside_weight=-1.0)
    with pytest.raises(InputError, match="threshold must be finite"):
        PhraseCosts.product(good, good, threshold=np.nan)
    costs = PhraseCosts.log_odds(good, good)
    with pytest.raises(InputError, match="fast"):
        best_phrases(costs, method="fast")
    with pytest.raises(InputError, match="method"):
        best_phrases(costs, method="slow")
    with pytest.raises(InputError, match="candidate 1"):
        PhraseCandidates([0, 1], [1, 3], [0, 0], [0, 0], np.zeros(3), [0, 2, 3])
    for start in (-1, 0, 7):
        with pytest.raises(InputError, match="candidate 0"):
            PhraseCandidates([start], [start + 1], [0], [0], np.zeros(0))
    with pytest.raises(NumericalError, match=r"cost\[0\]"):
        PhraseCandidates([0], [1], [0], [np.nan], np.zeros(1))


@pytest.mark.parametrize("kind", KINDS)
def test_speed_of_a_test_set(kind):
    """47,000 tokens in sentences of 24: the best of three runs in under 0.2 s."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 47_001, 23.5).astype(np.int64)
    opened, closed = random_posteriors(rng, 47_000, 1)
    best_phrases(costs_of(kind, opened[:5], closed[:5], 1))  # compile
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        best_phrases(costs_of(kind, opened, closed, 1, offsets=offsets, threshold=0.2))
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 0.2, seconds


def test_a_very_long_sequence_uses_the_envelope():
    rng = np.random.default_rng(0)
    opened, closed = rng.random((2, 100_000, 1))
    costs = PhraseCosts.product(opened, closed, threshold=0.3)
    best_phrases(PhraseCosts.product(opened[:200], closed[:200]))  # compile
    begin = time.perf_counter()
    best = best_phrases(costs)
    assert time.perf_counter() - begin < 5.0  # all pairs would be 5e9 steps
    pairs = itertools.islice(zip(*best.phrases, strict=True), 100)
    assert all(opened[a, 0] * closed[b - 1, 0] > 0.3 for a, b, _ in pairs)
