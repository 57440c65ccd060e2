"""Constraints on phrase sets: integer program and shortest path against exhaustive search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrase_oracle import found, phrase_sets, random_posteriors, set_cost
from seqlab.data import InputError, NoLegalLabelingError
from seqlab.inference import (
    CountLimit,
    Covered,
    LengthLimit,
    PhraseCosts,
    Requires,
    TypeOrder,
    best_phrases,
    constrained_phrases,
)
from seqlab.inference.phrases.integer_program import solve_program

TYPES = ["A", "B", "C"]


def lengths_ok(low, high, type_):
    return lambda n, phrases: all(
        low <= b - a <= high for a, b, k in phrases if type_ in (None, TYPES[k])
    )


def count(phrases, type_):
    return sum(type_ in (None, TYPES[k]) for _, _, k in phrases)


def starts(phrases, type_):
    return [a for a, _, k in phrases if TYPES[k] == type_]


# Each constraint with an independent implementation of the same condition.
RULES = [
    (LengthLimit(2, 3), lengths_ok(2, 3, None)),
    (LengthLimit(longest=1, type="B"), lengths_ok(1, 1, "B")),
    (Covered(), lambda n, phrases: sum(b - a for a, b, _ in phrases) == n),
    (
        Covered((0, -2)),
        lambda n, phrases: (
            all(any(a <= t < b for a, b, _ in phrases) for t in ({0, n - 2} if n > 1 else {0}))
            or n == 0
        ),
    ),
    (CountLimit(1), lambda n, phrases: len(phrases) <= 1),
    (CountLimit(1, type="A"), lambda n, phrases: count(phrases, "A") <= 1),
    (CountLimit(0, type="B"), lambda n, phrases: count(phrases, "B") == 0),
    (CountLimit(2, at_least=2), lambda n, phrases: len(phrases) == 2),
    (CountLimit(at_least=1, type="B"), lambda n, phrases: count(phrases, "B") >= 1),
    (
        TypeOrder(("B", "A")),
        lambda n, phrases: (
            max(starts(phrases, "B"), default=-1) < min(starts(phrases, "A"), default=99)
        ),
    ),
    (
        Requires("A", "B"),
        lambda n, phrases: count(phrases, "A") == 0 or count(phrases, "B") > 0,
    ),
    (
        Requires("A", "B", where="after"),
        lambda n, phrases: (
            max(starts(phrases, "A"), default=-1) < max(starts(phrases, "B"), default=0)
            or not starts(phrases, "A")
        ),
    ),
    (
        Requires("A", "B", where="before"),
        lambda n, phrases: (
            not starts(phrases, "A")
            or min(starts(phrases, "B"), default=99) < min(starts(phrases, "A"))
        ),
    ),
]


def costs_and_scored(kind, n_steps, n_types, seed, tau):
    opened, closed = random_posteriors(np.random.default_rng(seed), n_steps, n_types)
    threshold = np.full(n_types, tau)
    scored = [
        (set_cost(kind, opened, closed, phrases, threshold, n_types), phrases)
        for phrases in phrase_sets(n_steps, n_types)
    ]
    if kind != "map":
        opened, closed = opened[:, :n_types], closed[:, :n_types]
    return getattr(PhraseCosts, kind)(opened, closed, threshold=tau), scored


@given(
    chosen=st.lists(st.sampled_from(range(len(RULES))), min_size=1, max_size=3, unique=True),
    kind=st.sampled_from(["product", "log_odds", "map"]),
    n_steps=st.integers(0, 5),
    seed=st.integers(0, 10_000),
    tau=st.sampled_from([0.0, 0.3, -0.5]),
)
@settings(max_examples=150, deadline=None)
def test_constraints_equal_exhaustive_search(chosen, kind, n_steps, seed, tau):
    costs, scored = costs_and_scored(kind, n_steps, 2, seed, tau)
    constraints = [RULES[i][0] for i in chosen]
    legal = [
        (cost, phrases)
        for cost, phrases in scored
        if all(RULES[i][1](n_steps, phrases) for i in chosen)
    ]
    if not legal:
        with pytest.raises(NoLegalLabelingError, match="sequence 0"):
            constrained_phrases(costs, constraints, TYPES[:2])
        return
    answer = constrained_phrases(costs, constraints, TYPES[:2])
    lowest = min(cost for cost, _ in legal)
    np.testing.assert_allclose(answer.cost[0], lowest, rtol=1e-7, atol=1e-7)
    assert found(answer) in {phrases for cost, phrases in legal if cost < lowest + 1e-6}


@pytest.mark.parametrize("order", [("A", "B", "C"), ("C", "A", "B")])
def test_order_of_three_types_equals_exhaustive_search(order):
    for seed in range(6):
        costs, scored = costs_and_scored("product", 4, 3, seed, 0.0)
        rank = {TYPES.index(type_): i for i, type_ in enumerate(order)}
        legal = [
            cost
            for cost, phrases in scored
            if all(rank[p[2]] <= rank[q[2]] for p, q in itertools.pairwise(phrases))
        ]
        answer = constrained_phrases(costs, [TypeOrder(order)], TYPES)
        np.testing.assert_allclose(answer.cost[0], min(legal), atol=1e-9)


@pytest.mark.parametrize("kind", ["product", "log_odds", "map"])
def test_program_without_constraints_equals_the_shortest_path(kind):
    rng = np.random.default_rng(0)
    for n_types in (1, 3):
        for n_steps in (0, 1, 5, 20):
            opened, closed = random_posteriors(rng, n_steps, n_types)
            if kind != "map":
                opened, closed = opened[:, :n_types], closed[:, :n_types]
            costs = getattr(PhraseCosts, kind)(opened, closed, threshold=0.1)
            candidates = costs.candidates()
            chosen, cost = solve_program(candidates)
            path = best_phrases(costs)
            np.testing.assert_allclose(cost, path.cost[0], rtol=1e-9, atol=1e-9)
            phrases = sorted(
                zip(
                    candidates.start[chosen].tolist(),
                    candidates.stop[chosen].tolist(),
                    candidates.type[chosen].tolist(),
                    strict=True,
                )
            )
            assert tuple(phrases) == found(path)


def test_batch_equals_single_sequences():
    """Some sequences need the solver, some do not; each result equals that of the sequence alone."""
    rng = np.random.default_rng(2)
    lengths = [4, 0, 7, 1, 12, 3]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    opened, closed = rng.random((2, int(offsets[-1]), 2))
    costs = PhraseCosts.product(opened, closed, offsets, threshold=0.3)
    rules = [CountLimit(1, type="A"), LengthLimit(longest=4)]
    together = constrained_phrases(costs, rules, ["A", "B"])
    alone = []
    for i, begin in enumerate(offsets[:-1].tolist()):
        one = constrained_phrases(costs.sequence(i), rules, ["A", "B"])
        np.testing.assert_allclose(one.cost[0], together.cost[i])
        alone += [(a + begin, b + begin, k) for a, b, k in found(one)]
    assert tuple(alone) == found(together)
    assert (
        together.cost.sum() > best_phrases(costs.limited(longest=4)).cost.sum()
    )  # they have an effect


def test_infeasible_names_the_sequence_and_the_constraint():
    half = np.full((5, 1), 0.5)
    costs = PhraseCosts.product(half, half, [0, 4, 5])
    with pytest.raises(
        NoLegalLabelingError, match=r"sequence 1 \(1 steps\).*CountLimit\(at_most=None, at_least=2"
    ):
        constrained_phrases(costs, [CountLimit(at_least=2)])
    pruned = PhraseCosts.product(half, half, [0, 4, 5], min_probability=0.9)
    with pytest.raises(NoLegalLabelingError, match="sequence 0"):
        constrained_phrases(pruned, [CountLimit(at_least=1)])
    with pytest.raises(NoLegalLabelingError, match="sequence 0"):
        constrained_phrases(pruned, [Covered()])


def test_bad_constraints_are_named():
    costs = PhraseCosts.product(np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="names the type 'Z', but the types are 'A', 'B'"):
        constrained_phrases(costs, [CountLimit(1, type="Z")], ["A", "B"])
    with pytest.raises(InputError, match="is not a constraint on phrases"):
        constrained_phrases(costs, ["at most one"], ["A", "B"])
    with pytest.raises(InputError, match="names of types"):
        constrained_phrases(costs, [], ["A"])
    for make, words in [
        (lambda: LengthLimit(0), "shortest must be at least 1"),
        (lambda: LengthLimit(3, 2), "longest must be at least 3"),
        (lambda: LengthLimit(1.5), "must be an integer"),
        (lambda: CountLimit(-1), "at_most must be at least 0"),
        (lambda: CountLimit(1, at_least=2), "at_most must be at least 2"),
        (lambda: CountLimit(True), "must be an integer"),
        (lambda: TypeOrder(("A",)), "two or more"),
        (lambda: TypeOrder(("A", "A")), "two or more"),
        (lambda: TypeOrder("AB"), "two or more"),
        (lambda: Requires("A", "A"), "its own type"),
        (lambda: Requires("A", "B", where="near"), "where must be"),
        (lambda: Covered((0.5,)), "must be an integer"),
    ]:
        with pytest.raises(InputError, match=words):
            make()
