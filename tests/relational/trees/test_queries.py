"""Answers to queries and tests of nodes, against enumeration of all substitutions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from seqlab.data import Atom, SymbolicSequences
from seqlab.learning.boosting import BinnedRows
from seqlab.relational.literals import Literal, format_conjunction
from seqlab.relational.modes import parse_modes
from seqlab.relational.trees.language import BOUND_TABLE, UNBOUND_TABLE, RelationalLanguage, State
from seqlab.relational.trees.queries import connected_part
from seqlab.relational.trees.query_set import QuerySet
from seqlab.relational.trees.windows import cover_queries, merge_windows

WINDOW = (1, 1)
BACKGROUND = [Atom("kind", f"o{k}", "even" if k % 2 == 0 else "odd") for k in range(3)]


def random_steps(seed):
    random = np.random.default_rng(seed)
    names = [f"o{k}" for k in range(4)]
    choices = [Atom("use", a) for a in names] + [
        Atom("near", a, b) for a, b in product(names[:3], repeat=2)
    ]
    steps = [[c for c in choices if random.random() < 0.15] for _ in range(13)]
    return [steps[:7], steps[7:8], steps[8:], steps[2:6]]


def holds(query, steps, t):
    """Whether some substitution makes every literal true: all of them are tried."""
    constants = ["o0", "o1", "o2", "o3"]
    variables = sorted({v for literal in query for v in literal.variables()})
    for chosen in product(constants, repeat=len(variables)):
        value = dict(zip(variables, chosen, strict=True))

        def is_true(literal, value=value):
            terms = [value[x] if isinstance(x, int) else x for x in literal.arguments]
            if literal.signature == "same/2":
                return terms[0] == terms[1]
            if literal.signature == "different/2":
                return terms[0] != terms[1]
            atom = Atom(literal.predicate, *terms)
            if literal.offset is None:
                return atom in BACKGROUND
            at = t + literal.offset
            return 0 <= at < len(steps) and atom in steps[at]

        if all(map(is_true, query)):
            return True
    return False


def prepare(X):
    matrix = SymbolicSequences.from_steps(X).to_sequences()
    atoms = [Atom.parse(name) for name in matrix.feature_names]
    return matrix, merge_windows(matrix, WINDOW, atoms, BACKGROUND)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lookahead", [False, True])
def test_tests_of_nodes_equal_enumeration(seed, lookahead):
    X = random_steps(seed)
    matrix, windows = prepare(X)
    assert windows.first.size < matrix.n_steps  # some windows are equal
    texts = ["use(+-o)", "use(#)@0", "near(-o, +-o)@-1..0", "near(+o, #)", "kind(+o, #level)"]
    modes = parse_modes([*texts, "same(+o, +o)", "different(+o, +o)"], (-1, 1))
    rows = BinnedRows.from_sequences(matrix, merge=False)
    language = RelationalLanguage(
        BinnedRows(
            rows.bins,
            windows.row_of_step,
            np.zeros(windows.first.size + 1, dtype=np.int32),
            rows.entries[:0],
            rows.list_begin,
            rows.listed_rows,
        ),
        windows.facts,
        [mode for mode in modes if not mode.is_propositional],
        lookahead=lookahead,
    )
    places = [(steps, t) for steps in X for t in range(len(steps))]
    state, n_checked = State(), 0
    random = np.random.default_rng(seed)
    for _ in range(3):
        tables = language.tables(state)
        for number in (UNBOUND_TABLE, BOUND_TABLE)[: len(tables) - 1]:
            table = tables[number]
            covered = np.zeros((windows.first.size, table.n_tests), dtype=bool)
            for row in range(windows.first.size):
                entries = table.entries[table.indptr[row] : table.indptr[row + 1]]
                covered[row, entries // 2] = True
            for test in random.permutation(table.n_tests)[:25]:
                yes = language.branch(state, number, test, is_left=False)
                part = language.describe_test(state, number, test)
                assert language.branch(state, number, test, is_left=True) == state
                in_node = [holds(state.query, steps, t) for steps, t in places]
                for row, is_in, place in zip(windows.row_of_step, in_node, places, strict=True):
                    if is_in:
                        assert covered[row, test] == holds(yes.query, *place), format_conjunction(
                            part
                        )
                        assert covered[row, test] == holds(part, *place)
                        n_checked += 1
        number = len(tables) - 1
        order = random.permutation(tables[number].n_tests)
        state = language.branch(state, number, order[0], is_left=False)
    assert n_checked > 100


def test_coverage_of_stored_queries_equals_enumeration():
    X = random_steps(5)
    _, windows = prepare(X)
    queries = [
        (Literal(0, "use", (0,)), Literal(-1, "use", (0,))),
        (Literal(0, "use", (0,)), Literal(None, "kind", (0, "odd"))),
        (Literal(0, "near", (0, 1)), Literal(None, "different", (0, 1))),
        (Literal(1, "near", (0, "o1")), Literal(1, "use", (0,)), Literal(0, "near", (0, 1))),
        (Literal(0, "use", (0,)), Literal(0, "use", (1,)), Literal(None, "same", (0, 1))),
        (Literal(0, "use", ("never",)),),
    ]
    stored = QuerySet.from_queries(queries)
    assert list(stored) == queries
    found = cover_queries(stored, windows).toarray()
    expected = [
        [holds(query, steps, t) for query in queries] for steps in X for t in range(len(steps))
    ]
    np.testing.assert_array_equal(found, expected)


def test_the_part_of_a_query_that_a_test_depends_on():
    query = (
        Literal(0, "a", (0,)),
        Literal(0, "b", (1,)),
        Literal(0, "c", (1, 2)),
        Literal(0, "d", (2,)),
    )
    assert format_conjunction(connected_part(query, 1)) == "b(A)[t] & c(A, B)[t] & d(B)[t]"
    assert format_conjunction(connected_part(query[:1], 1)) == "a(A)[t]"
