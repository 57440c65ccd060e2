"""From feature numbers to the columns of a matrix.

The tables of `seqlab.features.feature_table` number the features of each group of templates; here
the rare ones are dropped, the rest get their columns, group by group, and the steps become rows
of a CSR matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
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


class _CsrArrays(NamedTuple):
    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]


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


def column_maps(
    tables: list[NDArray[np.int32]], texts: list[Vocabulary], kept: list[Kept] | None = None
) -> list[NDArray[np.int32]]:
    """For each group, the column of each feature number of its table, -1 for those dropped.

    Numbers of features looked up by text are -2, -3, ..., so they are read from the end of the
    array, whose last entry, for the number -1, is -1.
    """
    maps, base = [], 0
    for g, (keys, text) in enumerate(zip(tables, texts, strict=True)):
        rows = kept[g].rows if kept else np.ones(keys.shape[0], bool)
        text_rows = kept[g].text_rows if kept else np.ones(len(text), bool)
        both = np.concatenate([rows, text_rows])
        columns = np.where(both, np.cumsum(both) - 1 + base, -1).astype(np.int32)
        by_code, by_text = columns[: rows.size], columns[rows.size :]
        maps.append(np.concatenate([by_code, by_text[::-1], np.array([-1], np.int32)]))
        base += int(both.sum())
    return maps


def to_columns(
    numbers: NDArray[np.int32], groups: list[Group], maps: list[NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Turn table numbers (n_templates, n_steps) into columns of the matrix, in place."""
    begin = 0
    for group, columns in zip(groups, maps, strict=True):
        end = begin + len(group.members)
        numbers[begin:end] = columns[numbers[begin:end]]
        begin = end
    return numbers


def _csr_arrays(columns: NDArray[np.int32]) -> _CsrArrays:
    from seqlab.features._kernels import count_entries, fill_csr

    room = count_entries(columns)
    indptr = np.empty(columns.shape[1] + 1, np.int32)
    indices = np.empty(room, np.int32)
    data = np.empty(room, np.float64)
    used = fill_csr(columns, indptr, indices, data)
    return _CsrArrays(indptr, indices[:used], data[:used])


def first_steps(lengths: list[int]) -> NDArray[np.bool_]:
    """Mark the first step of each sequence."""
    sizes = np.array(lengths, np.int64)
    starts = np.cumsum(sizes) - sizes
    first = np.zeros(int(sizes.sum()), bool)
    first[starts[sizes > 0]] = True
    return first


def assemble(blocks: Iterable[NDArray[np.int32]], lengths: list[int], n_columns: int) -> Sequences:
    """Put the columns of all blocks, each (n_templates, n_steps), into one CSR matrix.

    `lengths` is read after the blocks, which may fill it in.
    """
    parts = [_csr_arrays(columns) for columns in blocks]
    begins = np.cumsum([0, *(len(part.indices) for part in parts)]).tolist()
    if begins[-1] > np.iinfo(np.int32).max:
        raise InputError(
            f"{begins[-1]} features in all are too many for one matrix; "
            "transform the data in several parts"
        )
    indptr = np.concatenate(
        [np.zeros(1, np.int32)]
        + [part.indptr[1:] + np.int32(begin) for part, begin in zip(parts, begins, strict=False)]
    )
    indices = np.concatenate([np.empty(0, np.int32), *(part.indices for part in parts)])
    data = np.concatenate([np.empty(0), *(part.data for part in parts)])
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    matrix.has_canonical_format = True
    return Sequences(matrix, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
