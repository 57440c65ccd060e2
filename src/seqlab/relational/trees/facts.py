"""Matching of queries with the atoms around steps.

A *row* is a distinct window of atoms. The answers to a query are all substitutions of its variables, for all
rows at once: arrays with a row and one constant per variable. A longer query extends the answers of its
beginning by a join with the atoms of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.atoms import Atom
from seqlab.data.symbolic import AtomTable
from seqlab.relational.literals import Literal
from seqlab.relational.modes import COMPARISONS
from seqlab.relational.trees.queries import Query

Ints = NDArray[np.int64]
# Numbers of kept answers: more save time if many queries begin alike.
MAX_CACHED_ANSWERS = 20_000_000


class Answers(NamedTuple):
    """The substitutions that satisfy a query."""

    rows: Ints  # (n_answers,), not decreasing
    values: Ints  # (n_answers, n_variables), numbers of constants


class _Facts(NamedTuple):
    """The atoms of one predicate in all rows."""

    begin: Ints  # (n_rows + 1,)
    distance: Ints  # (n_facts,)
    arguments: Ints  # (n_facts, n_places)


class WindowFacts:
    """The atoms of windows.

    Parameters
    ----------
    indptr, columns : int arrays
        CSR pattern of the windows: column ``i * n_atoms + k`` is atom ``k`` at ``distances[i]``.
    atoms : list of Atom
    distances : sequence of int
    background : iterable of Atom
        Atoms that hold at every step.
    """

    def __init__(
        self,
        indptr: Any,
        columns: Any,
        atoms: list[Atom],
        distances: Sequence[int],
        background: Iterable[Atom] = (),
    ) -> None:
        self.n_rows = len(indptr) - 1
        known = list(dict.fromkeys(background))
        self.table = AtomTable([*atoms, *known])
        self.constants = {name: code for code, name in enumerate(self.table.constants)}
        self._arguments = self.table.arguments.astype(np.int64)
        self._n_atoms = len(atoms)
        columns = np.asarray(columns, dtype=np.int64)
        self._row = np.repeat(np.arange(self.n_rows), np.diff(indptr))
        self._atom = columns % max(self._n_atoms, 1)
        self._distance = np.asarray(distances, dtype=np.int64)[columns // max(self._n_atoms, 1)]
        self._facts: dict[str, _Facts] = {}
        self._known: dict[tuple[str, int], tuple[Ints, Ints]] = {}
        self.background = {atom.signature for atom in known}
        self._answers: dict[Query, Answers] = {}
        self._n_cached = 0

    def answers(self, query: Query) -> Answers:
        """Return the answers to a query."""
        if not query:
            return Answers(np.arange(self.n_rows), np.zeros((self.n_rows, 0), dtype=np.int64))
        found = self._answers.get(query)
        if found is None:
            found = self._extend(self.answers(query[:-1]), query[-1])
            if self._n_cached > MAX_CACHED_ANSWERS:
                self._answers, self._n_cached = {}, 0
            self._n_cached += found.rows.size * (1 + found.values.shape[1])
            self._answers[query] = found
        return found

    def covered(self, query: Query) -> NDArray[np.bool_]:
        """Return for each row whether the query has an answer."""
        is_covered = np.zeros(self.n_rows, dtype=np.bool_)
        is_covered[self.answers(query).rows] = True
        return is_covered

    def join(
        self, answers: Answers, signature: str, linked: dict[int, int]
    ) -> tuple[Ints, Ints, Ints]:
        """Match answers with the atoms of a predicate.

        Parameters
        ----------
        answers : Answers
        signature : str
        linked : dict of int to int
            Places of arguments whose value must be that of a variable.

        Returns
        -------
        source : array of shape (n_matches,)
            Index of the answer.
        distance : array of shape (n_matches,)
        arguments : array of shape (n_matches, n_places)
        """
        if signature in self.background:
            # Without a link every answer matches every atom of the background.
            place = next(iter(linked), -1)
            atoms, keys = self._known_facts(signature, place)
            wanted = answers.values[:, linked[place]] if linked else np.zeros_like(answers.rows)
            begin = np.searchsorted(keys, wanted, side="left")
            count = np.searchsorted(keys, wanted, side="right") - begin
            source, at = _expand(begin, count)
            arguments = self._arguments[atoms[at]]
            distance = np.zeros(at.size, dtype=np.int64)
        else:
            facts = self._facts_of(signature)
            begin = facts.begin[answers.rows]
            source, at = _expand(begin, facts.begin[answers.rows + 1] - begin)
            arguments, distance = facts.arguments[at], facts.distance[at]
        keep = np.ones(source.size, dtype=np.bool_)
        for place, variable in linked.items():
            keep &= arguments[:, place] == answers.values[source, variable]
        return source[keep], distance[keep], arguments[keep]

    def _extend(self, answers: Answers, literal: Literal) -> Answers:
        """Return the answers that also satisfy a literal, with the values of its new variables."""
        n_old = answers.values.shape[1]
        if literal.signature in COMPARISONS and literal.signature not in self.background:
            first, second = literal.variables()
            equal = answers.values[:, first] == answers.values[:, second]
            keep = equal if literal.signature == COMPARISONS[0] else ~equal
            return Answers(answers.rows[keep], answers.values[keep])
        terms = list(enumerate(literal.arguments))
        linked = {at: term for at, term in terms if isinstance(term, int) and term < n_old}
        source, distance, arguments = self.join(answers, literal.signature, linked)
        keep = np.ones(source.size, dtype=np.bool_)
        if literal.offset is not None:
            keep = distance == literal.offset
        for at, term in terms:
            if isinstance(term, str):
                keep &= arguments[:, at] == self.constants.get(term, -2)
        source, arguments = source[keep], arguments[keep]
        new = [at for at, term in terms if isinstance(term, int) and term >= n_old]
        values = np.column_stack([answers.values[source], arguments[:, new]])
        rows = answers.rows[source]
        if not new:  # several atoms may match the same answer
            kept = np.unique(source)
            rows, values = answers.rows[kept], answers.values[kept]
        return Answers(rows, values)

    def _facts_of(self, signature: str) -> _Facts:
        found = self._facts.get(signature)
        if found is None:
            own = np.zeros(len(self.table), dtype=np.bool_)
            own[self.table.find_predicate(signature)] = True
            at = np.flatnonzero(own[self._atom])
            begin = np.searchsorted(self._row[at], np.arange(self.n_rows + 1))
            found = _Facts(begin, self._distance[at], self._arguments[self._atom[at]])
            self._facts[signature] = found
        return found

    def _known_facts(self, signature: str, place: int) -> tuple[Ints, Ints]:
        """Return the background atoms of a predicate, ordered by the argument at a place, and its values."""
        found = self._known.get((signature, place))
        if found is None:
            atoms = self.table.find_predicate(signature)
            atoms = atoms[atoms >= self._n_atoms]
            keys = self._arguments[atoms, place] if place >= 0 else np.zeros_like(atoms)
            order = np.argsort(keys, kind="stable")
            found = self._known[signature, place] = atoms[order], keys[order]
        return found


def _expand(begin: Ints, count: Ints) -> tuple[Ints, Ints]:
    """List the ranges ``begin[i]:begin[i] + count[i]``; returns ``i`` and the element of every entry."""
    source = np.repeat(np.arange(begin.size), count)
    first = np.cumsum(count) - count
    return source, np.arange(source.size) - first[source] + begin[source]
