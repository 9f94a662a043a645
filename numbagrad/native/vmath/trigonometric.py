"""sin and cos: the quadrant and the remainder of x / (pi/2), then a polynomial on [-pi/4, pi/4].

Coefficients: own minimax fits, made as in ``exponential``.
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, low32, magnitude, polynomial, rare_libm

_f32 = np.float32
_MAGIC = np.float64(1.5 * 2**52)
_HALF_PI = np.float64(1.5707963267948966)

# 2/pi without the bits that, times a float32 of at least 2^44, 2^65, 2^86, 2^107, give multiples of four turns of
# pi/2 (Payne and Hanek's argument); each as the sum of two float64
_TWO_BY_PI = np.float64(0.6366197723675814)
_C0, _D0 = _TWO_BY_PI, np.float64(-3.935735335036497e-17)
_C1, _D1 = np.float64.fromhex("0x1.b727220a94fe1p-23"), np.float64.fromhex("0x1.d5f47d4d37703p-78")
_C2, _D2 = np.float64.fromhex("0x1.1054a7f09d5f4p-42"), np.float64.fromhex("0x1.f534ddc0db629p-96")
_C3, _D3 = np.float64.fromhex("0x1.fc2757d1f534ep-64"), np.float64.fromhex("-0x1.1f924eb53361ep-119")
_C4, _D4 = np.float64.fromhex("0x1.7d1f534ddc0dbp-84"), np.float64.fromhex("0x1.8a5664f10e410p-138")

# (sin(x) / x - 1) / x^2, error 2^-27.9; (cos(x) - 1 + x^2 / 2) / x^4, error 2^-33.1; of x^2
_sin_float32 = polynomial((-0.16666654, 0.008332106, -0.0001950782))
_cos_float32 = polynomial((0.041666646, -0.0013887301, 2.443065e-05))


@njit(inline=True)
def _turn_float32(x: Any, quarter: int) -> Any:
    """sin(x + quarter * pi/2) of a float32."""
    a = magnitude(x)
    c, d = _C0, _D0
    c, d = (_C1, _D1) if a >= _f32(2.0**44) else (c, d)
    c, d = (_C2, _D2) if a >= _f32(2.0**65) else (c, d)
    c, d = (_C3, _D3) if a >= _f32(2.0**86) else (c, d)
    c, d = (_C4, _D4) if a >= _f32(2.0**107) else (c, d)
    wide = np.float64(x)
    turns = wide * c
    shifted = turns + _MAGIC
    fraction = (turns - (shifted - _MAGIC)) + fma(wide, d, fma(wide, c, -turns))
    r = _f32(fraction * _HALF_PI)
    quadrant = low32(bits(shifted)) + quarter
    t = r * r
    sine = fma(r * t, _sin_float32(t), r)
    cosine = fma(t * t, _cos_float32(t), fma(t, _f32(-0.5), _f32(1.0)))
    value = cosine if quadrant & 1 else sine
    return float32_of(bits(value) ^ ((quadrant & 2) << 30))


@njit(inline=True)
def sin_float32(x: Any) -> Any:
    """Sine of a float32, of any size."""
    return x if magnitude(x) < _f32(1e-4) else _turn_float32(x, 0)


@njit(inline=True)
def cos_float32(x: Any) -> Any:
    """Cosine of a float32, of any size."""
    return _turn_float32(x, 1)


# pi/2 in three parts, and the size up to which they reduce an argument without loss
_HALF_PI_REST, _HALF_PI_LAST = np.float64(6.123233995736766e-17), np.float64(-1.4973849048591833e-33)
_BOUND = np.float64(2.0**30)
_libm_sin = rare_libm("sin", np.sin)
_libm_cos = rare_libm("cos", np.cos)

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
def _turn_float64(x: Any, quarter: int) -> Any:
    """sin(x + quarter * pi/2) of a float64 within the bound."""
    shifted = fma(x, _TWO_BY_PI, _MAGIC)
    n = shifted - _MAGIC
    exact = fma(-n, _HALF_PI, x)
    r = exact - n * _HALF_PI_REST
    rest = fma(-n, _HALF_PI_LAST, fma(-n, _HALF_PI_REST, exact - r))
    quadrant = bits(shifted) + quarter
    t = r * r
    sine = r + fma(r * t, _sin_float64(t), rest)
    half = 0.5 * t
    near = 1.0 - half
    cosine = near + (((1.0 - near) - half) + fma(t * t, _cos_float64(t), -r * rest))
    value = cosine if quadrant & 1 else sine
    return float64_of(bits(value) ^ ((quadrant & 2) << 62))


@njit(inline=True)
def sin_float64(x: Any) -> Any:
    """Sine of a float64, of any size."""
    a = magnitude(x)
    value = x if a < 1e-8 else _turn_float64(x, 0)
    if a > _BOUND:
        value = _libm_sin(x)
    return value


@njit(inline=True)
def cos_float64(x: Any) -> Any:
    """Cosine of a float64, of any size."""
    value = _turn_float64(x, 1)
    if magnitude(x) > _BOUND:
        value = _libm_cos(x)
    return value
