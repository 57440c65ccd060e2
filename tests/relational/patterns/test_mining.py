"""Pattern mining against enumeration: supports, completeness, canonical forms, budgets."""

from itertools import combinations, product

import numpy as np
import pytest

from seqlab.data import Atom, AtomTable, Sequences, SymbolicSequences
from seqlab.data.errors import InputError
from seqlab.relational.patterns import (
    Literal,
    Pattern,
    PatternBudgetWarning,
    PatternLanguage,
    match_patterns,
    mine_patterns,
)

ATOMS = [Atom("on", "a"), Atom("on", "b"), Atom("on", "c"), Atom("color", "a", "red")]


def make_steps(n=40, seed=0):
    random = np.random.default_rng(seed)
    matrix = (random.random((n, len(ATOMS))) < [0.5, 0.3, 0.2, 0.6]).astype(float)
    return matrix, np.array([0, 15, 16, n])


def to_symbols(matrix, offsets, atoms=ATOMS):
    return SymbolicSequences.from_sequences(Sequences(matrix, offsets), atoms)


def holds(pattern, matrix, offsets, t):
    """Whether a pattern holds at a pivot: try every substitution."""
    sequence = np.searchsorted(offsets, t, side="right")
    constants = ["a", "b", "c", "red"]
    for values in product(constants, repeat=pattern.n_variables):
        for literal in pattern:
            terms = tuple(values[x] if isinstance(x, int) else x for x in literal.arguments)
            at = t + literal.offset
            inside = (
                0 <= at < len(matrix) and np.searchsorted(offsets, at, side="right") == sequence
            )
            atom = Atom(literal.predicate, *terms)
            if not inside or atom not in ATOMS or not matrix[at, ATOMS.index(atom)]:
                break
        else:
            return True
    return False


def count(pattern, matrix, offsets):
    return sum(holds(pattern, matrix, offsets, t) for t in range(len(matrix)))


