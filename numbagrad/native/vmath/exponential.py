"""exp, expm1 and exp2: 2^n times a polynomial on [-ln(2)/2, ln(2)/2].

The remainder r = x - n ln(2) is taken with ln(2) in two parts and FMA. Coefficients, here and in the other modules:
own minimax fits (Lawson's iteration in 300 bits; rounded one by one, lowest first, the rest fitted again), the error
being relative to the function named.
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.intrinsics import bits, float32_of, float64_of, fma, magnitude, polynomial

_f32 = np.float32

# adding it rounds to an integer n, which then stands in the low bits: alone, or with the bias of an exponent added
MAGIC_FLOAT32 = np.float32(1.5 * 2**23)
MAGIC_FLOAT64 = np.float64(1.5 * 2**52)
BIAS_FLOAT32 = np.float32(1.5 * 2**23 + 127)
BIAS_FLOAT64 = np.float64(1.5 * 2**52 + 1023)
# with twice the bias, half of the low bits is half of n plus the bias
_TWICE_BIAS_FLOAT32 = np.float32(1.5 * 2**23 + 254)
# of an n that overflows; r is then large and e^r, a polynomial with positive coefficients, as well
_TOP_FLOAT32 = np.float32(_TWICE_BIAS_FLOAT32 + 129)
_TOP_FLOAT64 = np.float64(MAGIC_FLOAT64 + 1025)

_LOG2E_FLOAT32 = np.float32(1.4426950408889634)
_LOG2E_FLOAT64 = np.float64(1.4426950408889634)
LN2_FLOAT32, LN2_REST_FLOAT32 = np.float32(0.6931471805599453), np.float32(-1.9046542e-09)
LN2_FLOAT64, LN2_REST_FLOAT64 = np.float64(0.6931471805599453), np.float64(2.3190468138462996e-17)

# e^r; and (e^r - 1 - r) / r^2: errors 2^-26.1 and 2^-31.1 (float32), 2^-55.5 and 2^-61.6 (float64) of expm1(r)
exp_near_float32 = polynomial((1.0, 1.0, 0.5, 0.16666542, 0.041666444, 0.00836677, 0.0013936927), chains=1)
_tail_float32 = polynomial((0.5, 0.16666667, 0.04166648, 0.008333198, 0.0013933472, 0.00019952928))
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
_tail_float64 = polynomial(
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
# (2^r - 1) / r; errors 2^-28.2 and 2^-57.8 of 2^r - 1
_exp2_tail_float32 = polynomial((0.6931472, 0.2402265, 0.05550359, 0.009618069, 0.0013391362, 0.00015460305))
exp2_tail_float64 = polynomial(
    (
        0.6931471805599453,
        0.24022650695910122,
        0.05550410866482268,
        0.009618129107596645,
        0.001333355814623738,
        0.000154035304547762,
        1.5252733965316124e-05,
        1.321543615738882e-06,
        1.0178014879298392e-07,
        7.073669430853512e-09,
        4.461265249609815e-10,
    )
)


@njit(inline=True)
def reduced_float32(x: Any, magic: Any) -> Any:
    """The integer n, added to `magic`, and the remainder r in x = n ln(2) + r."""
    shifted = fma(x, _LOG2E_FLOAT32, magic)
    n = shifted - magic
    return shifted, fma(n, -LN2_REST_FLOAT32, fma(n, -LN2_FLOAT32, x))


@njit(inline=True)
def reduced_float64(x: Any, magic: Any) -> Any:
    """The integer n, added to `magic`, and the remainder r in x = n ln(2) + r."""
    shifted = fma(x, _LOG2E_FLOAT64, magic)
    n = shifted - magic
    return shifted, fma(n, -LN2_REST_FLOAT64, fma(n, -LN2_FLOAT64, x))


@njit(inline=True)
def scaled_float32(value: Any, shifted: Any) -> Any:
    """Times 2^n, given 1.5 * 2^23 + 254 + n, in two factors: n reaches 128, and -150 where the result is denormal."""
    whole = bits(shifted)
    half = whole >> 1
    return value * float32_of(half << 23) * float32_of((whole - half) << 23)


@njit(inline=True)
def scaled_float64(value: Any, shifted: Any) -> Any:
    """Times 2^n, given 1.5 * 2^52 + n, in two factors; n is halved as a float: AVX2 has no arithmetic 64-bit shift."""
    half = bits(fma(shifted - MAGIC_FLOAT64, 0.5, MAGIC_FLOAT64))
    return value * float64_of((half + 1023) << 52) * float64_of((bits(shifted) - half + 1023) << 52)


@njit(inline=True)
def exp_float32(x: Any) -> Any:
    """e^x of a float32."""
    x = _f32(-104.0) if x < _f32(-104.0) else x
    shifted = fma(x, _LOG2E_FLOAT32, _TWICE_BIAS_FLOAT32)
    shifted = _TOP_FLOAT32 if shifted > _TOP_FLOAT32 else shifted  # LLVM would merge two bounds on x into a slower one
    n = shifted - _TWICE_BIAS_FLOAT32
    r = fma(n, -LN2_REST_FLOAT32, fma(n, -LN2_FLOAT32, x))
    return scaled_float32(exp_near_float32(r), shifted)


@njit(inline=True)
def exp_float64(x: Any) -> Any:
    """e^x of a float64."""
    x = -746.0 if x < -746.0 else x
    shifted = fma(x, _LOG2E_FLOAT64, MAGIC_FLOAT64)
    shifted = _TOP_FLOAT64 if shifted > _TOP_FLOAT64 else shifted
    n = shifted - MAGIC_FLOAT64
    r = fma(n, -LN2_REST_FLOAT64, fma(n, -LN2_FLOAT64, x))
    return scaled_float64(fma(r * r, short_tail_float64(r), r) + 1.0, shifted)


@njit(inline=True)
def exp2_float32(x: Any) -> Any:
    """2^x of a float32."""
    x = _f32(129.0) if x > _f32(129.0) else x
    x = _f32(-151.0) if x < _f32(-151.0) else x
    shifted = x + _TWICE_BIAS_FLOAT32
    r = x - (shifted - _TWICE_BIAS_FLOAT32)
    return scaled_float32(fma(r, _exp2_tail_float32(r), _f32(1.0)), shifted)


@njit(inline=True)
def exp2_float64(x: Any) -> Any:
    """2^x of a float64."""
    x = 1025.0 if x > 1025.0 else x
    x = -1076.0 if x < -1076.0 else x
    shifted = x + MAGIC_FLOAT64
    r = x - (shifted - MAGIC_FLOAT64)
    return scaled_float64(fma(r, exp2_tail_float64(r), 1.0), shifted)


@njit(inline=True)
def expm1_float32(x: Any) -> Any:
    """e^x - 1 of a float32."""
    c = _f32(89.0) if x > _f32(89.0) else x
    c = _f32(-20.0) if c < _f32(-20.0) else c
    shifted = fma(c, _LOG2E_FLOAT32, MAGIC_FLOAT32)
    n = shifted - MAGIC_FLOAT32
    exact = fma(n, -LN2_FLOAT32, c)
    r = fma(n, -LN2_REST_FLOAT32, exact)
    rest = fma(n, -LN2_REST_FLOAT32, exact - r)  # what r rounds away counts where 2^n q and 2^n - 1 nearly cancel
    q = fma(r * r, _tail_float32(r), rest) + r
    half = float32_of((bits(shifted) + 126) << 23)  # 2^n / 2: 2^128 would overflow
    value = fma(half, q, half - _f32(0.5)) * _f32(2.0)
    return x if magnitude(x) < _f32(1e-9) else value


@njit(inline=True)
def expm1_float64(x: Any) -> Any:
    """e^x - 1 of a float64."""
    c = 710.0 if x > 710.0 else x
    c = -45.0 if c < -45.0 else c
    shifted = fma(c, _LOG2E_FLOAT64, MAGIC_FLOAT64)
    n = shifted - MAGIC_FLOAT64
    exact = fma(n, -LN2_FLOAT64, c)
    r = fma(n, -LN2_REST_FLOAT64, exact)
    rest = fma(n, -LN2_REST_FLOAT64, exact - r)
    q = fma(r * r, _tail_float64(r), rest) + r
    half = float64_of((bits(shifted) + 1022) << 52)
    value = fma(half, q, half - 0.5) * 2.0
    return x if magnitude(x) < 1e-18 else value


exp = door("exp", exp_float32, exp_float64)
expm1 = door("expm1", expm1_float32, expm1_float64)
exp2 = door("exp2", exp2_float32, exp2_float64)
