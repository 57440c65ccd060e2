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


def check_keys(
    groups: Sequence[Group], tables: list[NDArray[np.int32]], vocabularies: list[Vocabulary]
) -> None:
    """Refuse keys that are no positions in the vocabularies: kernels follow them."""
    for group, keys in zip(groups, tables, strict=True):
        limits = [] if group.by_text else [len(vocabularies[view]) for view in group.views]
        if (
            keys.dtype != np.int32
            or keys.shape[1:] != (len(limits),)
            or (keys < 0).any()
            or (keys >= np.array(limits, np.int64)).any()
        ):
            raise InputError("the tables of these templates are damaged: fit them again")


def count_columns(tables: list[NDArray[np.int32]], texts: list[Vocabulary]) -> int:
    """Return the number of columns of all groups together."""
    return sum(keys.shape[0] for keys in tables) + sum(len(text) for text in texts)


class ColumnMap(NamedTuple):
    """Column of each feature number.

    Attributes
    ----------
    columns : int32 array
        The columns of the features of all groups, in their order; -1 for what is not kept.
    begins, text_begins : int64 arrays of shape (n_templates,)
        Where in `columns` the features of each template's group begin: those looked up by codes,
        numbered 0, 1, ..., and by text, numbered -2, -3, ...
    is_plain : bool
        Whether a place in `columns` is the column itself, nothing is looked up by text, and no two
        templates share a group: the features of a step then come in the order of their columns.
    """

    columns: NDArray[np.int32]
    begins: NDArray[np.int64]
    text_begins: NDArray[np.int64]
    is_plain: bool


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
    parts = [part for both in zip(rows, text_rows, strict=True) for part in both]
    ends = np.cumsum([0, *map(len, parts)])
    kept = np.concatenate([np.zeros(0, bool), *parts])
    n_members = [len(group.members) for group in groups]
    return ColumnMap(
        np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32),
        np.repeat(ends[:-1:2], n_members),
        np.repeat(ends[1::2], n_members),
        bool(kept.all()) and max(n_members, default=1) == 1 and not any(map(len, text_rows)),
    )


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
    from seqlab.features._kernels import fill_csr, fill_plain_csr

    room = sum(numbers.size for numbers in blocks)
    if room > np.iinfo(np.int32).max:
        raise InputError(
            f"{room} features in all are too many for one matrix; "
            "transform the data in several parts"
        )
    n_steps = sum(lengths)
    indptr = np.zeros(n_steps + 1, np.int32)
    indices = np.empty(room, np.int32)
    columns, begins, text_begins, is_plain = column_map
    data = np.empty(0 if is_plain else room)
    step = used = 0
    for numbers in blocks:
        next_step = step + numbers.shape[1]
        ends = indptr[step + 1 : next_step + 1]
        if is_plain:
            used = fill_plain_csr(numbers, begins, used, ends, indices)
        else:
            used = fill_csr(numbers, columns, begins, text_begins, used, ends, indices, data)
        step = next_step
    data = np.ones(used) if is_plain else data[:used]
    matrix = sp.csr_matrix((data, indices[:used], indptr), shape=(n_steps, n_columns))
    matrix.has_canonical_format = True
    return Sequences.from_checked(matrix, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
