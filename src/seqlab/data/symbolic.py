"""SymbolicSequences: the steps of sequences as sets of ground atoms.

One container for everything symbolic: the categories of an HMM (a column ``word`` with the value ``to`` is
the atom ``word(to)``), logical sequences, and the binary matrices that patterns are mined in (column
``kettle`` is the atom ``on(kettle)``). Distinct atoms are numbered in the order of first occurrence; a step
is a list of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.atoms import Atom, as_atom
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences, to_offsets

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


class AtomTable:
    """Distinct atoms, with the numbers of their predicates and constants.

    Parameters
    ----------
    atoms : iterable of Atom
        Different atoms.
    fields : iterable of str
        Further predicates with one argument, which may have no atoms.

    Attributes
    ----------
    atoms : list of Atom
    signatures : list of str
        Predicates with their number of arguments, such as ``use/1``.
    constants : list of str
    predicate : int32 array of shape (n_atoms,)
        Index in ``signatures``.
    arguments : int32 array of shape (n_atoms, n_most_arguments)
        Indices in ``constants``, then -1.

    Examples
    --------
    >>> from seqlab.data import Atom, AtomTable
    >>> table = AtomTable([Atom("use", "cup"), Atom("near", "cup", "sink")])
    >>> table.signatures, table.constants, table.arguments.tolist()
    (['use/1', 'near/2'], ['cup', 'sink'], [[0, -1], [0, 1]])
    """

    def __init__(self, atoms: Iterable[Atom], fields: Iterable[str] = ()) -> None:
        self.atoms = list(atoms)
        signatures = {f"{field}/1": at for at, field in enumerate(dict.fromkeys(fields))}
        constants: dict[str, int] = {}
        most = max((len(atom.arguments) for atom in self.atoms), default=0)
        self.predicate = np.zeros(len(self.atoms), dtype=np.int32)
        self.arguments = np.full((len(self.atoms), most), -1, dtype=np.int32)
        for at, atom in enumerate(self.atoms):
            self.predicate[at] = signatures.setdefault(atom.signature, len(signatures))
            for place, constant in enumerate(atom.arguments):
                self.arguments[at, place] = constants.setdefault(constant, len(constants))
        self.signatures, self.constants = list(signatures), list(constants)

    def __len__(self) -> int:
        return len(self.atoms)

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each atom."""
        return {atom: at for at, atom in enumerate(self.atoms)}

    def find_predicate(self, signature: str) -> NDArray[np.int64]:
        """Return the numbers of the atoms of a predicate, such as ``use/1``."""
        if signature not in self.signatures:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.predicate == self.signatures.index(signature))


class Categories(NamedTuple):
    """The values of a predicate that has at most one atom per step."""

    codes: Ints  # (n_steps,), -1 for a step without value
    values: list[str]  # in the order of first occurrence


