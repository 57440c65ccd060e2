"""From column numbers to the rows of a CSR matrix.

`EncodedSteps` holds the attributes of a chunk of steps in their original order: some have no column, some
occur more than once in a step. `assemble` drops the former, sums the latter and sorts each row, in one
compiled pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError

# Function of some bags (none of them empty), their total number of strings and an array that receives the
# columns of the strings, perhaps later; -1 means no column.
ColumnsOfBags: TypeAlias = Callable[[list[Any], int, NDArray[np.int32]], None]

# Steps looked up at a time. Their strings stay in the processor's cache if there are not more.
_STEPS_PER_LOOKUP = 1024


class EncodedSteps(NamedTuple):
    """The attributes of a chunk of steps, one step after another."""

    columns: NDArray[np.int32]  # (n_attributes,); -1: the attribute has no column
    weights: NDArray[np.float64] | None  # (n_attributes,); None: all 1
    sizes: NDArray[np.int32]  # (n_steps,): number of attributes of each step


def encode_bags(steps: list[Any], columns_of: ColumnsOfBags) -> EncodedSteps:
    """Look up the columns of some bags; TypeError if one holds something that is not a string."""
    sizes = np.fromiter(map(len, steps), np.int32, len(steps))
    columns = np.empty(int(sizes.sum(dtype=np.int64)), dtype=np.int32)
    n_done = 0
    for first in range(0, len(steps), _STEPS_PER_LOOKUP):
        span = slice(first, first + _STEPS_PER_LOOKUP)
        bags, n_strings = steps[span], int(sizes[span].sum(dtype=np.int64))
        if not sizes[span].all():
            bags = [bag for bag in bags if len(bag)]
        columns_of(bags, n_strings, columns[n_done : n_done + n_strings])
        n_done += n_strings
    return EncodedSteps(columns, None, sizes)


def assemble(chunks: list[EncodedSteps], n_features: int) -> sp.csr_matrix:
    """Build one matrix, dropping attributes without a column and summing repeated ones.

    The list is emptied and its arrays are overwritten.
    """
    from seqlab.features._kernels.step_rows import compact_rows

    columns = _join([chunk.columns for chunk in chunks], np.int32)
    sizes = _join([chunk.sizes for chunk in chunks], np.int32)
    weights = np.zeros(0)  # all 1
    if any(chunk.weights is not None for chunk in chunks):
        weights = np.concatenate(
            [
                np.ones(part.columns.size) if part.weights is None else part.weights
                for part in chunks
            ]
        )
    chunks.clear()  # frees the copied arrays before new ones are allocated
    indptr = np.zeros(sizes.size + 1, dtype=np.int64)
    stored = np.empty(columns.size)
    compact_rows(columns, weights, sizes, indptr, stored)
    n_stored = int(indptr[-1])
    if n_stored > np.iinfo(np.int32).max:
        raise InputError(f"X has {n_stored} attributes, too many for CSR int32")
    # In place, as nothing else refers to these arrays: a copy would take as long as sorting.
    columns.resize(n_stored, refcheck=False)
    stored.resize(n_stored, refcheck=False)
    matrix = sp.csr_matrix(
        (stored, columns, indptr.astype(np.int32)), shape=(sizes.size, n_features)
    )
    matrix.has_canonical_format = True
    return matrix


def select_columns(matrix: sp.csr_matrix, kept: NDArray[np.bool_]) -> sp.csr_matrix:
    """Keep some columns and renumber them in their order."""
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
