"""gamma and its logarithm from libm; digamma and trigamma by recurrence, reflection and asymptotic series.

The series are those of Abramowitz and Stegun, 6.3.18 and 6.4.12; the reflections 6.3.7 and 6.4.7.
"""

from typing import Any

import numpy as np

from numbagrad.native.compiler import njit
from numbagrad.native.vmath.doors import door
from numbagrad.native.vmath.intrinsics import libm, nearest, polynomial, scipy_twin
from numbagrad.native.vmath.logarithm import log_float64
from numbagrad.native.vmath.narrow import narrow
from numbagrad.native.vmath.trigonometric import sin_float64, tan_float64

_libm_gamma = libm("tgamma", scipy_twin("gamma"))
_libm_gammaln = libm("lgamma", scipy_twin("gammaln"))

# the positive zero of digamma in two parts, and digamma(x) / (x - zero) of x - 3/2, 1 <= x <= 2, error 2^-54.3
_ZERO, _ZERO_REST = np.float64(1.4616321449683622), np.float64(9.549995429965697e-17)
_digamma_core = polynomial(
    (
        0.9510558760318328,
        -0.42362742128146047,
        0.24054248424080202,
        -0.14840492305393163,
        0.09498872445136845,
        -0.06192213327112317,
        0.040760834011817904,
        -0.026975796825909146,
        0.01790724647755558,
        -0.01190821664355924,
        0.007927050969934962,
        -0.005279980767035607,
        0.0035178090447656562,
        -0.0023451505486925418,
        0.001565361514680589,
        -0.001038184739176767,
        0.0006822183995894083,
        -0.0004806229143160364,
        0.0003478912165187179,
        -0.00015403680456615217,
        5.899539011575694e-05,
        -0.00017134683019404722,
        0.0001444469624397357,
    )
)
# B(2n) / (2n) and B(2n), n = 1, 2, ...
_digamma_series = polynomial((1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160))
_trigamma_series = polynomial((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510))


@njit(inline=True)
def gamma_float64(x: Any) -> Any:
    """Gamma function of a float64; NaN at the negative integers, infinite with the sign of a zero at it."""
    return _libm_gamma(x)


@njit(inline=True)
def gammaln_float64(x: Any) -> Any:
    """log|gamma(x)| of a float64; infinite at the poles."""
    return _libm_gammaln(x)


@njit
def digamma_float64(x: Any) -> Any:
    """Derivative of gammaln, of a float64; NaN at the negative integers."""
    if x == 0.0:
        return -1.0 / x
    if (x <= 0.0 and nearest(x) == x) or x != x:
        return np.nan
    total = 0.0
    if x < 0.0:
        total = -np.pi / tan_float64(np.pi * (x - nearest(x)))
        x = 1.0 - x
    if x < 1.0:
        total -= 1.0 / x
        x += 1.0
    if x < 10.0:
        while x > 2.0:
            x -= 1.0
            total += 1.0 / x
        return total + ((x - _ZERO) - _ZERO_REST) * _digamma_core(x - 1.5)
    w = 1.0 / (x * x)
    return total + (log_float64(x) - (0.5 / x + w * _digamma_series(w)))


@njit
def trigamma_float64(x: Any) -> Any:
    """Second derivative of gammaln, of a float64; infinite at the poles."""
    if x <= 0.0 and nearest(x) == x:
        return np.inf if x > -np.inf else np.nan
    reflected = x < 0.0
    total = 0.0
    if reflected:
        sine = sin_float64(np.pi * (x - nearest(x)))
        total = (np.pi / sine) * (np.pi / sine)
        x = 1.0 - x
    part = 0.0
    while x < 12.0:
        part += 1.0 / (x * x)
        x += 1.0
    inverse = 1.0 / x
    w = inverse * inverse
    part += inverse + (0.5 * w + inverse * w * _trigamma_series(w))
    return total - part if reflected else part


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


@njit(inline=True)
def polygamma_float64(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, n >= 1, of a float64: (-1)^(n+1) n! zeta(n + 1, x), by Euler and Maclaurin; n is
    rounded.

    Below x = n + 12 terms of the sum are taken one by one, so that a far negative x takes long; NaN at the poles.
    """
    n = nearest(n)
    if not n >= 1.0 or (x <= 0.0 and nearest(x) == x) or not x > -1e6:
        return np.nan
    s = n + 1.0
    total = 0.0
    while x < n + 12.0:
        total += x**-s
        x += 1.0
    power = x**-s
    total += power * x / n + 0.5 * power
    term = power / x
    rising = s
    factorial = 2.0
    k = 0.0
    for b in _BERNOULLI:
        total += b / factorial * rising * term
        k += 2.0
        rising *= (s + k - 1.0) * (s + k)
        factorial *= (k + 1.0) * (k + 2.0)
        term /= x * x
    product = 1.0
    sign = -1.0
    for i in range(int(n)):
        product *= i + 1.0
        sign = -sign
    return sign * product * total


gamma_float32 = narrow(gamma_float64)
gammaln_float32 = narrow(gammaln_float64)
digamma_float32 = narrow(digamma_float64)
trigamma_float32 = narrow(trigamma_float64)

gamma = door("gamma", gamma_float32, gamma_float64)
gammaln = door("gammaln", gammaln_float32, gammaln_float64)
digamma = door("digamma", digamma_float32, digamma_float64)


@njit(inline=True)
def polygamma_float32(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, of a float32."""
    return np.float32(polygamma_float64(np.float64(n), np.float64(x)))


polygamma = door("polygamma", polygamma_float32, polygamma_float64)
trigamma = door("trigamma", trigamma_float32, trigamma_float64)
