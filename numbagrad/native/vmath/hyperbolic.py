"""sinh and cosh from e^|x| / 2, and their inverses and that of tanh from log1p."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import (
    BIAS_FLOAT32,
    BIAS_FLOAT64,
    LN2_FLOAT64,
    exp_near_float32,
    reduced_float32,
    reduced_float64,
    short_tail_float64,
)
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, magnitude, polynomial, root, with_sign
from numbagrad.native.vmath.logarithm import log1p_float64
from numbagrad.native.vmath.narrow import narrow

_f32 = np.float32
# two less than the bias: e^|x| / 2 is finite where e^|x| is not
_LESS_BIAS_FLOAT32 = np.float32(BIAS_FLOAT32 - 2)
_LESS_BIAS_FLOAT64 = np.float64(BIAS_FLOAT64 - 2)

# (sinh(x) / x - 1) / x^2 of x^2 <= 1; errors 2^-25.2 and 2^-61.7 of sinh(x)
_small_sinh_float32 = polynomial((0.16666718, 0.008330221, 0.00020376877))
_small_sinh_float64 = polynomial(
    (
        0.16666666666666669,
        0.008333333333332917,
        0.00019841269841586938,
        2.7557319109536596e-06,
        2.5052130465120383e-08,
        1.6056706154867094e-10,
        7.775052765695063e-13,
    )
)


@njit(inline=True)
def _half_exp_float32(a: Any) -> Any:
    """e^a / 2 of a float32 that is not negative."""
    shifted, r = reduced_float32(_f32(90.0) if a > _f32(90.0) else a, _LESS_BIAS_FLOAT32)
    p = exp_near_float32(r)
    return (p + p) * float32_of(bits(shifted) << 23)


@njit(inline=True)
def _half_exp_float64(a: Any) -> Any:
    """e^a / 2 of a float64 that is not negative."""
    shifted, r = reduced_float64(711.0 if a > 711.0 else a, _LESS_BIAS_FLOAT64)
    p = fma(r * r, short_tail_float64(r), r) + 1.0
    return (p + p) * float64_of(bits(shifted) << 52)


@njit(inline=True)
def sinh_float32(x: Any) -> Any:
    """Hyperbolic sine of a float32."""
    a = magnitude(x)
    e = _half_exp_float32(a)
    large = e - _f32(0.25) / e
    t = a * a
    small = fma(a * t, _small_sinh_float32(t), a)
    return with_sign(large if a > _f32(1.0) else small, x)


@njit(inline=True)
def sinh_float64(x: Any) -> Any:
    """Hyperbolic sine of a float64."""
    a = magnitude(x)
    e = _half_exp_float64(a)
    large = e - 0.25 / e
    t = a * a
    small = fma(a * t, _small_sinh_float64(t), a)
    return with_sign(large if a > 1.0 else small, x)


@njit(inline=True)
def cosh_float32(x: Any) -> Any:
    """Hyperbolic cosine of a float32."""
    e = _half_exp_float32(magnitude(x))
    return e + _f32(0.25) / e


@njit(inline=True)
def cosh_float64(x: Any) -> Any:
    """Hyperbolic cosine of a float64."""
    e = _half_exp_float64(magnitude(x))
    return e + 0.25 / e


@njit(inline=True)
def arcsinh_float64(x: Any) -> Any:
    """Inverse hyperbolic sine of a float64: log1p(a + a^2 / (1 + sqrt(1 + a^2))), log(2a) where a^2 might overflow."""
    a = magnitude(x)
    large = a > 1e17
    square = a * a
    value = log1p_float64(a if large else a + square / (1.0 + root(1.0 + square)))
    return with_sign(value + LN2_FLOAT64 if large else value, x)


@njit(inline=True)
def arccosh_float64(x: Any) -> Any:
    """Inverse hyperbolic cosine of a float64, NaN below 1: log1p(d + sqrt(d (d + 2))) of d = x - 1."""
    large = x > 1e17
    d = x - 1.0
    value = log1p_float64(x if large else d + root(d * (d + 2.0)))
    value = value + LN2_FLOAT64 if large else value
    return np.nan if x < 1.0 else value


@njit(inline=True)
def arctanh_float64(x: Any) -> Any:
    """Inverse hyperbolic tangent of a float64, NaN outside [-1, 1]: log1p(2a / (1 - a)) / 2."""
    a = magnitude(x)
    return with_sign(0.5 * log1p_float64((a + a) / (1.0 - a)), x)


arcsinh_float32 = narrow(arcsinh_float64)
arccosh_float32 = narrow(arccosh_float64)
arctanh_float32 = narrow(arctanh_float64)

sinh = door("sinh", sinh_float32, sinh_float64)
cosh = door("cosh", cosh_float32, cosh_float64)
arcsinh = door("arcsinh", arcsinh_float32, arcsinh_float64)
arccosh = door("arccosh", arccosh_float32, arccosh_float64)
arctanh = door("arctanh", arctanh_float32, arctanh_float64)
