"""The inverse trigonometric functions."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.intrinsics import bits, fma, magnitude, polynomial, root, with_sign
from numbagrad.native.vmath.narrow import narrow, narrow2

_PI, _PI_REST = np.float64(3.141592653589793), np.float64(1.2246467991473532e-16)
_HALF_PI, _HALF_PI_REST = np.float64(1.5707963267948966), np.float64(6.123233995736766e-17)
_QUARTER_PI, _QUARTER_PI_REST = np.float64(0.7853981633974483), np.float64(3.061616997868383e-17)
_TAN_EIGHTH_PI = np.float64(0.41421356237309503)

# (atan(x) / x - 1) / x^2 of |x| <= tan(pi/8), (asin(x) / x - 1) / x^2 of |x| <= 1/2; errors 2^-59.4 and 2^-55.6
_arctan_tail = polynomial(
    (
        -0.333333333333332,
        0.1999999999995375,
        -0.14285714280207712,
        0.11111110783826214,
        -0.09090897763833458,
        0.0769206025429476,
        -0.06663103762436082,
        0.05847882078544487,
        -0.05039249691533056,
        0.03806261027127237,
        -0.017904487496718403,
    )
)
_arcsin_tail = polynomial(
    (
        0.16666666666665375,
        0.07500000000344927,
        0.04464285682189394,
        0.03038195939853043,
        0.02237175184700437,
        0.017359797549288875,
        0.013884324787725577,
        0.012175160661174498,
        0.0065023514016361176,
        0.019598159435516547,
        -0.01633364834839502,
        0.031987106368355334,
    )
)


@njit(inline=True)
def _arctan_ratio(b: Any, a: Any) -> Any:
    """atan(b / a) of 0 <= b <= a in one division; above pi/8 by atan((b - a) / (b + a)) = atan(b / a) - pi/4."""
    upper = b > _TAN_EIGHTH_PI * a
    t = (b - a if upper else b) / (b + a if upper else a)
    z = t * t
    tail = t * z * _arctan_tail(z)
    return _QUARTER_PI + (t + (tail + _QUARTER_PI_REST)) if upper else t + tail


@njit(inline=True)
def arctan_float64(x: Any) -> Any:
    """Inverse tangent of a float64."""
    a = magnitude(x)
    steep = a > 1.0
    angle = _arctan_ratio(1.0 if steep else a, a if steep else 1.0)
    return with_sign(_HALF_PI - (angle - _HALF_PI_REST) if steep else angle, x)


@njit(inline=True)
def arctan2_float64(y: Any, x: Any) -> Any:
    """Angle of the point (x, y) of float64, in [-pi, pi]; signs of zeros and infinities as in C99."""
    b = magnitude(y)
    a = magnitude(x)
    steep = b > a
    large = b if steep else a
    small = a if steep else b
    scale = 2.0**-600 if large > 2.0**1000 else 1.0  # large + small must not overflow
    angle = _arctan_ratio(small * scale, large * scale)
    angle = 0.0 if large == 0.0 else angle
    angle = _QUARTER_PI if small == np.inf else angle
    left = bits(x) < 0
    base = _HALF_PI if steep else (_PI if left else 0.0)
    rest = _HALF_PI_REST if steep else (_PI_REST if left else 0.0)
    value = base + ((angle if steep == left else -angle) + rest)
    return x + y if (x != x) | (y != y) else with_sign(value, y)


@njit(inline=True)
def _arcsin_outer(a: Any) -> Any:
    """acos(a) / 2 of a float64 in [1/2, 1]: asin(s) of s = sqrt((1 - a) / 2), with what s rounds away."""
    z = 0.5 - 0.5 * a
    s = root(z)
    rest = fma(-s, s, z) / (s + s) if s > 0.0 else 0.0
    return s, fma(s * z, _arcsin_tail(z), rest)


@njit(inline=True)
def arcsin_float64(x: Any) -> Any:
    """Inverse sine of a float64, NaN outside [-1, 1]."""
    a = magnitude(x)
    s, rest = _arcsin_outer(a)
    outer = (_HALF_PI - (s + s)) - (rest + rest - _HALF_PI_REST)
    z = a * a
    inner = fma(a * z, _arcsin_tail(z), a)
    value = inner if a < 0.5 else outer
    return with_sign(np.nan if a > 1.0 else value, x)


@njit(inline=True)
def arccos_float64(x: Any) -> Any:
    """Inverse cosine of a float64, NaN outside [-1, 1]."""
    a = magnitude(x)
    s, rest = _arcsin_outer(a)
    right = (s + s) + (rest + rest)
    left = (_PI - (s + s)) - (rest + rest - _PI_REST)
    z = x * x
    inner = _HALF_PI - (x + fma(x * z, _arcsin_tail(z), -_HALF_PI_REST))
    value = inner if a < 0.5 else (left if x < 0.0 else right)
    return np.nan if a > 1.0 else value


arctan_float32 = narrow(arctan_float64)
arctan2_float32 = narrow2(arctan2_float64)
arcsin_float32 = narrow(arcsin_float64)
arccos_float32 = narrow(arccos_float64)

arcsin = door("arcsin", arcsin_float32, arcsin_float64)
arccos = door("arccos", arccos_float32, arccos_float64)
arctan = door("arctan", arctan_float32, arctan_float64)
arctan2 = door("arctan2", arctan2_float32, arctan2_float64)
