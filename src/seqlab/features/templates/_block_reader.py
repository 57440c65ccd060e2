"""Reading blocks of tokens: the code of every read of a plan at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlab.features._token_columns import Codes, ColumnCoder, TokenBlock, encode_column
from seqlab.features.templates._plan import Plan


class BlockReader:
    """Codes of every read of a plan, block by block.

    Parameters
    ----------
    plan : Plan
    known : sequence of dict of str to int
        The codes of each view that exist already; other values get new codes.
    marks : tuple of (sequence of str, sequence of str)
        Marks of the positions 1, 2, ... before and after a sequence. If empty, a template that reads
        outside the sequence has no feature there.
    """

    def __init__(
        self,
        plan: Plan,
        known: Sequence[dict[str, int]],
        marks: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        self.plan = plan
        views_of_column: dict[int, list[int]] = {}
        for v, view in enumerate(plan.views):
            views_of_column.setdefault(view.column, []).append(v)
        for read in plan.reads:
            if read.mode == "indirect":
                views_of_column.setdefault(read.row, [])
        self._flag_views = views_of_column.pop(-1, [])
        self._coders: dict[int, ColumnCoder] = {}
        self._coder_and_form: dict[int, tuple[ColumnCoder, int]] = {}
        self._marks: dict[int, tuple[Codes, Codes]] = {}
        no_mark = np.array([-1], np.int32)
        for column, views in views_of_column.items():
            forms = [plan.views[v].form for v in views]
            coder = self._coders[column] = ColumnCoder(forms, [known[v] for v in views])
            for f, v in enumerate(views):
                self._coder_and_form[v] = (coder, f)
                self._marks[v] = (no_mark, no_mark)
                if marks[0]:
                    before, after = (coder.mark_codes(f, side) for side in marks)
                    self._marks[v] = (before, after)
        self._ambiguous: dict[tuple[int, frozenset[str]], tuple[NDArray[np.bool_], bool]] = {}

    @property
    def n_values(self) -> int:
        """Number of distinct values seen so far, over all columns."""
        return sum(len(coder.values) for coder in self._coders.values())

    def texts(self, view: int) -> list[str]:
        """Text of each code of a view."""
        if view in self._flag_views:
            return [""]
        coder, form = self._coder_and_form[view]
        return coder.texts[form]

    def read(self, block: TokenBlock) -> Codes:
        """Codes at each step of a block, shape (n_reads, n_steps); -1 if there is no value."""
        from seqlab.features._kernels.template_rows import read_codes

        position = block.positions()
        remaining = np.repeat(np.array(block.lengths, np.int32) - 1, block.lengths) - position
        rows = {c: encode_column(coder, block, c) for c, coder in self._coders.items()}
        codes = {
            v: coder.codes(form, rows[self.plan.views[v].column])
            for v, (coder, form) in self._coder_and_form.items()
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

    def ambiguous_codes(self, view: int, separators: frozenset[str]) -> NDArray[np.bool_] | None:
        """Which codes of a view stand for a text with one of the separators; None if there are none."""
        texts = self.texts(view)
        flags, has_any = self._ambiguous.get((view, separators), (np.empty(0, bool), False))
        if flags.size < len(texts):
            new = [any(map(text.__contains__, separators)) for text in texts[flags.size :]]
            has_any = has_any or any(new)
            flags = np.append(flags, np.array(new, bool))
            self._ambiguous[view, separators] = flags, has_any
        return flags if has_any else None
