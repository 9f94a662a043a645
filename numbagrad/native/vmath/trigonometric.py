"""sin, cos and tan: the quadrant and the remainder of x / (pi/2), then a polynomial on [-pi/4, pi/4].

An argument of moderate size is reduced in three steps (Cody and Waite) and keeps what the remainder rounds away; a
larger one goes to libm.

Coefficients: own minimax fits, made as in ``exponential``.
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import MAGIC_FLOAT32, MAGIC_FLOAT64
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, libm, low32, magnitude, polynomial
from numbagrad.native.vmath.narrow import narrow

_f32 = np.float32

# pi/2 in three parts, and the size up to which they reduce an argument without loss
_HALF_PI_FLOAT32, _HALF_PI_REST_FLOAT32, _HALF_PI_LAST_FLOAT32 = (
    _f32(1.5707964),
    _f32(-4.371139e-08),
    _f32(-1.7151245e-15),
)
_HALF_PI_FLOAT64, _HALF_PI_REST_FLOAT64 = np.float64(1.5707963267948966), np.float64(6.123233995736766e-17)
_HALF_PI_LAST_FLOAT64 = np.float64(-1.4973849048591698e-33)
_TWO_BY_PI_FLOAT32, _TWO_BY_PI_FLOAT64 = _f32(0.6366197723675814), np.float64(0.6366197723675814)
_BOUND_FLOAT32 = _f32(2.0**17)
_BOUND_FLOAT64 = np.float64(2.0**30)
_libm_sin = libm("sin", np.sin)
_libm_cos = libm("cos", np.cos)
_libm_tan = libm("tan", np.tan)

# (sin(x) / x - 1) / x^2, errors 2^-27.9 and 2^-57.7; (cos(x) - 1 + x^2 / 2) / x^4, 2^-33.1 and 2^-63.9; of x^2
_sin_float32 = polynomial((-0.16666654, 0.008332106, -0.0001950782))
_cos_float32 = polynomial((0.041666646, -0.0013887301, 2.443065e-05))
_sin_float64 = polynomial(
    (
        -0.16666666666666627,
        0.008333333333321133,
        -0.0001984126982876996,
        2.755731332543407e-06,
        -2.5050699616310434e-08,
        1.5893339043224764e-10,
    )
)
_cos_float64 = polynomial(
    (
        0.04166666666666659,
        -0.0013888888888872136,
        2.4801587288233207e-05,
        -2.7557313988358536e-07,
        2.0875673306610835e-09,
        -1.1357034031351134e-11,
    )
)


@njit(inline=True)
def _turn_float32(x: Any, quarter: int) -> Any:
    """sin(x + quarter * pi/2) of a float32 within the bound."""
    shifted = fma(x, _TWO_BY_PI_FLOAT32, MAGIC_FLOAT32)
    n = shifted - MAGIC_FLOAT32
    exact = fma(-n, _HALF_PI_FLOAT32, x)
    r = exact - n * _HALF_PI_REST_FLOAT32
    rest = fma(-n, _HALF_PI_LAST_FLOAT32, fma(-n, _HALF_PI_REST_FLOAT32, exact - r))
    quadrant = low32(bits(shifted) + quarter)
    t = r * r
    sine = r + fma(r * t, _sin_float32(t), rest)
    cosine = fma(t, _f32(-0.5), _f32(1.0)) + fma(t * t, _cos_float32(t), -r * rest)
    value = cosine if quadrant & 1 else sine
    return float32_of(bits(value) ^ ((quadrant & 2) << 30))


@njit(inline=True)
def sin_float32(x: Any) -> Any:
    """Sine of a float32, of any size."""
    a = magnitude(x)
    value = x if a < _f32(1e-4) else _turn_float32(x, 0)
    if a > _BOUND_FLOAT32:
        value = _f32(_libm_sin(np.float64(x)))
    return value


@njit(inline=True)
def cos_float32(x: Any) -> Any:
    """Cosine of a float32, of any size."""
    value = _turn_float32(x, 1)
    if magnitude(x) > _BOUND_FLOAT32:
        value = _f32(_libm_cos(np.float64(x)))
    return value


@njit(inline=True)
def _sine_and_cosine_float64(x: Any) -> Any:
    """Sin and cos of the remainder of a float64 within the bound, and the quadrant in the low bits of an int."""
    shifted = fma(x, _TWO_BY_PI_FLOAT64, MAGIC_FLOAT64)
    n = shifted - MAGIC_FLOAT64
    exact = fma(-n, _HALF_PI_FLOAT64, x)
    r = exact - n * _HALF_PI_REST_FLOAT64
    rest = fma(-n, _HALF_PI_LAST_FLOAT64, fma(-n, _HALF_PI_REST_FLOAT64, exact - r))
    t = r * r
    sine = r + fma(r * t, _sin_float64(t), rest)
    half = 0.5 * t
    near = 1.0 - half
    cosine = near + (((1.0 - near) - half) + fma(t * t, _cos_float64(t), -r * rest))
    return sine, cosine, bits(shifted)


@njit(inline=True)
def _turn_float64(x: Any, quarter: int) -> Any:
    """sin(x + quarter * pi/2) of a float64 within the bound."""
    sine, cosine, quadrant = _sine_and_cosine_float64(x)
    quadrant = quadrant + quarter
    value = cosine if quadrant & 1 else sine
    return float64_of(bits(value) ^ ((quadrant & 2) << 62))


@njit(inline=True)
def sin_float64(x: Any) -> Any:
    """Sine of a float64, of any size."""
    a = magnitude(x)
    value = x if a < 1e-8 else _turn_float64(x, 0)
    if a > _BOUND_FLOAT64:
        value = _libm_sin(x)
    return value


@njit(inline=True)
def cos_float64(x: Any) -> Any:
    """Cosine of a float64, of any size."""
    value = _turn_float64(x, 1)
    if magnitude(x) > _BOUND_FLOAT64:
        value = _libm_cos(x)
    return value


@njit(inline=True)
def tan_float64(x: Any) -> Any:
    """Tangent of a float64, of any size."""
    a = magnitude(x)
    sine, cosine, quadrant = _sine_and_cosine_float64(x)
    odd = quadrant & 1
    value = (-cosine if odd else sine) / (sine if odd else cosine)
    value = x if a < 1e-8 else value
    if a > _BOUND_FLOAT64:
        value = _libm_tan(x)
    return value


tan_float32 = narrow(tan_float64)

sin = door("sin", sin_float32, sin_float64)
cos = door("cos", cos_float32, cos_float64)
tan = door("tan", tan_float32, tan_float64)
