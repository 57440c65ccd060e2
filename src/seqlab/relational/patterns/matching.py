"""Where patterns hold: bit sets over the steps, one bit per pivot.

The ground literals of an atom at distance ``d`` are the bits of the atom, shifted by ``d`` within each
sequence. A conjunction is an AND, a support an AND with a count of bits. A pattern with variables has a bit
set for each substitution that occurs; it holds where one of them does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.symbolic import SymbolicSequences
from seqlab.relational.literals import Literal, Term, number_variables
from seqlab.relational.patterns.pattern import Pattern, unify
from seqlab.utils.signals import check_signals

Bits = NDArray[np.uint64]
Bindings = dict[tuple[Term, ...], Bits]  # values of the variables 0, 1, ... -> steps


class BitColumns:
    """Bit sets of the atoms of symbolic sequences.

    Parameters
    ----------
    X : SymbolicSequences
    """

    def __init__(self, X: SymbolicSequences) -> None:
        self.n_steps, self.n_sequences = X.n_steps, len(X)
        self.atoms = X.table.atoms
        step = np.repeat(np.arange(X.n_steps), np.diff(X.indptr))
        order = np.argsort(X.codes, kind="stable")
        bounds = np.cumsum(np.bincount(X.codes, minlength=len(X.table)))[:-1]
        self._steps = np.split(step[order], bounds) if len(X.table) else []
        self._sequence = np.repeat(np.arange(len(X)), X.lengths)
        self._columns_of: dict[tuple[str, int], list[int]] = {}
        self._column_of_atom: dict[tuple[str, tuple[str, ...]], int] = {}
        for k, atom in enumerate(self.atoms):
            self._column_of_atom[atom.predicate, atom.arguments] = k
            self._columns_of.setdefault((atom.predicate, len(atom.arguments)), []).append(k)
        self._cache: dict[tuple[int, int], Bits] = {}

    def column(self, k: int, offset: int) -> Bits:
        """Return the pivots ``t`` for which atom ``k`` holds at ``t + offset``, in the same sequence."""
        bits = self._cache.get((k, offset))
        if bits is None:
            pivots = self._steps[k] - offset
            inside = (pivots >= 0) & (pivots < self.n_steps)
            at, pivots = self._steps[k][inside], pivots[inside]
            pivots = pivots[self._sequence[at] == self._sequence[pivots]]
            flags = np.zeros(-(-self.n_steps // 64) * 64, dtype=bool)
            flags[pivots] = True
            bits = np.packbits(flags, bitorder="little").view(np.uint64)
            self._cache[k, offset] = bits
        return bits

    def extend(self, bindings: Bindings, literal: Literal) -> Bindings:
        """Return the bindings of a pattern with one more literal; variables are numbered in order."""
        offset = literal.offset
        assert offset is not None  # only queries of trees have literals without a step
        out: dict[tuple[Term, ...], Bits] = {}
        columns = self._columns_of.get((literal.predicate, len(literal.arguments)), [])
        for values, bits in bindings.items():
            mapping = dict(enumerate(values))
            ground = literal.substitute(mapping)
            if not ground.variables():  # only one atom can match
                k = self._column_of_atom.get((ground.predicate, ground.arguments))  # type: ignore[arg-type]
                both = None if k is None else bits & self.column(k, offset)
                if both is not None and both.any():
                    out[values] = both
                continue
            for k in columns:
                atom = self.atoms[k]
                target = Literal(offset, atom.predicate, atom.arguments)
                extended = unify(literal, target, mapping)
                if extended is None:
                    continue
                both = bits & self.column(k, offset)
                if both.any():
                    key = tuple(extended[name] for name in range(len(extended)))
                    out[key] = both if key not in out else out[key] | both
        return out

    def everywhere(self) -> Bindings:
        """Return the binding of the empty pattern, which holds at every step."""
        flags = np.zeros(-(-self.n_steps // 64) * 64, dtype=bool)
        flags[: self.n_steps] = True
        return {(): np.packbits(flags, bitorder="little").view(np.uint64)}

    def union(self, bindings: Bindings) -> Bits:
        """Return the pivots at which some binding holds."""
        if not bindings:
            return np.zeros(-(-self.n_steps // 64), dtype=np.uint64)
        if len(bindings) == 1:
            return next(iter(bindings.values()))
        return np.bitwise_or.reduce(np.array(list(bindings.values())))

    def match(self, pattern: Pattern) -> Bits:
        """Return the pivots at which a pattern holds."""
        bindings = self.everywhere()
        for literal in number_variables(pattern):
            bindings = self.extend(bindings, literal)
        return self.union(bindings)

    def unpack(self, bits: Bits) -> NDArray[np.bool_]:
        """Return bits as a boolean array of shape (n_steps,)."""
        return np.unpackbits(bits.view(np.uint8), bitorder="little")[: self.n_steps].astype(bool)

    def count(self, bits: Bits) -> int:
        """Return the number of pivots."""
        return int(np.bitwise_count(bits).sum())

    def count_sequences(self, bits: Bits) -> int:
        """Return the number of sequences with at least one pivot."""
        return int(np.unique(self._sequence[self.unpack(bits)]).size)


def match_patterns(patterns: Sequence[Pattern], X: SymbolicSequences) -> sp.csr_matrix:
    """Return a column of zeros and ones for each pattern.

    Parameters
    ----------
    patterns : sequence of Pattern
    X : SymbolicSequences

    Returns
    -------
    CSR matrix of shape (n_steps, n_patterns)
    """
    bits = BitColumns(X)
    steps = []
    for pattern in patterns:
        check_signals()
        steps.append(np.flatnonzero(bits.unpack(bits.match(pattern))))
    indptr = np.concatenate([[0], np.cumsum([one.size for one in steps])])
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *steps])
    shape = (bits.n_steps, len(patterns))
    return sp.csc_matrix((np.ones(indices.size), indices, indptr), shape).tocsr()
