"""Inner products of long vectors."""

from __future__ import annotations

from typing import Any

from numba import types

from seqlab.simd.builder import INT32, INT64, VectorBuilder, define, intrinsic

# Partial sums of an inner product: four vectors of eight hide the latency of an addition.
N_VECTORS, N_LANES = 4, 8
N_SUMS = N_VECTORS * N_LANES


@intrinsic
def sum_of_products(typing_context: Any, x: Any, y: Any, first: Any, n: Any) -> Any:
    """``sum x[i] * y[i]`` over ``first <= i < first + n * N_SUMS``, in `N_SUMS` partial sums."""

    def generate(code: VectorBuilder, first: Any, n: Any) -> Any:
        build = code.ir
        sums = code.variables(N_VECTORS, 0.0)
        with code.loop(n) as loop:
            begin = build.add(first, build.mul(loop.index, INT64(N_SUMS)))
            for v, place in enumerate(sums):
                index = build.add(begin, INT64(v * N_LANES))
                code.add_to(place, code.multiply(code.load(0, index), code.load(1, index)))
        a, b, c, d = (build.load(place) for place in sums)
        total = code.add(code.add(a, b), code.add(c, d))
        for distance in (4, 2, 1):
            order = [(lane + distance) % N_LANES for lane in range(N_LANES)]
            total = code.add(total, code.shuffle(total, total, order))
        return build.extract_element(total, INT32(0))

    return define(generate, (x, y), 2, n_lanes=N_LANES, result=types.float64)
