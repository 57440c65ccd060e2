"""The builder of LLVM code that all vector intrinsics share.

LLVM unrolls a short loop over lanes into scalar code, and it writes a running sum or maximum back to memory
at every step. So the few loops that dominate the run time are written here in LLVM's own terms: loads,
stores and arithmetic on vector registers. A product and a sum may contract to a fused multiply-add; nothing
is reassociated, so the results do not depend on the machine's vector width. All vectors hold doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

import seqlab.simd.compiling  # noqa: F401  (every compiled module imports this one)

# An intrinsic is called without the typing context it is declared with, which type checkers accept of `Any`.
intrinsic: Callable[[Any], Any] = _intrinsic

INT1, INT32, INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_CONTRACT = ("contract",)


class VectorBuilder:
    """Loads, stores and arithmetic on vectors of ``n_lanes`` doubles.

    An array is named by its position in the argument list, an entry by its index in the flattened array.

    Attributes
    ----------
    ir : IRBuilder
        For integers, conditions and shuffles.
    arrays : list
        The array arguments, with ``data`` and ``shape``.
    vector : VectorType
        ``n_lanes`` doubles.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, n_lanes: int) -> None:
        self.ir = builder
        self.n_lanes = n_lanes
        self.vector = ir.VectorType(ir.DoubleType(), n_lanes)
        self.arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, args, strict=True)
            if isinstance(kind, types.Array)
        ]

    def load_scalar(self, array: int, index: Any) -> Any:
        """One number of an array."""
        return self.ir.load(self.ir.gep(self.arrays[array].data, [index]))

    def load(self, array: int, index: Any) -> Any:
        """``n_lanes`` numbers of an array, from ``index`` on."""
        return self.ir.load(self._pointer(array, index), align=8)

    def store(self, value: Any, array: int, index: Any) -> None:
        """Write ``n_lanes`` numbers into an array, from ``index`` on."""
        self.ir.store(value, self._pointer(array, index), align=8)

    def _pointer(self, array: int, index: Any) -> Any:
        address = self.ir.gep(self.arrays[array].data, [index])
        return self.ir.bitcast(address, self.vector.as_pointer())

    def load_row(self, array: int, row: Any) -> Any:
        """A row of an array of shape (n_rows, n_lanes)."""
        return self.load(array, self.ir.mul(row, INT64(self.n_lanes)))

    def store_row(self, value: Any, array: int, row: Any) -> None:
        """Write a row of an array of shape (n_rows, n_lanes)."""
        self.store(value, array, self.ir.mul(row, INT64(self.n_lanes)))

    def constant(self, value: float) -> Any:
        """The same number in every lane, known when the code is built."""
        return ir.Constant(self.vector, [value] * self.n_lanes)

    def broadcast(self, value: Any) -> Any:
        """The same number in every lane."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.ir.insert_element(undefined, value, INT32(0))
        return self.shuffle(first, undefined, [0] * self.n_lanes)

    def shuffle(self, a: Any, b: Any, order: Sequence[int]) -> Any:
        """A vector of the numbers ``order`` of ``a`` followed by ``b``."""
        mask = ir.Constant(ir.VectorType(INT32, len(order)), list(order))
        return self.ir.shuffle_vector(a, b, mask)

    def multiply(self, a: Any, b: Any) -> Any:
        """``a * b``."""
        return self.ir.fmul(a, b, flags=_CONTRACT)

    def add(self, a: Any, b: Any) -> Any:
        """``a + b``."""
        return self.ir.fadd(a, b, flags=_CONTRACT)

    def subtract(self, a: Any, b: Any) -> Any:
        """``a - b``."""
        return self.ir.fsub(a, b, flags=_CONTRACT)

    def maximum(self, a: Any, b: Any) -> Any:
        """The larger number in each lane; ``b`` if one of them is NaN."""
        return self.ir.select(self.ir.fcmp_ordered(">", a, b), a, b)

    def variables(self, n: int, value: float) -> list[Any]:
        """Addresses of ``n`` vector variables, which LLVM keeps in registers, with an initial value."""
        places = [cgutils.alloca_once(self.ir, self.vector) for _ in range(n)]
        for place in places:
            self.ir.store(self.constant(value), place)
        return places

    def add_to(self, place: Any, value: Any) -> None:
        """Add a value to a variable."""
        self.ir.store(self.add(self.ir.load(place), value), place)

    def raise_to(self, place: Any, value: Any) -> None:
        """Set a variable to the maximum of itself and a value."""
        self.ir.store(self.maximum(value, self.ir.load(place)), place)

    def loop(self, n: Any) -> Any:
        """A loop over ``range(n)``."""
        return cgutils.for_range(self.ir, n, intp=INT64)


def define(
    generate: Callable[..., Any],
    arrays: tuple[Any, ...],
    n_integers: int,
    *,
    n_lanes: int,
    n_floats: int = 0,
    result: Any = types.void,
) -> Any:
    """Signature and body of an intrinsic: what a function decorated with `intrinsic` returns.

    Parameters
    ----------
    generate : callable
        ``generate(code, *numbers)`` writes the body with the `VectorBuilder` ``code`` and returns the
        result, if any.
    arrays : tuple of numba types
        The leading arguments.
    n_integers, n_floats : int
        How many integers, then floats, follow.
    n_lanes : int
        Numbers in a vector.
    result : numba type
    """

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorBuilder(context, builder, signature, args, n_lanes)
        value = generate(code, *args[len(arrays) :])
        return context.get_dummy_value() if value is None else value

    numbers = [types.int64] * n_integers + [types.float64] * n_floats
    return result(*arrays, *numbers), body
