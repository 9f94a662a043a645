"""Random fills: every kernel takes the stream first and advances it by the blocks it used (see native/rng)."""

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import kernel
from numbagrad.native import rng
from numbagrad.native.compiler import njit


@njit
def _below(low, high):
    """The greatest number of the dtype below `high`, but `low` where there is none in between."""
    return high if high == low else np.nextafter(high, low)


@kernel(
    "inout out size scalar scalar",
    failures={1: (MXNetError, "uniform: low and high must be finite, and low must not be above high")},
)
def uniform(state, out, n, low, high):
    """out = numbers on [low, high), or low where both are one number; never `high`, whatever the rounding."""
    real = out.dtype.type
    low, high = real(low), real(high)
    if not (low <= high and abs(low) < np.inf and abs(high) < np.inf):
        return 1
    words = np.empty(rng.GROUP_WORDS, np.uint32)
    units = np.empty(rng.GROUP_WORDS, out.dtype)
    group = rng.per_group(out)
    block = rng.advance(state, n, group)
    below = _below(low, high)
    half = real(0.5)
    span, more = high - low, real(0)
    if not span < np.inf:
        span = high * half - low * half
        more = span
    for start in range(0, n, group):
        rng.draw_group(state[rng.KEY], block, words)
        block += np.uint64(rng.GROUP_BLOCKS)
        rng.to_uniform(words, units)
        target = out[start : min(start + group, n)]
        for j in range(target.size):
            value = low + units[j] * span + units[j] * more
            target[j] = value if value < below else below
    return 0


@kernel("inout out size scalar scalar")
def normal(state, out, n, loc, scale):
    """out = normal numbers of mean `loc` and standard deviation `scale`."""
    real = out.dtype.type
    loc, scale = real(loc), real(scale)
    words = np.empty(rng.GROUP_WORDS, np.uint32)
    units = np.empty(rng.GROUP_WORDS, out.dtype)
    group = rng.per_group(out)
    block = rng.advance(state, n, group)
    for start in range(0, n, group):
        rng.draw_group(state[rng.KEY], block, words)
        block += np.uint64(rng.GROUP_BLOCKS)
        rng.to_normal(words, units)
        target = out[start : min(start + group, n)]
        for j in range(target.size):
            target[j] = loc + scale * units[j]
    return 0
