"""The logarithms: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)], and log1p(f) = f - small(f)."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import (
    LN2_FLOAT32,
    LN2_FLOAT64,
    LN2_REST_FLOAT64,
    MAGIC_FLOAT64,
)
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, low32, polynomial, with_sign

_f32 = np.float32
_ROOT_HALF_FLOAT32 = 0x3F3504F3  # bits of sqrt(1/2)
_ROOT_HALF_FLOAT64 = 0x3FE6A09E667F3BCD
_MAGIC_BITS_FLOAT64 = 0x4338000000000000  # of 1.5 * 2^52; adding an integer puts it into the low bits

_LOG2E_FLOAT32, _LOG2E_REST_FLOAT32 = np.float32(1.442695), np.float32(1.925963e-08)
_LOG2E_FLOAT64, _LOG2E_REST_FLOAT64 = np.float64(1.4426950408889634), np.float64(2.0355273740931033e-17)
_LOG10E_FLOAT32, _LOG10E_REST_FLOAT32 = np.float32(0.4342945), np.float32(-1.010305e-08)
_LOG10E_FLOAT64, _LOG10E_REST_FLOAT64 = np.float64(0.4342944819032518), np.float64(1.098319650216765e-17)
_LOG10_2_FLOAT32, _LOG10_2_REST_FLOAT32 = np.float32(0.30103), np.float32(-1.4320989e-08)
_LOG10_2_FLOAT64, _LOG10_2_REST_FLOAT64 = np.float64(0.3010299956639812), np.float64(-2.8037281277851704e-18)

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
def parts_float32(x: Any) -> Any:
    """The parts k and f of a positive, normal float32, k as an int."""
    i = bits(x)
    k = low32(i - _ROOT_HALF_FLOAT32) >> 23
    return k, float32_of(i - (k << 23)) - _f32(1.0)


@njit(inline=True)
def parts_float64(x: Any) -> Any:
    """The parts k and f of a positive, normal float64, k as an int."""
    i = bits(x)
    k = ((i - _ROOT_HALF_FLOAT64 + (1024 << 52)) >> 52 & 0xFFF) - 1024  # no arithmetic shift of 64 bits in AVX2
    return k, float64_of(i - (k << 52)) - 1.0


@njit(inline=True)
def float64_from(k: Any) -> Any:
    """A small int as a float64: AVX2 cannot convert 64-bit integers."""
    return float64_of(k + _MAGIC_BITS_FLOAT64) - MAGIC_FLOAT64


@njit(inline=True)
def _all_parts_float32(x: Any) -> Any:
    """The parts k and f of any positive float32, k as a float."""
    denormal = x < _f32(1.1754944e-38)
    k, f = parts_float32(x * _f32(2.0**24) if denormal else x)
    return _f32(low32(k)) + (_f32(-24.0) if denormal else _f32(0.0)), f


@njit(inline=True)
def all_parts_float64(x: Any) -> Any:
    """The parts k and f of any positive float64, k as a float."""
    denormal = x < 2.2250738585072014e-308
    k, f = parts_float64(x * 2.0**54 if denormal else x)
    return float64_from(k) + (-54.0 if denormal else 0.0), f


@njit(inline=True)
def _small_float64(f: Any) -> Any:
    """f^2 / 2 and f s + ..., whose difference is f - log1p(f)."""
    s = f / (f + 2.0)
    z = s * s
    half = 0.5 * f * f
    return half, s * fma(z, _atanh_tail_float64(z), half)


@njit(inline=True)
def _checked_float32(value: Any, x: Any) -> Any:
    """`value`, except for an `x` that is not positive and finite."""
    value = value if x < _f32(np.inf) else x
    value = _f32(np.nan) if x < _f32(0.0) else value
    return _f32(-np.inf) if x == _f32(0.0) else value


@njit(inline=True)
def _checked_float64(value: Any, x: Any) -> Any:
    """`value`, except for an `x` that is not positive and finite."""
    value = value if x < np.inf else x
    value = np.nan if x < 0.0 else value
    return -np.inf if x == 0.0 else value


@njit(inline=True)
def log_float32(x: Any) -> Any:
    """Natural logarithm of a float32."""
    k, f = _all_parts_float32(x)
    return _checked_float32(fma(k, LN2_FLOAT32, fma(f * f, _log1p_tail_float32(f), f)), x)


@njit(inline=True)
def log_float64(x: Any) -> Any:
    """Natural logarithm of a float64."""
    k, f = all_parts_float64(x)
    half, rest = _small_float64(f)
    return _checked_float64(fma(k, LN2_FLOAT64, f - (half - fma(k, LN2_REST_FLOAT64, rest))), x)


@njit(inline=True)
def log2_float32(x: Any) -> Any:
    """Logarithm to base 2 of a float32, exact for powers of 2."""
    k, f = _all_parts_float32(x)
    small = f * f * _log1p_tail_float32(f)
    return _checked_float32(fma(f, _LOG2E_FLOAT32, fma(small, _LOG2E_FLOAT32, fma(f, _LOG2E_REST_FLOAT32, k))), x)


@njit(inline=True)
def log2_float64(x: Any) -> Any:
    """Logarithm to base 2 of a float64, exact for powers of 2."""
    k, f = all_parts_float64(x)
    half, rest = _small_float64(f)
    return _checked_float64(fma(f, _LOG2E_FLOAT64, fma(rest - half, _LOG2E_FLOAT64, fma(f, _LOG2E_REST_FLOAT64, k))), x)


@njit(inline=True)
def log10_float32(x: Any) -> Any:
    """Logarithm to base 10 of a float32."""
    k, f = _all_parts_float32(x)
    small = f * f * _log1p_tail_float32(f)
    rest = fma(f, _LOG10E_REST_FLOAT32, k * _LOG10_2_REST_FLOAT32)
    return _checked_float32(fma(k, _LOG10_2_FLOAT32, fma(f, _LOG10E_FLOAT32, fma(small, _LOG10E_FLOAT32, rest))), x)


@njit(inline=True)
def log10_float64(x: Any) -> Any:
    """Logarithm to base 10 of a float64."""
    k, f = all_parts_float64(x)
    half, small = _small_float64(f)
    rest = fma(f, _LOG10E_REST_FLOAT64, k * _LOG10_2_REST_FLOAT64)
    return _checked_float64(
        fma(k, _LOG10_2_FLOAT64, fma(f, _LOG10E_FLOAT64, fma(small - half, _LOG10E_FLOAT64, rest))), x
    )


@njit(inline=True)
def log1p_float32(x: Any) -> Any:
    """log(1 + x) of a float32; what 1 + x rounds away is added to f."""
    u = x + _f32(1.0)
    v = u - x
    rest = (x - (u - v)) + (_f32(1.0) - v)
    k, f = parts_float32(u)
    f = fma(rest, float32_of(0x3F800000 - (k << 23)), f) if u < _f32(2.0**40) else f
    value = fma(_f32(low32(k)), LN2_FLOAT32, fma(f * f, _log1p_tail_float32(f), f))
    value = value if x < _f32(np.inf) else x
    value = _f32(np.nan) if x < _f32(-1.0) else value
    return with_sign(_f32(np.inf) if x == _f32(-1.0) else value, x)


@njit(inline=True)
def log1p_float64(x: Any) -> Any:
    """log(1 + x) of a float64; what 1 + x rounds away is added to f."""
    u = x + 1.0
    v = u - x
    rest = (x - (u - v)) + (1.0 - v)
    k, f = parts_float64(u)
    f = fma(rest, float64_of(0x3FF0000000000000 - (k << 52)), f) if u < 2.0**80 else f
    n = float64_from(k)
    half, rest = _small_float64(f)
    value = fma(n, LN2_FLOAT64, f - (half - fma(n, LN2_REST_FLOAT64, rest)))
    value = value if x < np.inf else x
    value = np.nan if x < -1.0 else value
    return with_sign(np.inf if x == -1.0 else value, x)


log = door("log", log_float32, log_float64)
log1p = door("log1p", log1p_float32, log1p_float64)
log2 = door("log2", log2_float32, log2_float64)
log10 = door("log10", log10_float32, log10_float64)
