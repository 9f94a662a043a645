"""The counter-based generator of all random kernels: Philox4x32-10.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Ten
rounds of a keyed bijection turn a 128-bit counter, the *block* number, into four 32-bit words.

A stream is a uint64 array ``[key, next block]`` that kernels read and advance, so that a replayed program goes on
with the stream as eager code does. Of the counter's words the first two are the block number; the third is the
*attempt* and the fourth the *lane* of draws that rejection makes again, zero else. So element i of a fill depends
on the key, on the block number at its start and on i alone.

The stream rule: fills draw in *groups* of 32 blocks, 128 words, and advance the stream by whole groups. Word j of a
group is word ``j // 32`` of its block ``j % 32``, which leaves every store of the vectorised loop contiguous.
Samplers with rejection (gamma, poisson and what is made of them) use one block number an element.
"""

import hashlib
import math

import numpy as np

from numbagrad.native import vmath
from numbagrad.native.compiler import njit
from numbagrad.native.memory import itemsize, piece
from numbagrad.native.vmath.intrinsics import polynomial

GROUP_BLOCKS = 32
"""Blocks that a fill draws at once."""

GROUP_WORDS = 4 * GROUP_BLOCKS
"""32-bit words in a group."""

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)  # golden ratio
_WEYL_1 = np.uint64(0xBB67AE85)  # sqrt(3) - 1
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SIX = np.uint64(6)

KEY, BLOCK = 0, 1  # of a state


def seed_state(seed: int) -> np.ndarray:
    """A fresh stream for `seed`.

    Parameters
    ----------
    seed : int
        Any integer, of either sign and any size. The key is the BLAKE2b hash (8 bytes, read as little-endian) of the
        shortest little-endian two's complement form of `seed`.

    Returns
    -------
    uint64 array of shape (2,)
        Key and next block number (0).
    """
    state = np.empty(2, np.uint64)
    reseed(state, seed)
    return state


