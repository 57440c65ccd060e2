"""The two halves of Viterbi in vector registers: a step of its recursion, and the reading of a label.

    out[j] = extra[j] + max_i vector[i] + matrix[i, j]          (`max_plus_at`)
    argmax_j arcs[j] + vector[j], the lowest j of several       (`first_highest_at`)

The compiler does not keep ``out`` in registers over the loop on i: it loads and stores it again for every few
rows. Here up to four registers of `LANES` columns hold the running maxima of a strip of columns. Two chains
that take their steps together share the loads of the matrix, which bound the time of one. A maximum rounds
nothing: the same bits as any other order.

Measured with ten labels and two chains, at 3.6 GHz: 37 cycles a step, where the additions and maxima alone
would take 15 (41 % of that bound; the rest is waiting for the step before), and 24 cycles to read a label.

Where the number of columns is no multiple of `LANES` the last register overlaps the one before it, so nothing
outside a row is read or written; there must be at least `LANES` columns.

All functions take places in flat arrays, not rows: to make a row of an array costs as much as a step. They
are called from other numba kernels only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from seqlab.inference.kernels.dense import LANES
from seqlab.inference.scores import Floats

STRIP = 4 * LANES  # columns of the widest strip

_BIT, _LANE, _INDEX = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)


class _Strip:
    """Columns ``first`` and on of some arrays, as a few vector registers."""

    def __init__(self, context: Any, build: Any, signature: Any, args: Any, n_arrays: int) -> None:
        self.build = build
        self.arrays = [
            context.make_array(kind)(context, build, value).data
            for kind, value in zip(signature.args[:n_arrays], args[:n_arrays], strict=True)
        ]
        self.integers = args[n_arrays:]

    def columns(self, n_registers: int, first: Any, n_columns: Any) -> list[Any]:
        """First column of each register."""
        build = self.build
        furthest = build.sub(n_columns, _INDEX(LANES))
        regular = [build.add(first, _INDEX(r * LANES)) for r in range(n_registers)]
        return [build.select(build.icmp_signed("<", c, furthest), c, furthest) for c in regular]

    def columns_from(self, first: Any) -> list[Any]:
        """First column of each register of a whole strip."""
        return [self.build.add(first, _INDEX(column)) for column in range(0, STRIP, LANES)]

    def place(self, array: int, index: Any) -> Any:
        address = self.build.gep(self.arrays[array], [index])
        return self.build.bitcast(address, _VECTOR.as_pointer())

    def load(self, array: int, index: Any) -> Any:
        return self.build.load(self.place(array, index), align=8)

    def spread(self, array: int, index: Any) -> Any:
        """One number of an array in every lane."""
        return self.spread_value(self.build.load(self.build.gep(self.arrays[array], [index])))

    def spread_value(self, value: Any) -> Any:
        one = self.build.insert_element(_NOTHING, value, _LANE(0))
        zeros = ir.Constant(ir.VectorType(_LANE, LANES), [0] * LANES)
        return self.build.shuffle_vector(one, _NOTHING, zeros)

    def higher(self, a: Any, b: Any) -> Any:
        return self.build.select(self.build.fcmp_ordered(">", a, b), a, b)

    def lowest_start(self, n: int) -> list[Any]:
        """Variables for ``n`` running maxima."""
        places = [cgutils.alloca_once(self.build, _VECTOR) for _ in range(n)]
        for place in places:
            self.build.store(ir.Constant(_VECTOR, [-np.inf] * LANES), place)
        return places

    def raise_to(self, place: Any, value: Any) -> None:
        self.build.store(self.higher(value, self.build.load(place)), place)


def _integers(n: int) -> list[Any]:
    return [types.int64] * n


def _one_chain(n_registers: int) -> Any:
    """The step of one chain, on a strip of columns.

    Even and odd rows apart: two runs of maxima wait for each other half as long as one.
    """

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        code = _Strip(context, build, signature, args, 4)
        source, target, extra, first, width, n = code.integers
        columns = code.columns(n_registers, first, n)
        halves = [code.lowest_start(n_registers) for _ in "01"]

        def row(i: Any, highest: list[Any]) -> None:
            value = code.spread(0, build.add(source, i))
            begin = build.mul(i, width)
            for column, place in zip(columns, highest, strict=True):
                entries = code.load(1, build.add(begin, column))
                code.raise_to(place, build.fadd(value, entries))

        with cgutils.for_range(build, build.lshr(n, _INDEX(1)), intp=_INDEX) as loop:
            even = build.shl(loop.index, _INDEX(1))
            row(even, halves[0])
            row(build.add(even, _INDEX(1)), halves[1])
        with build.if_then(build.trunc(n, _BIT)):
            row(build.sub(n, _INDEX(1)), halves[0])
        for column, even, odd in zip(columns, *halves, strict=True):
            highest = code.higher(build.load(even), build.load(odd))
            value = build.fadd(highest, code.load(3, build.add(extra, column)))
            build.store(value, code.place(2, build.add(target, column)), align=8)
        return context.get_dummy_value()

    def strip(
        typing_context: Any, vector: Any, matrix: Any, out: Any, extras: Any,
        source: Any, target: Any, extra: Any, first: Any, width: Any, n: Any,
    ) -> Any:  # fmt: skip
        return types.void(vector, matrix, out, extras, *_integers(6)), generate

    return intrinsic(strip)


def _two_chains(n_registers: int) -> Any:
    """The steps of two chains in one table, on a strip of columns."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        code = _Strip(context, build, signature, args, 3)
        target_a, extra_a, target_b, extra_b, first, width, n = code.integers
        columns = code.columns(n_registers, first, n)
        chains = [
            (target, build.add(target, width), extra, code.lowest_start(n_registers))
            for target, extra in ((target_a, extra_a), (target_b, extra_b))
        ]
        with cgutils.for_range(build, n, intp=_INDEX) as loop:
            begin = build.mul(loop.index, width)
            rows = [code.load(1, build.add(begin, column)) for column in columns]
            for _, source, _, highest in chains:
                value = code.spread(0, build.add(source, loop.index))
                for place, entries in zip(highest, rows, strict=True):
                    code.raise_to(place, build.fadd(value, entries))
        for target, _, extra, highest in chains:
            for column, place in zip(columns, highest, strict=True):
                value = build.fadd(build.load(place), code.load(2, build.add(extra, column)))
                build.store(value, code.place(0, build.add(target, column)), align=8)
        return context.get_dummy_value()

    def strip(
        typing_context: Any, table: Any, matrix: Any, extras: Any,
        target_a: Any, extra_a: Any, target_b: Any, extra_b: Any, first: Any, width: Any, n: Any,
    ) -> Any:  # fmt: skip
        return types.void(table, matrix, extras, *_integers(7)), generate

    return intrinsic(strip)


