"""Windows of steps: the columns that trees test, and the atoms that queries match."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.atoms import Atom
from seqlab.data.sequences import Sequences
from seqlab.features import Window
from seqlab.learning.boosting.binned import take_rows, unique_rows
from seqlab.relational.literals import Literal, format_step
from seqlab.relational.modes import Mode
from seqlab.relational.trees.facts import WindowFacts
from seqlab.utils.signals import check_signals

Ints = NDArray[np.int64]


def list_distances(window: tuple[int, int]) -> list[int]:
    """Return the distances of the steps of a window, in the order of the columns of `Window`.

    Examples
    --------
    >>> list_distances((2, 1))
    [0, -2, -1, 1]
    """
    before, after = window
    return [0, *range(-before, 0), *range(1, after + 1)]


def select_columns(modes: list[Mode] | None, atoms: list[Atom], window: tuple[int, int]) -> Ints:
    """Return the columns of a window that may be tested on their own; all of them without modes."""
    distances, n_atoms = list_distances(window), len(atoms)
    n_columns = n_atoms * len(distances)
    n_boundary = len(distances) - 1
    if modes is None:
        return np.arange(n_columns + n_boundary)
    allowed = np.zeros((len(distances), n_atoms), dtype=np.bool_)
    for mode in modes:
        if mode.is_propositional:
            own = np.array([atom.signature == mode.signature for atom in atoms], dtype=np.bool_)
            for distance in mode.distances:
                allowed[distances.index(distance)] |= own
    boundary = np.arange(n_columns, n_columns + n_boundary)
    return np.concatenate([np.flatnonzero(allowed), boundary])


def window_columns(X: Sequences, window: tuple[int, int], columns: Ints) -> Sequences:
    """Return the chosen columns of the windows of all steps."""
    wide = Window(before=window[0], after=window[1]).fit_transform(X)
    if columns.size == wide.n_features:
        return wide
    return Sequences.from_checked(sp.csr_matrix(wide.matrix)[:, columns], X.offsets.copy())


class MergedWindows(NamedTuple):
    """The distinct windows of all steps."""

    row_of_step: NDArray[np.int32]
    first: NDArray[np.int32]  # first step of each row
    facts: WindowFacts


def merge_windows(
    X: Sequences, window: tuple[int, int], atoms: list[Atom], background: Iterable[Atom]
) -> MergedWindows:
    """Number the distinct windows of X, and collect their atoms: the columns that are not zero."""
    plain = Sequences.from_checked(sp.csr_matrix(X.matrix), X.offsets.copy())
    wide = Window(before=window[0], after=window[1]).fit_transform(plain)
    matrix = sp.csr_matrix(wide.matrix)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    row_of_step, first = unique_rows(matrix.indptr, matrix.indices, matrix.data)
    indptr, columns = take_rows(first, matrix.indptr, matrix.indices)
    distances = list_distances(window)
    is_atom = columns < len(atoms) * len(distances)  # the rest marks steps outside the sequence
    kept = np.concatenate([[0], np.cumsum(is_atom)])[indptr]
    facts = WindowFacts(kept, columns[is_atom], atoms, distances, background)
    return MergedWindows(row_of_step, first, facts)


def cover_queries(queries: Iterable[Any], windows: MergedWindows) -> sp.csr_matrix:
    """Return a binary matrix: the queries (columns) that hold at each step."""
    rows, columns, n_queries = [], [], 0
    for number, query in enumerate(queries):
        check_signals()
        covered = np.flatnonzero(windows.facts.covered(query))
        rows.append(covered)
        columns.append(np.full(covered.size, number))
        n_queries = number + 1
    shape = (windows.first.size, n_queries)
    if not n_queries:
        return sp.csr_matrix((windows.row_of_step.size, 0))
    at = np.concatenate(rows), np.concatenate(columns)
    matrix = sp.csr_matrix((np.ones(at[0].size), at), shape=shape)
    return matrix[windows.row_of_step]


def column_name(column: int, atoms: list[Atom], window: tuple[int, int]) -> str:
    """Return a column of a window as text."""
    distances = list_distances(window)
    which, k = divmod(column, max(len(atoms), 1))
    if column >= len(atoms) * len(distances):
        distance = distances[1 + column - len(atoms) * len(distances)]
        return f"outside[{format_step(distance)}]"
    atom = atoms[k]
    return str(Literal(distances[which], atom.predicate, atom.arguments))
