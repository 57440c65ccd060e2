"""The step of Viterbi: a vector times a matrix where sums are maxima and products are sums.

    out[j] = max_i vector[i] + matrix[i, j]

The compiler does not keep ``out`` in registers over the loop on i: it loads and stores it again for every few
rows. Here up to four registers of `LANES` columns hold the running maxima of a strip of columns, which makes
ten labels four times and twenty labels twice as fast. A maximum rounds nothing: the same bits as any other
order.

These functions are called from other numba kernels only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from seqlab.inference._kernels.dense import LANES
from seqlab.inference.scores import Floats

_INDEX = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


def _strip(n_registers: int) -> Any:
    """The intrinsic for a strip of ``n_registers * LANES`` columns, from column ``first`` on."""

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        vector, matrix, out = (
            context.make_array(kind)(context, build, value).data
            for kind, value in zip(signature.args[:3], args[:3], strict=True)
        )
        source, target, first, width, n_rows = args[3:]
        vector = build.gep(vector, [source])
        out = build.gep(out, [target])

        def place(array: Any, index: Any) -> Any:
            return build.bitcast(build.gep(array, [index]), _VECTOR.as_pointer())

        def spread(value: Any) -> Any:
            nothing = ir.Constant(_VECTOR, ir.Undefined)
            one = build.insert_element(nothing, value, ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return build.shuffle_vector(one, nothing, zeros)

        def raise_to(register: Any, value: Any) -> None:
            before = build.load(register)
            higher = build.fcmp_ordered(">", value, before)
            build.store(build.select(higher, value, before), register)

        # Even and odd rows apart: two chains of maxima wait for each other half as long as one.
        halves = [[cgutils.alloca_once(build, _VECTOR) for _ in range(n_registers)] for _ in "01"]
        for register in (*halves[0], *halves[1]):
            build.store(ir.Constant(_VECTOR, [-np.inf] * LANES), register)
        n_pairs = build.lshr(build.add(n_rows, _INDEX(1)), _INDEX(1))
        with cgutils.for_range(build, n_pairs, intp=_INDEX) as loop:
            for odd, highest in enumerate(halves):
                i = build.add(build.shl(loop.index, _INDEX(1)), _INDEX(odd))
                value = spread(build.load(build.gep(vector, [i])))
                row = build.add(build.mul(i, width), first)
                for k, register in enumerate(highest):
                    entries = build.load(place(matrix, build.add(row, _INDEX(k * LANES))), align=8)
                    raise_to(register, build.fadd(value, entries))
        for k, (even, odd) in enumerate(zip(*halves, strict=True)):
            raise_to(even, build.load(odd))
            build.store(build.load(even), place(out, build.add(first, _INDEX(k * LANES))), align=8)
        return context.get_dummy_value()

    def strip(
        typing_context: Any, vector: Any, matrix: Any, out: Any,
        source: Any, target: Any, first: Any, width: Any, n_rows: Any,
    ) -> Any:  # fmt: skip
        return types.void(vector, matrix, out, *[types.int64] * 5), generate

    return intrinsic(strip)


_one, _two, _three, _four = (_strip(n) for n in (1, 2, 3, 4))


@intrinsic
def add_at(typing_context: Any, x: Any, source: Any, out: Any, target: Any, n: Any) -> Any:
    """``out.flat[target + i] += x.flat[source + i]`` for ``i < n``, of any n.

    The compiler's own loop first asks whether the arrays overlap, which takes longer than ten additions.
    """

    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        x, out = (
            build.gep(
                context.make_array(signature.args[k])(context, build, args[k]).data, [args[k + 1]]
            )
            for k in (0, 2)
        )
        n = args[4]
        n_whole = build.lshr(n, _INDEX(LANES.bit_length() - 1))
        with cgutils.for_range(build, n_whole, intp=_INDEX) as loop:
            first = build.mul(loop.index, _INDEX(LANES))
            places = [build.bitcast(build.gep(p, [first]), _VECTOR.as_pointer()) for p in (x, out)]
            a, b = (build.load(place, align=8) for place in places)
            build.store(build.fadd(a, b), places[1], align=8)
        done = build.mul(n_whole, _INDEX(LANES))
        with cgutils.for_range(build, build.sub(n, done), intp=_INDEX) as loop:
            places = [build.gep(p, [build.add(done, loop.index)]) for p in (x, out)]
            a, b = (build.load(place) for place in places)
            build.store(build.fadd(a, b), places[1])
        return context.get_dummy_value()

    whole = types.int64
    return types.void(x, whole, out, whole, whole), generate


@njit(nogil=True, cache=True, inline="always")
def max_plus_at(
    vector: Floats, source: int, matrix: Floats, out: Floats, target: int, width: int, n_rows: int
) -> None:
    """`max_plus` of the numbers from ``vector.flat[source]`` on, to ``out.flat[target]`` and on.

    Places in one array rather than rows of it: to make a row costs as much as a step. Rows of the matrix from
    ``n_rows`` on are padding.
    """
    first = 0
    while width - first >= 4 * LANES:
        _four(vector, matrix, out, source, target, first, width, n_rows)
        first += 4 * LANES
    if width - first == 3 * LANES:
        _three(vector, matrix, out, source, target, first, width, n_rows)
    elif width - first == 2 * LANES:
        _two(vector, matrix, out, source, target, first, width, n_rows)
    elif width - first == LANES:
        _one(vector, matrix, out, source, target, first, width, n_rows)


@njit(nogil=True, cache=True)
def max_plus(vector: Floats, matrix: Floats, out: Floats) -> None:
    """``out[j] = max_i vector[i] + matrix[i, j]`` for contiguous, padded arguments (padding of ``-inf``)."""
    zero: int = np.int64(0)  # type: ignore[assignment]  # not a literal: one more type to compile for
    max_plus_at(vector, zero, matrix, out, zero, out.shape[0], out.shape[0])
