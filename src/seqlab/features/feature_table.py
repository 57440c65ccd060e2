"""Feature tables: from codes read at each step to feature numbers.

`BlockReader` turns a block of tokens into an array of codes, one row per read of the plan.
`FeatureTable` numbers the features of one group of templates: most by their tuple of codes, in a
hash table of exact keys; the few whose text is not determined by the tuple by their text
(`seqlab.features.template_plan` says which).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.features.columns import Codes, ColumnCoder, TokenBlock, encode_column
from seqlab.features.template_plan import Group, Plan

MIN_SLOTS = 16
# Combinations of codes up to which a finished table is an array over all of them (a megabyte).
MAX_PLACES = 1 << 18


class BlockReader:
    """Codes of every read of a plan, block by block.

    Parameters
    ----------
    plan : Plan
    known : sequence of dict of str to int
        Codes of each view that exist already; values beyond them get new codes.
    marks : tuple of (sequence of str, sequence of str)
        Marks of the positions 1, 2, ... before and after a sequence; empty for none, and then a
        template that reads outside the sequence gives no feature.
    """

    def __init__(
        self,
        plan: Plan,
        known: Sequence[dict[str, int]],
        marks: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        self.plan = plan
        by_column: dict[int, list[int]] = {}
        for v, view in enumerate(plan.views):
            by_column.setdefault(view.column, []).append(v)
        for read in plan.reads:
            if read.mode == "indirect":
                by_column.setdefault(read.row, [])
        self._flag = by_column.pop(-1, [])
        self._coders: dict[int, ColumnCoder] = {}
        self._place: dict[int, tuple[ColumnCoder, int]] = {}
        self._marks: dict[int, tuple[Codes, Codes]] = {}
        nothing = np.array([-1], np.int32)
        for column, views in by_column.items():
            forms = [plan.views[v].form for v in views]
            coder = self._coders[column] = ColumnCoder(forms, [known[v] for v in views])
            for f, v in enumerate(views):
                self._place[v] = (coder, f)
                self._marks[v] = (nothing, nothing)
                if marks[0]:
                    before, after = (coder.mark_codes(f, side) for side in marks)
                    self._marks[v] = (before, after)
        self._odd: dict[tuple[int, frozenset[str]], tuple[NDArray[np.bool_], bool]] = {}

    @property
    def n_values(self) -> int:
        """Distinct values met so far, of all columns."""
        return sum(len(coder.values) for coder in self._coders.values())

    def texts(self, view: int) -> list[str]:
        """Text of each code of a view."""
        if view in self._flag:
            return [""]
        coder, form = self._place[view]
        return coder.texts[form]

    def read(self, block: TokenBlock) -> Codes:
        """Codes at each step of a block, shape (n_reads, n_steps); -1 where nothing is read."""
        from seqlab.features._kernels import read_codes

        position, remaining = _positions(block.lengths)
        rows = {c: encode_column(coder, block, c) for c, coder in self._coders.items()}
        codes = {
            v: coder.codes(form, rows[self.plan.views[v].column])
            for v, (coder, form) in self._place.items()
        }
        out = np.empty((len(self.plan.reads), position.size), np.int32)
        for r, (view, row, mode) in enumerate(self.plan.reads):
            if mode in ("first", "last"):
                out[r] = np.where((position if mode == "first" else remaining) == 0, 0, -1)
                continue
            if mode == "relative":
                target = position + np.int32(row)
            elif mode == "absolute":
                target = np.full_like(position, row - 1)
                if row < 0:
                    target = position + remaining + np.int32(row + 1)
            else:
                target = position + self._coders[row].integers(rows[row])
            before, after = self._marks[view]
            read_codes(codes[view], position, remaining, target, before, after, out[r])
        return out

    def odd_values(self, view: int, separators: frozenset[str]) -> NDArray[np.bool_] | None:
        """Which codes of a view stand for a text with one of these characters; None if none does."""
        texts = self.texts(view)
        flags, any_odd = self._odd.get((view, separators), (np.empty(0, bool), False))
        if flags.size < len(texts):
            fresh = [any(map(text.__contains__, separators)) for text in texts[flags.size :]]
            any_odd = any_odd or any(fresh)
            flags = np.append(flags, np.array(fresh, bool))
            self._odd[view, separators] = flags, any_odd
        return flags if any_odd else None


class FeatureTable:
    """Numbers of the features of one group.

    Features looked up by codes have numbers 0, 1, ...; those looked up by text -2, -3, ...; -1 is
    no feature. `seqlab.features.templates` turns both into columns.

    Parameters
    ----------
    group : Group
    keys : int32 array of shape (n_rows, n_holes), optional
        The tuples of a finished table, which has look-ups only.
    texts : dict of str to int, optional
        Features looked up by text known already.
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
        self._sizes = np.empty(0, np.int64)  # of the holes, where the table is an array over them
        self._pairs = np.empty((0, 2), np.int64)  # slots with their keys, where these are pairs
        if keys is not None and self.n_rows and width:
            self._finish()
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
        """Feature numbers of each member at each step.

        Parameters
        ----------
        codes : int32 array of shape (n_reads, n_steps)
        reader : BlockReader
            What made the codes; gives the text of each.
        skip_first : bool array of shape (n_steps,), optional
            Steps without a feature (the first of each sequence, for features of label pairs).
        out : int32 array of shape (n_members, n_steps)
            Set to the numbers, -1 where there is no feature.
        add : bool
            Whether to enter and count features met for the first time.
        """
        from seqlab.features._kernels import add_rows, find_pairs, find_places, find_rows

        for member, found in zip(self.group.members, out, strict=True):
            items = np.array(member.reads, np.int64)
            odd = self._odd_steps(codes, reader, member.reads)
            skip = odd
            if skip_first is not None:
                skip = skip_first | odd if odd.size else skip_first
                odd = odd & ~skip_first if odd.size else odd
            if self.group.by_text:
                found[:] = -1
            else:
                if add:
                    self._reserve(codes.shape[1], reader)
                    self.n_rows = add_rows(
                        codes, items, skip, self.keys, self._slots, self.counts, self.n_rows, found
                    )
                elif self._pairs.size:
                    find_pairs(codes, items, skip, self._pairs, found)
                elif self._sizes.size:
                    find_places(codes, items, skip, self._sizes, self._slots, found)
                else:
                    find_rows(codes, items, skip, self.keys, self._slots, found)
            if odd.any():
                self._look_up_texts(codes, items, odd, member.literals, reader, found, add=add)

    def _odd_steps(
        self, codes: Codes, reader: BlockReader, reads: tuple[int, ...]
    ) -> NDArray[np.bool_]:
        """Steps whose feature is looked up by text; of size 0 if there is none."""
        if self.group.by_text:
            return np.ones(codes.shape[1], bool)
        odd = np.empty(0, bool)
        if len(reads) < 2:
            return odd
        for read in reads:
            flags = reader.odd_values(reader.plan.reads[read].view, self.group.separators)
            if flags is not None:
                here = (codes[read] >= 0) & flags[codes[read]]
                odd = odd | here if odd.size else here
        return odd

    def _look_up_texts(
        self,
        codes: Codes,
        items: NDArray[np.int64],
        odd: NDArray[np.bool_],
        literals: tuple[str, ...],
        reader: BlockReader,
        found: Codes,
        *,
        add: bool,
    ) -> None:
        steps = np.flatnonzero(odd & (codes[items] >= 0).all(axis=0))
        rows = codes[np.ix_(items, steps)].T
        distinct, inverse, counts = _unique_rows(rows)
        values = [reader.texts(reader.plan.reads[item].view) for item in items]
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
        """Make room for so many new rows."""
        needed = self.n_rows + n_new
        if needed > self.keys.shape[0]:
            room = max(needed, 2 * self.n_rows)
            self.keys = _grown(self.keys, room)
            self.counts = _grown(self.counts, room)
        if self.keys.shape[1] == 1:  # an array over the codes, not a hash table
            needed = len(reader.texts(self.group.views[0])) // 2 + 1
        if 2 * needed > self._slots.size:
            self._rebuild(needed)

    def _finish(self) -> None:
        """Lay out the keys for look-ups only."""
        from seqlab.features._kernels import enter_pairs

        sizes = tuple((self.keys.max(axis=0) + 1).tolist())
        if math.prod(sizes) > MAX_PLACES and len(sizes) == 2:
            self._pairs = np.full((_power_of_two(2 * self.n_rows), 2), -1, np.int64)
            enter_pairs(self.keys, self._pairs)
            return
        if math.prod(sizes) > MAX_PLACES:
            self._rebuild(2 * self.n_rows)  # emptier than a table that grows: fewer second slots
            return
        self._sizes = np.array(sizes)
        self._slots = np.full(math.prod(sizes) + 1, -1, np.int32)
        self._slots[1 + np.ravel_multi_index(tuple(self.keys.T), sizes)] = np.arange(self.n_rows)

    def _rebuild(self, n_rows: int) -> None:
        """Make the slots anew: at most half full with so many rows, or one for each code."""
        from seqlab.features._kernels import rebuild_slots

        size = _power_of_two(2 * n_rows)
        if self.keys.shape[1] == 1 and self.n_rows:
            size = max(size, int(self.keys[: self.n_rows].max()) + 1)
        self._slots = np.full(size, -1, np.int32)
        rebuild_slots(self.keys, self.n_rows, self._slots)


def _power_of_two(size: int) -> int:
    """The smallest one that is not below ``size``, nor below `MIN_SLOTS`."""
    return 1 << max(size - 1, MIN_SLOTS - 1).bit_length()


def _grown(array: NDArray[Any], rows: int) -> NDArray[Any]:
    grown = np.zeros((rows, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


def _unique_rows(rows: Codes) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    if rows.shape[1] == 0:
        n = min(1, rows.shape[0])
        return rows[:n], np.zeros(rows.shape[0], np.int64), np.array([rows.shape[0]] * n)
    distinct, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return distinct, inverse.reshape(-1), counts


def _positions(lengths: list[int]) -> tuple[Codes, Codes]:
    sizes = np.array(lengths, np.int64)
    starts = np.cumsum(sizes) - sizes
    position = (np.arange(sizes.sum()) - np.repeat(starts, sizes)).astype(np.int32)
    remaining = np.repeat(sizes - 1, sizes).astype(np.int32) - position
    return position, remaining


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
