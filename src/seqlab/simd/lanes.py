"""Arithmetic on eight chains side by side, one in each lane of a vector register.

Arrays have the shape (n_rows, `LANES`): row ``r`` holds the same entry of eight chains.
"""

from __future__ import annotations

from typing import Any

from seqlab.simd.builder import INT64, VectorBuilder, define, intrinsic

LANES = 8  # chains in a group: the doubles of one 512-bit register
# Rows of a matrix that are multiplied at a time. More rows hide the latency of more additions, but need
# more registers. The number of rows of a matrix must be a multiple of this; pairs of such blocks are taken
# while there are any, which halves the reads of the vector.
ROWS = 4


@intrinsic
def matrix_times_lanes(typing_context: Any, matrix: Any, x: Any, out: Any, n: Any) -> Any:
    """``out[r, c] = sum_{k < n} matrix[r, k] * x[k, c]`` for ``r < n``, ``matrix`` of shape (n, n)."""

    def rows(code: VectorBuilder, first: Any, n_rows: int, n: Any) -> None:
        begins = [code.ir.mul(code.ir.add(first, INT64(r)), n) for r in range(n_rows)]
        sums = code.variables(n_rows, 0.0)
        with code.loop(n) as loop:
            row = code.load_row(1, loop.index)
            for begin, place in zip(begins, sums, strict=True):
                factor = code.broadcast(code.load_scalar(0, code.ir.add(begin, loop.index)))
                code.add_to(place, code.multiply(factor, row))
        for r, place in enumerate(sums):
            code.store_row(code.ir.load(place), 2, code.ir.add(first, INT64(r)))

    def generate(code: VectorBuilder, n: Any) -> None:
        n_pairs = code.ir.udiv(n, INT64(2 * ROWS))
        with code.loop(n_pairs) as loop:
            rows(code, code.ir.mul(loop.index, INT64(2 * ROWS)), 2 * ROWS, n)
        done = code.ir.mul(n_pairs, INT64(2 * ROWS))
        with code.ir.if_then(code.ir.icmp_unsigned("<", done, n)):
            rows(code, done, ROWS, n)

    return define(generate, (matrix, x, out), 1, n_lanes=LANES)


def _sum_products(code: VectorBuilder, n: Any, *, overwrite: bool) -> None:
    """Write ``sum_{r < n} x[r] * y[r]`` to row 0 of the third array; the products to ``x`` if wanted.

    `ROWS` sums at a time: a single one would wait for the latency of each addition.
    """
    build = code.ir
    sums = code.variables(ROWS, 0.0)
    with code.loop(build.udiv(n, INT64(ROWS))) as loop:
        first = build.mul(loop.index, INT64(ROWS))
        for k, place in enumerate(sums):
            row = build.add(first, INT64(k))
            product = code.multiply(code.load_row(0, row), code.load_row(1, row))
            if overwrite:
                code.store_row(product, 0, row)
            code.add_to(place, product)
    code.store_row(_add_pairwise(code, [build.load(place) for place in sums]), 2, INT64(0))


def _add_pairwise(code: VectorBuilder, values: list[Any]) -> Any:
    """The sum of a power of two of vectors, halves first."""
    while len(values) > 1:
        values = [code.add(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


@intrinsic
def weight_lanes(typing_context: Any, x: Any, weights: Any, total: Any, n: Any) -> Any:
    """``x[r, c] *= weights[r, c]`` for ``r < n``; ``total[0, c]`` receives the sum of the products."""

    def generate(code: VectorBuilder, n: Any) -> None:
        _sum_products(code, n, overwrite=True)

    return define(generate, (x, weights, total), 1, n_lanes=LANES)


@intrinsic
def dot_lanes(typing_context: Any, x: Any, y: Any, total: Any, n: Any) -> Any:
    """``total[0, c] = sum_{r < n} x[r, c] * y[r, c]``."""

    def generate(code: VectorBuilder, n: Any) -> None:
        _sum_products(code, n, overwrite=False)

    return define(generate, (x, y, total), 1, n_lanes=LANES)


@intrinsic
def sum_lanes(typing_context: Any, x: Any, out: Any, n: Any) -> Any:
    """``out[r] = sum_c x[r, c]`` for ``r < n``, a multiple of `LANES`."""

    def generate(code: VectorBuilder, n: Any) -> None:
        build = code.ir
        with code.loop(build.udiv(n, INT64(LANES))) as loop:
            first = build.mul(loop.index, INT64(LANES))
            rows = [code.load_row(0, build.add(first, INT64(r))) for r in range(LANES)]
            # Each addition leaves half as many vectors, each with sums of twice as many rows.
            span = 1
            while len(rows) > 1:
                left = [(c & ~span) + (LANES if c & span else 0) for c in range(LANES)]
                right = [c + span for c in left]
                rows = [
                    code.add(code.shuffle(a, b, left), code.shuffle(a, b, right))
                    for a, b in zip(rows[::2], rows[1::2], strict=True)
                ]
                span *= 2
            code.store(rows[0], 1, first)

    return define(generate, (x, out), 1, n_lanes=LANES)


@intrinsic
def scale_lanes(typing_context: Any, x: Any, factor: Any, n: Any) -> Any:
    """``x[r, c] *= factor[0, c]`` for ``r < n``."""

    def generate(code: VectorBuilder, n: Any) -> None:
        factor = code.load_row(1, INT64(0))
        with code.loop(n) as loop:
            code.store_row(code.multiply(code.load_row(0, loop.index), factor), 0, loop.index)

    return define(generate, (x, factor), 1, n_lanes=LANES)


@intrinsic
def multiply_lanes(typing_context: Any, x: Any, y: Any, out: Any, n: Any) -> Any:
    """``out[r, c] = x[r, c] * y[r, c]`` for ``r < n``."""

    def generate(code: VectorBuilder, n: Any) -> None:
        with code.loop(n) as loop:
            product = code.multiply(code.load_row(0, loop.index), code.load_row(1, loop.index))
            code.store_row(product, 2, loop.index)

    return define(generate, (x, y, out), 1, n_lanes=LANES)


@intrinsic
def add_outer_lanes(
    typing_context: Any, left: Any, right: Any, out: Any, n: Any, i: Any, j: Any
) -> Any:
    """Add a block, `ROWS` by `ROWS`, of the summed outer products of neighbouring steps.

    ``out[(i + p) * width + j + q, c] += sum_{t < n} left[t, i + p, c] * right[t + 1, j + q, c]`` for ``left``
    and ``right`` of shape (n_steps, width, LANES). The sums over time stay in registers.
    """

    def generate(code: VectorBuilder, n: Any, i: Any, j: Any) -> None:
        build = code.ir
        width = build.extract_value(code.arrays[0].shape, 1)
        sums = [code.variables(ROWS, 0.0) for _ in range(ROWS)]
        with code.loop(n) as loop:
            step = build.mul(loop.index, width)
            before = build.add(step, i)
            after = build.add(build.add(step, width), j)
            columns = [code.load_row(1, build.add(after, INT64(q))) for q in range(ROWS)]
            for p in range(ROWS):
                row = code.load_row(0, build.add(before, INT64(p)))
                for place, column in zip(sums[p], columns, strict=True):
                    code.add_to(place, code.multiply(row, column))
        for p in range(ROWS):
            first = build.add(build.mul(build.add(i, INT64(p)), width), j)
            for q in range(ROWS):
                index = build.add(first, INT64(q))
                total = code.add(code.load_row(2, index), build.load(sums[p][q]))
                code.store_row(total, 2, index)

    return define(generate, (left, right, out), 3, n_lanes=LANES)