def _sums(code: _Strip, columns: list[Any]) -> list[Any]:
    """``arcs + vector`` of a strip."""
    build = code.build
    arc, place = code.integers[:2]
    return [
        build.fadd(code.load(0, build.add(arc, column)), code.load(1, build.add(place, column)))
        for column in columns
    ]


def _highest_of(code: _Strip, sums: list[Any]) -> Any:
    """The highest number of some registers, in every lane."""
    highest, *others = sums
    for other in others:
        highest = code.higher(other, highest)
    distance = LANES // 2
    while distance:
        turned = [(lane + distance) % LANES for lane in range(LANES)]
        order = ir.Constant(ir.VectorType(_LANE, LANES), turned)
        highest = code.higher(code.build.shuffle_vector(highest, _NOTHING, order), highest)
        distance //= 2
    return highest


def _places_of(code: _Strip, value: Any, sums: list[Any], columns: list[Any], first: Any) -> Any:
    """Bits of the columns, counted from ``first``, whose sum equals a value."""
    build = code.build
    bits = _INDEX(0)
    for column, register in zip(columns, sums, strict=True):
        equal = build.bitcast(build.fcmp_ordered("==", register, value), ir.IntType(LANES))
        place = build.sub(column, first)
        bits = build.or_(bits, build.shl(build.zext(equal, _INDEX), place))
    return bits


def _first_highest(n_registers: int) -> Any:
    """`first_highest_at` of a single strip."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        code = _Strip(context, build, signature, args, 2)
        columns = code.columns(n_registers, _INDEX(0), code.integers[2])
        sums = _sums(code, columns)
        bits = _places_of(code, _highest_of(code, sums), sums, columns, _INDEX(0))
        # No sum equals the highest where all are NaN: any column will do, but it must be one.
        last = build.sub(code.integers[2], _INDEX(1))
        column = build.cttz(bits, _BIT(0))
        return build.select(build.icmp_signed("<", column, last), column, last)

    def strip(typing_context: Any, arcs: Any, vector: Any, arc: Any, place: Any, n: Any) -> Any:
        return types.int64(arcs, vector, *_integers(3)), generate

    return intrinsic(strip)


@intrinsic
def _highest_in(
    typing_context: Any, arcs: Any, vector: Any, arc: Any, place: Any, first: Any
) -> Any:
    """The highest sum of a whole strip from column ``first`` on."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        code = _Strip(context, build, signature, args, 2)
        columns = code.columns_from(code.integers[2])
        return build.extract_element(_highest_of(code, _sums(code, columns)), _LANE(0))

    return types.float64(arcs, vector, *_integers(3)), generate


