"""The error function: x + x P(x^2) below 1, 1 - exp(-Q(x)) above; its complement and its inverse."""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.exponential import (
    BIAS_FLOAT32,
    BIAS_FLOAT64,
    exp_float64,
    exp_near_float32,
    reduced_float32,
    reduced_float64,
    short_tail_float64,
)
from numbagrad.native.vmath.intrinsics import (
    bits,
    float32_of,
    float64_of,
    fma,
    libm,
    magnitude,
    polynomial,
    root,
    scipy_twin,
    with_sign,
)
from numbagrad.native.vmath.logarithm import log_float64
from numbagrad.native.vmath.narrow import narrow

_f32 = np.float32
_HALF_ROOT_PI = np.float64(0.886226925452758)
_libm_erfc = libm("erfc", scipy_twin("erfc"))

# erf(x) / x - 1 of x^2 <= 1; errors 2^-24.5 and 2^-56.0 of erf(x)
_small_float32 = polynomial((0.12837912, -0.37612322, 0.112801395, -0.026709992, 0.004915882, -0.0005624236))
_small_float64 = polynomial(
    (
        0.12837916709551256,
        -0.37612638903183454,
        0.1128379167094243,
        -0.026866170642895787,
        0.005223977604651356,
        -0.0008548325868476799,
        0.00012055291959136992,
        -1.4924684133095592e-05,
        1.6446812029704078e-06,
        -1.620403905720543e-07,
        1.3701754444344751e-08,
        -7.763204525264204e-10,
    )
)
# -log(1 - erf(x)) of 1 <= x <= 4 and 6; errors 2^-25.8 and 2^-54.5 of 1
_large_float32 = polynomial((0.0026650603, 1.1174587, 0.65446544, 0.08864703, -0.014781321, 0.0011506922))
_large_float64 = polynomial(
    (
        1.0768085128434468e-06,
        1.1283685919083537,
        0.6366680843027226,
        0.10263634805352874,
        -0.01886308589873907,
        -0.0005870145427087537,
        0.0021016238227325092,
        -0.0009220534205159836,
        0.00023185953129122196,
        -2.8538732915403776e-05,
        -3.424266551645313e-06,
        2.6236689521357607e-06,
        -6.779779007747165e-07,
        1.0681552738181451e-07,
        -1.0765064082926547e-08,
        6.434967415702306e-10,
        -1.7473801034089708e-11,
    )
)


@njit(inline=True)
def erf_float32(x: Any) -> Any:
    """Error function of a float32."""
    a = magnitude(x)
    c = _f32(4.0) if a > _f32(4.0) else a
    q = -_large_float32(c)
    shifted, r = reduced_float32(q, BIAS_FLOAT32)
    p = exp_near_float32(r)
    large = fma(-p, float32_of(bits(shifted) << 23), _f32(1.0))
    t = c * c
    small = fma(c, _small_float32(t), c)
    return with_sign(large if c > _f32(1.0) else small, x)


@njit(inline=True)
def erf_float64(x: Any) -> Any:
    """Error function of a float64."""
    a = magnitude(x)
    c = 6.0 if a > 6.0 else a
    q = -_large_float64(c)
    shifted, r = reduced_float64(q, BIAS_FLOAT64)
    p = fma(r * r, short_tail_float64(r), r) + 1.0
    large = fma(-p, float64_of(bits(shifted) << 52), 1.0)
    t = c * c
    small = fma(c, _small_float64(t), c)
    return with_sign(large if c > 1.0 else small, x)


@njit(inline=True)
def erfc_float64(x: Any) -> Any:
    """1 - erf(x) of a float64, accurate where it is small."""
    return _libm_erfc(x)


@njit
def erfinv_float64(x: Any) -> Any:
    """Inverse of erf, of a float64; NaN outside [-1, 1]. Winitzki's formula and three steps of Halley's method."""
    a = magnitude(x)
    if not a < 1.0:
        return with_sign(np.inf, x) if a == 1.0 else np.nan
    if a < 1e-9:
        return x * _HALF_ROOT_PI
    logarithm = log_float64((1.0 - a) * (1.0 + a))
    b = 2.0 / (np.pi * 0.147) + 0.5 * logarithm
    y = root(root(b * b - logarithm / 0.147) - b)
    for _ in range(3):
        excess = erf_float64(y) - a if a < 0.5 else (1.0 - a) - _libm_erfc(y)
        step = excess * _HALF_ROOT_PI * exp_float64(y * y)
        y -= step / (1.0 + y * step)
    return with_sign(y, x)


erfc_float32 = narrow(erfc_float64)
erfinv_float32 = narrow(erfinv_float64)

erf = door("erf", erf_float32, erf_float64)
erfc = door("erfc", erfc_float32, erfc_float64)
erfinv = door("erfinv", erfinv_float32, erfinv_float64)
