"""Feature tables: numbers of the features of one group of templates.

Most features are looked up by their tuple of codes, in a table of exact keys; the few whose tuple does not
determine their text are looked up by the text (`_plan` explains which).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.features._token_columns import Codes
from seqlab.features.templates._block_reader import BlockReader
from seqlab.features.templates._plan import Group

# A fitted table with at most this many combinations of codes is stored as a dense array (a megabyte).
# Larger: faster look-ups in more tables, but more memory for each.
MAX_DENSE_SLOTS = 1 << 18


class FeatureTable:
    """Numbers of the features of one group.

    Features looked up by codes have the numbers 0, 1, ...; those looked up by text -2, -3, ...; -1 means
    "no feature". `_feature_columns` turns both into columns.

    Parameters
    ----------
    group : Group
    keys : int32 array of shape (n_rows, n_placeholders), optional
        The tuples of a fitted table, to which nothing is added.
    texts : dict of str to int, optional
        The features of a fitted table that are looked up by text.
    """

    def __init__(
        self, group: Group, keys: Codes | None = None, texts: dict[str, int] | None = None
    ) -> None:
        width = 0 if group.by_text else len(group.views)
        self.group = group
        self.keys = np.empty((0, width), np.int32) if keys is None else keys
        self.n_rows = self.keys.shape[0]
        self.counts = np.zeros(self.n_rows, np.int64)
        self.texts = {} if texts is None else texts
        self.text_counts: list[int] = []
        # Number of codes per placeholder of a dense table, and slots of a table of pairs.
        self._dense_sizes, self._pair_slots = np.empty(0, np.int64), np.empty((0, 2), np.int64)
        if keys is not None and self.n_rows and width:
            self._finalize()
        else:
            self._rebuild(self.n_rows)

    def look_up(
        self,
        codes: Codes,
        reader: BlockReader,
        skip_first: NDArray[np.bool_] | None,
        out: Codes,
        *,
        add: bool,
    ) -> None:
        """Look up the feature number of each member at each step.

        Parameters
        ----------
        codes : int32 array of shape (n_reads, n_steps)
        reader : BlockReader
            The reader of the codes; gives the text of each.
        skip_first : bool array of shape (n_steps,), optional
            Steps without a feature (the first of each sequence, for features of label pairs).
        out : int32 array of shape (n_members, n_steps)
            Set to the numbers, -1 if there is no feature.
        add : bool
            Whether to add new features and to count all of them.
        """
        from seqlab.features._kernels import code_tables

        for member, found in zip(self.group.members, out, strict=True):
            reads = np.array(member.reads, np.int64)
            ambiguous = self._ambiguous_steps(codes, reader, member.reads)
            skip = ambiguous
            if skip_first is not None:
                skip = skip_first | ambiguous if ambiguous.size else skip_first
                ambiguous = ambiguous & ~skip_first if ambiguous.size else ambiguous
            if self.group.by_text:
                found[:] = -1
            elif add:
                self._reserve(codes.shape[1], reader)
                self.n_rows = code_tables.add_rows(
                    codes, reads, skip, self.keys, self._slots, self.counts, self.n_rows, found
                )
            elif self._pair_slots.size:
                code_tables.find_rows_of_pairs(codes, reads, skip, self._pair_slots, found)
            elif self._dense_sizes.size:
                code_tables.find_rows_dense(
                    codes, reads, skip, self._dense_sizes, self._slots, found
                )
            else:
                code_tables.find_rows(codes, reads, skip, self.keys, self._slots, found)
            if ambiguous.any():
                self._look_up_texts(
                    codes, reads, ambiguous, member.literals, reader, found, add=add
                )

    def _ambiguous_steps(
        self, codes: Codes, reader: BlockReader, reads: tuple[int, ...]
    ) -> NDArray[np.bool_]:
        """Steps whose feature is looked up by text; an empty array if there are none."""
        if self.group.by_text:
            return np.ones(codes.shape[1], bool)
        steps = np.empty(0, bool)
        if len(reads) < 2:
            return steps
        for read in reads:
            flags = reader.ambiguous_codes(reader.plan.reads[read].view, self.group.separators)
            if flags is not None:
                here = (codes[read] >= 0) & flags[codes[read]]
                steps = steps | here if steps.size else here
        return steps

    def _look_up_texts(
        self,
        codes: Codes,
        reads: NDArray[np.int64],
        wanted: NDArray[np.bool_],
        literals: tuple[str, ...],
        reader: BlockReader,
        found: Codes,
        *,
        add: bool,
    ) -> None:
        steps = np.flatnonzero(wanted & (codes[reads] >= 0).all(axis=0))
        rows = codes[np.ix_(reads, steps)].T
        distinct, inverse, counts = _unique_rows(rows)
        values = [reader.texts(reader.plan.reads[read].view) for read in reads]
        numbers = np.full(len(distinct), -1, np.int32)
        for n, row in enumerate(distinct.tolist()):
            text = literals[0]
            for texts, code, literal in zip(values, row, literals[1:], strict=True):
                text += texts[code] + literal
            number = self.texts.get(text)
            if number is None and add:
                number = self.texts[text] = len(self.texts)
                self.text_counts.append(0)
            if number is not None:
                numbers[n] = -2 - number
                if add:
                    self.text_counts[number] += int(counts[n])
        found[steps] = numbers[inverse]

    def _reserve(self, n_new: int, reader: BlockReader) -> None:
        """Make room for ``n_new`` more rows."""
        needed = self.n_rows + n_new
        if needed > self.keys.shape[0]:
            room = max(needed, 2 * self.n_rows)
            self.keys = _grow(self.keys, room)
            self.counts = _grow(self.counts, room)
        if self.keys.shape[1] == 1:  # an array over the codes, not a hash table
            needed = len(reader.texts(self.group.views[0])) // 2 + 1
        if 2 * needed > self._slots.size:
            self._rebuild(needed)

    def _finalize(self) -> None:
        """Choose the fastest layout for look-ups only."""
        from seqlab.features._kernels.code_tables import count_slots, fill_pair_slots

        sizes = tuple((self.keys.max(axis=0) + 1).tolist())
        if math.prod(sizes) > MAX_DENSE_SLOTS and len(sizes) == 2:
            self._pair_slots = np.full((count_slots(self.n_rows), 2), -1, np.int64)
            fill_pair_slots(self.keys, self._pair_slots)
            return
        if math.prod(sizes) > MAX_DENSE_SLOTS:
            self._rebuild(2 * self.n_rows)  # emptier than a growing table: fewer collisions
            return
        self._dense_sizes = np.array(sizes)
        self._slots = np.full(math.prod(sizes) + 1, -1, np.int32)
        self._slots[1 + np.ravel_multi_index(tuple(self.keys.T), sizes)] = np.arange(self.n_rows)

    def _rebuild(self, n_rows: int) -> None:
        """Make new slots: at most half full with ``n_rows`` rows, or one for each code."""
        from seqlab.features._kernels.code_tables import count_slots, fill_slots

        size = count_slots(n_rows)
        if self.keys.shape[1] == 1 and self.n_rows:
            size = max(size, int(self.keys[: self.n_rows].max()) + 1)
        self._slots = np.full(size, -1, np.int32)
        fill_slots(self.keys, self.n_rows, self._slots)


def _grow(array: NDArray[Any], n_rows: int) -> NDArray[Any]:
    grown = np.zeros((n_rows, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


def _unique_rows(rows: Codes) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    if rows.shape[1] == 0:
        n = min(1, rows.shape[0])
        return rows[:n], np.zeros(rows.shape[0], np.int64), np.array([rows.shape[0]] * n)
    distinct, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return distinct, inverse.reshape(-1), counts


def look_up_all(
    tables: Sequence[FeatureTable],
    codes: Codes,
    reader: BlockReader,
    skip_first: NDArray[np.bool_] | None,
    *,
    add: bool,
) -> Codes:
    """Feature numbers of all tables, shape (n_templates, n_steps); see `FeatureTable.look_up`."""
    sizes = [len(table.group.members) for table in tables]
    out = np.empty((sum(sizes), codes.shape[1]), np.int32)
    begin = 0
    for table, size in zip(tables, sizes, strict=True):
        table.look_up(codes, reader, skip_first, out[begin : begin + size], add=add)
        begin += size
    return out
