"""Pattern mining against enumeration: supports, completeness, canonical forms, budgets."""

from itertools import combinations, product

import numpy as np
import pytest

from seqlab.data import Atom
from seqlab.data.errors import InputError
from seqlab.relational.patterns import (
    Literal,
    Pattern,
    PatternBudgetWarning,
    PatternLanguage,
    match_patterns,
    mine_patterns,
)
from seqlab.relational.patterns.matching import BitColumns

ATOMS = [Atom("on", "a"), Atom("on", "b"), Atom("on", "c"), Atom("color", "a", "red")]


def make_steps(n=40, seed=0):
    random = np.random.default_rng(seed)
    matrix = (random.random((n, len(ATOMS))) < [0.5, 0.3, 0.2, 0.6]).astype(float)
    return matrix, np.array([0, 15, 16, n])


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
    language = PatternLanguage(ATOMS, window=(1, 0), modes=modes, max_variables=2)
    columns = BitColumns(matrix, offsets, ATOMS)
    mined = mine_patterns(columns, language, min_support=3, max_length=3)
    support = dict(mined)
    assert len(mined) == len(support) > 30
    for pattern, n in mined[:: 1 + len(mined) // 60]:
        assert n == count(pattern, matrix, offsets) >= 3
    for pattern, n in mined:
        for literal in pattern:
            part = pattern.without(literal)
            if part in support:
                assert support[part] >= n
    found = match_patterns(list(support), matrix, offsets, ATOMS).toarray()
    assert found.sum(axis=0).tolist() == list(support.values())


def test_finds_every_frequent_connected_pattern():
    matrix, offsets = make_steps()
    columns = BitColumns(matrix, offsets, ATOMS)
    language = PatternLanguage(ATOMS, window=(1, 1))
    mined = dict(mine_patterns(columns, language, min_support=4, max_length=3, max_patterns=10**6))
    literals = [Literal(d, a.predicate, a.arguments) for d in (-1, 0, 1) for a in ATOMS]
    expected = {}
    for size in (1, 2, 3):
        for chosen in combinations(literals, size):
            pattern = Pattern(chosen)
            n = count(pattern, matrix, offsets)
            if n >= 4 and pattern.is_connected("time"):
                expected[pattern] = n
    assert mined == expected


def test_support_of_all_steps_leaves_only_tautologies():
    matrix, offsets = make_steps()
    matrix[:, 3] = 1.0
    columns = BitColumns(matrix, offsets, ATOMS)
    mined = mine_patterns(columns, PatternLanguage(ATOMS), min_support=1.0, max_length=3)
    assert [str(one.pattern) for one in mined] == ["color(a, red)[t]"]
    matrix[5, 3] = 0.0
    columns = BitColumns(matrix, offsets, ATOMS)
    assert mine_patterns(columns, PatternLanguage(ATOMS), min_support=1.0, max_length=3) == []


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
    found = match_patterns([same], matrix, np.array([0, 6]), use).toarray()[:, 0]
    assert found.tolist() == [0, 1, 0, 0, 1, 0]


def test_says_where_the_budget_ended_the_search():
    matrix, offsets = make_steps()
    columns = BitColumns(matrix, offsets, ATOMS)
    with pytest.warns(PatternBudgetWarning, match="max_patterns=14, among the .* of 2 literal"):
        mined = mine_patterns(
            columns, PatternLanguage(ATOMS), min_support=1, max_length=3, max_patterns=14
        )
    assert len(mined) == 14
    whole = mine_patterns(columns, PatternLanguage(ATOMS), min_support=1, max_length=2)
    assert mined == whole[:14]


def test_sequences_as_the_unit_of_support():
    matrix, offsets = make_steps()
    columns = BitColumns(matrix, offsets, ATOMS)
    mined = mine_patterns(
        columns, PatternLanguage(ATOMS, window=(0, 0)), unit="sequences", min_support=2
    )
    for pattern, n in mined:
        where = [holds(pattern, matrix, offsets, t) for t in range(len(matrix))]
        assert n == sum(any(where[a:b]) for a, b in ((0, 15), (15, 16), (16, 40)))


@pytest.mark.parametrize(
    ("modes", "message"),
    [(["off(#)"], "off/1, which X does not have"), (["on(x)"], "must be # or")],
)
def test_bad_modes_are_named(modes, message):
    with pytest.raises(InputError, match=message):
        PatternLanguage(ATOMS, modes=modes)
