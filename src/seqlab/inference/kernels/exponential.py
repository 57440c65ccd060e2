"""An exponential that the compiler can vectorise.

``exp(x) = 2 ** n * exp(r)`` with ``n = round(x / log 2)`` and ``|r| <= log(2) / 2``. ``exp(r)``
is its Taylor polynomial of degree 13, whose remainder ``r ** 14 / 14! < 5e-18`` is below half a
unit in the last place; ``2 ** n`` is put together from its bits. No table, no branch, no call: a
loop over labels becomes vector code, several times faster than calling the C library once per
label.

`round` is done by adding ``1.5 * 2 ** 52``, which leaves the integer in the low bits of the sum.
That trick, like the rest, forbids the ``reassoc`` kind of fast-math.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts (Cody & Waite): the high one has trailing zero bits, so n * LN2_HIGH is exact.
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
ROUNDER = 1.5 * 2.0**52
# Below this 2 ** n would leave the normal numbers; exp(-700) = 1e-304.
SMALLEST = -700.0


@intrinsic
def float_of_bits(typing_context: Any, bits: Any) -> Any:
    """The double with the bit pattern of an int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def bits_of_float(typing_context: Any, value: Any) -> Any:
    """The bit pattern of a double as int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


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
    bits: int = bits_of_float(rounded)
    power: float = float_of_bits((bits << 52) + (1023 << 52))
    return 0.0 if x < SMALLEST else p * power
