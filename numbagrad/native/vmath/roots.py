"""Square and cube roots and their reciprocals, and the hypotenuse."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import BIAS_FLOAT64
from numbagrad.native.vmath.intrinsics import bits, down, float64_of, fma, magnitude, polynomial, root, with_sign
from numbagrad.native.vmath.logarithm import float64_from
from numbagrad.native.vmath.narrow import narrow, narrow2

_f32 = np.float32
_CBRT_2, _CBRT_4 = np.float64(1.2599210498948732), np.float64(1.5874010519681994)

# cbrt(m) of 1 <= m <= 2, error 2^-16.7
_cbrt_guess = polynomial(
    (0.5069852830421571, 0.7181295061981962, -0.3005783922660631, 0.08607288129908029, -0.010600239953145131)
)


@njit(inline=True)
def sqrt_float32(x: Any) -> Any:
    """Square root of a float32, NaN below 0."""
    return root(x)


@njit(inline=True)
def sqrt_float64(x: Any) -> Any:
    """Square root of a float64, NaN below 0."""
    return root(x)


@njit(inline=True)
def rsqrt_float32(x: Any) -> Any:
    """1 / sqrt(x) of a float32."""
    return _f32(1.0) / root(x)


@njit(inline=True)
def rsqrt_float64(x: Any) -> Any:
    """1 / sqrt(x) of a float64."""
    return 1.0 / root(x)


@njit(inline=True)
def cbrt_float64(x: Any) -> Any:
    """Cube root of a float64: a polynomial guess, a step of Halley's method, one of Newton's with the exact cube."""
    a = magnitude(x)
    denormal = a < 2.2250738585072014e-308
    i = bits(a * 2.0**54 if denormal else a)
    k = float64_from((i >> 52) - 1023)
    m = float64_of((i & 0xFFFFFFFFFFFFF) | (1023 << 52))
    third = down((k + 0.5) * (1.0 / 3.0))
    over = k - 3.0 * third  # 0, 1 or 2
    w = m * (1.0 if over == 0.0 else (2.0 if over == 1.0 else 4.0))
    y = _cbrt_guess(m) * (1.0 if over == 0.0 else (_CBRT_2 if over == 1.0 else _CBRT_4))
    cube = y * y * y
    y = y * ((cube + (w + w)) / ((cube + cube) + w))
    square = y * y
    excess = fma(square, y, -w) + fma(y, y, -square) * y
    y = y - excess / (3.0 * square)
    y = y * float64_of(bits(third + (-18.0 if denormal else 0.0) + BIAS_FLOAT64) << 52)
    return with_sign(y, x) if (a > 0.0) & (a < np.inf) else x


@njit(inline=True)
def rcbrt_float64(x: Any) -> Any:
    """1 / cbrt(x) of a float64."""
    return 1.0 / cbrt_float64(x)


@njit(inline=True)
def hypot_float64(x: Any, y: Any) -> Any:
    """sqrt(x^2 + y^2) of float64 without overflow on the way; infinite if either is, even beside NaN."""
    b = magnitude(x)
    c = magnitude(y)
    large = b if b > c else c
    scale = 2.0**-600 if large > 2.0**500 else (2.0**600 if large < 2.0**-400 else 1.0)
    inverse = 2.0**600 if large > 2.0**500 else (2.0**-600 if large < 2.0**-400 else 1.0)
    p = b * scale
    q = c * scale
    value = root(fma(p, p, q * q)) * inverse
    return np.inf if (b == np.inf) | (c == np.inf) else value


cbrt_float32 = narrow(cbrt_float64)
rcbrt_float32 = narrow(rcbrt_float64)
hypot_float32 = narrow2(hypot_float64)

sqrt = door("sqrt", sqrt_float32, sqrt_float64)
rsqrt = door("rsqrt", rsqrt_float32, rsqrt_float64)
cbrt = door("cbrt", cbrt_float32, cbrt_float64)
rcbrt = door("rcbrt", rcbrt_float32, rcbrt_float64)
hypot = door("hypot", hypot_float32, hypot_float64)
