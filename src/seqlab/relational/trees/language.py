"""The tests of relational regression trees (TILDE: Blockeel & De Raedt 1998).

A node of a tree has a query: the tests on its path whose answer was yes, as far as they have variables. Its
tests extend this query by one literal that a mode declares, with *lookahead* by two. A row goes to the yes
branch if the extended query has an answer in its window. Variables of a test are visible in its yes branch
only: the no branch keeps the query of the node.

The rows that an extended query covers do not depend on gradients. They are found once per query, in the form
in which binary features are stored, and used by all trees and rounds.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.learning.boosting import BinnedRows, NodeTests
from seqlab.relational.literals import Literal
from seqlab.relational.modes import ANY, COMPARISONS, CONSTANT, NEW, OLD, Mode
from seqlab.relational.trees.facts import Answers, WindowFacts
from seqlab.relational.trees.queries import Query, connected_part
from seqlab.utils.signals import check_signals
from seqlab.utils.training_clock import training_time

Ints = NDArray[np.int64]
# Entries of kept tables (4 bytes each): with more, deep trees need not repeat their joins.
MAX_CACHED_ENTRIES = 50_000_000
COLUMN_TABLE, UNBOUND_TABLE, BOUND_TABLE = range(3)


class State(NamedTuple):
    """The query of a node, and the types of its variables."""

    query: Query = ()
    types: tuple[str, ...] = ()


class Extension(NamedTuple):
    """Literals that a test adds to a query, and the types of their new variables."""

    literals: Query
    types: tuple[str, ...]


class _Tests(NamedTuple):
    extensions: list[Extension]
    table: NodeTests


class RelationalLanguage:
    """Tests of columns, and queries that modes declare.

    Parameters
    ----------
    rows : BinnedRows
        The columns that may be tested at every node.
    facts : WindowFacts or None
        The atoms of the rows; None without modes.
    modes : list of Mode
        Those with variables.
    lookahead : bool
        Whether a test may add two literals, of which the second has a new variable of the first.
    deadline : float, default=inf
        Time, by `training_time`, after which no further tests are looked for.
    """

    def __init__(
        self,
        rows: BinnedRows,
        facts: WindowFacts | None,
        modes: list[Mode],
        *,
        lookahead: bool,
        deadline: float = math.inf,
    ) -> None:
        self.row_of_step, self.n_rows = rows.row_of_step, rows.n_rows
        self.root = State()
        self.facts, self.modes, self.lookahead = facts, modes, lookahead
        self.deadline = deadline
        self._columns = NodeTests(rows.indptr, rows.entries, rows.bins.begin, rows.bins.default)
        self._cache: dict[State, _Tests] = {}
        self._n_cached = 0
        # Found before threads share it: the tests whose variables are all new, which every node has.
        self._unbound = self._find_tests(self.root) if modes else None

    def tables(self, state: State) -> list[NodeTests]:
        """Return the tests of a node: columns, queries of new variables, extensions of its query."""
        tables = [self._columns]
        if self._unbound is not None:
            tables.append(self._unbound.table)
            if state.query:
                tables.append(self._bound(state).table)
        return tables

    def describe_test(self, state: State, table: int, test: int) -> int | Query:
        """Return the number of a column, or the part of the query that the test depends on."""
        if table == COLUMN_TABLE:
            return test
        extension = self._extension(state, table, test)
        return connected_part((*state.query, *extension.literals), len(extension.literals))

    def branch(self, state: State, table: int, test: int, *, is_left: bool) -> State:
        """Return the state of a child: the yes branch (right) has the variables of the test."""
        if table == COLUMN_TABLE or is_left:
            return state
        extension = self._extension(state, table, test)
        return State((*state.query, *extension.literals), (*state.types, *extension.types))

    def _extension(self, state: State, table: int, test: int) -> Extension:
        if table == BOUND_TABLE:
            return self._bound(state).extensions[test]
        assert self._unbound is not None
        literals, types = self._unbound.extensions[test]
        n_old = len(state.types)
        shifted = {v: v + n_old for one in literals for v in one.variables()}
        return Extension(tuple(one.substitute(shifted) for one in literals), types)

    def _bound(self, state: State) -> _Tests:
        """Return the tests that use a variable of the query."""
        found = self._cache.get(state)
        if found is None:
            found = self._find_tests(state)
            if self._n_cached > MAX_CACHED_ENTRIES:
                self._cache, self._n_cached = {}, 0
            self._n_cached += found.table.entries.size
            self._cache[state] = found
        return found

    def _find_tests(self, state: State) -> _Tests:
        wanted = set(range(len(state.types)))
        extensions, keys = self._refine(state, wanted)
        if self.lookahead:
            for extension in list(extensions):
                if training_time() >= self.deadline:
                    break
                if not extension.types:
                    continue
                n_old, types = len(state.types), (*state.types, *extension.types)
                longer = State((*state.query, *extension.literals), types)
                more, their_keys = self._refine(longer, set(range(n_old, len(types))))
                keys += their_keys
                extensions += [
                    Extension((*extension.literals, *one.literals), (*extension.types, *one.types))
                    for one in more
                ]
        return _Tests(extensions, _make_table(keys, self.n_rows))

    def _refine(self, state: State, wanted: set[int]) -> tuple[list[Extension], list[Ints]]:
        """Return the literals that extend a query, and the rows that each longer query covers.

        Each literal has one of the ``wanted`` variables, or only new ones if the query is empty.
        """
        assert self.facts is not None
        answers = self.facts.answers(state.query)
        extensions: list[Extension] = []
        covered: list[Ints] = []
        for mode in self.modes:
            check_signals()
            if training_time() >= self.deadline:
                break
            if mode.signature in COMPARISONS and mode.signature not in self.facts.background:
                first, second = mode.places
                for a, b in combinations(range(len(state.types)), 2):
                    types = {first.type, second.type}
                    if wanted & {a, b} and types == {state.types[a], state.types[b]}:
                        literal = Literal(None, mode.predicate, (a, b))
                        extensions.append(Extension((literal,), ()))
                        covered.append(self._covered_by(state.query, literal))
                continue
            for linked in _assign_variables(mode, state.types):
                if linked and not wanted & set(linked.values()):
                    continue
                is_known = mode.signature in self.facts.background
                if (not linked and state.query) or (not linked and is_known):
                    continue
                check_signals()
                for literal, rows in self._match(answers, mode, linked, len(state.types)):
                    new = [p.type for at, p in enumerate(mode.places) if _is_new(at, p, linked)]
                    extensions.append(Extension((literal,), tuple(new)))
                    covered.append(rows)
        return extensions, covered

    def _covered_by(self, query: Query, literal: Literal) -> Ints:
        assert self.facts is not None
        return np.flatnonzero(self.facts.covered((*query, literal)))

    def _match(
        self, answers: Answers, mode: Mode, linked: dict[int, int], n_old: int
    ) -> list[tuple[Literal, Ints]]:
        """Return the literals of a mode, for all constants and distances, with the rows they cover."""
        facts = self.facts
        assert facts is not None
        source, distance, arguments = facts.join(answers, mode.signature, linked)
        is_known = mode.signature in facts.background
        if not is_known:
            inside = np.isin(distance, mode.distances)
            source, distance, arguments = source[inside], distance[inside], arguments[inside]
        if not source.size:
            return []
        constant_places = [at for at, p in enumerate(mode.places) if p.mark == CONSTANT]
        choices = np.column_stack([distance, arguments[:, constant_places]])
        distinct, which = np.unique(choices, axis=0, return_inverse=True)
        pairs = np.unique(which.ravel() * facts.n_rows + answers.rows[source])
        bounds = np.searchsorted(pairs, np.arange(1, len(distinct)) * facts.n_rows)
        found = []
        for choice, part in zip(distinct.tolist(), np.split(pairs, bounds), strict=True):
            constants, number = iter(choice[1:]), n_old
            terms: list[Any] = []
            for at in range(len(mode.places)):
                if at in linked:
                    terms.append(linked[at])
                elif at in constant_places:
                    terms.append(facts.table.constants[next(constants)])
                else:
                    terms.append(number)
                    number += 1
            literal = Literal(None if is_known else choice[0], mode.predicate, tuple(terms))
            found.append((literal, part % facts.n_rows))
        return found


def _is_new(at: int, place: Any, linked: dict[int, int]) -> bool:
    return place.mark != CONSTANT and at not in linked


def _assign_variables(mode: Mode, types: tuple[str, ...]) -> list[dict[int, int]]:
    """Return all ways to put variables of a query into the places of a mode; other places are new."""
    choices: list[list[int | None]] = []
    for place in mode.places:
        fitting = [v for v, type_ in enumerate(types) if type_ == place.type]
        old: list[int | None] = list(fitting) if place.mark in (OLD, ANY) else []
        choices.append([*old, None] if place.mark in (NEW, ANY, CONSTANT) else old)
    return [{at: v for at, v in enumerate(chosen) if v is not None} for chosen in product(*choices)]


def _make_table(covered: list[Ints], n_rows: int) -> NodeTests:
    """Return binary tests, given the rows of each."""
    n_tests = len(covered)
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *covered])
    tests = np.repeat(np.arange(n_tests), [part.size for part in covered])
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    return NodeTests(
        indptr.astype(np.int32),
        (2 * tests[order] + 1).astype(np.int32),
        np.arange(0, 2 * n_tests + 1, 2, dtype=np.int32),
        np.arange(0, 2 * n_tests, 2, dtype=np.int32),
    )
