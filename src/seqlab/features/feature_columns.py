"""From feature numbers to the columns of a matrix.

The tables of `seqlab.features.feature_table` number the features of each group of templates; here
the rare ones are dropped, the rest get their columns, group by group, and the steps become rows
of a CSR matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.vocabulary import Vocabulary
from seqlab.features.feature_table import BlockReader, FeatureTable
from seqlab.features.template_plan import Group


class Kept(NamedTuple):
    """What remains of a table after the cutoff."""

    group: Group
    keys: NDArray[np.int32]
    texts: Vocabulary
    rows: NDArray[np.bool_]
    text_rows: NDArray[np.bool_]


def keep_frequent(table: FeatureTable, min_count: int) -> Kept:
    """Drop the features of a table that were counted fewer times than `min_count`."""
    rows = table.counts[: table.n_rows] >= min_count
    keys = np.ascontiguousarray(table.keys[: table.n_rows][rows])
    text_rows = np.array(table.text_counts, np.int64) >= min_count
    texts = [text for text, keep in zip(table.texts, text_rows, strict=True) if keep]
    return Kept(table.group, keys, Vocabulary(texts), rows, text_rows)


def prune_vocabularies(reader: BlockReader, kept: list[Kept]) -> list[Vocabulary]:
    """Vocabularies of the values that features use; rewrites the keys to their positions."""
    vocabularies = []
    for view in range(len(reader.plan.views)):
        texts = reader.texts(view)
        used = np.zeros(len(texts), bool)
        holes = [
            (one.keys, hole)
            for one in kept
            if not one.group.by_text
            for hole, own in enumerate(one.group.views)
            if own == view
        ]
        for keys, hole in holes:
            used[keys[:, hole]] = True
        position = np.cumsum(used, dtype=np.int32) - np.int32(1)
        for keys, hole in holes:
            keys[:, hole] = position[keys[:, hole]]
        vocabularies.append(Vocabulary(texts[code] for code in np.flatnonzero(used).tolist()))
    return vocabularies


def count_columns(tables: list[NDArray[np.int32]], texts: list[Vocabulary]) -> int:
    """Return the number of columns of all groups together."""
    return sum(keys.shape[0] for keys in tables) + sum(len(text) for text in texts)


class ColumnMap(NamedTuple):
    """Column of each feature number, -1 for none.

    The numbers of one group are read from its part of `columns`. Those of features looked up by
    text are -2, -3, ..., so they are read from the end of the part, whose last entry, for the
    number -1, is -1.

    Attributes
    ----------
    columns : int32 array
        The parts of all groups.
    begins, ends : int64 arrays of shape (n_templates,)
        The part of each template's group.
    """

    columns: NDArray[np.int32]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]


def make_column_map(
    groups: Sequence[Group],
    rows: Sequence[NDArray[np.bool_]],
    text_rows: Sequence[NDArray[np.bool_]],
) -> ColumnMap:
    """Give each feature that is kept its column, group by group.

    Parameters
    ----------
    groups : sequence of Group
    rows, text_rows : sequences of bool arrays
        Which features of each group are kept, of those looked up by codes and by text.
    """
    nothing = np.array([-1], np.int32)
    parts, begins, ends = [nothing[:0]], [], []
    n_columns, size = 0, 0
    for group, by_code, by_text in zip(groups, rows, text_rows, strict=True):
        both = np.concatenate([by_code, by_text])
        columns = np.where(both, np.cumsum(both) - 1 + n_columns, -1).astype(np.int32)
        parts += [columns[: by_code.size], columns[by_code.size :][::-1], nothing]
        begins += [size] * len(group.members)
        size += both.size + 1
        ends += [size] * len(group.members)
        n_columns += int(both.sum())
    return ColumnMap(np.concatenate(parts), np.array(begins, np.int64), np.array(ends, np.int64))


def first_steps(lengths: list[int]) -> NDArray[np.bool_]:
    """Mark the first step of each sequence."""
    sizes = np.array(lengths, np.int64)
    starts = np.cumsum(sizes) - sizes
    first = np.zeros(int(sizes.sum()), bool)
    first[starts[sizes > 0]] = True
    return first


def assemble(
    blocks: Sequence[NDArray[np.int32]], lengths: list[int], column_map: ColumnMap, n_columns: int
) -> Sequences:
    """Turn the feature numbers of all blocks, each (n_templates, n_steps), into one CSR matrix."""
    from seqlab.features._kernels import fill_csr

    room = sum(numbers.size for numbers in blocks)
    if room > np.iinfo(np.int32).max:
        raise InputError(
            f"{room} features in all are too many for one matrix; "
            "transform the data in several parts"
        )
    n_steps = sum(lengths)
    indptr = np.zeros(n_steps + 1, np.int32)
    indices = np.empty(room, np.int32)
    data = np.empty(room, np.float64)
    step = used = 0
    for numbers in blocks:
        next_step = step + numbers.shape[1]
        ends = indptr[step + 1 : next_step + 1]
        used = fill_csr(numbers, *column_map, used, ends, indices, data)
        step = next_step
    matrix = sp.csr_matrix((data[:used], indices[:used], indptr), shape=(n_steps, n_columns))
    matrix.has_canonical_format = True
    return Sequences(matrix, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
