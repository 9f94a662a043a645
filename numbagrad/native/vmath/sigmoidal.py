"""tanh, sigmoid and softplus, from e^2|x| or e^-|x| of bounded arguments, so that nothing overflows."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import (
    BIAS_FLOAT32,
    BIAS_FLOAT64,
    LN2_FLOAT32,
    LN2_FLOAT64,
    exp_float32,
    exp_float64,
    exp_near_float32,
    reduced_float32,
    reduced_float64,
    short_tail_float64,
)
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, magnitude, polynomial

_f32 = np.float32

# (tanh(x) / x - 1) / x^2 of x^2 <= 0.303; errors 2^-24.7 and 2^-55.2 of tanh(x)
_small_tanh_float32 = polynomial((-0.33332953, 0.1332084, -0.052677438, 0.016445516))
_small_tanh_float64 = polynomial(
    (
        -0.3333333333333233,
        0.13333333333171063,
        -0.05396825387707126,
        0.021869485995042508,
        -0.008863194735172974,
        0.003591721272616689,
        -0.0014532232817580984,
        0.0005791530282517109,
        -0.00021032363078021273,
        5.1033057765957075e-05,
    )
)

# 2 (atanh(s) / s - 1) / s^2 of s^2 <= 1/9; errors 2^-27.7 and 2^-59.3 of 2 atanh(s)
_atanh_tail_float32 = polynomial((0.6666641, 0.40021765, 0.27997747, 0.28032607))
_atanh_tail_float64 = polynomial(
    (
        0.666666666666663,
        0.4000000000015972,
        0.28571428547548405,
        0.22222223988576098,
        0.18181743259711455,
        0.15386574204109904,
        0.13300783859977391,
        0.12107609679100753,
        0.08333327808239331,
        0.17031376602373482,
    )
)

_TWICE_LOG2E_FLOAT32, _HALF_LN2_FLOAT32 = np.float32(2.8853900817779268), np.float32(LN2_FLOAT32 / 2)
_TWICE_LOG2E_FLOAT64, _HALF_LN2_FLOAT64 = np.float64(2.8853900817779268), np.float64(LN2_FLOAT64 / 2)
# e^2r; error 2^-27.6
_exp_twice_float32 = polynomial(
    (1.0, 2.0, 2.0, 8 * 0.16666542, 16 * 0.041666444, 32 * 0.00836677, 64 * 0.0013936927), chains=1
)

# e^-|x| is kept times 2^64, so that it is never denormal before the last rounding
_SHIFTED_BIAS_FLOAT32 = np.float32(BIAS_FLOAT32 + 64)
_UNSHIFT_FLOAT32 = np.float32(2.0**-64)
_SHIFTED_BIAS_FLOAT64 = np.float64(BIAS_FLOAT64 + 64)
_UNSHIFT_FLOAT64 = np.float64(2.0**-64)


@njit(inline=True)
def tanh_float32(x: Any) -> Any:
    """Hyperbolic tangent of a float32: a polynomial below 0.55, 1 - 2 / (e^2|x| + 1) above."""
    a = magnitude(x)
    c = _f32(10.0) if a > _f32(10.0) else a
    shifted = fma(c, _TWICE_LOG2E_FLOAT32, BIAS_FLOAT32)
    r = fma(shifted - BIAS_FLOAT32, -_HALF_LN2_FLOAT32, c)  # ln(2) in one part: 2 / e^2|x| is small where n is large
    large = _f32(1.0) - _f32(2.0) / fma(_exp_twice_float32(r), float32_of(bits(shifted) << 23), _f32(1.0))
    t = c * c
    small = fma(c * t, _small_tanh_float32(t), c)
    value = large if c > _f32(0.55) else small
    return float32_of(bits(value) | (bits(x) & -0x80000000))  # one operation less than copysign


@njit(inline=True)
def tanh_float64(x: Any) -> Any:
    """Hyperbolic tangent of a float64: a polynomial below 0.55, 1 - 2 / (e^2|x| + 1) above."""
    a = magnitude(x)
    c = 20.0 if a > 20.0 else a
    shifted = fma(c, _TWICE_LOG2E_FLOAT64, BIAS_FLOAT64)
    r = fma(shifted - BIAS_FLOAT64, -_HALF_LN2_FLOAT64, c)
    r = r + r
    p = fma(r * r, short_tail_float64(r), r) + 1.0
    large = 1.0 - 2.0 / fma(p, float64_of(bits(shifted) << 52), 1.0)
    t = c * c
    small = fma(c * t, _small_tanh_float64(t), c)
    value = large if c > 0.55 else small
    return float64_of(bits(value) | (bits(x) & -0x8000000000000000))


@njit(inline=True)
def sigmoid_float32(x: Any) -> Any:
    """1 / (1 + e^-x) of a float32."""
    c = -magnitude(x)
    c = _f32(-104.0) if c < _f32(-104.0) else c
    shifted, r = reduced_float32(c, _SHIFTED_BIAS_FLOAT32)
    e = exp_near_float32(r) * float32_of(bits(shifted) << 23)
    below_zero = bits(x) < 0  # the sign bit is already a mask
    below = fma(e, _UNSHIFT_FLOAT32, _f32(1.0))
    e = e * _UNSHIFT_FLOAT32
    ratio = (e if below_zero else _f32(1.0)) / below
    return fma(-e, ratio, e) if below_zero else ratio  # e / (1 + e) as e - e^2 / (1 + e)


@njit(inline=True)
def sigmoid_float64(x: Any) -> Any:
    """1 / (1 + e^-x) of a float64."""
    c = -magnitude(x)
    c = -746.0 if c < -746.0 else c
    shifted, r = reduced_float64(c, _SHIFTED_BIAS_FLOAT64)
    p = fma(r * r, short_tail_float64(r), r) + 1.0
    e = p * float64_of(bits(shifted) << 52)
    below_zero = bits(x) < 0  # the sign bit is already a mask
    below = fma(e, _UNSHIFT_FLOAT64, 1.0)
    e = e * _UNSHIFT_FLOAT64
    ratio = (e if below_zero else 1.0) / below
    return fma(-e, ratio, e) if below_zero else ratio  # e / (1 + e) as e - e^2 / (1 + e)


@njit(inline=True)
def softplus_float32(x: Any) -> Any:
    """log(1 + e^x) of a float32: max(x, 0) + log1p(e^-|x|), the logarithm by 2 atanh(e / (2 + e))."""
    e = exp_float32(-magnitude(x))
    s = e / (e + _f32(2.0))
    z = s * s
    tail = z * _atanh_tail_float32(z)
    return (_f32(0.0) if x < _f32(0.0) else x) + fma(-s, e - tail, e)


@njit(inline=True)
def softplus_float64(x: Any) -> Any:
    """log(1 + e^x) of a float64: max(x, 0) + log1p(e^-|x|), the logarithm by 2 atanh(e / (2 + e))."""
    e = exp_float64(-magnitude(x))
    s = e / (e + 2.0)
    z = s * s
    tail = z * _atanh_tail_float64(z)
    return (0.0 if x < 0.0 else x) + fma(-s, e - tail, e)


tanh = door("tanh", tanh_float32, tanh_float64)
sigmoid = door("sigmoid", sigmoid_float32, sigmoid_float64)
softplus = door("softplus", softplus_float32, softplus_float64)
