"""The error function: x + x P(x^2) below 1, 1 - exp(-Q(x)) above.

Coefficients: own minimax fits, made as in ``exponential``.
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.exponential import (
    BIAS_FLOAT32,
    BIAS_FLOAT64,
    LN2_HIGH_FLOAT32,
    LN2_HIGH_FLOAT64,
    LN2_LOW_FLOAT32,
    LN2_LOW_FLOAT64,
    LOG2E_FLOAT32,
    LOG2E_FLOAT64,
    short_tail_float32,
    short_tail_float64,
)
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, magnitude, polynomial, with_sign

_f32 = np.float32

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
    shifted = fma(q, LOG2E_FLOAT32, BIAS_FLOAT32)
    n = shifted - BIAS_FLOAT32
    r = fma(n, -LN2_LOW_FLOAT32, fma(n, -LN2_HIGH_FLOAT32, q))
    p = fma(r * r, short_tail_float32(r), r) + _f32(1.0)
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
    shifted = fma(q, LOG2E_FLOAT64, BIAS_FLOAT64)
    n = shifted - BIAS_FLOAT64
    r = fma(n, -LN2_LOW_FLOAT64, fma(n, -LN2_HIGH_FLOAT64, q))
    p = fma(r * r, short_tail_float64(r), r) + 1.0
    large = fma(-p, float64_of(bits(shifted) << 52), 1.0)
    t = c * c
    small = fma(c, _small_float64(t), c)
    return with_sign(large if c > 1.0 else small, x)
