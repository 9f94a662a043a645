"""Batch and layer normalization, each one kernel forward and one back.

Both see their data as (outer, n, inner), flat and row-major. Batch normalization keeps the middle axis and takes its
statistics over the other two; layer normalization takes them along the middle axis. Variances are biased and computed
in a second pass, about the mean, so that a large mean costs no digits. The mean is rounded to the dtype before that
pass and in the normalization alike. Gradients follow S. Ioffe, C. Szegedy, "Batch normalization" (2015): with x' the
normalized input, s the deviation and h the head gradient times gamma, dx = (h - mean(h) - x' mean(h x')) / s.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.kernels.softmax import block_sum
from numbagrad.native.compiler import REASSOCIATE, njit
from numbagrad.native.memory import piece

_BLOCK = 1024
"""Elements summed in their own dtype before float64 takes over."""


@njit(fastmath=REASSOCIATE)
def _block_squares(x: Any, shift: Any) -> float:
    """The sum of (x - shift)^2."""
    total = np.float64(0)
    for start in range(0, x.size, _BLOCK):
        size = min(_BLOCK, x.size - start)
        block = piece(x, start, size)
        part = x.dtype.type(0)
        for i in range(block.size):
            part += (block[i] - shift) * (block[i] - shift)
        total += np.float64(part)
    return total


@njit(fastmath=REASSOCIATE)
def _block_moment(g: Any, x: Any, shift: Any) -> float:
    """The sum of g (x - shift)."""
    total = np.float64(0)
    for start in range(0, x.size, _BLOCK):
        size = min(_BLOCK, x.size - start)
        left = piece(g, start, size)
        right = piece(x, start, size)
        part = x.dtype.type(0)
        for i in range(left.size):
            part += left[i] * (right[i] - shift)
        total += np.float64(part)
    return total


@njit(fastmath=REASSOCIATE)
def _weighted_sum(g: Any, weight: Any) -> float:
    """The sum of g weight."""
    total = np.float64(0)
    for start in range(0, g.size, _BLOCK):
        size = min(_BLOCK, g.size - start)
        left = piece(g, start, size)
        right = piece(weight, start, size)
        part = g.dtype.type(0)
        for i in range(left.size):
            part += left[i] * right[i]
        total += np.float64(part)
    return total


@njit(fastmath=REASSOCIATE)
def _weighted_moment(g: Any, weight: Any, x: Any, shift: Any) -> float:
    """The sum of g weight (x - shift)."""
    total = np.float64(0)
    for start in range(0, g.size, _BLOCK):
        size = min(_BLOCK, g.size - start)
        left = piece(g, start, size)
        middle = piece(weight, start, size)
        right = piece(x, start, size)
        part = g.dtype.type(0)
        for i in range(left.size):
            part += left[i] * middle[i] * (right[i] - shift)
        total += np.float64(part)
    return total


@njit
def _deliver(sums: Any, out: Any, add: int) -> None:
    """Set out = sums, or out += sums."""
    if add:
        for j in range(sums.size):
            out[j] += out.dtype.type(sums[j])
    else:
        for j in range(sums.size):
            out[j] = out.dtype.type(sums[j])


# -------------------------------------------------------------------------------------------- batch: parts
#
# `_row_*` run over one row of (rows, channels), the channels being contiguous: inner is 1. The others run over one
# stretch of a single channel.


@njit
def _row_add(x: Any, sums: Any) -> None:
    for j in range(sums.size):
        sums[j] += np.float64(x[j])


@njit
def _row_add_squares(x: Any, mean: Any, sums: Any) -> None:
    for j in range(sums.size):
        d = np.float64(x[j] - mean[j])
        sums[j] += d * d


@njit
def _row_normalize(x: Any, mean: Any, scale: Any, beta: Any, y: Any) -> None:
    for j in range(y.size):
        y[j] = (x[j] - mean[j]) * scale[j] + beta[j]


@njit
def _row_moments(g: Any, x: Any, mean: Any, sums: Any, moments: Any) -> None:
    for j in range(sums.size):
        sums[j] += np.float64(g[j])
        moments[j] += np.float64(g[j] * (x[j] - mean[j]))


@njit
def _row_gradient(g: Any, x: Any, mean: Any, scale: Any, level: Any, slope: Any, dx: Any) -> None:
    for j in range(dx.size):
        dx[j] = (g[j] - level[j] - (x[j] - mean[j]) * slope[j]) * scale[j]


@njit
def _stretch_normalize(x: Any, mean: Any, scale: Any, beta: Any, y: Any) -> None:
    for i in range(y.size):
        y[i] = (x[i] - mean) * scale + beta


@njit
def _stretch_gradient(g: Any, x: Any, mean: Any, scale: Any, level: Any, slope: Any, dx: Any) -> None:
    for i in range(dx.size):
        dx[i] = (g[i] - level - (x[i] - mean) * slope) * scale


@njit
def _channel_means(x: Any, outer: int, n: int, inner: int, mean: Any, variance: Any) -> None:
    """The mean of each channel in the dtype, and its biased variance in float64."""
    count = outer * inner
    sums = np.zeros(n, np.float64)
    if inner == 1:
        for o in range(outer):
            _row_add(piece(x, o * n, n), sums)
    else:
        for o in range(outer):
            for c in range(n):
                start = (o * n + c) * inner
                sums[c] += block_sum(piece(x, start, inner))
    for c in range(n):
        mean[c] = mean.dtype.type(sums[c] / count)
        variance[c] = 0
    if inner == 1:
        for o in range(outer):
            _row_add_squares(piece(x, o * n, n), mean, variance)
    else:
        for o in range(outer):
            for c in range(n):
                start = (o * n + c) * inner
                variance[c] += _block_squares(piece(x, start, inner), mean[c])
    for c in range(n):
        variance[c] /= count


@njit
def _normalize(x: Any, mean: Any, scale: Any, beta: Any, y: Any, outer: int, n: int, inner: int) -> None:
    """Set y = (x - mean) scale + beta, channel by channel."""
    if inner == 1:
        for o in range(outer):
            _row_normalize(piece(x, o * n, n), mean, scale, beta, piece(y, o * n, n))
    else:
        for o in range(outer):
            for c in range(n):
                start = (o * n + c) * inner
                _stretch_normalize(piece(x, start, inner), mean[c], scale[c], beta[c], piece(y, start, inner))


@njit
def _channel_moments(g: Any, x: Any, mean: Any, outer: int, n: int, inner: int, sums: Any, moments: Any) -> None:
    """The sums of g and of g (x - mean) of each channel."""
    if inner == 1:
        for o in range(outer):
            _row_moments(piece(g, o * n, n), piece(x, o * n, n), mean, sums, moments)
    else:
        for o in range(outer):
            for c in range(n):
                start = (o * n + c) * inner
                sums[c] += block_sum(piece(g, start, inner))
                moments[c] += _block_moment(piece(g, start, inner), piece(x, start, inner), mean[c])


@njit
def _gradient(
    g: Any, x: Any, mean: Any, scale: Any, level: Any, slope: Any, dx: Any, outer: int, n: int, inner: int
) -> None:
    """Set dx = (g - level - (x - mean) slope) scale, channel by channel."""
    if inner == 1:
        for o in range(outer):
            row = slice(o * n, o * n + n)
            _row_gradient(g[row], x[row], mean, scale, level, slope, dx[row])
    else:
        for o in range(outer):
            for c in range(n):
                start = (o * n + c) * inner
                part = slice(start, start + inner)
                _stretch_gradient(g[part], x[part], mean[c], scale[c], level[c], slope[c], dx[part])


# -------------------------------------------------------------------------------------------- batch: kernels


@kernel("in in in out out out inout inout size size size scalar scalar static")
def batch_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    y: Any,
    mean: Any,
    inverse: Any,
    running_mean: Any,
    running_var: Any,
    outer: int,
    n: int,
    inner: int,
    eps: float,
    momentum: float,
    fix_gamma: int,
) -> int:
    """Set y = (x - mean) / sqrt(variance + eps) gamma + beta by the batch's statistics; the running ones move.

    `mean` and `inverse` (n,) get the mean and 1 / sqrt(variance + eps), for the VJP. Running statistics become
    momentum times themselves and 1 - momentum times the batch's. With `fix_gamma` gamma counts as 1. An empty batch
    changes nothing.
    """
    real = x.dtype.type
    if outer * inner == 0:
        for c in range(n):
            mean[c] = inverse[c] = real(0)
        return 0
    variance = np.empty(n, np.float64)
    _channel_means(x, outer, n, inner, mean, variance)
    scale = np.empty(n, x.dtype)
    for c in range(n):
        inverse[c] = real(1.0 / np.sqrt(variance[c] + eps))
        scale[c] = inverse[c] if fix_gamma else inverse[c] * gamma[c]
    _normalize(x, mean, scale, beta, y, outer, n, inner)
    kept = running_mean.dtype.type
    for c in range(n):
        running_mean[c] = kept(momentum * running_mean[c] + (1.0 - momentum) * mean[c])
        running_var[c] = kept(momentum * running_var[c] + (1.0 - momentum) * variance[c])
    return 0


@kernel("in in in in in out inout inout size size size static static static static static static")
def batch_norm_vjp(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    inverse: Any,
    dx: Any,
    dgamma: Any,
    dbeta: Any,
    outer: int,
    n: int,
    inner: int,
    through: int,
    fix_gamma: int,
    want_x: int,
    want_gamma: int,
    want_beta: int,
    add: int,
) -> int:
    """The gradients of both kinds of batch normalization.

    `through` says that the statistics are the batch's, so that gradients flow through them. `want_*` say which
    gradients are wanted (what is not wanted is any array of the dtype); bit 0 of `add` that dgamma, bit 1 that dbeta
    is added to what is there.
    """
    real = x.dtype.type
    count = outer * inner
    sums, moments = np.zeros(n, np.float64), np.zeros(n, np.float64)
    if through or want_gamma or want_beta:
        _channel_moments(g, x, mean, outer, n, inner, sums, moments)
    if want_x:
        scale, level, slope = np.empty(n, x.dtype), np.zeros(n, x.dtype), np.zeros(n, x.dtype)
        for c in range(n):
            scale[c] = inverse[c] if fix_gamma else inverse[c] * gamma[c]
            if through and count:
                level[c] = real(sums[c] / count)
                slope[c] = real(moments[c] * inverse[c] * inverse[c] / count)
        _gradient(g, x, mean, scale, level, slope, dx, outer, n, inner)
    if want_gamma:
        for c in range(n):
            moments[c] *= inverse[c]
        _deliver(moments, dgamma, add & 1)
    if want_beta:
        _deliver(sums, dbeta, add & 2)
    return 0


@kernel("in in in in in out size size size scalar static")
def batch_norm_inference(
    x: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    y: Any,
    outer: int,
    n: int,
    inner: int,
    eps: float,
    fix_gamma: int,
) -> int:
    """Set y = (x - running_mean) / sqrt(running_var + eps) gamma + beta."""
    scale, mean = np.empty(n, x.dtype), np.empty(n, x.dtype)
    for c in range(n):
        inverse = x.dtype.type(1.0 / np.sqrt(np.float64(running_var[c]) + eps))
        scale[c] = inverse if fix_gamma else inverse * gamma[c]
        mean[c] = running_mean[c]
    _normalize(x, mean, scale, beta, y, outer, n, inner)
    return 0


@kernel("in in out out size scalar")
def running_statistics(running_mean: Any, running_var: Any, mean: Any, inverse: Any, n: int, eps: float) -> int:
    """What :data:`batch_norm_vjp` takes, from running statistics."""
    for c in range(n):
        mean[c] = running_mean[c]
        inverse[c] = inverse.dtype.type(1.0 / np.sqrt(np.float64(running_var[c]) + eps))
    return 0


# ------------------------------------------------------------------------------------------------------- layer


@njit
def _column(x: Any, n: int, inner: int, start: int, into: Any) -> None:
    for i in range(n):
        into[i] = x[start + i * inner]


@njit
def _put_column(values: Any, n: int, inner: int, start: int, y: Any) -> None:
    for i in range(n):
        y[start + i * inner] = values[i]


@njit
def _layer_row(x: Any, gamma: Any, beta: Any, y: Any, eps: float, affine: int) -> Any:
    """Normalize one row; its mean and the inverse of its deviation."""
    real = x.dtype.type
    mean = real(block_sum(x) / x.size)
    inverse = real(1.0 / np.sqrt(_block_squares(x, mean) / x.size + eps))
    if affine:
        for i in range(y.size):
            y[i] = (x[i] - mean) * inverse * gamma[i] + beta[i]
    else:
        for i in range(y.size):
            y[i] = (x[i] - mean) * inverse
    return mean, inverse


@njit
def _layer_row_gradient(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any, dx: Any, affine: int) -> None:
    real = x.dtype.type
    if affine:
        total, moment = _weighted_sum(g, gamma), _weighted_moment(g, gamma, x, mean)
    else:
        total, moment = block_sum(g), _block_moment(g, x, mean)
    level = real(total / x.size)
    slope = real(moment * inverse * inverse / x.size)
    if affine:
        for i in range(dx.size):
            dx[i] = (g[i] * gamma[i] - level - (x[i] - mean) * slope) * inverse
    else:
        for i in range(dx.size):
            dx[i] = (g[i] - level - (x[i] - mean) * slope) * inverse


@njit
def _layer_row_sums(g: Any, x: Any, mean: Any, inverse: Any, sums: Any, moments: Any) -> None:
    for i in range(sums.size):
        sums[i] += np.float64(g[i])
        moments[i] += np.float64(g[i] * ((x[i] - mean) * inverse))


@kernel("in in in out out out size size size scalar static")
def layer_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    y: Any,
    mean: Any,
    inverse: Any,
    outer: int,
    n: int,
    inner: int,
    eps: float,
    affine: int,
) -> int:
    """Set y = (x - mean) / sqrt(variance + eps), times gamma plus beta (n,) if `affine`, along the middle axis.

    `mean` and `inverse` (outer inner,) get the mean and 1 / sqrt(variance + eps), for the VJP.
    """
    if inner == 1:
        for o in range(outer):
            row = slice(o * n, o * n + n)
            mean[o], inverse[o] = _layer_row(x[row], gamma, beta, y[row], eps, affine)
        return 0
    line, out = np.empty(n, x.dtype), np.empty(n, x.dtype)
    for k in range(outer * inner):
        start = (k // inner) * n * inner + k % inner
        _column(x, n, inner, start, line)
        mean[k], inverse[k] = _layer_row(line, gamma, beta, out, eps, affine)
        _put_column(out, n, inner, start, y)
    return 0


@kernel("in in in in in out inout inout size size size static static static static static")
def layer_norm_vjp(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    inverse: Any,
    dx: Any,
    dgamma: Any,
    dbeta: Any,
    outer: int,
    n: int,
    inner: int,
    affine: int,
    want_x: int,
    want_gamma: int,
    want_beta: int,
    add: int,
) -> int:
    """The gradients of :data:`layer_norm`; `want_*` and `add` as in :data:`batch_norm_vjp`."""
    sums, moments = np.zeros(n, np.float64), np.zeros(n, np.float64)
    want_sums = want_gamma or want_beta
    if inner == 1:
        for o in range(outer):
            row = slice(o * n, o * n + n)
            if want_x:
                _layer_row_gradient(g[row], x[row], gamma, mean[o], inverse[o], dx[row], affine)
            if want_sums:
                _layer_row_sums(g[row], x[row], mean[o], inverse[o], sums, moments)
    else:
        head, line, out = np.empty(n, x.dtype), np.empty(n, x.dtype), np.empty(n, x.dtype)
        for k in range(outer * inner):
            start = (k // inner) * n * inner + k % inner
            _column(g, n, inner, start, head)
            _column(x, n, inner, start, line)
            if want_x:
                _layer_row_gradient(head, line, gamma, mean[k], inverse[k], out, affine)
                _put_column(out, n, inner, start, dx)
            if want_sums:
                _layer_row_sums(head, line, mean[k], inverse[k], sums, moments)
    if want_gamma:
        _deliver(moments, dgamma, add & 1)
    if want_beta:
        _deliver(sums, dbeta, add & 2)
    return 0
