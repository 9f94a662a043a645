"""The logarithms: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)], k ln(2) + log1p(f).

Coefficients: own minimax fits, made as in ``exponential``.
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.exponential import LN2_HIGH_FLOAT32, LN2_HIGH_FLOAT64, LN2_LOW_FLOAT64, MAGIC_FLOAT64
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, low32, polynomial, with_sign

_f32 = np.float32
ROOT_HALF_FLOAT32 = 0x3F3504F3  # bits of sqrt(1/2)
ROOT_HALF_FLOAT64 = 0x3FE6A09E667F3BCD
# bits whose low end holds an integer as 1.5 * 2^52 + integer
MAGIC_BITS_FLOAT64 = 0x4338000000000000

# (log1p(f) - f) / f^2; error 2^-27.7 of log1p(f)
_log1p_tail_float32 = polynomial(
    (
        -0.49999988,
        0.33333316,
        -0.25001597,
        0.2000261,
        -0.1660938,
        0.14169407,
        -0.13227405,
        0.12977502,
        -0.07749186,
    )
)
# 2 (atanh(s) / s - 1) / s^2 of s^2 <= (3 - sqrt(8))^2; error 2^-59.4 of 2 atanh(s)
_atanh_tail_float64 = polynomial(
    (
        0.6666666666666735,
        0.399999999994096,
        0.28571428743593374,
        0.22222198439318835,
        0.18183571890467384,
        0.1531384012141139,
        0.14798233418710022,
    )
)


@njit(inline=True)
def log_float32(x: Any) -> Any:
    """Natural logarithm of a float32."""
    denormal = x < _f32(1.1754944e-38)
    scaled = x * _f32(2.0**24) if denormal else x
    base = _f32(-24.0) if denormal else _f32(0.0)
    i = bits(scaled)
    k = low32(i - ROOT_HALF_FLOAT32) >> 23
    f = float32_of(i - (k << 23)) - _f32(1.0)
    value = fma(_f32(low32(k)) + base, LN2_HIGH_FLOAT32, fma(f * f, _log1p_tail_float32(f), f))
    value = value if x < _f32(np.inf) else x
    value = _f32(np.nan) if x < _f32(0.0) else value
    return _f32(-np.inf) if x == _f32(0.0) else value


@njit(inline=True)
def log_float64(x: Any) -> Any:
    """Natural logarithm of a float64."""
    denormal = x < 2.2250738585072014e-308
    scaled = x * 2.0**54 if denormal else x
    base = -54.0 if denormal else 0.0
    i = bits(scaled)
    # AVX2 neither shifts 64 bits arithmetically nor converts them to floating point
    k = ((i - ROOT_HALF_FLOAT64 + (1024 << 52)) >> 52 & 0xFFF) - 1024
    f = float64_of(i - (k << 52)) - 1.0
    n = float64_of(k + MAGIC_BITS_FLOAT64) - MAGIC_FLOAT64 + base
    s = f / (f + 2.0)
    z = s * s
    half = 0.5 * f * f
    tail = fma(z, _atanh_tail_float64(z), half)
    value = fma(n, LN2_HIGH_FLOAT64, f - (half - fma(s, tail, n * LN2_LOW_FLOAT64)))
    value = value if x < np.inf else x
    value = np.nan if x < 0.0 else value
    return -np.inf if x == 0.0 else value


@njit(inline=True)
def log1p_float32(x: Any) -> Any:
    """log(1 + x) of a float32; what 1 + x rounds away is added to f."""
    u = x + _f32(1.0)
    v = u - x
    rest = (x - (u - v)) + (_f32(1.0) - v)
    i = bits(u)
    k = low32(i - ROOT_HALF_FLOAT32) >> 23
    f = float32_of(i - (k << 23)) - _f32(1.0)
    f = fma(rest, float32_of(0x3F800000 - (k << 23)), f) if u < _f32(2.0**40) else f
    value = fma(_f32(low32(k)), LN2_HIGH_FLOAT32, fma(f * f, _log1p_tail_float32(f), f))
    value = value if x < _f32(np.inf) else x
    value = _f32(np.nan) if x < _f32(-1.0) else value
    return with_sign(_f32(np.inf) if x == _f32(-1.0) else value, x)


@njit(inline=True)
def log1p_float64(x: Any) -> Any:
    """log(1 + x) of a float64; what 1 + x rounds away is added to f."""
    u = x + 1.0
    v = u - x
    rest = (x - (u - v)) + (1.0 - v)
    i = bits(u)
    k = ((i - ROOT_HALF_FLOAT64 + (1024 << 52)) >> 52 & 0xFFF) - 1024
    f = float64_of(i - (k << 52)) - 1.0
    f = fma(rest, float64_of(0x3FF0000000000000 - (k << 52)), f) if u < 2.0**80 else f
    n = float64_of(k + MAGIC_BITS_FLOAT64) - MAGIC_FLOAT64
    s = f / (f + 2.0)
    z = s * s
    half = 0.5 * f * f
    tail = fma(z, _atanh_tail_float64(z), half)
    value = fma(n, LN2_HIGH_FLOAT64, f - (half - fma(s, tail, n * LN2_LOW_FLOAT64)))
    value = value if x < np.inf else x
    value = np.nan if x < -1.0 else value
    return with_sign(np.inf if x == -1.0 else value, x)
