"""Rows of a CSR matrix from steps: runs of column numbers, put together.

A `Run` holds the attributes of a chunk of steps as they came: some without a column, some more than
once in a step. `assemble` drops the former, sums the latter and sorts each row, in one compiled pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError

# Columns of all strings of some bags (none empty), given their number; -1: no column.
ColumnsOfBags: TypeAlias = Callable[[list[Any], int], NDArray[np.int32]]

_BLOCK = 1024  # steps looked up at a time: their strings stay in the processor's cache


class Run(NamedTuple):
    """A chunk as one flat run of attributes."""

    columns: NDArray[np.int32]  # (n_attributes,); -1: the attribute has no column
    weights: NDArray[np.float64] | None  # (n_attributes,); None: all 1
    sizes: NDArray[np.int32]  # (n_steps,): attributes of each step


def run_of_bags(steps: list[Any], columns_of: ColumnsOfBags) -> Run:
    """Run of some bags; TypeError where one holds something that is no string."""
    sizes = np.fromiter(map(len, steps), np.int32, len(steps))
    found = []
    for first in range(0, len(steps), _BLOCK):
        block, in_block = steps[first : first + _BLOCK], sizes[first : first + _BLOCK]
        if not in_block.all():
            block = [step for step in block if len(step)]
        found.append(columns_of(block, int(in_block.sum(dtype=np.int64))))
    return Run(_join(found, np.int32), None, sizes)


def assemble(runs: list[Run], n_features: int) -> sp.csr_matrix:
    """Put the runs together, dropping what has no column and summing what is repeated.

    The list is emptied and the arrays in it are used up.
    """
    from seqlab.features._row_kernels import compact_rows

    columns = _join([run.columns for run in runs], np.int32)
    sizes = _join([run.sizes for run in runs], np.int32)
    weights = np.zeros(0)  # all 1
    if any(run.weights is not None for run in runs):
        weights = np.concatenate(
            [np.ones(run.columns.size) if run.weights is None else run.weights for run in runs]
        )
    runs.clear()  # the pieces were copied: let them go before more is made
    indptr = np.zeros(sizes.size + 1, dtype=np.int64)
    stored = np.empty(columns.size)
    compact_rows(columns, weights, sizes, indptr, stored)
    n_stored = int(indptr[-1])
    if n_stored > np.iinfo(np.int32).max:
        raise InputError(f"X has {n_stored} attributes, too many for CSR int32")
    # In place, as nobody else has seen these arrays: a copy would cost as much as sorting.
    columns.resize(n_stored, refcheck=False)
    stored.resize(n_stored, refcheck=False)
    matrix = sp.csr_matrix(
        (stored, columns, indptr.astype(np.int32)), shape=(sizes.size, n_features)
    )
    matrix.has_canonical_format = True
    return matrix


def select_columns(matrix: sp.csr_matrix, kept: NDArray[np.bool_]) -> sp.csr_matrix:
    """Keep some columns, renumbered in their order."""
    renumbered = np.full(matrix.shape[1], -1, dtype=np.int32)
    n_kept = int(kept.sum())
    renumbered[kept] = np.arange(n_kept, dtype=np.int32)
    columns = renumbered[matrix.indices]
    stored = columns >= 0
    before = np.zeros(columns.size + 1, dtype=np.int32)
    np.cumsum(stored, out=before[1:])
    return sp.csr_matrix(
        (matrix.data[stored], columns[stored], before[matrix.indptr]),
        shape=(matrix.shape[0], n_kept),
    )


def _join(parts: list[Any], dtype: Any) -> NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)
