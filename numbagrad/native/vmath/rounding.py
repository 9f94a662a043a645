"""Rounding, remainders and signs."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.intrinsics import down, fma, libm2, magnitude, nearest, towards_zero, up, with_sign

_f32 = np.float32
_libm_fmod = libm2("fmod", np.fmod)


@njit(inline=True)
def floor_float32(x: Any) -> Any:
    """Largest integer not above a float32."""
    return down(x)


@njit(inline=True)
def floor_float64(x: Any) -> Any:
    """Largest integer not above a float64."""
    return down(x)


@njit(inline=True)
def ceil_float32(x: Any) -> Any:
    """Smallest integer not below a float32."""
    return up(x)


@njit(inline=True)
def ceil_float64(x: Any) -> Any:
    """Smallest integer not below a float64."""
    return up(x)


@njit(inline=True)
def trunc_float32(x: Any) -> Any:
    """Integer part of a float32."""
    return towards_zero(x)


@njit(inline=True)
def trunc_float64(x: Any) -> Any:
    """Integer part of a float64."""
    return towards_zero(x)


@njit(inline=True)
def rint_float32(x: Any) -> Any:
    """Nearest integer, halves to even, of a float32."""
    return nearest(x)


@njit(inline=True)
def rint_float64(x: Any) -> Any:
    """Nearest integer, halves to even, of a float64."""
    return nearest(x)


@njit(inline=True)
def round_float32(x: Any) -> Any:
    """Nearest integer, halves away from zero, of a float32."""
    whole = towards_zero(x)
    return whole + with_sign(_f32(1.0), x) if magnitude(x - whole) >= _f32(0.5) else whole


@njit(inline=True)
def sign_float32(x: Any) -> Any:
    """-1, 0 or 1 by the sign of a float32; NaN of NaN."""
    value = _f32(1.0) if x > _f32(0.0) else _f32(0.0)
    value = _f32(-1.0) if x < _f32(0.0) else value
    return x if x != x else value


@njit(inline=True)
def copysign_float32(x: Any, y: Any) -> Any:
    """The magnitude of `x` with the sign of `y`, of float32."""
    return with_sign(x, y)


@njit(inline=True)
def _floored_float32(x: Any, y: Any) -> Any:
    """floor(x / y) or one more, and what it leaves of a finite `x`."""
    quotient = down(x / y)
    unbounded = (magnitude(y) == _f32(np.inf)) & (magnitude(x) < _f32(np.inf))
    return quotient, x if unbounded else fma(-quotient, y, x)


@njit(inline=True)
def mod_float32(x: Any, y: Any) -> Any:
    """Remainder of float32 with the sign of the divisor, as NumPy's; NaN where `y` is 0 or `x` infinite."""
    quotient, rest = _floored_float32(x, y)
    if magnitude(quotient) >= _f32(2.0**23):  # rounded to more than a unit
        rest = _f32(_libm_fmod(np.float64(x), np.float64(y)))
    rest = rest + y if (rest < _f32(0.0)) & (y > _f32(0.0)) | (rest > _f32(0.0)) & (y < _f32(0.0)) else rest
    return with_sign(_f32(0.0), y) if rest == _f32(0.0) else rest


@njit(inline=True)
def floordiv_float32(x: Any, y: Any) -> Any:
    """floor(x / y) of float32, of the exact quotient, as NumPy's; x / 0 where `y` is 0."""
    quotient, rest = _floored_float32(x, y)
    if (magnitude(quotient) >= _f32(2.0**23)) & (y != _f32(0.0)):
        rest = _f32(_libm_fmod(np.float64(x), np.float64(y)))
        quotient = nearest((x - rest) / y)
    above = (rest < _f32(0.0)) & (y > _f32(0.0)) | (rest > _f32(0.0)) & (y < _f32(0.0))
    quotient = quotient - _f32(1.0) if above else quotient
    return _f32(np.nan) if (magnitude(x) == _f32(np.inf)) & (y != _f32(0.0)) else quotient


@njit(inline=True)
def round_float64(x: Any) -> Any:
    """Nearest integer, halves away from zero, of a float64."""
    whole = towards_zero(x)
    return whole + with_sign(1.0, x) if magnitude(x - whole) >= 0.5 else whole


@njit(inline=True)
def sign_float64(x: Any) -> Any:
    """-1, 0 or 1 by the sign of a float64; NaN of NaN."""
    value = 1.0 if x > 0.0 else 0.0
    value = -1.0 if x < 0.0 else value
    return x if x != x else value


@njit(inline=True)
def copysign_float64(x: Any, y: Any) -> Any:
    """The magnitude of `x` with the sign of `y`, of float64."""
    return with_sign(x, y)


@njit(inline=True)
def _floored_float64(x: Any, y: Any) -> Any:
    """floor(x / y) or one more, and what it leaves of a finite `x`."""
    quotient = down(x / y)
    unbounded = (magnitude(y) == np.inf) & (magnitude(x) < np.inf)
    return quotient, x if unbounded else fma(-quotient, y, x)


@njit(inline=True)
def mod_float64(x: Any, y: Any) -> Any:
    """Remainder of float64 with the sign of the divisor, as NumPy's; NaN where `y` is 0 or `x` infinite."""
    quotient, rest = _floored_float64(x, y)
    if magnitude(quotient) >= 2.0**52:  # rounded to more than a unit
        rest = _libm_fmod(x, y)
    rest = rest + y if (rest < 0.0) & (y > 0.0) | (rest > 0.0) & (y < 0.0) else rest
    return with_sign(0.0, y) if rest == 0.0 else rest


@njit(inline=True)
def floordiv_float64(x: Any, y: Any) -> Any:
    """floor(x / y) of float64, of the exact quotient, as NumPy's; x / 0 where `y` is 0."""
    quotient, rest = _floored_float64(x, y)
    if (magnitude(quotient) >= 2.0**52) & (y != 0.0):
        rest = _libm_fmod(x, y)
        quotient = nearest((x - rest) / y)
    above = (rest < 0.0) & (y > 0.0) | (rest > 0.0) & (y < 0.0)
    quotient = quotient - 1.0 if above else quotient
    return np.nan if (magnitude(x) == np.inf) & (y != 0.0) else quotient


floor = door("floor", floor_float32, floor_float64)
ceil = door("ceil", ceil_float32, ceil_float64)
trunc = door("trunc", trunc_float32, trunc_float64)
rint = door("rint", rint_float32, rint_float64)
round = door("round", round_float32, round_float64)
sign = door("sign", sign_float32, sign_float64)
mod = door("mod", mod_float32, mod_float64)
floordiv = door("floordiv", floordiv_float32, floordiv_float64)
copysign = door("copysign", copysign_float32, copysign_float64)
