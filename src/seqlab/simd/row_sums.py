"""Sums of selected rows of a weight table, and the transposed operation.

``rows`` is an array of shape (n_rows, width), ``width`` a multiple of four; ``index[first:last]`` selects
some of its rows. A loop compiled by LLVM over 24 columns ends up in its scalar remainder, and reads and
writes the sum once per row; here the sum stays in registers, in blocks of 24, 8 and 4 columns. On text with
22 labels that halves the time of emission.

A block is one loop over the selected rows, which is limited by the latency of its additions. So sums of 28
columns are one block too, whose vectors begin at 0, 8, 16 and 20; the last two compute the same numbers for
the columns they share. With 26 labels emission then takes 0.7 times as long as with 24 and 4 columns. The
transposed operation has no such block: a read of what two stores have written has to wait for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba import njit

from seqlab.simd.builder import INT64, VectorBuilder, define, intrinsic

# Columns of a block, as (vectors, numbers in a vector).
_SHAPES = ((3, 8), (1, 8), (1, 4))
_WIDEST = (4, 8)  # its last vector ends at the last column, if not before


class _Block:
    """Some columns of the selected rows, as a few vector registers."""

    def __init__(
        self, code: VectorBuilder, n_vectors: int, first: Any, last: Any, column: Any
    ) -> None:
        self.code = code
        self.n_vectors = n_vectors
        self.first, self.last, self.column = first, last, column

    def places(self, row: Any) -> list[Any]:
        """Index of the first number of each vector in a row of the table or of ``other``."""
        build = self.code.ir
        width = build.extract_value(self.code.arrays[0].shape, 1)
        n_lanes = self.code.n_lanes
        columns = [build.add(self.column, INT64(v * n_lanes)) for v in range(self.n_vectors)]
        if (self.n_vectors, n_lanes) == _WIDEST:
            end = build.sub(width, INT64(n_lanes))
            is_inside = build.icmp_signed("<", columns[-1], end)
            columns[-1] = build.select(is_inside, columns[-1], end)
        begin = build.mul(row, width)
        return [build.add(begin, column) for column in columns]

    def loop(self) -> Any:
        """A loop over the selected rows."""
        return self.code.loop(self.code.ir.sub(self.last, self.first))

    def selected(self, loop: Any) -> tuple[Any, list[Any]]:
        """Position in ``index`` and places of the current row of a loop."""
        build = self.code.ir
        k = build.add(self.first, loop.index)
        return k, self.places(build.zext(self.code.load_scalar(1, k), INT64))

    def term(self, k: Any, vector: Any, has_values: bool) -> Any:
        """``values[k] * vector``."""
        if not has_values:
            return vector
        return self.code.multiply(self.code.broadcast(self.code.load_scalar(2, k)), vector)


def _sum(block: _Block, place: Any, has_values: bool) -> None:
    code = block.code
    sums = code.variables(block.n_vectors, 0.0)
    with block.loop() as loop:
        k, row = block.selected(loop)
        for total, index in zip(sums, row, strict=True):
            code.add_to(total, block.term(k, code.load(0, index), has_values))
    for total, index in zip(sums, block.places(place), strict=True):
        code.store(code.ir.load(total), 3, index)


def _add(block: _Block, place: Any, has_values: bool, *, of_rows: bool = False) -> None:
    code = block.code
    source = [code.load(3, index) for index in block.places(place)]
    with block.loop() as loop:
        k, places = block.selected(loop)
        at = code.ir.zext(code.load_scalar(1, k), INT64) if of_rows else k
        for vector, index in zip(source, places, strict=True):
            term = block.term(at, vector, has_values)
            code.store(code.add(code.load(0, index), term), 0, index)


def _add_scaled(block: _Block, place: Any, has_values: bool) -> None:
    _add(block, place, has_values, of_rows=True)


def _block_intrinsics(
    write: Callable[[_Block, Any, bool], None],
    has_values: bool,
    shapes: Sequence[tuple[int, int]] = _SHAPES,
) -> list[Any]:
    """One intrinsic for each shape."""

    def block_intrinsic(n_vectors: int, n_lanes: int) -> Any:
        @intrinsic
        def block(
            typing_context: Any, rows: Any, index: Any, values: Any, other: Any,
            first: Any, last: Any, place: Any, column: Any,
        ) -> Any:  # fmt: skip
            def generate(
                code: VectorBuilder, first: Any, last: Any, place: Any, column: Any
            ) -> None:
                write(_Block(code, n_vectors, first, last, column), place, has_values)

            return define(generate, (rows, index, values, other), 4, n_lanes=n_lanes)

        return block

    return [block_intrinsic(*shape) for shape in shapes]


def _over_columns(write: Callable[[_Block, Any, bool], None]) -> Any:
    wide, narrow, tail = _block_intrinsics(write, False)
    wide_valued, narrow_valued, tail_valued = _block_intrinsics(write, True)

    @njit(nogil=True, cache=True, inline="always")
    def over_columns(
        rows: Any,
        index: Any,
        values: Any,
        other: Any,
        first: int,
        last: int,
        place: int,
        column: int,
    ) -> None:
        width, is_unit = rows.shape[1], values.size == 0
        while column + 24 <= width:
            if is_unit:
                wide(rows, index, values, other, first, last, place, column)
            else:
                wide_valued(rows, index, values, other, first, last, place, column)
            column += 24
        while column + 8 <= width:
            if is_unit:
                narrow(rows, index, values, other, first, last, place, column)
            else:
                narrow_valued(rows, index, values, other, first, last, place, column)
            column += 8
        if column < width:
            if is_unit:
                tail(rows, index, values, other, first, last, place, column)
            else:
                tail_valued(rows, index, values, other, first, last, place, column)

    return over_columns


_sum_columns, _add_columns = _over_columns(_sum), _over_columns(_add)
_add_scaled_columns = _over_columns(_add_scaled)
(_widest,) = _block_intrinsics(_sum, False, (_WIDEST,))
(_widest_valued,) = _block_intrinsics(_sum, True, (_WIDEST,))


@njit(nogil=True, cache=True, inline="always")
def sum_rows(
    rows: Any, index: Any, values: Any, other: Any, first: Any, last: Any, place: Any
) -> None:
    """``other[place] = sum_k values[k] * rows[index[k]]`` for ``first <= k < last``; no values: all 1."""
    column = 0
    while column + 28 <= rows.shape[1]:
        if values.size == 0:
            _widest(rows, index, values, other, first, last, place, column)
        else:
            _widest_valued(rows, index, values, other, first, last, place, column)
        column += 32
    _sum_columns(rows, index, values, other, first, last, place, column)


@njit(nogil=True, cache=True, inline="always")
def add_to_rows(
    rows: Any, index: Any, values: Any, other: Any, first: Any, last: Any, place: Any
) -> None:
    """``rows[index[k]] += values[k] * other[place]`` for ``first <= k < last``; no values: all 1."""
    _add_columns(rows, index, values, other, first, last, place, 0)


@njit(nogil=True, cache=True, inline="always")
def add_to_scaled_rows(
    rows: Any, index: Any, factors: Any, other: Any, first: Any, last: Any, place: Any
) -> None:
    """``rows[index[k]] += factors[index[k]] * other[place]`` for ``first <= k < last``; no factors: all 1."""
    _add_scaled_columns(rows, index, factors, other, first, last, place, 0)