class SymbolicSequences:
    """Sequences whose steps are sets of ground atoms.

    Parameters
    ----------
    table : AtomTable
    indptr, codes : int arrays
        The atoms of step ``t`` have the numbers ``codes[indptr[t]:indptr[t + 1]]``.
    offsets : array of shape (n_sequences + 1,)
        First step of each sequence, then the number of steps.

    Examples
    --------
    >>> from seqlab.data import SymbolicSequences
    >>> X = SymbolicSequences.from_steps([[["use(cup)", "at(sink)"], []], [[("use", "cup")]]])
    >>> len(X), X.lengths.tolist(), X.table.atoms
    (2, [2, 1], ['use(cup)', 'at(sink)'])
    >>> X[1]
    [['use(cup)']]
    >>> X.to_sequences()[0].toarray()
    array([[1., 1.],
           [0., 0.]])

    Labelers accept it as X, and scikit-learn can split it.
    """

    def __init__(self, table: AtomTable, indptr: Any, codes: Any, offsets: Any) -> None:
        self.table = table
        self.indptr = np.asarray(indptr, dtype=np.int64)
        self.codes = np.asarray(codes, dtype=np.int32)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        bounds = self.indptr
        if bounds.size == 0 or bounds[0] != 0 or bounds[-1] != self.codes.size:
            raise InputError("indptr must start at 0 and end at the number of codes")
        if np.any(np.diff(bounds) < 0) or np.any(np.diff(self.offsets) < 0):
            raise InputError("indptr and offsets must not decrease")
        if self.offsets.size == 0 or self.offsets[0] != 0 or self.offsets[-1] != bounds.size - 1:
            raise InputError("offsets must start at 0 and end at the number of steps")
        if self.codes.size and not 0 <= self.codes.min() <= self.codes.max() < len(table):
            raise InputError("codes must be numbers of atoms")

    @classmethod
    def from_steps(cls, X: Iterable[Iterable[Any]]) -> SymbolicSequences:
        """Collect sequences of steps.

        Parameters
        ----------
        X : iterable of sequences of steps
            A step is a list of atoms, each a string ``"use(cup)"``, a tuple ``("use", "cup")`` or an `Atom`;
            or a dict: ``{"use": "cup"}`` is the atom ``use(cup)``, and True the atom without arguments.
        """
        builder = SymbolicBuilder()
        for i, steps in enumerate(X):
            if isinstance(steps, str | Mapping) or not isinstance(steps, Iterable):
                raise InputError(f"X[{i}] is {steps!r}, but a sequence is a list of steps")
            for t, step in enumerate(steps):
                builder.add_step(_step_atoms(step, f"X[{i}][{t}]"))
            builder.end_sequence()
        return builder.build()

    @classmethod
    def from_sequences(
        cls, X: Sequences, names: Sequence[str] | None = None, *, predicate: str = "on"
    ) -> SymbolicSequences:
        """Read a binary matrix: a column that is not zero is an atom.

        Parameters
        ----------
        X : Sequences
        names : sequence of str, optional
            Names of the columns; by default those of X, else ``x0``, ``x1``, ... A name that is an
            atom with arguments stays one; every other name is the argument of ``predicate``.
        predicate : str, default="on"
        """
        matrix = sp.csr_matrix(X.matrix, copy=True)
        matrix.eliminate_zeros()
        if names is None and X.feature_names is not None:
            names = list(X.feature_names)
        atoms = name_atoms(names, X.n_features, predicate=predicate)
        return cls(AtomTable(atoms), matrix.indptr, matrix.indices, X.offsets)

    @property
    def n_steps(self) -> int:
        """Total number of steps."""
        return int(self.indptr.size - 1)

    @property
    def lengths(self) -> Ints:
        """Steps per sequence."""
        return np.diff(self.offsets)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_sequences, n_atoms)``."""
        return len(self), len(self.table)

    def __len__(self) -> int:
        return int(self.offsets.size - 1)

    def __iter__(self) -> Iterator[list[list[Atom]]]:
        for i in range(len(self)):
            yield self[i]

    def __getitem__(self, key: Any) -> Any:
        """One sequence (a list of lists of atoms) for an integer; `SymbolicSequences` for other keys."""
        if isinstance(key, tuple):  # scikit-learn writes X[key, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("SymbolicSequences are indexed along their first axis only")
            key = key[0]
        if isinstance(key, int | np.integer):
            index = range(len(self))[key]
            bounds = self.indptr[self.offsets[index] : self.offsets[index + 1] + 1].tolist()
            atoms = self.table.atoms
            return [[atoms[code] for code in self.codes[a:b]] for a, b in pairwise(bounds)]
        chosen = self.to_sequences()[key]
        return SymbolicSequences(
            self.table, chosen.matrix.indptr, chosen.matrix.indices, chosen.offsets
        )

    def to_sequences(self) -> Sequences:
        """Return a binary CSR matrix with one column per atom."""
        shape = (self.n_steps, len(self.table))
        ones = np.ones(self.codes.size)
        matrix = sp.csr_matrix((ones, self.codes, self.indptr), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        names = np.empty(len(self.table), dtype=object)
        names[:] = [str(atom) for atom in self.table.atoms]
        return Sequences(matrix, self.offsets, feature_names=names)

    def categories(self, field: str) -> Categories:
        """Return the values of a predicate with one argument and at most one atom per step.

        Examples
        --------
        >>> X = SymbolicSequences.from_steps([[{"word": "to"}, {"word": "be"}, {}]])
        >>> X.categories("word")
        Categories(codes=array([ 0,  1, -1]), values=['to', 'be'])
        """
        own = self.table.find_predicate(f"{field}/1")
        number = np.full(len(self.table), -1, dtype=np.int64)
        number[own] = np.arange(own.size)
        found = number[self.codes]
        entries = np.flatnonzero(found >= 0)
        steps = np.searchsorted(self.indptr, entries, side="right") - 1
        repeated = np.flatnonzero(np.diff(steps) == 0)
        if repeated.size:
            i = int(np.searchsorted(self.offsets, steps[repeated[0]], side="right") - 1)
            raise InputError(
                f"X[{i}][{steps[repeated[0]] - self.offsets[i]}] has more than one atom {field}(...)"
            )
        codes = np.full(self.n_steps, -1, dtype=np.int64)
        codes[steps] = found[entries]
        return Categories(codes, [self.table.atoms[at].arguments[0] for at in own])

    def __repr__(self) -> str:
        return (
            f"SymbolicSequences(n_sequences={len(self)}, n_steps={self.n_steps}, "
            f"n_atoms={len(self.table)})"
        )


class SymbolicBuilder:
    """Collects steps of atoms into `SymbolicSequences`."""

    def __init__(self) -> None:
        self.fields: dict[
            str, None
        ] = {}  # predicates that are known although they may have no atom
        self._index: dict[Any, int] = {}
        self._atoms: list[Atom] = []
        self._codes: list[int] = []
        self._ends = [0]
        self._lengths: list[int] = []
        self._n_before = 0

    def add_step(self, atoms: Iterable[Atom]) -> None:
        """Add a step; repeated atoms count once."""
        index = self._index
        for atom in dict.fromkeys(atoms):
            code = index.get(atom)
            if code is None:
                code = index[atom] = len(self._atoms)
                self._atoms.append(atom)
            self._codes.append(code)
        self._ends.append(len(self._codes))

    def add_categories(self, row: Mapping[str, str | None]) -> None:
        """Add a step of named values; None for a missing one."""
        index = self._index
        for field, value in row.items():
            self.fields[field] = None
            if value is None:
                continue
            code = index.get((field, value))
            if code is None:
                code = index[field, value] = len(self._atoms)
                self._atoms.append(Atom(field, value))
            self._codes.append(code)
        self._ends.append(len(self._codes))

    def end_sequence(self) -> None:
        """Mark the end of a sequence."""
        self._lengths.append(len(self._ends) - 1 - self._n_before)
        self._n_before = len(self._ends) - 1

    def build(self) -> SymbolicSequences:
        """Return the sequences."""
        table = AtomTable(self._atoms, self.fields)
        return SymbolicSequences(table, self._ends, self._codes, to_offsets(self._lengths))


def name_atoms(
    names: Iterable[str] | None, n_columns: int, *, predicate: str | None = "on"
) -> list[Atom]:
    """Return the atoms of the columns of a matrix.

    A name ``use(cup)`` is that atom, and ``word=to``, as `seqlab.SequenceVectorizer` names the values of
    dicts, is ``word(to)``; every other name is the argument of ``predicate``, or without one an atom of its
    own. Names that would give the same atom get their number.

    Examples
    --------
    >>> name_atoms(["use(cup)", "word=to", "door"], 3)
    ['use(cup)', 'word(to)', 'on(door)']
    >>> name_atoms(None, 2)
    ['on(x0)', 'on(x1)']
    """
    given = [f"x{k}" for k in range(n_columns)] if names is None else [str(name) for name in names]
    atoms: dict[Atom, None] = {}
    for k, name in enumerate(given):
        atom = _read_name(name, predicate)
        while atom in atoms:
            name += f"#{k}"
            atom = _new_atom(name, predicate)
        atoms[atom] = None
    return list(atoms)


def _read_name(name: str, predicate: str | None) -> Atom:
    if name.endswith(")"):
        try:
            return Atom.parse(name)
        except InputError:  # any string may be the name of a column
            pass
    field, mark, value = name.partition("=")
    return Atom(field, value) if mark and field else _new_atom(name, predicate)


def _new_atom(name: str, predicate: str | None) -> Atom:
    return Atom(name) if predicate is None else Atom(predicate, name)


def _step_atoms(step: Any, place: str) -> list[Atom]:
    if isinstance(step, Mapping):
        return [
            Atom(name) if value is True else as_atom((name, value), place)
            for name, value in step.items()
            if value is not None and value is not False
        ]
    if isinstance(step, str):
        return [as_atom(step, place)]
    if isinstance(step, bytes) or not isinstance(step, Iterable):
        raise InputError(f"{place} is {step!r}, but a step is a list of atoms")
    return [as_atom(value, place) for value in step]
