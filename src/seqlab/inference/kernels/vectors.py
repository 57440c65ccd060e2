"""Vector instructions for eight chains side by side.

The compiler does not find these by itself: a loop over eight lanes is unrolled to scalars. Each function is
one loop in LLVM's own terms, over arrays of shape (n_rows, `LANES`) whose rows are one vector register.
Products and sums may contract to fused multiply-adds; nothing is reassociated. The arrays say whether they
hold doubles or single-precision numbers; what is stored is converted to what the target holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
# Rows of a matrix that are multiplied at a time: enough independent sums to hide latency. Their number is a
# multiple of `ROWS`; twice as many, while there are, spare single precision half the reads of the vector.
ROWS = 4

_INDEX = ir.IntType(64)
_CONTRACT = ("contract",)


class LaneBuilder:
    """A few words of LLVM: loads, stores and arithmetic on rows of lanes."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        pairs = zip(signature.args, args, strict=False)
        arrays = [(kind, value) for kind, value in pairs if isinstance(kind, types.Array)]
        self.arrays = [context.make_array(kind)(context, builder, value) for kind, value in arrays]
        self.align = [kind.dtype.bitwidth // 8 for kind, _ in arrays]
        self.vector = [
            ir.VectorType(context.get_value_type(kind.dtype), LANES) for kind, _ in arrays
        ]

    def place(self, array: int, row: Any) -> Any:
        """Address of a row of lanes."""
        offset = self.builder.mul(row, _INDEX(LANES))
        address = self.builder.gep(self.arrays[array].data, [offset])
        return self.builder.bitcast(address, self.vector[array].as_pointer())

    def load(self, array: int, row: Any) -> Any:
        """A row of lanes."""
        return self.builder.load(self.place(array, row), align=self.align[array])

    def store(self, value: Any, array: int, row: Any) -> None:
        """Write a row of lanes."""
        value = convert(self.builder, value, self.vector[array])
        self.builder.store(value, self.place(array, row), align=self.align[array])

    def multiply(self, a: Any, b: Any) -> Any:
        """``a * b``."""
        return self.builder.fmul(a, b, flags=_CONTRACT)

    def add(self, a: Any, b: Any) -> Any:
        """``a + b``."""
        return self.builder.fadd(a, b, flags=_CONTRACT)

    def subtract(self, a: Any, b: Any) -> Any:
        """``a - b``."""
        return self.builder.fsub(a, b, flags=_CONTRACT)

    def spread(self, array: int, index: Any) -> Any:
        """One number of an array in every lane."""
        value = self.builder.load(self.builder.gep(self.arrays[array].data, [index]))
        nothing = ir.Constant(self.vector[array], ir.Undefined)
        first = self.builder.insert_element(nothing, value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, nothing, zeros)

    def sums(self, n: int) -> list[Any]:
        """Variables for ``n`` running sums of what the first array holds, at zero."""
        places = [cgutils.alloca_once(self.builder, self.vector[0]) for _ in range(n)]
        for place in places:
            self.builder.store(ir.Constant(self.vector[0], [0.0] * LANES), place)
        return places

    def accumulate(self, place: Any, value: Any) -> None:
        """Add a value to a running sum."""
        self.builder.store(self.add(self.builder.load(place), value), place)

    def each(self, n: Any) -> Any:
        """A loop over ``range(n)``."""
        return cgutils.for_range(self.builder, n, intp=_INDEX)


def convert(builder: Any, value: Any, target: Any) -> Any:
    """A vector of floating-point numbers as another type of vector; as it is where they are the same."""
    if value.type == target:
        return value
    wider = isinstance(target.element, ir.DoubleType)
    return builder.fpext(value, target) if wider else builder.fptrunc(value, target)


def lane_intrinsic(
    n_arrays: int, n_integers: int, generate: Callable[[LaneBuilder, list[Any]], None]
) -> Any:
    """A numba function of arrays, then integers, whose body ``generate`` writes."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        generate(LaneBuilder(context, builder, signature, args), list(args[n_arrays:]))
        return context.get_dummy_value()

    def signature(arrays: tuple[Any, ...]) -> Any:
        return types.void(*arrays, *[types.int64] * n_integers)

    return body, signature


def _rows_times_lanes(code: LaneBuilder, first: Any, n_rows: int, n: Any) -> None:
    """``n_rows`` rows of `matrix_times_lanes`, from ``first`` on."""
    build = code.builder
    begins = [build.mul(build.add(first, _INDEX(r)), n) for r in range(n_rows)]
    sums = code.sums(n_rows)
    with code.each(n) as loop:
        row = code.load(1, loop.index)
        for begin, place in zip(begins, sums, strict=True):
            factor = code.spread(0, build.add(begin, loop.index))
            code.accumulate(place, code.multiply(factor, row))
    for r, place in enumerate(sums):
        code.store(build.load(place), 2, build.add(first, _INDEX(r)))


@intrinsic
def matrix_times_lanes(typing_context: Any, matrix: Any, x: Any, out: Any, n: Any) -> Any:
    """``out[r, l] = sum_{k < n} matrix[r, k] * x[k, l]`` for ``r < n``, ``matrix`` of shape (n, n)."""

    def generate(code: LaneBuilder, integers: list[Any]) -> None:
        (n,) = integers
        build = code.builder
        n_double = build.udiv(n, _INDEX(2 * ROWS))
        with code.each(n_double) as loop:
            _rows_times_lanes(code, build.mul(loop.index, _INDEX(2 * ROWS)), 2 * ROWS, n)
        done = build.mul(n_double, _INDEX(2 * ROWS))
        with build.if_then(build.icmp_unsigned("<", done, n)):
            _rows_times_lanes(code, done, ROWS, n)

    body, signature = lane_intrinsic(3, 1, generate)
    return signature((matrix, x, out)), body


@intrinsic
def weigh_lanes(typing_context: Any, x: Any, weights: Any, total: Any, n: Any) -> Any:
    """``x[r] *= weights[r]`` for ``r < n``; ``total[0]`` receives the sum of the rows."""

    def generate(code: LaneBuilder, integers: list[Any]) -> None:
        (total_place,) = code.sums(1)
        with code.each(integers[0]) as loop:
            product = code.multiply(code.load(0, loop.index), code.load(1, loop.index))
            code.store(product, 0, loop.index)
            code.accumulate(total_place, product)
        code.store(code.builder.load(total_place), 2, _INDEX(0))

    body, signature = lane_intrinsic(3, 1, generate)
    return signature((x, weights, total)), body


@intrinsic
def dot_lanes(typing_context: Any, x: Any, y: Any, total: Any, n: Any) -> Any:
    """``total[0, l] = sum_{r < n} x[r, l] * y[r, l]``."""

    def generate(code: LaneBuilder, integers: list[Any]) -> None:
        (place,) = code.sums(1)
        with code.each(integers[0]) as loop:
            code.accumulate(
                place, code.multiply(code.load(0, loop.index), code.load(1, loop.index))
            )
        code.store(code.builder.load(place), 2, _INDEX(0))

    body, signature = lane_intrinsic(3, 1, generate)
    return signature((x, y, total)), body


@intrinsic
def scale_lanes(typing_context: Any, x: Any, factor: Any, n: Any) -> Any:
    """``x[r, l] *= factor[0, l]`` for ``r < n``."""

    def generate(code: LaneBuilder, integers: list[Any]) -> None:
        scale = code.load(1, _INDEX(0))
        with code.each(integers[0]) as loop:
            code.store(code.multiply(code.load(0, loop.index), scale), 0, loop.index)

    body, signature = lane_intrinsic(2, 1, generate)
    return signature((x, factor)), body


@intrinsic
def multiply_lanes(typing_context: Any, x: Any, y: Any, out: Any, n: Any) -> Any:
    """``out[r] = x[r] * y[r]`` for ``r < n``."""

    def generate(code: LaneBuilder, integers: list[Any]) -> None:
        with code.each(integers[0]) as loop:
            product = code.multiply(code.load(0, loop.index), code.load(1, loop.index))
            code.store(product, 2, loop.index)

    body, signature = lane_intrinsic(3, 1, generate)
    return signature((x, y, out)), body


@intrinsic
def add_outer_lanes(
    typing_context: Any, left: Any, right: Any, out: Any, begin: Any, n: Any, i: Any, j: Any
) -> Any:
    """A block of summed outer products, `ROWS` by `ROWS`.

    ``out[(i + p) * width + j + q] += sum_t left[t, i + p] * right[t + 1, j + q]``, over ``n`` steps from
    ``begin`` on, in each lane, for arrays ``left`` and ``right`` of shape (n_rows, width, LANES): the sums
    over time stay in registers. ``out`` may be of higher precision than they.
    """

    def generate(code: LaneBuilder, integers: list[Any]) -> None:
        begin, n, i, j = integers
        build = code.builder
        width = build.extract_value(code.arrays[0].shape, 1)
        sums = [code.sums(ROWS) for _ in range(ROWS)]
        with code.each(n) as loop:
            step = build.mul(build.add(begin, loop.index), width)
            before = build.add(step, i)
            after = build.add(build.add(step, width), j)
            columns = [code.load(1, build.add(after, _INDEX(q))) for q in range(ROWS)]
            for p in range(ROWS):
                row = code.load(0, build.add(before, _INDEX(p)))
                for place, column in zip(sums[p], columns, strict=True):
                    code.accumulate(place, code.multiply(row, column))
        for p in range(ROWS):
            begin = build.add(build.mul(build.add(i, _INDEX(p)), width), j)
            for q in range(ROWS):
                index = build.add(begin, _INDEX(q))
                total = convert(build, build.load(sums[p][q]), code.vector[2])
                code.store(code.add(code.load(2, index), total), 2, index)

    body, signature = lane_intrinsic(3, 4, generate)
    return signature((left, right, out)), body
