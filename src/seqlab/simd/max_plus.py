"""The two inner loops of Viterbi in vector registers: a step of the recursion, and the choice of a label.

    out[j] = extra[j] + max_i vector[i] + matrix[i, j]          (`max_plus_step`)
    argmax_j arcs[j] + vector[j], the lowest j in case of ties  (`argmax_of_sum`)

LLVM does not keep ``out`` in registers over the loop on i: it loads and stores it again for every few rows.
Here up to four registers of `COLUMNS` columns hold the running maxima of a strip of columns. Two chains
that take their steps together share the loads of the matrix, which limit the speed of one chain. A maximum
rounds nothing, so the bits do not depend on the order.

Measured with ten labels and two chains, at 3.6 GHz: 37 cycles per step, compared with 15 for the additions
and maxima alone (41 % of that bound; the rest is waiting for the previous step), and 24 cycles per label
chosen.

If the number of columns is not a multiple of `COLUMNS`, the last register overlaps the one before it, so
nothing outside a row is read or written. There must be at least `COLUMNS` columns.

All functions take positions in flattened arrays instead of rows: creating a view of a row costs as much as
a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numpy.typing import NDArray

from seqlab.simd.builder import INT1, INT32, INT64, VectorBuilder, define, intrinsic

Floats = NDArray[np.float64]

COLUMNS = 4  # columns in a register
STRIP = 4 * COLUMNS  # columns of the widest strip


def _columns(code: VectorBuilder, n_registers: int, first: Any, n: Any) -> list[Any]:
    """First column of each register of a strip; no register reaches beyond column ``n``."""
    furthest = code.ir.sub(n, INT64(COLUMNS))
    regular = [code.ir.add(first, INT64(r * COLUMNS)) for r in range(n_registers)]
    return [
        code.ir.select(code.ir.icmp_signed("<", column, furthest), column, furthest)
        for column in regular
    ]


def _full_strip(code: VectorBuilder, first: Any) -> list[Any]:
    """First column of each register of the widest strip."""
    return [code.ir.add(first, INT64(column)) for column in range(0, STRIP, COLUMNS)]


def _step_one(n_registers: int) -> Any:
    """`max_plus_step` on a strip of columns.

    Even and odd rows have their own maxima: two independent series of comparisons hide their latency.
    """

    def generate(
        code: VectorBuilder, source: Any, target: Any, extra: Any, first: Any, width: Any, n: Any
    ) -> None:
        build = code.ir
        columns = _columns(code, n_registers, first, n)
        halves = [code.variables(n_registers, -np.inf) for _ in range(2)]

        def add_row(i: Any, maxima: list[Any]) -> None:
            value = code.broadcast(code.load_scalar(0, build.add(source, i)))
            begin = build.mul(i, width)
            for column, place in zip(columns, maxima, strict=True):
                code.raise_to(place, code.add(value, code.load(1, build.add(begin, column))))

        with code.loop(build.lshr(n, INT64(1))) as loop:
            even = build.shl(loop.index, INT64(1))
            add_row(even, halves[0])
            add_row(build.add(even, INT64(1)), halves[1])
        with build.if_then(build.trunc(n, INT1)):
            add_row(build.sub(n, INT64(1)), halves[0])
        for column, even, odd in zip(columns, *halves, strict=True):
            highest = code.maximum(build.load(even), build.load(odd))
            value = code.add(highest, code.load(3, build.add(extra, column)))
            code.store(value, 2, build.add(target, column))

    def step_one(
        typing_context: Any, vector: Any, matrix: Any, out: Any, extras: Any,
        source: Any, target: Any, extra: Any, first: Any, width: Any, n: Any,
    ) -> Any:  # fmt: skip
        return define(generate, (vector, matrix, out, extras), 6, n_lanes=COLUMNS)

    return intrinsic(step_one)


def _step_two(n_registers: int) -> Any:
    """`max_plus_step_two` on a strip of columns."""

    def generate(
        code: VectorBuilder, target_a: Any, extra_a: Any, target_b: Any, extra_b: Any,
        first: Any, width: Any, n: Any,
    ) -> None:  # fmt: skip
        build = code.ir
        columns = _columns(code, n_registers, first, n)
        chains = [
            (target, build.add(target, width), extra, code.variables(n_registers, -np.inf))
            for target, extra in ((target_a, extra_a), (target_b, extra_b))
        ]
        with code.loop(n) as loop:
            begin = build.mul(loop.index, width)
            rows = [code.load(1, build.add(begin, column)) for column in columns]
            for _, source, _, maxima in chains:
                value = code.broadcast(code.load_scalar(0, build.add(source, loop.index)))
                for place, entries in zip(maxima, rows, strict=True):
                    code.raise_to(place, code.add(value, entries))
        for target, _, extra, maxima in chains:
            for column, place in zip(columns, maxima, strict=True):
                value = code.add(build.load(place), code.load(2, build.add(extra, column)))
                code.store(value, 0, build.add(target, column))

    def step_two(
        typing_context: Any, table: Any, matrix: Any, extras: Any,
        target_a: Any, extra_a: Any, target_b: Any, extra_b: Any, first: Any, width: Any, n: Any,
    ) -> Any:  # fmt: skip
        return define(generate, (table, matrix, extras), 7, n_lanes=COLUMNS)

    return intrinsic(step_two)


def _sums(code: VectorBuilder, arc: Any, place: Any, columns: list[Any]) -> list[Any]:
    """``arcs + vector`` of a strip."""
    build = code.ir
    return [
        code.add(code.load(0, build.add(arc, column)), code.load(1, build.add(place, column)))
        for column in columns
    ]


def _highest(code: VectorBuilder, sums: list[Any]) -> Any:
    """The highest number of some registers, in every lane."""
    highest, *others = sums
    for other in others:
        highest = code.maximum(other, highest)
    distance = COLUMNS // 2
    while distance:
        rotation = [(lane + distance) % COLUMNS for lane in range(COLUMNS)]
        highest = code.maximum(code.shuffle(highest, highest, rotation), highest)
        distance //= 2
    return highest


def _equal_bits(
    code: VectorBuilder, value: Any, sums: list[Any], columns: list[Any], first: Any
) -> Any:
    """One bit per column, counted from ``first``: whether its sum equals a value."""
    build = code.ir
    bits = INT64(0)
    for column, register in zip(columns, sums, strict=True):
        equal = build.bitcast(build.fcmp_ordered("==", register, value), ir.IntType(COLUMNS))
        shift = build.sub(column, first)
        bits = build.or_(bits, build.shl(build.zext(equal, INT64), shift))
    return bits


def _argmax(n_registers: int) -> Any:
    """`argmax_of_sum` of a single strip."""

    def generate(code: VectorBuilder, arc: Any, place: Any, n: Any) -> Any:
        build = code.ir
        columns = _columns(code, n_registers, INT64(0), n)
        sums = _sums(code, arc, place, columns)
        bits = _equal_bits(code, _highest(code, sums), sums, columns, INT64(0))
        # If all sums are NaN, none equals the highest: any column is fine, but it must be below n.
        last = build.sub(n, INT64(1))
        column = build.cttz(bits, INT1(0))
        return build.select(build.icmp_signed("<", column, last), column, last)

    def argmax(typing_context: Any, arcs: Any, vector: Any, arc: Any, place: Any, n: Any) -> Any:
        return define(generate, (arcs, vector), 3, n_lanes=COLUMNS, result=types.int64)

    return intrinsic(argmax)


@intrinsic
def _max_of_strip(
    typing_context: Any, arcs: Any, vector: Any, arc: Any, place: Any, first: Any
) -> Any:
    """The highest sum of the widest strip, from column ``first`` on."""

    def generate(code: VectorBuilder, arc: Any, place: Any, first: Any) -> Any:
        sums = _sums(code, arc, place, _full_strip(code, first))
        return code.ir.extract_element(_highest(code, sums), INT32(0))

    return define(generate, (arcs, vector), 3, n_lanes=COLUMNS, result=types.float64)


@intrinsic
def _find_in_strip(
    typing_context: Any, arcs: Any, vector: Any, arc: Any, place: Any, first: Any, value: Any
) -> Any:
    """First column of the widest strip whose sum equals a value, counted from ``first``; 64 for none."""

    def generate(code: VectorBuilder, arc: Any, place: Any, first: Any, value: Any) -> Any:
        columns = _full_strip(code, first)
        sums = _sums(code, arc, place, columns)
        return code.ir.cttz(_equal_bits(code, code.broadcast(value), sums, columns, first), INT1(0))

    return define(generate, (arcs, vector), 3, n_floats=1, n_lanes=COLUMNS, result=types.int64)


_step_one_1, _step_one_2, _step_one_3, _step_one_4 = (_step_one(n) for n in (1, 2, 3, 4))
_step_two_1, _step_two_2, _step_two_3 = (_step_two(n) for n in (1, 2, 3))
_argmax_1, _argmax_2, _argmax_3, _argmax_6 = (_argmax(n) for n in (1, 2, 3, 6))


@njit(nogil=True, cache=True, inline="always")
def max_plus_step(
    vector: Floats, source: int, matrix: Floats, out: Floats, target: int,
    extras: Floats, extra: int, width: int, n: int,
) -> None:  # fmt: skip
    """``out[target + j] = extras[extra + j] + max_i vector[source + i] + matrix[i, j]``.

    For i and j below ``n``; rows of the matrix are ``width`` apart.
    """
    first = 0
    while n - first > STRIP:
        _step_one_4(vector, matrix, out, extras, source, target, extra, first, width, n)
        first += STRIP
    if n - first > 3 * COLUMNS:
        _step_one_4(vector, matrix, out, extras, source, target, extra, first, width, n)
    elif n - first > 2 * COLUMNS:
        _step_one_3(vector, matrix, out, extras, source, target, extra, first, width, n)
    elif n - first > COLUMNS:
        _step_one_2(vector, matrix, out, extras, source, target, extra, first, width, n)
    else:
        _step_one_1(vector, matrix, out, extras, source, target, extra, first, width, n)


@njit(nogil=True, cache=True, inline="always")
def max_plus_step_two(
    table: Floats, target_a: int, target_b: int, matrix: Floats,
    extras: Floats, extra_a: int, extra_b: int, width: int, n: int,
) -> None:  # fmt: skip
    """`max_plus_step` of two chains, each from the row of ``table`` that follows its target."""
    first = 0
    while n - first > 3 * COLUMNS:
        _step_two_3(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)
        first += 3 * COLUMNS
    if n - first > 2 * COLUMNS:
        _step_two_3(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)
    elif n - first > COLUMNS:
        _step_two_2(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)
    else:
        _step_two_1(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)


@njit(nogil=True, cache=True, inline="always")
def argmax_of_sum(arcs: Floats, arc: int, vector: Floats, place: int, n: int) -> int:
    """``argmax_j arcs[arc + j] + vector[place + j]`` for j below ``n``, the lowest j in case of ties."""
    if n > 6 * COLUMNS:
        return _argmax_of_many(arcs, arc, vector, place, n)
    if n > 3 * COLUMNS:
        return _argmax_6(arcs, vector, arc, place, n)
    if n > 2 * COLUMNS:
        return _argmax_3(arcs, vector, arc, place, n)
    if n > COLUMNS:
        return _argmax_2(arcs, vector, arc, place, n)
    return _argmax_1(arcs, vector, arc, place, n)


@njit(nogil=True, cache=True)
def _argmax_of_many(arcs: Floats, arc: int, vector: Floats, place: int, n: int) -> int:
    """`argmax_of_sum` of more than `STRIP` columns; the last strip overlaps the one before it."""
    highest = -np.inf
    for k in range(0, n, STRIP):
        value: float = _max_of_strip(arcs, vector, arc, place, min(k, n - STRIP))
        highest = value if value > highest else highest
    for k in range(0, n, STRIP):
        first = min(k, n - STRIP)
        found: int = _find_in_strip(arcs, vector, arc, place, first, highest)
        if found < STRIP:
            return first + found
    return 0
