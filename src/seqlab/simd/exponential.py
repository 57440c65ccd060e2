"""An exponential function that the compiler can vectorise.

``exp(x) = 2 ** n * exp(r)`` with ``n = round(x / log 2)`` and ``|r| <= log(2) / 2``. ``exp(r)`` is its
Taylor polynomial of degree 13, whose remainder ``r ** 14 / 14! < 5e-18`` is below half a unit in the last
place; ``2 ** n`` is built from its bits. There is no table, branch or call, so a loop over labels becomes
vector code, several times faster than one call of the C library per label.

``round`` adds ``1.5 * 2 ** 52``, which leaves the integer in the low bits of the sum. This does not work if
sums may be reassociated (the ``reassoc`` flag of fast-math).

`exp_nonpositive` takes one number, `exp_vector` writes the same operations for a vector: the results have
the same bits.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import njit

from seqlab.simd.builder import INT64, VectorBuilder
from seqlab.simd.scalars import bits_to_float, float_to_bits

LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts (Cody & Waite): the high part ends in zero bits, so n * LN2_HIGH is exact.
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
ROUNDER = 1.5 * 2.0**52
MANTISSA, BIAS = 52, 1023  # explicit bits of a double's mantissa, bias of its exponent
DEGREE = 13  # of the Taylor polynomial
# exp(x) is 0 below this: 2 ** n would leave the normal numbers. exp(-700) = 1e-304.
SMALLEST = -700.0


@njit(nogil=True, cache=True, fastmath={"contract"})
def exp_nonpositive(x: float) -> float:
    """``exp(x)`` for ``x <= 0`` (or rounded above it), to one unit in the last place.

    0 below -700, NaN for NaN.
    """
    rounded = x * LOG2_E + ROUNDER
    n = rounded - ROUNDER
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits: int = float_to_bits(rounded)
    power: float = bits_to_float((bits << MANTISSA) + (BIAS << MANTISSA))
    return 0.0 if x < SMALLEST else p * power


def exp_vector(code: VectorBuilder, x: Any) -> Any:
    """`exp_nonpositive` of every lane of a vector."""
    integers = ir.VectorType(INT64, code.n_lanes)

    def integer(value: int) -> Any:
        return ir.Constant(integers, [value] * code.n_lanes)

    rounder = code.constant(ROUNDER)
    rounded = code.add(code.multiply(x, code.constant(LOG2_E)), rounder)
    n = code.subtract(rounded, rounder)
    r = code.subtract(x, code.multiply(n, code.constant(LN2_HIGH)))
    r = code.subtract(r, code.multiply(n, code.constant(LN2_LOW)))
    p = code.constant(1.0 / math.factorial(DEGREE))
    for k in range(DEGREE - 1, -1, -1):
        p = code.add(code.multiply(p, r), code.constant(1.0 / math.factorial(k)))
    exponent = code.ir.shl(code.ir.bitcast(rounded, integers), integer(MANTISSA))
    power = code.ir.bitcast(code.ir.add(exponent, integer(BIAS << MANTISSA)), x.type)
    is_too_small = code.ir.fcmp_ordered("<", x, code.constant(SMALLEST))
    return code.ir.select(is_too_small, code.constant(0.0), code.multiply(p, power))