@intrinsic
def _first_in(
    typing_context: Any, arcs: Any, vector: Any, arc: Any, place: Any, first: Any, value: Any
) -> Any:
    """The first column of a whole strip whose sum equals a value, counted from ``first``; 64 for none."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        code = _Strip(context, build, signature, args, 2)
        first, value = code.integers[2:]
        columns = code.columns_from(first)
        bits = _places_of(code, code.spread_value(value), _sums(code, columns), columns, first)
        return build.cttz(bits, _BIT(0))

    return types.int64(arcs, vector, *_integers(3), types.float64), generate


_one_chain_1, _one_chain_2, _one_chain_3, _one_chain_4 = (_one_chain(n) for n in (1, 2, 3, 4))
_two_chains_1, _two_chains_2, _two_chains_3 = (_two_chains(n) for n in (1, 2, 3))
_first_highest_1, _first_highest_2, _first_highest_3 = (_first_highest(n) for n in (1, 2, 3))
_first_highest_6 = _first_highest(6)


@njit(nogil=True, cache=True, inline="always")
def max_plus_at(
    vector: Floats, source: int, matrix: Floats, out: Floats, target: int,
    extras: Floats, extra: int, width: int, n: int,
) -> None:  # fmt: skip
    """``out[target + j] = extras[extra + j] + max_i vector[source + i] + matrix[i, j]``.

    For i and j below ``n``; rows of the matrix are ``width`` apart.
    """
    first = 0
    while n - first > STRIP:
        _one_chain_4(vector, matrix, out, extras, source, target, extra, first, width, n)
        first += STRIP
    if n - first > 3 * LANES:
        _one_chain_4(vector, matrix, out, extras, source, target, extra, first, width, n)
    elif n - first > 2 * LANES:
        _one_chain_3(vector, matrix, out, extras, source, target, extra, first, width, n)
    elif n - first > LANES:
        _one_chain_2(vector, matrix, out, extras, source, target, extra, first, width, n)
    else:
        _one_chain_1(vector, matrix, out, extras, source, target, extra, first, width, n)


@njit(nogil=True, cache=True, inline="always")
def max_plus_pair_at(
    table: Floats, target_a: int, target_b: int, matrix: Floats,
    extras: Floats, extra_a: int, extra_b: int, width: int, n: int,
) -> None:  # fmt: skip
    """`max_plus_at` twice, each from the row of a table that follows its target."""
    first = 0
    while n - first > 3 * LANES:
        _two_chains_3(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)
        first += 3 * LANES
    if n - first > 2 * LANES:
        _two_chains_3(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)
    elif n - first > LANES:
        _two_chains_2(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)
    else:
        _two_chains_1(table, matrix, extras, target_a, extra_a, target_b, extra_b, first, width, n)


@njit(nogil=True, cache=True, inline="always")
def first_highest_at(arcs: Floats, arc: int, vector: Floats, place: int, n: int) -> int:
    """``argmax_j arcs[arc + j] + vector[place + j]`` for j below ``n``, the lowest of several."""
    if n > 6 * LANES:
        return _first_highest_of_many(arcs, arc, vector, place, n)
    if n > 3 * LANES:
        return _first_highest_6(arcs, vector, arc, place, n)
    if n > 2 * LANES:
        return _first_highest_3(arcs, vector, arc, place, n)
    if n > LANES:
        return _first_highest_2(arcs, vector, arc, place, n)
    return _first_highest_1(arcs, vector, arc, place, n)


@njit(nogil=True, cache=True)
def _first_highest_of_many(arcs: Floats, arc: int, vector: Floats, place: int, n: int) -> int:
    """`first_highest_at` of more than `STRIP` columns; the last strip overlaps the one before it."""
    highest = -np.inf
    for k in range(0, n, STRIP):
        value: float = _highest_in(arcs, vector, arc, place, min(k, n - STRIP))
        highest = value if value > highest else highest
    for k in range(0, n, STRIP):
        first = min(k, n - STRIP)
        found: int = _first_in(arcs, vector, arc, place, first, highest)
        if found < STRIP:
            return first + found
    return 0
