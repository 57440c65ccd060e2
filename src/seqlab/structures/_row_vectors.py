"""Vector instructions for rows of a weight table: gather-and-add, and its transpose.

``rows`` is an array (n_rows, width), ``width`` a multiple of four; ``index[first:last]`` names some of its
rows. A loop of the compiler's own over 24 columns ends up in its scalar remainder, and reads and writes the
sum once per row; here the sum stays in registers, in blocks of 24, 8 and 4 columns. On text with 22 labels
that halves the time of emission. The arrays say whether they hold doubles or single-precision numbers; sums
and products are taken in the precision of ``rows``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from seqlab.inference.kernels.vectors import convert

_INDEX = ir.IntType(64)
_CONTRACT = ("contract",)
# Columns of a block, as (vectors, numbers in a vector).
_WIDE, _NARROW, _TAIL = (3, 8), (1, 8), (1, 4)


class _Block:
    """Some columns of the named rows, as a few vector registers."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, shape: Any) -> None:
        self.builder = builder
        self.n_vectors, self.n_lanes = shape
        self.rows, self.index, self.values, self.other = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:4], args[:4], strict=True)
        )
        self.element = context.get_value_type(signature.args[0].dtype)
        self.vector = ir.VectorType(self.element, self.n_lanes)
        self.first, self.last, self.place, self.column = args[4:]

    def vectors_at(self, array: Any, row: Any) -> list[Any]:
        """Addresses of the block's vectors in a row of an array."""
        build = self.builder
        width = build.extract_value(self.rows.shape, 1)
        offset = build.add(build.mul(row, width), self.column)
        address = build.gep(array.data, [offset])
        vector = ir.VectorType(address.type.pointee, self.n_lanes)
        first = build.bitcast(address, vector.as_pointer())
        return [build.gep(first, [_INDEX(v)]) for v in range(self.n_vectors)]

    def load(self, address: Any) -> Any:
        """A vector, in the precision of the rows."""
        value = self.builder.load(address, align=_size(address.type.pointee))
        return convert(self.builder, value, self.vector)

    def store(self, value: Any, address: Any) -> None:
        target = address.type.pointee
        self.builder.store(convert(self.builder, value, target), address, align=_size(target))

    def each_named_row(self) -> Any:
        n = self.builder.sub(self.last, self.first)
        return cgutils.for_range(self.builder, n, intp=_INDEX)

    def named(self, loop: Any) -> tuple[Any, list[Any]]:
        """Position in the list, and addresses, of the row that a loop stands at."""
        build = self.builder
        k = build.add(self.first, loop.index)
        row = build.zext(build.load(build.gep(self.index.data, [k])), _INDEX)
        return k, self.vectors_at(self.rows, row)

    def spread_value(self, k: Any) -> Any:
        """``values[k]`` in every lane."""
        build = self.builder
        value = build.load(build.gep(self.values.data, [k]))
        if value.type != self.element:  # values are doubles
            value = build.fptrunc(value, self.element)
        nothing = ir.Constant(self.vector, ir.Undefined)
        first = build.insert_element(nothing, value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.n_lanes), [0] * self.n_lanes)
        return build.shuffle_vector(first, nothing, zeros)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=_CONTRACT)

    def plus(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=_CONTRACT)


def _size(vector: Any) -> int:
    """Bytes of a number in a vector."""
    return 8 if isinstance(vector.element, ir.DoubleType) else 4


def _sum(code: _Block, unit: bool) -> None:
    build = code.builder
    sums = [cgutils.alloca_once(build, code.vector) for _ in range(code.n_vectors)]
    for place in sums:
        build.store(ir.Constant(code.vector, [0.0] * code.n_lanes), place)
    with code.each_named_row() as loop:
        k, row = code.named(loop)
        factor = None if unit else code.spread_value(k)
        for place, address in zip(sums, row, strict=True):
            term = code.load(address)
            if factor is not None:
                term = code.times(factor, term)
            build.store(code.plus(build.load(place), term), place)
    for place, address in zip(sums, code.vectors_at(code.other, code.place), strict=True):
        code.store(build.load(place), address)


def _add(code: _Block, unit: bool) -> None:
    source = [code.load(address) for address in code.vectors_at(code.other, code.place)]
    with code.each_named_row() as loop:
        k, row = code.named(loop)
        factor = None if unit else code.spread_value(k)
        for vector, address in zip(source, row, strict=True):
            term = vector if factor is None else code.times(factor, vector)
            code.store(code.plus(code.load(address), term), address)


def _block(generate: Callable[[_Block, bool], None], shape: tuple[int, int], unit: bool) -> Any:
    """A numba function ``(rows, index, values, other, first, last, place, column)`` over one block."""

    @intrinsic
    def block(
        typing_context: Any, rows: Any, index: Any, values: Any, other: Any,
        first: Any, last: Any, place: Any, column: Any,
    ) -> Any:  # fmt: skip
        def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            generate(_Block(context, builder, signature, args, shape), unit)
            return context.get_dummy_value()

        return types.void(rows, index, values, other, *[types.int64] * 4), body

    return block


_sum_unit = tuple(_block(_sum, shape, True) for shape in (_WIDE, _NARROW, _TAIL))
_sum_valued = tuple(_block(_sum, shape, False) for shape in (_WIDE, _NARROW, _TAIL))
_add_unit = tuple(_block(_add, shape, True) for shape in (_WIDE, _NARROW, _TAIL))
_add_valued = tuple(_block(_add, shape, False) for shape in (_WIDE, _NARROW, _TAIL))


def _over_columns(unit_blocks: Any, valued_blocks: Any) -> Any:
    wide, narrow, tail = unit_blocks
    wide_valued, narrow_valued, tail_valued = valued_blocks

    @njit(nogil=True, cache=True, inline="always")
    def over_columns(
        rows: Any, index: Any, values: Any, other: Any, first: int, last: int, place: int
    ) -> None:
        width, unit = rows.shape[1], values.size == 0
        column = 0
        while column + 24 <= width:
            if unit:
                wide(rows, index, values, other, first, last, place, column)
            else:
                wide_valued(rows, index, values, other, first, last, place, column)
            column += 24
        while column + 8 <= width:
            if unit:
                narrow(rows, index, values, other, first, last, place, column)
            else:
                narrow_valued(rows, index, values, other, first, last, place, column)
            column += 8
        if column < width:
            if unit:
                tail(rows, index, values, other, first, last, place, column)
            else:
                tail_valued(rows, index, values, other, first, last, place, column)

    return over_columns


# ``other[place] = sum_k values[k] * rows[index[k]]`` for ``first <= k < last``; values of size 0 are all 1.
sum_rows = _over_columns(_sum_unit, _sum_valued)
# ``rows[index[k]] += values[k] * other[place]`` for ``first <= k < last``; values of size 0 are all 1.
add_to_rows = _over_columns(_add_unit, _add_valued)
