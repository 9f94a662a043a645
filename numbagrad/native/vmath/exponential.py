"""The exponential family: 2^n times a polynomial on [-ln(2)/2, ln(2)/2].

``n`` is read off the low bits of ``x * log2(e) + 1.5 * 2^p`` (p the number of mantissa bits); the remainder
``r = x - n * ln(2)`` is taken with ln(2) in two parts and FMA. Coefficients: own minimax fits (Lawson iteration
in 400 bits, rounded one by one, lowest first), relative to expm1(r).
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, magnitude, polynomial

_f32 = np.float32

# (e^r - 1 - r) / r^2; errors 2^-26.1 and 2^-31.1 (float32), 2^-55.5 and 2^-61.6 (float64) of expm1(r)
short_tail_float32 = polynomial((0.5, 0.16666542, 0.041666444, 0.00836677, 0.0013936927))
tail_float32 = polynomial((0.5, 0.16666667, 0.04166648, 0.008333198, 0.0013933472, 0.00019952928))
short_tail_float64 = polynomial(
    (
        0.5000000000000006,
        0.16666666666666685,
        0.041666666666572615,
        0.008333333333314995,
        0.0013888888932900713,
        0.00019841269902573958,
        2.480150365120392e-05,
        2.7557227842926823e-06,
        2.762669400514559e-07,
        2.511469438329547e-08,
    )
)
tail_float64 = polynomial(
    (
        0.5,
        0.16666666666666677,
        0.041666666666666685,
        0.008333333333321367,
        0.0013888888888872835,
        0.00019841269886911297,
        2.4801587350852374e-05,
        2.7557243311866695e-06,
        2.75572499031285e-07,
        2.510938365737022e-08,
        2.0922481938076068e-09,
    )
)

MAGIC_FLOAT32 = np.float32(1.5 * 2**23)
MAGIC_FLOAT64 = np.float64(1.5 * 2**52)
# n + 254 in the low bits: half of it is half of n plus the bias of an exponent
_TWICE_BIASED_FLOAT32 = np.float32(1.5 * 2**23 + 254)
# n plus the bias of an exponent in the low bits
BIAS_FLOAT32 = np.float32(1.5 * 2**23 + 127)
BIAS_FLOAT64 = np.float64(1.5 * 2**52 + 1023)
LOG2E_FLOAT32 = np.float32(1.4426950408889634)
LOG2E_FLOAT64 = np.float64(1.4426950408889634)
LN2_HIGH_FLOAT32 = np.float32(0.6931471805599453)
LN2_LOW_FLOAT32 = np.float32(0.6931471805599453 - float(LN2_HIGH_FLOAT32))
LN2_HIGH_FLOAT64 = np.float64(0.6931471805599453)
LN2_LOW_FLOAT64 = np.float64(2.3190468138462996e-17)


@njit(inline=True)
def exp_float32(x: Any) -> Any:
    """e^x of a float32."""
    x = _f32(89.0) if x > _f32(89.0) else x
    x = _f32(-104.0) if x < _f32(-104.0) else x
    shifted = fma(x, LOG2E_FLOAT32, _TWICE_BIASED_FLOAT32)
    n = shifted - _TWICE_BIASED_FLOAT32
    r = fma(n, -LN2_LOW_FLOAT32, fma(n, -LN2_HIGH_FLOAT32, x))
    p = fma(r * r, short_tail_float32(r), r) + _f32(1.0)
    # 2^n in two factors: n reaches 128, and -150 where the result is denormal
    whole = bits(shifted)
    half = whole >> 1
    return p * float32_of(half << 23) * float32_of((whole - half) << 23)


@njit(inline=True)
def exp_float64(x: Any) -> Any:
    """e^x of a float64."""
    x = 710.0 if x > 710.0 else x
    x = -746.0 if x < -746.0 else x
    shifted = fma(x, LOG2E_FLOAT64, MAGIC_FLOAT64)
    n = shifted - MAGIC_FLOAT64
    r = fma(n, -LN2_LOW_FLOAT64, fma(n, -LN2_HIGH_FLOAT64, x))
    p = fma(r * r, short_tail_float64(r), r) + 1.0
    # AVX2 has no arithmetic shift of 64 bits: halve in floating point
    half = bits(fma(n, 0.5, MAGIC_FLOAT64))
    return p * float64_of((half + 1023) << 52) * float64_of((bits(shifted) - half + 1023) << 52)


@njit(inline=True)
def expm1_float32(x: Any) -> Any:
    """e^x - 1 of a float32."""
    c = _f32(89.0) if x > _f32(89.0) else x
    c = _f32(-20.0) if c < _f32(-20.0) else c
    shifted = fma(c, LOG2E_FLOAT32, MAGIC_FLOAT32)
    n = shifted - MAGIC_FLOAT32
    exact = fma(n, -LN2_HIGH_FLOAT32, c)
    r = fma(n, -LN2_LOW_FLOAT32, exact)
    rest = fma(n, -LN2_LOW_FLOAT32, exact - r)  # what r rounds away counts where 2^n q and 2^n - 1 nearly cancel
    q = fma(r * r, tail_float32(r), rest) + r
    half = float32_of((bits(shifted) + 126) << 23)  # 2^n / 2: 2^128 would overflow
    value = fma(half, q, half - _f32(0.5)) * _f32(2.0)
    return x if magnitude(x) < _f32(1e-9) else value


@njit(inline=True)
def expm1_float64(x: Any) -> Any:
    """e^x - 1 of a float64."""
    c = 710.0 if x > 710.0 else x
    c = -45.0 if c < -45.0 else c
    shifted = fma(c, LOG2E_FLOAT64, MAGIC_FLOAT64)
    n = shifted - MAGIC_FLOAT64
    exact = fma(n, -LN2_HIGH_FLOAT64, c)
    r = fma(n, -LN2_LOW_FLOAT64, exact)
    rest = fma(n, -LN2_LOW_FLOAT64, exact - r)  # what r rounds away counts where 2^n q and 2^n - 1 nearly cancel
    q = fma(r * r, tail_float64(r), rest) + r
    half = float64_of((bits(shifted) + 1022) << 52)
    value = fma(half, q, half - 0.5) * 2.0
    return x if magnitude(x) < 1e-18 else value
