"""Dropout (N. Srivastava et al., JMLR 2014): masks drawn from the stream, values scaled by 1 / (1 - p)."""

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import kernel
from numbagrad.native import rng
from numbagrad.native.compiler import njit

_RATE = {1: (MXNetError, "dropout: the rate p must lie between 0 and 1")}


@njit
def _draw(state, mask, n, p):
    """Write 1 with probability 1 - p, to within 2^-32, else 0."""
    words = np.empty(rng.GROUP_WORDS, np.uint32)
    block = rng.advance(state, n, rng.GROUP_WORDS)
    kept = np.uint64(np.rint((1.0 - p) * 4294967296.0))  # of the 2^32 words
    if kept == 0:
        for i in range(n):
            mask[i] = 0
        return
    last = np.uint32(kept - np.uint64(1))
    for start in range(0, n, rng.GROUP_WORDS):
        rng.draw_group(state[rng.KEY], block, words)
        block += np.uint64(rng.GROUP_BLOCKS)
        target = mask[start : min(start + rng.GROUP_WORDS, n)]
        for j in range(target.size):
            target[j] = np.uint8(words[j] <= last)


@njit
def _apply(x, mask, y, n, p):
    """Write x / (1 - p) where the mask is 1, else 0, also where x is not finite."""
    real = y.dtype.type
    zero = real(0)
    scale = real(1.0 / (1.0 - p)) if p < 1.0 else zero
    for i in range(n):
        value = x[i] * scale
        y[i] = value if mask[i] != 0 else zero


@kernel("inout in out out size scalar", failures=_RATE)
def dropout(state, x, y, mask, n, p):
    """Set y = x keep / (1 - p), `keep` being 1 with probability 1 - p and saved as uint8; p = 1 gives zeros."""
    if not (p >= 0.0 and p <= 1.0):
        return 1
    _draw(state, mask, n, p)
    _apply(x, mask, y, n, p)
    return 0


@kernel("in in out size scalar", failures=_RATE)
def dropout_vjp(g, mask, dx, n, p):
    """Set dx = g keep / (1 - p), with the mask of the forward."""
    if not (p >= 0.0 and p <= 1.0):
        return 1
    _apply(g, mask, dx, n, p)
    return 0


@kernel("inout out size scalar", failures=_RATE)
def dropout_mask(state, mask, n, p):
    """Write 1 with probability 1 - p, else 0, in any dtype: for dropout that shares a small mask along axes."""
    if not (p >= 0.0 and p <= 1.0):
        return 1
    _draw(state, mask, n, p)
    return 0
