"""Random fills: every kernel takes the stream first and advances it by the blocks it used (see native/rng).

Element i of a result depends on the key, on the stream's position and on i alone. Kernels that end in ``_rows``, and
all whose parameters are arrays, take float64 arrays of `rows` parameters and fill ``rows * per_row`` elements,
`per_row` from each parameter; one parameter for all is ``rows = 1``. Bad parameters are a failure, found before the
stream or the result is touched.
"""

import math

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import kernel
from numbagrad.native import rng
from numbagrad.native.compiler import njit
from numbagrad.native.memory import itemsize, piece, scratch

_BLOCKS = np.uint64(rng.GROUP_BLOCKS)
_LOW = np.uint64(0xFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_HALF = np.uint64(32)


@njit
def _all_between(values, n, low, high):
    """Whether low <= value <= high for the first n values, NaN being nowhere."""
    good = True
    for i in range(n):
        good = good and values[i] >= low and values[i] <= high
    return good


_MOST = float(np.finfo(np.float64).max)


_MOST_SINGLE = float(np.finfo(np.float32).max)


@njit(inline=True)
def _most(out):
    """The greatest finite number of ``out``'s dtype, as float64."""
    return _MOST_SINGLE if itemsize(out) == 4 else _MOST


# ------------------------------------------------------------------------------ uniform, normal and exponential

_UNIFORM = {1: (MXNetError, "uniform: low and high must be finite in the dtype, and low not above high")}


@njit
def _interval(low, high, half, most):
    """(span, more, greatest): a number of [low, high) is ``low + u * span + u * more``, but at most `greatest`.

    `more` is 0, except where high - low is beyond `most`, the dtype's greatest number: then each is half of it.
    """
    greatest = high if high == low else np.nextafter(high, low)
    span = high * half - low * half
    if span > half * most:
        return span, span, greatest
    return high - low, low - low, greatest


@kernel("inout out size scalar scalar", failures=_UNIFORM)
def uniform(state, out, n, low, high):
    """Fill with numbers on [low, high), or low where both are one number of the dtype; never high by rounding."""
    real = out.dtype.type
    most = _most(out)
    if not (low <= high and low >= -most and high <= most):
        return 1
    first = real(low)
    span, more, greatest = _interval(first, real(high), real(0.5), real(most))
    words = scratch(rng.GROUP_WORDS, np.uint32)
    units = scratch(rng.GROUP_WORDS, out.dtype)
    group = rng.per_group(out)
    block = rng.advance(state, n, group)
    for start in range(0, n, group):
        rng.draw_group(state[rng.KEY], block, words)
        block += _BLOCKS
        rng.to_uniform(words, units)
        rest = n - start
        target = piece(out, start, rest if rest < group else group)
        for j in range(target.size):
            value = first + units[j] * span + units[j] * more
            target[j] = value if value < greatest else greatest
    return 0


_uniform = uniform.callee  # as the kernels of rows call it


@kernel("inout in in out size size", failures=_UNIFORM)
def uniform_rows(state, low, high, out, rows, per_row):
    """Fill row r with numbers on [low[r], high[r])."""
    most = _most(out)
    for r in range(rows):
        if not (low[r] <= high[r] and low[r] >= -most and high[r] <= most):
            return 1
    real = out.dtype.type
    _uniform(state, out, rows * per_row, 0.0, 1.0)
    for r in range(rows):
        first = real(low[r])
        span, more, greatest = _interval(first, real(high[r]), real(0.5), real(most))
        target = out[r * per_row : (r + 1) * per_row]
        for j in range(target.size):
            value = first + target[j] * span + target[j] * more
            target[j] = value if value < greatest else greatest
    return 0


_NORMAL = {1: (MXNetError, "normal: loc must be finite, and scale finite and not negative")}


@kernel("inout out size scalar scalar", failures=_NORMAL)
def normal(state, out, n, loc, scale):
    """Fill with normal numbers of mean loc and standard deviation scale."""
    most = _most(out)
    if not (abs(loc) <= most and scale >= 0.0 and scale <= most):
        return 1
    mean, deviation = out.dtype.type(loc), out.dtype.type(scale)
    words = scratch(rng.GROUP_WORDS, np.uint32)
    units = scratch(rng.GROUP_WORDS, out.dtype)
    group = rng.per_group(out)
    block = rng.advance(state, n, group)
    for start in range(0, n, group):
        rng.draw_group(state[rng.KEY], block, words)
        block += _BLOCKS
        rng.to_normal(words, units)
        target = out[start : min(start + group, n)]
        for j in range(target.size):
            target[j] = mean + deviation * units[j]
    return 0


_normal = normal.callee


@kernel("inout in in out size size", failures=_NORMAL)
def normal_rows(state, loc, scale, out, rows, per_row):
    """Fill row r with normal numbers of mean loc[r] and standard deviation scale[r]."""
    most = _most(out)
    if not (_all_between(loc, rows, -most, most) and _all_between(scale, rows, 0.0, most)):
        return 1
    real = out.dtype.type
    _normal(state, out, rows * per_row, 0.0, 1.0)
    for r in range(rows):
        mean, deviation = real(loc[r]), real(scale[r])
        target = out[r * per_row : (r + 1) * per_row]
        for j in range(target.size):
            target[j] = mean + deviation * target[j]
    return 0


@kernel(
    "inout in out size size",
    failures={1: (MXNetError, "exponential: the scale must be finite and not negative")},
)
def exponential(state, scale, out, rows, per_row):
    """Fill row r with exponential numbers of mean scale[r]."""
    if not _all_between(scale, rows, 0.0, _most(out)):
        return 1
    n = rows * per_row
    words = scratch(rng.GROUP_WORDS, np.uint32)
    units = scratch(rng.GROUP_WORDS, out.dtype)
    group = rng.per_group(out)
    block = rng.advance(state, n, group)
    for start in range(0, n, group):
        rng.draw_group(state[rng.KEY], block, words)
        block += _BLOCKS
        rng.to_exponential(words, units)
        target = out[start : min(start + group, n)]
        for j in range(target.size):
            target[j] = units[j]
    for r in range(rows):
        mean = out.dtype.type(scale[r])
        target = out[r * per_row : (r + 1) * per_row]
        for j in range(target.size):
            target[j] *= mean
    return 0


# ------------------------------------------------------------------------------------------------------ integers


@njit
def _offset(low, value):
    """The int64 ``low + value`` for a uint64 `value` that may be beyond int64 by itself."""
    part = np.int64(value >> _ONE)
    return np.int64(low) + part + np.int64(value - np.uint64(part))


@njit
def _wide_integers(state, out, n, low, count):
    """Integers on [low, low + count) for count above 2^32: as `rng.bounded`, with 64-bit words."""
    words = scratch(rng.GROUP_WORDS, np.uint32)
    half = rng.GROUP_WORDS // 2
    block = rng.advance(state, n, half)
    unfit = (_ALL - count + _ONE) % count
    for start in range(0, n, half):
        rng.draw_group(state[rng.KEY], block, words)
        target = out[start : min(start + half, n)]
        for j in range(target.size):
            word = (np.uint64(words[j]) << _HALF) | np.uint64(words[j + half])
            value, rest = rng.multiply_wide(word, count)
            attempt = _ONE
            while rest < unfit:
                again = rng.draw_block(state[rng.KEY], block, attempt, np.uint64(j))
                value, rest = rng.multiply_wide((again[0] << _HALF) | again[1], count)
                attempt += _ONE
            target[j] = _offset(low, value)
        block += _BLOCKS


@kernel("inout out size scalar scalar", failures={1: (MXNetError, "randint: low must be below high")})
def randint(state, out, n, low, high):
    """Fill with integers on [low, high), each exactly as likely; low and high are int64 numbers."""
    if not low < high:
        return 1
    count = np.uint64(high - low)
    if count > _LOW + _ONE:
        _wide_integers(state, out, n, low, count)
        return 0
    words = scratch(rng.GROUP_WORDS, np.uint32)
    block = rng.advance(state, n, rng.GROUP_WORDS)
    unfit = (_LOW + _ONE) % count
    for start in range(0, n, rng.GROUP_WORDS):
        rng.draw_group(state[rng.KEY], block, words)
        target = out[start : min(start + rng.GROUP_WORDS, n)]
        refused = 0
        for j in range(target.size):
            product = np.uint64(words[j]) * count
            target[j] = np.int64(low) + np.int64(product >> _HALF)
            refused += (product & _LOW) < unfit
        if refused:
            for j in range(target.size):
                value = rng.bounded(np.uint64(words[j]), count, state[rng.KEY], block, np.uint64(j))
                target[j] = np.int64(low) + np.int64(value)
        block += _BLOCKS
    return 0


@kernel("inout out size")
def permutation(state, out, n):
    """Write 0 .. n-1 in random order, each order as likely (R. Durstenfeld, 1964, from the inside out)."""
    words = scratch(rng.GROUP_WORDS, np.uint32)
    block = rng.advance(state, n, rng.GROUP_WORDS)
    for start in range(0, n, rng.GROUP_WORDS):
        rng.draw_group(state[rng.KEY], block, words)
        for i in range(start, min(start + rng.GROUP_WORDS, n)):
            lane = np.uint64(i - start)
            place = rng.bounded(np.uint64(words[i - start]), np.uint64(i + 1), state[rng.KEY], block, lane)
            out[i] = out[np.int64(place)]
            out[np.int64(place)] = i
        block += _BLOCKS
    return 0


@kernel(
    "inout in out size size",
    failures={1: (MXNetError, "bernoulli: probabilities must lie between 0 and 1")},
)
def bernoulli(state, p, out, rows, per_row):
    """Fill row r, of any dtype, with 1 at probability p[r] (to within 2^-32), else 0."""
    if not _all_between(p, rows, 0.0, 1.0):
        return 1
    n = rows * per_row
    words = scratch(rng.GROUP_WORDS, np.uint32)
    block = rng.advance(state, n, rng.GROUP_WORDS)
    for start in range(0, n, rng.GROUP_WORDS):
        rng.draw_group(state[rng.KEY], block, words)
        block += _BLOCKS
        stop = min(start + rng.GROUP_WORDS, n)
        i = start
        while i < stop:
            row = i // per_row
            end = min((row + 1) * per_row, stop)
            ones = np.uint64(np.rint(p[row] * 4294967296.0))  # of the 2^32 words
            source = words[i - start : end - start]
            target = out[i:end]
            for j in range(target.size):
                target[j] = np.uint8(np.uint64(source[j]) < ones)
            i = end
    return 0


@kernel(
    "inout in out size size size",
    failures={1: (MXNetError, "multinomial: probabilities must be finite, not negative, and not all 0 in a row")},
)
def multinomial(state, p, out, rows, classes, per_row):
    """Draw `per_row` class numbers by each row of `p`, (rows, classes), which need not sum to 1."""
    for r in range(rows):
        total = 0.0
        for c in range(classes):
            if not p[r * classes + c] >= 0.0:
                return 1
            total += np.float64(p[r * classes + c])
        if not (total > 0.0 and total <= _MOST):
            return 1
    words = scratch(rng.GROUP_WORDS, np.uint32)
    units = scratch(rng.GROUP_WORDS // 2, np.float64)
    sums = scratch(classes, np.float64)
    block = rng.advance(state, rows * per_row, units.size)
    drawn = units.size
    for r in range(rows):
        total = 0.0
        for c in range(classes):
            total += np.float64(p[r * classes + c])
            sums[c] = total
        for s in range(per_row):
            if drawn == units.size:
                rng.draw_group(state[rng.KEY], block, words)
                block += _BLOCKS
                rng.to_uniform(words, units)
                drawn = 0
            mark = units[drawn] * total
            drawn += 1
            low, high = 0, classes - 1  # the first class whose sum is above the mark
            while low < high:
                middle = (low + high) // 2
                if sums[middle] > mark:
                    high = middle
                else:
                    low = middle + 1
            out[r * per_row + s] = low
    return 0


# -------------------------------------------------------------- samplers with rejection: one block number an element


@njit
def _one_normal(key, block, attempt, lane):
    """(normal number, uniform number in (0, 1), the same to 32 bits and independent) from one block."""
    w0, w1, w2, w3 = rng.draw_block(key, block, attempt, lane)
    radius = math.sqrt(-2.0 * math.log(rng.open_unit(w0, w1)))
    sine, cosine = rng.quarter_float64((np.float64(w2 >> _ONE) + 0.5) * 2.0**-31 - 0.5)
    sign = 1.0 - 2.0 * np.float64(w1 & _ONE)  # a bit that open_unit does not look at
    return sign * radius * (sine if w2 & _ONE else cosine), (np.float64(w3) + 0.5) * 2.0**-32


@njit
def _gamma(key, block, alpha):
    """A gamma number of shape alpha and scale 1.

    G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000; a shape below 1 is that of
    ``alpha + 1`` times ``u^(1 / alpha)``. Lane 0; attempt 0 makes that u.
    """
    if alpha == 0.0:
        return 0.0
    boost = 1.0
    d = alpha - 1.0 / 3.0
    if alpha < 1.0:
        word = rng.draw_block(key, block, _ZERO, _ZERO)
        boost = math.exp(math.log(rng.open_unit(word[0], word[1])) / alpha)
        d = alpha + 2.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = _ONE
    while True:
        z, u = _one_normal(key, block, attempt, _ZERO)
        attempt += _ONE
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            # the paper's squeeze; for a great d nearly all are accepted, and the test would be rounding noise
            if u < 1.0 - 0.0331 * (z * z) * (z * z) or d > 1e8:
                return d * v * boost
            if math.log(u) < 0.5 * z * z + d - d * v + d * math.log(v):
                return d * v * boost


_LOG_FACTORIAL = tuple(math.lgamma(k + 1.0) for k in range(10))


@njit
def _poisson_log_density(k, lam, log_lam):
    """Log of the probability of k: above 9 by Stirling's series about k = lam, where nothing large cancels."""
    if k < 10.0:
        return k * log_lam - lam - _LOG_FACTORIAL[int(k)]
    x = (k - lam) / lam
    inverse = 1.0 / k
    series = inverse * (1.0 / 12.0 - inverse * inverse * (1.0 / 360.0 - inverse * inverse / 1260.0))
    return -lam * ((1.0 + x) * math.log1p(x) - x) - 0.5 * math.log(2.0 * math.pi * k) - series


@njit
def _poisson(key, block, lam):
    """A Poisson number of mean lam, as float64. Lane 1, so that it may share a block number with `_gamma`.

    Below 10 by inversion; from 10 on by transformed rejection with a squeeze (PTRS: W. Hoermann, "The transformed
    rejection method for generating Poisson random variables", 1993); above 1e15 by the rounded normal number, which
    is within 1e-7 in probability there.
    """
    if lam < 10.0:
        w0, w1, _, _ = rng.draw_block(key, block, _ZERO, _ONE)
        u = rng.open_unit(w0, w1)
        k = 0.0
        term = math.exp(-lam)
        total = term
        while u > total and (term > 1e-20 or k < lam):  # the sum may stay an ulp below the greatest u
            k += 1.0
            term *= lam / k
            total += term
        return k
    if not lam < np.inf:
        return lam
    if lam > 1e15:
        return np.floor(lam + math.sqrt(lam) * _one_normal(key, block, _ZERO, _ONE)[0] + 0.5)
    log_lam = math.log(lam)
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    attempt = _ZERO
    while True:
        w0, w1, w2, w3 = rng.draw_block(key, block, attempt, _ONE)
        attempt += _ONE
        u = rng.open_unit(w0, w1) - 0.5
        v = rng.open_unit(w2, w3)
        us = 0.5 - abs(u)
        k = np.floor((2.0 * a / us + b) * u + lam + 0.43)
        if us >= 0.07 and v <= squeeze:
            return k
        if k < 0.0 or (us < 0.013 and v > us):
            continue
        if math.log(v * inverse_alpha / (a / (us * us) + b)) <= _poisson_log_density(k, lam, log_lam):
            return k


@njit(inline=True)
def _take(state, n):
    """Take n block numbers off the stream; returns the first."""
    first = state[rng.BLOCK]
    state[rng.BLOCK] = first + np.uint64(n)
    return first


@kernel(
    "inout in in out size size",
    failures={1: (MXNetError, "gamma: alpha and beta must be finite and not negative")},
)
def gamma(state, alpha, beta, out, rows, per_row):
    """Fill row r with gamma numbers of shape alpha[r] and scale beta[r]: their mean is the product."""
    if not (_all_between(alpha, rows, 0.0, _MOST) and _all_between(beta, rows, 0.0, _MOST)):
        return 1
    block = _take(state, rows * per_row)
    for i in range(rows * per_row):
        r = i // per_row
        out[i] = beta[r] * _gamma(state[rng.KEY], block + np.uint64(i), alpha[r])
    return 0


@kernel(
    "inout in out size size",
    failures={1: (MXNetError, "poisson: the mean lam must be finite and not negative")},
)
def poisson(state, lam, out, rows, per_row):
    """Fill row r with Poisson numbers of mean lam[r]."""
    if not _all_between(lam, rows, 0.0, _MOST):
        return 1
    block = _take(state, rows * per_row)
    for i in range(rows * per_row):
        out[i] = _poisson(state[rng.KEY], block + np.uint64(i), lam[i // per_row])
    return 0


@kernel(
    "inout in in out size size",
    failures={1: (MXNetError, "negative_binomial: k must be finite and not negative, and p in [1e-300, 1]")},
)
def negative_binomial(state, k, p, out, rows, per_row):
    """Fill row r with the number of failures before k[r] successes of probability p[r]; k may be fractional.

    Poisson numbers whose mean is a gamma number of shape k and scale (1 - p) / p.
    """
    if not (_all_between(k, rows, 0.0, _MOST) and _all_between(p, rows, 1e-300, 1.0)):
        return 1
    block = _take(state, rows * per_row)
    for i in range(rows * per_row):
        r = i // per_row
        mean = _gamma(state[rng.KEY], block + np.uint64(i), k[r]) * ((1.0 - p[r]) / p[r])
        out[i] = _poisson(state[rng.KEY], block + np.uint64(i), mean)
    return 0


@kernel(
    "inout in in out size size",
    failures={1: (MXNetError, "generalized_negative_binomial: mu and alpha must be finite and not negative")},
)
def generalized_negative_binomial(state, mu, alpha, out, rows, per_row):
    """Fill row r with counts of mean mu[r] and variance ``mu + alpha mu^2``: Poisson numbers where alpha is 0.

    Poisson numbers whose mean is a gamma number of shape 1 / alpha and scale mu alpha.
    """
    if not (_all_between(mu, rows, 0.0, _MOST) and _all_between(alpha, rows, 0.0, _MOST)):
        return 1
    block = _take(state, rows * per_row)
    for i in range(rows * per_row):
        r = i // per_row
        mean = mu[r]
        if alpha[r] > 1e-300:
            mean = _gamma(state[rng.KEY], block + np.uint64(i), 1.0 / alpha[r]) * (mu[r] * alpha[r])
        out[i] = _poisson(state[rng.KEY], block + np.uint64(i), mean)
    return 0
