"""Conversion between dtypes, NumPy's ``astype``; float16 is stored as its 16 bits in uint16 arrays."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import intrinsic, njit


def _converted(value: Any, like: Any) -> Any:
    return np.asarray(value).astype(np.asarray(like).dtype)[()]


@intrinsic(_converted)
def convert(typingctx: Any, value: Any, like: Any) -> Any:
    """`value` in the type of the scalar `like`: to bool by ``!= 0``, floats to narrow ints through int32.

    Through int32, because a direct conversion out of the range of int8 or uint8 is undefined, while NumPy wraps.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = signature.args
        number = arguments[0]
        if isinstance(target, types.Boolean):
            number_type = number.type
            if isinstance(source, types.Float):
                return builder.fcmp_unordered("!=", number, ir.Constant(number_type, 0.0))
            return builder.icmp_unsigned("!=", number, ir.Constant(number_type, 0))
        if isinstance(source, types.Float) and isinstance(target, types.Integer) and target.bitwidth < 32:
            return builder.trunc(builder.fptosi(number, ir.IntType(32)), ir.IntType(target.bitwidth))
        return context.cast(builder, number, source, target)

    return like(value, like), build


@kernel("in out size")
def cast(x: Any, out: Any, n: int) -> int:
    """``out = x.astype(out.dtype)``: floats truncate towards zero, ints wrap, to bool is ``x != 0``."""
    like = out.dtype.type(0)
    for i in range(n):
        out[i] = convert(x[i], like)
    return 0


# ------------------------------------------------------------------------------------------------- float16
# Bit arithmetic without branches, so that LLVM vectorises it on any CPU. A half has 5 exponent bits of bias 15
# and 10 fraction bits.


def _bits_of(value: Any) -> Any:
    return value.view(np.uint32 if value.itemsize == 4 else np.uint64)


@intrinsic(_bits_of)
def _bits(typingctx: Any, value: Any) -> Any:
    """The bits of a float as an unsigned int of its width."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return (types.uint32 if value == types.float32 else types.uint64)(value), build


def _float_of(bits: Any) -> Any:
    return bits.view(np.float32 if bits.itemsize == 4 else np.float64)


@intrinsic(_float_of)
def _from_bits(typingctx: Any, bits: Any) -> Any:
    """The float whose bits are an unsigned int of its width."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return (types.float32 if bits.bitwidth == 32 else types.float64)(bits), build


_SCALE = np.float32(2.0**112)  # moves the exponent bias from 15 to 127


@njit(inline=True)
def _half_to_single(half: Any) -> Any:
    wide = np.uint32(half)
    magnitude = np.uint32((wide & np.uint32(0x7FFF)) << np.uint32(13))
    sign = np.uint32((wide & np.uint32(0x8000)) << np.uint32(16))
    finite = _bits(np.float32(_from_bits(magnitude) * _SCALE))  # a product, so that denormals normalise
    special = np.uint32(magnitude | np.uint32(0x7F800000))
    bits = special if magnitude >= np.uint32(0x0F800000) else finite
    return _from_bits(np.uint32(bits | sign))


@njit(inline=True)
def _single_to_half(value: Any) -> Any:
    bits = _bits(value)
    magnitude = np.uint32(bits & np.uint32(0x7FFFFFFF))
    sign = np.uint32((bits & np.uint32(0x80000000)) >> np.uint32(16))
    odd = np.uint32((magnitude >> np.uint32(13)) & np.uint32(1))
    # Bias 127 to 15, then round to nearest even at bit 13; the carry runs into the exponent as it should.
    normal = np.uint32((magnitude - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13))
    # Adding 0.5 leaves a float32 whose last bit is worth 2**-24, the last bit of a denormal half.
    shifted = np.float32(_from_bits(magnitude) + np.float32(0.5))
    denormal = np.uint32(_bits(shifted) - np.uint32(0x3F000000))
    payload = np.uint32(np.uint32(0x7C00) | (magnitude >> np.uint32(13)) & np.uint32(0x3FF))
    nan = np.uint32(payload + np.uint32(payload == np.uint32(0x7C00)))
    half = denormal if magnitude < np.uint32(0x38800000) else normal
    half = np.uint32(0x7C00) if magnitude >= np.uint32(0x477FF000) else half
    half = nan if magnitude > np.uint32(0x7F800000) else half
    return np.uint16(half | sign)


@njit(inline=True)
def _double_to_half(value: Any) -> Any:
    bits = _bits(value)
    magnitude = np.uint64(bits & np.uint64(0x7FFFFFFFFFFFFFFF))
    sign = np.uint64((bits & np.uint64(0x8000000000000000)) >> np.uint64(48))
    odd = np.uint64((magnitude >> np.uint64(42)) & np.uint64(1))
    normal = np.uint64((magnitude - np.uint64(0x3F00000000000000) + np.uint64(0x1FFFFFFFFFF) + odd) >> np.uint64(42))
    # The last bit of 2**28 + x is worth 2**-24.
    shifted = _from_bits(magnitude) + 268435456.0
    denormal = np.uint64(_bits(shifted) - np.uint64(0x41B0000000000000))
    payload = np.uint64(np.uint64(0x7C00) | (magnitude >> np.uint64(42)) & np.uint64(0x3FF))
    nan = np.uint64(payload + np.uint64(payload == np.uint64(0x7C00)))
    half = denormal if magnitude < np.uint64(0x3F10000000000000) else normal
    half = np.uint64(0x7C00) if magnitude >= np.uint64(0x40EFFE0000000000) else half
    half = nan if magnitude > np.uint64(0x7FF0000000000000) else half
    return np.uint16(half | sign)


@kernel("in out size")
def half_to_float(x: Any, out: Any, n: int) -> int:
    """Halves, as uint16 bits, to float32 or float64; exact."""
    for i in range(n):
        out[i] = _half_to_single(x[i])
    return 0


@kernel("in out size")
def float_to_half(x: Any, out: Any, n: int) -> int:
    """float32 to halves, as uint16 bits, rounded to nearest even; overflow gives infinity."""
    for i in range(n):
        out[i] = _single_to_half(x[i])
    return 0


@kernel("in out size")
def double_to_half(x: Any, out: Any, n: int) -> int:
    """float64 to halves, as uint16 bits, rounded once to nearest even."""
    for i in range(n):
        out[i] = _double_to_half(x[i])
    return 0
