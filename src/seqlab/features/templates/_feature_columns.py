"""From feature numbers to the columns of a matrix.

`_feature_table` numbers the features of each group of templates. Here rare features are dropped, the
others get their columns, group by group, and the steps become rows of a CSR matrix.
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
from seqlab.features._token_columns import Codes
from seqlab.features.templates._block_reader import BlockReader
from seqlab.features.templates._feature_table import FeatureTable
from seqlab.features.templates._plan import Group


class KeptFeatures(NamedTuple):
    """The features of a table that are frequent enough."""

    group: Group
    keys: Codes  # (n_kept, n_placeholders)
    texts: Vocabulary
    kept_rows: NDArray[np.bool_]
    kept_texts: NDArray[np.bool_]


def keep_frequent(table: FeatureTable, min_count: int) -> KeptFeatures:
    """Drop the features of a table that were counted fewer than `min_count` times."""
    kept_rows = table.counts[: table.n_rows] >= min_count
    keys = np.ascontiguousarray(table.keys[: table.n_rows][kept_rows])
    kept_texts = np.array(table.text_counts, np.int64) >= min_count
    texts = [text for text, keep in zip(table.texts, kept_texts, strict=True) if keep]
    return KeptFeatures(table.group, keys, Vocabulary(texts), kept_rows, kept_texts)


def prune_vocabularies(reader: BlockReader, kept: list[KeptFeatures]) -> list[Vocabulary]:
    """Return the vocabularies of the values in use, and replace codes in the keys by positions in them."""
    vocabularies = []
    for view in range(len(reader.plan.views)):
        texts = reader.texts(view)
        used = np.zeros(len(texts), bool)
        columns = [
            features.keys[:, place]
            for features in kept
            if not features.group.by_text
            for place, own_view in enumerate(features.group.views)
            if own_view == view
        ]
        for codes in columns:
            used[codes] = True
        position = np.cumsum(used, dtype=np.int32) - np.int32(1)
        for codes in columns:
            codes[:] = position[codes]
        vocabularies.append(Vocabulary(texts[code] for code in np.flatnonzero(used).tolist()))
    return vocabularies


def check_keys(
    groups: Sequence[Group], tables: list[Codes], vocabularies: list[Vocabulary]
) -> None:
    """Check that all keys are positions in the vocabularies: kernels use them as indices."""
    for group, keys in zip(groups, tables, strict=True):
        limits = [] if group.by_text else [len(vocabularies[view]) for view in group.views]
        if (
            keys.dtype != np.int32
            or keys.shape[1:] != (len(limits),)
            or (keys < 0).any()
            or (keys >= np.array(limits, np.int64)).any()
        ):
            raise InputError("the tables of these templates are damaged: fit them again")


def feature_names(
    groups: Sequence[Group],
    tables: list[Codes],
    texts: list[Vocabulary],
    vocabularies: list[Vocabulary],
) -> NDArray[np.object_]:
    """Names of the features of all groups, in the order of their columns."""
    parts = [np.empty(0, object)]
    for group, keys, text in zip(groups, tables, texts, strict=True):
        if not group.by_text:
            names = np.full(keys.shape[0], group.literals[0], dtype=object)
            for place, view in enumerate(group.views):
                values = vocabularies[view].names[keys[:, place]]
                names = names + values + group.literals[place + 1]
            parts.append(names)
        parts.append(text.names)
    return np.concatenate(parts)


def count_columns(tables: list[Codes], texts: list[Vocabulary]) -> int:
    """Return the total number of columns of all groups."""
    return sum(keys.shape[0] for keys in tables) + sum(map(len, texts))


class ColumnMap(NamedTuple):
    """Column of each feature number.

    Attributes
    ----------
    columns : int32 array
        The columns of the features of all groups, in their order; -1 for features that are not kept.
    begins, text_begins : int64 arrays of shape (n_templates,)
        Where the features of each template's group begin in `columns`: those looked up by codes,
        numbered 0, 1, ..., and by text, numbered -2, -3, ...
    is_plain : bool
        Whether ``columns[i] == i``, no feature is looked up by text, and no two templates share a group:
        the features of a step are then found in the order of their columns.
    """

    columns: Codes
    begins: NDArray[np.int64]
    text_begins: NDArray[np.int64]
    is_plain: bool


def make_column_map(
    groups: Sequence[Group],
    kept_rows: Sequence[NDArray[np.bool_]],
    kept_texts: Sequence[NDArray[np.bool_]],
) -> ColumnMap:
    """Assign a column to each kept feature, group by group.

    Parameters
    ----------
    groups : sequence of Group
    kept_rows, kept_texts : sequences of bool arrays
        Which features of each group are kept, of those looked up by codes and by text.
    """
    parts = [part for both in zip(kept_rows, kept_texts, strict=True) for part in both]
    ends = np.cumsum([0, *map(len, parts)])
    kept = np.concatenate([np.zeros(0, bool), *parts])
    n_members = [len(group.members) for group in groups]
    return ColumnMap(
        np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32),
        np.repeat(ends[:-1:2], n_members),
        np.repeat(ends[1::2], n_members),
        bool(kept.all()) and max(n_members, default=1) == 1 and not any(map(len, kept_texts)),
    )


def assemble(
    blocks: Sequence[Codes], lengths: list[int], column_map: ColumnMap, n_columns: int
) -> Sequences:
    """Turn the feature numbers of all blocks, each (n_templates, n_steps), into one CSR matrix."""
    from seqlab.features._kernels.template_rows import fill_csr, fill_plain_csr

    room = sum(numbers.size for numbers in blocks)
    if room > np.iinfo(np.int32).max:
        raise InputError(
            f"{room} features are too many for one matrix: transform the data in several parts"
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
