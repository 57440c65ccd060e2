"""Intrinsics on single words: bit patterns, unaligned loads and prefetching."""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from seqlab.simd.builder import INT1, INT32, INT64, intrinsic


@intrinsic
def bits_to_float(typing_context: Any, bits: Any) -> Any:
    """The double with the bit pattern of an int64."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), body


@intrinsic
def float_to_bits(typing_context: Any, value: Any) -> Any:
    """The bit pattern of a double as int64."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], INT64)

    return types.int64(types.float64), body


@intrinsic
def count_trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Number of zero bits below the lowest set bit of a uint64, which must not be 0."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], INT1(1))

    return types.uint64(types.uint64), body


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a uint64."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), body


@intrinsic
def load_word(typing_context: Any, data: Any, index: Any) -> Any:
    """``data[index:index + 8]`` of a uint8 array as uint64, the first byte lowest."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.bitcast(_address(context, builder, signature, args), INT64.as_pointer())
        word = builder.load(address, align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(data, types.int64), body


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Request the cache line of ``array.flat[index]``, without waiting for it."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, INT32, INT32, INT32])
        # Without the suffix for the pointer's type, which LLVM adds itself: it differs between versions.
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch")
        address = builder.bitcast(_address(context, builder, signature, args), pointer)
        # To read, to be kept in all levels of the cache, data (not code).
        builder.call(function, [address, INT32(0), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), body


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Address of the entry ``args[1]`` of the array ``args[0]``."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])
