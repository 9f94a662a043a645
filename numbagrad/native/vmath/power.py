"""x^y as 2^(y log2|x|), with the logarithm in float64 for float32 and in two float64 for float64.

log2(m) = 2 atanh(s) / ln(2), s = (m - 1) / (m + 1).
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import MAGIC_FLOAT64, exp2_tail_float64, scaled_float64
from numbagrad.native.vmath.intrinsics import bits, down, float32_of, float64_of, fma, magnitude, polynomial
from numbagrad.native.vmath.logarithm import all_parts_float64, float64_from, parts_float64

_f32 = np.float32

# log2(m) / s of s^2, error 2^-37.8; 2^r, error 2^-29.0
_log2_tail = polynomial(
    (2.8853900817899207, 0.9617966733400176, 0.577083594740508, 0.41167181860899305, 0.34075069164678995)
)
_exp2_short = polynomial(
    (
        1.0000000005615195,
        0.6931472059669247,
        0.2402264684669997,
        0.05550328202258662,
        0.009618487030341825,
        0.0013400162623713634,
        0.00015347456665065087,
    )
)
# (atanh(s) / s - 1 - z / 3) / z^2 of z = s^2, error 2^-66.2 of atanh(s)
_atanh_rest = polynomial(
    (
        0.2000000000000114,
        0.14285714285044193,
        0.11111111261017578,
        0.09090892086553318,
        0.07693383318092027,
        0.06628296757815748,
        0.06599237131730225,
    )
)
_THIRD, _THIRD_REST = np.float64(1 / 3), np.float64(1.850371707708594e-17)
_TWO_LOG2E, _TWO_LOG2E_REST = np.float64(2.8853900817779268), np.float64(4.0710547481862066e-17)


@njit(inline=True)
def pow_float32(x: Any, y: Any) -> Any:
    """x^y of float32, special cases as in C99."""
    base = magnitude(x)
    k, f = parts_float64(np.float64(base))  # never denormal
    s = f / (f + 2.0)
    log2 = fma(s, _log2_tail(s * s), float64_from(k))
    power = np.float64(y) * log2
    power = 160.0 if power > 160.0 else power
    power = -160.0 if power < -160.0 else power
    shifted = power + MAGIC_FLOAT64
    value = _f32(_exp2_short(power - (shifted - MAGIC_FLOAT64)) * float64_of((bits(shifted) + 1023) << 52))

    edge = _f32(np.inf) if (y < _f32(0.0)) == (base == _f32(0.0)) else _f32(0.0)
    value = edge if (base == _f32(0.0)) | (base == _f32(np.inf)) else value
    value = _f32(1.0) if (base == _f32(1.0)) & (magnitude(y) == _f32(np.inf)) else value
    half = y * _f32(0.5)
    whole = down(y) == y
    odd = whole & (down(half) != half)
    value = _f32(np.nan) if (x < _f32(0.0)) & (base < _f32(np.inf)) & (not whole) else value
    value = float32_of(bits(value) ^ ((bits(x) & -0x80000000) if odd else 0))
    value = x + y if (x != x) | (y != y) else value
    return _f32(1.0) if (x == _f32(1.0)) | (y == _f32(0.0)) else value


@njit(inline=True)
def pow_float64(x: Any, y: Any) -> Any:
    """x^y of float64, special cases as in C99."""
    base = magnitude(x)
    n, f = all_parts_float64(base)
    # s, z = s^2, w = z (1/3 + z rest(z)) and atanh(s) = s + s w, each as a float64 and what it rounds away
    d = f + 2.0
    inverse = 1.0 / d
    s = f * inverse
    s_rest = fma(-s, f - (d - 2.0), fma(-s, d, f)) * inverse
    z = s * s
    z_rest = fma(s, s, -z) + 2.0 * s * s_rest
    u = z * _atanh_rest(z)
    p = _THIRD + u
    p_rest = (_THIRD - p + u) + _THIRD_REST
    w = z * p
    w_rest = fma(z, p, -w) + fma(z, p_rest, z_rest * p)
    v = s * w
    v_rest = fma(s, w, -v) + fma(s, w_rest, s_rest * w)
    t = s + v
    t_rest = (s - t + v) + (s_rest + v_rest)
    part = t * _TWO_LOG2E
    part_rest = fma(t, _TWO_LOG2E, -part) + fma(t, _TWO_LOG2E_REST, t_rest * _TWO_LOG2E)
    log2 = n + part
    shift = log2 - n
    log2_rest = ((n - (log2 - shift)) + (part - shift)) + part_rest

    # beyond 2^65 every power but that of 1 is 0 or infinite
    c = 2.0**65 if y > 2.0**65 else y
    c = -(2.0**65) if c < -(2.0**65) else c
    power = c * log2
    rest = fma(c, log2, -power) + c * log2_rest
    rest = 0.0 if magnitude(power) > 1100.0 else rest
    power = 1100.0 if power > 1100.0 else power
    power = -1100.0 if power < -1100.0 else power
    shifted = power + MAGIC_FLOAT64
    r = (power - (shifted - MAGIC_FLOAT64)) + rest
    value = scaled_float64(fma(r, exp2_tail_float64(r), 1.0), shifted)

    edge = np.inf if (y < 0.0) == (base == 0.0) else 0.0
    value = edge if (base == 0.0) | (base == np.inf) else value
    value = 1.0 if (base == 1.0) & (magnitude(y) == np.inf) else value
    halved = y * 0.5
    whole = down(y) == y
    odd = whole & (down(halved) != halved)
    value = np.nan if (x < 0.0) & (base < np.inf) & (not whole) else value
    value = float64_of(bits(value) ^ ((bits(x) & -0x8000000000000000) if odd else 0))
    value = x + y if (x != x) | (y != y) else value
    return 1.0 if (x == 1.0) | (y == 0.0) else value


pow = door("pow", pow_float32, pow_float64)
