"""Early forms."""

# ruff: noqa: D103
import math

import numpy as np

from numbagrad.native.compiler import PYTHON_MODE, njit


def _both(function):
    return njit(function, inline=True), njit(function, inline=True)


@_both
def exp(x):
    return np.exp(x)


@_both
def expm1(x):
    return np.expm1(x)


@_both
def log(x):
    return np.log(x)


@_both
def log1p(x):
    return np.log1p(x)


@_both
def tanh(x):
    return np.tanh(x)


@_both
def sigmoid(x):
    one = type_one(x)
    e = np.exp(-abs(x))
    return (one if x >= 0 else e) / (one + e)


@_both
def softplus(x):
    return max(x, x - x) + np.log1p(np.exp(-abs(x)))


@_both
def sin(x):
    return np.sin(x)


@_both
def cos(x):
    return np.cos(x)


@_both
def pow(x, y):
    return np.power(x, y)


@_both
def sqrt(x):
    return np.sqrt(x)


@_both
def rsqrt(x):
    return type_one(x) / np.sqrt(x)


@_both
def cbrt(x):
    return like(x, np.copysign(math.exp(math.log(np.float64(abs(x))) / 3), np.float64(x)) if abs(x) > 0 else x)


@_both
def rcbrt(x):
    return like(x, np.copysign(math.exp(-math.log(np.float64(abs(x))) / 3), np.float64(x)))


@_both
def exp2(x):
    return np.exp2(x)


@_both
def log2(x):
    return np.log2(x)


@_both
def log10(x):
    return np.log10(x)


@_both
def tan(x):
    return np.tan(x)


@_both
def arcsin(x):
    return np.arcsin(x)


@_both
def arccos(x):
    return np.arccos(x)


@_both
def arctan(x):
    return np.arctan(x)


@_both
def sinh(x):
    return np.sinh(x)


@_both
def cosh(x):
    return np.cosh(x)


@_both
def arcsinh(x):
    return np.arcsinh(x)


@_both
def arccosh(x):
    return np.arccosh(x)


@_both
def arctanh(x):
    return np.arctanh(x)


@_both
def erf(x):
    return like(x, math.erf(x))


@_both
def erfc(x):
    return like(x, math.erfc(x))


@_both
def gamma(x):
    return like(x, math.gamma(x))


@_both
def gammaln(x):
    return like(x, math.lgamma(x))


@_both
def digamma(x):
    z = np.float64(x)
    if z <= 0 and z == np.floor(z):
        return like(x, np.nan)
    total = 0.0
    if z < 0:
        total = -np.pi / np.tan(np.pi * (z - np.floor(z)))
        z = 1 - z
    while z < 12:
        total -= 1 / z
        z += 1
    w = 1 / (z * z)
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132)))))
    return like(x, total + np.log(z) - 0.5 / z - series)


@_both
def trigamma(x):
    z = np.float64(x)
    if z <= 0 and z == np.floor(z):
        return like(x, np.inf)
    sign = 1.0
    total = 0.0
    if z < 0:
        s = np.sin(np.pi * (z - np.floor(z)))
        total = np.pi * np.pi / (s * s)
        sign = -1.0
        z = 1 - z
    part = 0.0
    while z < 12:
        part += 1 / (z * z)
        z += 1
    w = 1 / (z * z)
    series = 1 / z + 0.5 * w + w / z * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w * (1 / 30 - w * (5 / 66)))))
    return like(x, total + sign * (part + series))


@_both
def erfinv(x):
    z = np.float64(x)
    if not abs(z) < 1:
        return like(x, z / 0.0 if abs(z) == 1 else np.nan)
    w = -math.log((1 - z) * (1 + z))
    a = 2 / (math.pi * 0.147) - w / 2
    y = np.copysign(math.sqrt(max(math.sqrt(a * a + w / 0.147) - a, 0.0)), z)
    for _ in range(4):
        e = math.erf(y) - z if abs(z) < 0.5 else np.copysign((1 - abs(z)) - math.erfc(abs(y)), z)
        d = e / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        y -= d / (1 + y * d)
    return like(x, y)


@_both
def floor(x):
    return np.floor(x)


@_both
def ceil(x):
    return np.ceil(x)


@_both
def trunc(x):
    return np.trunc(x)


@_both
def rint(x):
    return np.rint(x)


@_both
def round(x):
    whole = np.trunc(x)
    return whole + np.copysign(type_one(x), x) if abs(x - whole) >= 0.5 else whole


@_both
def hypot(x, y):
    return np.hypot(x, y)


@_both
def arctan2(x, y):
    return np.arctan2(x, y)


@_both
def mod(x, y):
    return np.mod(x, y)


@_both
def floordiv(x, y):
    return np.floor_divide(x, y)


@_both
def copysign(x, y):
    return np.copysign(x, y)


@_both
def sign(x):
    return like(x, 1.0 if x > 0 else (-1.0 if x < 0 else x))


def _type_one(x):
    return type(x)(1)


def _like(x, y):
    return type(x)(y)


if PYTHON_MODE:
    type_one, like = _type_one, _like
else:

    @njit(inline=True)
    def like(x, y):
        return np.float64(y) + (x - x) * 0 if False else _cast(x, y)

    from numba.extending import intrinsic

    @intrinsic
    def _cast(typingctx, x, y):
        def codegen(context, builder, signature, args):
            return context.cast(builder, args[1], signature.args[1], signature.return_type)

        return x(x, y), codegen

    @njit(inline=True)
    def type_one(x):
        return _cast(x, 1.0)

    like = _cast