def reseed(state: np.ndarray, seed: int) -> None:
    """Start `state` again in place, as :func:`seed_state` would make it: for streams that programs hold on to."""
    seed = int(seed)
    content = seed.to_bytes((seed if seed >= 0 else ~seed).bit_length() // 8 + 1, "little", signed=True)
    state[KEY] = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
    state[BLOCK] = 0


def copy_state(state: np.ndarray) -> np.ndarray:
    """A stream that goes on as `state` does, and apart from it."""
    return np.array(state, np.uint64)


@njit(inline=True)
def philox(c0, c1, c2, c3, k0, k1):
    """The four words of counter ``(c0, c1, c2, c3)`` under key ``(k0, k1)``.

    All are 32-bit numbers in uint64, which is the lane in which processors multiply 32 by 32 bits; the upper half
    of a lane holds rubbish between rounds.
    """
    for _ in range(10):
        product_0 = (c0 & _LOW) * _MULTIPLIER_0
        product_1 = (c2 & _LOW) * _MULTIPLIER_1
        c0, c1 = (product_1 >> _HALF) ^ c1 ^ k0, product_1
        c2, c3 = (product_0 >> _HALF) ^ c3 ^ k1, product_0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0 & _LOW, c1 & _LOW, c2 & _LOW, c3 & _LOW


@njit
def draw_block(key, block, attempt, lane):
    """The four words of one block, for draws that rejection makes again; all arguments uint64."""
    return philox(block & _LOW, block >> _HALF, attempt, lane, key & _LOW, key >> _HALF)


@njit(apart=True)
def draw_group(key, block, words):
    """Fill `words`, uint32 of length ``GROUP_WORDS``, from ``GROUP_BLOCKS`` blocks beginning with `block`."""
    k0 = key & _LOW
    k1 = key >> _HALF
    for b in range(GROUP_BLOCKS):
        counter = block + np.uint64(b)
        c0, c1, c2, c3 = philox(counter & _LOW, counter >> _HALF, _ZERO, _ZERO, k0, k1)
        words[b] = np.uint32(c0)
        words[b + GROUP_BLOCKS] = np.uint32(c1)
        words[b + 2 * GROUP_BLOCKS] = np.uint32(c2)
        words[b + 3 * GROUP_BLOCKS] = np.uint32(c3)


@njit(inline=True)
def advance(state, elements, group):
    """Take the groups for `elements`, `group` of them a group, off the stream; returns the first block number."""
    first = state[BLOCK]
    state[BLOCK] = first + np.uint64(((elements + group - 1) // group) * GROUP_BLOCKS)
    return first


@njit
def bounded(word, count, key, block, lane):
    """A number on [0, count), count <= 2^32, each as likely, from a 32-bit `word` and, seldom, further attempts.

    Multiply and shift, refusing low products below ``2^32 % count`` (D. Lemire, "Fast random integer generation in
    an interval", 2019). `block` and `lane` say where `word` came from; all are uint64.
    """
    product = word * count
    if (product & _LOW) < count:
        unfit = (_LOW + _ONE) % count
        attempt = _ONE
        while (product & _LOW) < unfit:
            product = draw_block(key, block, attempt, lane)[0] * count
            attempt += _ONE
    return product >> _HALF


@njit
def multiply_wide(a, b):
    """(upper, lower) half of the 128-bit product of two uint64."""
    low = (a & _LOW) * (b & _LOW)
    cross_0 = (a & _LOW) * (b >> _HALF)
    cross_1 = (a >> _HALF) * (b & _LOW)
    middle = (low >> _HALF) + (cross_0 & _LOW) + (cross_1 & _LOW)
    high = (a >> _HALF) * (b >> _HALF) + (cross_0 >> _HALF) + (cross_1 >> _HALF) + (middle >> _HALF)
    return high, ((middle & _LOW) << _HALF) | (low & _LOW)


@njit(inline=True)
def open_unit(high, low):
    """A float64 strictly between 0 and 1, of 52 bits, from two 32-bit words in uint64."""
    return (np.float64(high >> _SIX) * 67108864.0 + np.float64(low >> _SIX) + 0.5) * 2.0**-52


# ------------------------------------------------------------------------------ words -> standard distributions
#
# Functions below fill `out` (float32 or float64) from the words of one group. A float64 takes two words, so a group
# gives `per_group(out)` elements of a dtype.


@njit(inline=True)
def per_group(out):
    """Elements of ``out``'s dtype that one group of words makes: 128 of up to 4 bytes, 64 of 8 bytes."""
    return GROUP_WORDS if itemsize(out) <= 4 else GROUP_WORDS // 2


@njit
def to_uniform(words, out):
    """Uniform numbers on [0, 1): multiples of 2^-24 (float32) or 2^-53 (float64)."""
    real = out.dtype.type
    if itemsize(out) == 4:
        scale = real(2.0**-24)
        for j in range(GROUP_WORDS):
            out[j] = real(np.int32(words[j] >> 8)) * scale
    else:
        high = piece(words, 0, GROUP_WORDS // 2)
        low = piece(words, GROUP_WORDS // 2, GROUP_WORDS // 2)
        upper, scale = real(2.0**26), real(2.0**-53)
        for j in range(GROUP_WORDS // 2):
            out[j] = (real(np.int32(high[j] >> 5)) * upper + real(np.int32(low[j] >> 6))) * scale


@njit
def to_positive(words, count, out):
    """`count` uniform numbers on (0, 1] as arguments of a logarithm, from as many (float32) or twice as many words.

    Near 0 they keep their full precision: the least is 2^-32 (float32) or 2^-54 (float64), so that exponential
    numbers reach 22.2 or 37.4 and normal numbers 6.66 or 8.65.
    """
    real = out.dtype.type
    half = real(0.5)
    if itemsize(out) == 4:
        scale = real(2.0**-31)
        for j in range(count):
            out[j] = (real(np.int32(words[j] >> 1)) + half) * scale
    else:
        high = words[:count]
        low = words[count : 2 * count]
        upper, scale = real(2.0**26), real(2.0**-53)
        for j in range(count):
            out[j] = (real(np.int32(high[j] >> 5)) * upper + (real(np.int32(low[j] >> 6)) + half)) * scale


@njit
def to_exponential(words, out):
    """Exponential numbers of mean 1: ``-log(u)``."""
    count = per_group(out)
    to_positive(words, count, out)
    for j in range(count):
        out[j] = -vmath.log(out[j])


# Taylor's terms of sin(x pi/2) / x and cos(x pi/2) in x^2 on |x| <= 1/2, as far as half an ulp reaches.
_SINE = tuple((-1) ** i * (math.pi / 2) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(8))
_COSINE = tuple((-1) ** i * (math.pi / 2) ** (2 * i) / math.factorial(2 * i) for i in range(9))
_sine_float32, _cosine_float32 = polynomial(_SINE[:5]), polynomial(_COSINE[:5])
_sine_float64, _cosine_float64 = polynomial(_SINE), polynomial(_COSINE)


@njit(inline=True)
def quarter_float32(x):
    """(sin, cos) of x quarter turns, |x| <= 1/2."""
    return _sine_float32(x * x) * x, _cosine_float32(x * x)


@njit(inline=True)
def quarter_float64(x):
    """(sin, cos) of x quarter turns, |x| <= 1/2."""
    return _sine_float64(x * x) * x, _cosine_float64(x * x)


@njit
def to_normal(words, out):
    """Standard normal numbers in pairs (G. E. P. Box, M. E. Muller, 1958): a radius and a direction.

    The direction is a point of the quarter circle about (1, 0), perhaps mirrored at the diagonal and at the origin by
    two bits of their own, which makes the whole circle without a range reduction.
    """
    real = out.dtype.type
    minus_two = real(-2)
    pairs = per_group(out) // 2
    to_positive(words, pairs, out)
    first = out[:pairs]
    second = out[pairs:]
    signed = words.view(np.int32)[GROUP_WORDS // 2 :]
    if itemsize(out) == 4:
        scale = real(2.0**-30)
        for j in range(GROUP_WORDS // 2):
            radius = vmath.sqrt(minus_two * vmath.log(first[j]))
            bits = signed[j]
            sine, cosine = quarter_float32(np.float32(np.int32(bits >> 2)) * np.float32(scale))
            radius = -radius if bits & 1 else radius
            swap = (bits & 2) != 0
            first[j] = radius * (sine if swap else cosine)
            second[j] = radius * (cosine if swap else sine)
    else:
        upper, scale = real(2.0**22), real(2.0**-52)
        low = signed[GROUP_WORDS // 4 :]
        for j in range(GROUP_WORDS // 4):
            radius = vmath.sqrt(minus_two * vmath.log(first[j]))
            bits = signed[j]
            angle = real(np.int32(bits >> 2)) * upper + real(np.int32((low[j] >> 10) & 0x3FFFFF))
            sine, cosine = quarter_float64(np.float64(angle * scale))
            radius = -radius if bits & 1 else radius
            swap = (bits & 2) != 0
            first[j] = radius * (sine if swap else cosine)
            second[j] = radius * (cosine if swap else sine)