@pytest.mark.parametrize("modes", [None, ["on(#)", "on(?)", "color(?, #)"]])
def test_supports_equal_a_recount_and_never_grow(modes):
    matrix, offsets = make_steps()
    language = PatternLanguage(AtomTable(ATOMS), window=(1, 0), modes=modes, max_variables=2)
    X = to_symbols(matrix, offsets)
    mined = mine_patterns(X, language, min_support=3, max_length=3)
    support = dict(mined)
    assert len(mined) == len(support) > 30
    for pattern, n in mined[:: 1 + len(mined) // 60]:
        assert n == count(pattern, matrix, offsets) >= 3
    for pattern, n in mined:
        for literal in pattern:
            part = pattern.without(literal)
            if part in support:
                assert support[part] >= n
    found = match_patterns(list(support), X).toarray()
    assert found.sum(axis=0).tolist() == list(support.values())


def test_finds_every_frequent_connected_pattern():
    matrix, offsets = make_steps()
    X = to_symbols(matrix, offsets)
    language = PatternLanguage(AtomTable(ATOMS), window=(1, 1))
    mined = dict(mine_patterns(X, language, min_support=4, max_length=3, max_patterns=10**6))
    literals = [Literal(d, a.predicate, a.arguments) for d in (-1, 0, 1) for a in ATOMS]
    expected = {}
    for size in (1, 2, 3):
        for chosen in combinations(literals, size):
            pattern = Pattern(chosen)
            n = count(pattern, matrix, offsets)
            if n >= 4 and pattern.is_connected("time"):
                expected[pattern] = n
    assert mined == expected


def test_marks_types_and_steps_of_modes_limit_the_patterns():
    matrix, offsets = make_steps()
    X = to_symbols(matrix, offsets)
    modes = ["on(-thing)@0", "on(+thing)@-1", "color(+thing, #)", "on(?other)@-1"]
    with pytest.raises(InputError, match="types 'thing' and 'other'"):
        PatternLanguage(X.table, window=(1, 0), modes=modes)
    language = PatternLanguage(X.table, window=(1, 0), modes=modes[:3], max_variables=1)
    mined = mine_patterns(X, language, min_support=1, max_length=3)
    assert {str(pattern) for pattern, _ in mined} == {
        "on(A)[t]",  # the other literals need its variable
        "on(A)[t-1] & on(A)[t]",
        "color(A, red)[t] & on(A)[t]",
        "color(A, red)[t-1] & on(A)[t]",
        "on(A)[t-1] & color(A, red)[t] & on(A)[t]",
        "color(A, red)[t-1] & color(A, red)[t] & on(A)[t]",
        "color(A, red)[t-1] & on(A)[t-1] & on(A)[t]",
    }
    assert all(n == count(pattern, matrix, offsets) for pattern, n in mined)


def test_patterns_of_any_variables_equal_enumeration():
    matrix, offsets = make_steps()
    X = to_symbols(matrix, offsets)
    language = PatternLanguage(X.table, window=(1, 0), modes=["on(?)", "color(?, #)"])
    mined = dict(mine_patterns(X, language, min_support=4, max_length=2))
    literals = [Literal(d, "on", (v,)) for d in (-1, 0) for v in (0, 1)]
    literals += [Literal(d, "color", (v, "red")) for d in (-1, 0) for v in (0, 1)]
    expected = {}
    for size in (1, 2):
        for chosen in combinations(literals, size):
            pattern = Pattern(chosen)
            n = count(pattern, matrix, offsets)
            is_valid = len(pattern) == size and pattern.is_reduced()
            if n >= 4 and is_valid and pattern.is_connected("time"):
                expected[pattern] = n
    assert mined == expected


def test_support_of_all_steps_leaves_only_tautologies():
    matrix, offsets = make_steps()
    matrix[:, 3] = 1.0
    X = to_symbols(matrix, offsets)
    mined = mine_patterns(X, PatternLanguage(AtomTable(ATOMS)), min_support=1.0, max_length=3)
    assert [str(one.pattern) for one in mined] == ["color(a, red)[t]"]
    matrix[5, 3] = 0.0
    X = to_symbols(matrix, offsets)
    assert mine_patterns(X, PatternLanguage(AtomTable(ATOMS)), min_support=1.0, max_length=3) == []


def test_canonical_forms_are_unique():
    literals = [Literal(0, "use", (0,)), Literal(-1, "near", (0, 1)), Literal(0, "use", (1,))]
    forms = set()
    for names in ((0, 1), (1, 0), (7, 3)):
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
            mapping = dict(enumerate(names))
            forms.add(Pattern(literals[k].substitute(mapping) for k in order))
    assert len(forms) == 1
    assert str(forms.pop()) == "near(A, B)[t-1] & use(A)[t] & use(B)[t]"
    assert Pattern(literals) != Pattern([literals[0], Literal(-1, "near", (0, 0)), literals[2]])


def test_subsumption_finds_redundant_literals():
    general = Pattern([Literal(0, "use", (0,))])
    special = Pattern([Literal(0, "use", ("cup",)), Literal(-1, "use", ("cup",))])
    assert general.subsumes(special)
    assert not special.subsumes(general)
    twice = Pattern([Literal(0, "use", (0,)), Literal(0, "use", ("cup",))])
    assert not twice.is_reduced()
    same = Pattern([Literal(0, "use", (0,)), Literal(-1, "use", (0,))])
    assert same.is_reduced()
    assert same.is_connected("variables")
    apart = Pattern([Literal(0, "use", ("cup",)), Literal(0, "use", ("pan",))])
    assert not apart.is_connected("time")


def test_shared_variables_mean_the_same_object():
    use = [Atom("use", name) for name in ("cup", "pan", "tea")]
    matrix = np.eye(3)[[0, 0, 1, 2, 2, 0]]
    same = Pattern([Literal(0, "use", (0,)), Literal(-1, "use", (0,))])
    found = match_patterns([same], to_symbols(matrix, [0, 6], use)).toarray()[:, 0]
    assert found.tolist() == [0, 1, 0, 0, 1, 0]


def test_says_where_the_budget_ended_the_search():
    matrix, offsets = make_steps()
    X = to_symbols(matrix, offsets)
    with pytest.warns(PatternBudgetWarning, match="max_patterns=14, among the .* of 2 literal"):
        mined = mine_patterns(
            X, PatternLanguage(AtomTable(ATOMS)), min_support=1, max_length=3, max_patterns=14
        )
    assert len(mined) == 14
    whole = mine_patterns(X, PatternLanguage(AtomTable(ATOMS)), min_support=1, max_length=2)
    assert mined == whole[:14]


def test_the_time_limit_keeps_what_was_found():
    X = to_symbols(*make_steps())
    with pytest.warns(PatternBudgetWarning, match="max_seconds=1e-09"):
        assert mine_patterns(X, PatternLanguage(X.table), max_seconds=1e-9) == []


@pytest.mark.parametrize("distinct", [False, True])
def test_any_budget_keeps_the_patterns_of_highest_support(distinct):
    matrix, offsets = make_steps()
    X = to_symbols(matrix, offsets)
    language = PatternLanguage(X.table, window=(1, 0), modes=["on(#)", "on(?)", "color(?, #)"])
    options = {"min_support": 2, "max_length": 2, "distinct": distinct}
    whole = mine_patterns(X, language, **options)
    for budget in range(1, len(whole)):
        with pytest.warns(PatternBudgetWarning):
            mined = mine_patterns(X, language, max_patterns=budget, **options)
        assert mined == whole[:budget]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "foo"}, "unit must be 'steps' or 'sequences', got 'foo'"),
        ({"min_support": -1}, "min_support must be"),
        ({"min_support": 0}, "min_support must be"),
        ({"min_support": np.nan}, "min_support must be"),
        ({"min_support": 2.5}, "min_support must be"),
        ({"max_length": 0}, "max_length must be"),
        ({"max_patterns": 1.5}, "max_patterns must be"),
        ({"X": [[["on(a)"]]]}, "X must be SymbolicSequences"),
    ],
)
def test_bad_arguments_of_the_search_are_named(options, message):
    X = to_symbols(*make_steps())
    options = {"X": X, "language": PatternLanguage(X.table), **options}
    with pytest.raises(InputError, match=message):
        mine_patterns(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link": "foo"}, "link must be 'time' or 'variables', got 'foo'"),
        ({"window": (-1, 0)}, "window must be two whole numbers"),
        ({"window": 3}, "window must be two whole numbers"),
        ({"window": (1.5, 0)}, "window must be two whole numbers"),
        ({"max_variables": 7}, "max_variables must be a whole number from 0 to 6"),
        ({"modes": ["on(?)", "same(+, +)"]}, "only RelationalBoostedCRF compares"),
    ],
)
def test_bad_languages_are_named(options, message):
    with pytest.raises(InputError, match=message):
        PatternLanguage(AtomTable(ATOMS), **options)


def test_sequences_as_the_unit_of_support():
    matrix, offsets = make_steps()
    X = to_symbols(matrix, offsets)
    mined = mine_patterns(
        X, PatternLanguage(AtomTable(ATOMS), window=(0, 0)), unit="sequences", min_support=2
    )
    for pattern, n in mined:
        where = [holds(pattern, matrix, offsets, t) for t in range(len(matrix))]
        assert n == sum(any(where[a:b]) for a, b in ((0, 15), (15, 16), (16, 40)))


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        (["off(#)"], "off/1, which X does not have"),
        (["on(x)"], "must begin with #"),
        (["on(+)"], "needs a variable of type ''"),
        (["on(-a)", "on(+-b)"], "the types 'a' and 'b'"),
        (["on(#)@-9"], "are not in the window"),
    ],
)
def test_bad_modes_are_named(modes, message):
    with pytest.raises(InputError, match=message):
        PatternLanguage(AtomTable(ATOMS), modes=modes)
