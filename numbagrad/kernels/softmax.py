"""Softmax and its logarithm along the middle axis of (outer, n, inner), flat and row-major.

Both shift by the largest element, so that no finite input overflows; a row with NaN or +inf gives NaN.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.native import vmath
from numbagrad.native.compiler import REASSOCIATE, njit

_BLOCK = 1024
"""Elements summed in their own dtype before float64 takes over."""


@njit
def largest(x: Any) -> Any:
    """The largest element, in four independent chains; -inf of nothing. NaN may be passed over."""
    low = x.dtype.type(-np.inf)
    a, b, c, d = low, low, low, low
    fours = x.size // 4
    for i in range(fours):
        a = max(a, x[4 * i])
        b = max(b, x[4 * i + 1])
        c = max(c, x[4 * i + 2])
        d = max(d, x[4 * i + 3])
    for i in range(x.size - 4 * fours):
        a = max(a, x[4 * fours + i])
    return max(max(a, b), max(c, d))


@njit
def exponentials(x: Any, shift: Any, scale: Any, y: Any) -> None:
    """y = exp(scale (x - shift))."""
    for i in range(x.size):
        y[i] = vmath.exp((x[i] - shift) * scale)


@njit(fastmath=REASSOCIATE)
def block_sum(x: Any) -> float:
    """The sum in float64 of sums of :data:`_BLOCK` elements in the dtype of x."""
    total = np.float64(0)
    for start in range(0, x.size, _BLOCK):
        block = x[start : start + _BLOCK]
        part = x.dtype.type(0)
        for i in range(block.size):
            part += block[i]
        total += np.float64(part)
    return total


@njit(fastmath=REASSOCIATE)
def block_dot(x: Any, y: Any) -> float:
    """The sum of x y, as :func:`block_sum`."""
    total = np.float64(0)
    for start in range(0, x.size, _BLOCK):
        left = x[start : start + _BLOCK]
        right = y[start : start + _BLOCK]
        part = x.dtype.type(0)
        for i in range(left.size):
            part += left[i] * right[i]
        total += np.float64(part)
    return total


@njit
def _column(x: Any, n: int, inner: int, start: int, into: Any) -> None:
    for i in range(n):
        into[i] = x[start + i * inner]


@njit
def _put_column(values: Any, n: int, inner: int, start: int, y: Any) -> None:
    for i in range(n):
        y[start + i * inner] = values[i]


@njit
def _softmax_row(x: Any, y: Any, scale: Any) -> None:
    exponentials(x, largest(x), scale, y)
    total = y.dtype.type(block_sum(y))
    for i in range(y.size):
        y[i] /= total


@njit
def _log_softmax_row(x: Any, y: Any, scale: Any) -> None:
    shift = largest(x)
    exponentials(x, shift, scale, y)
    logarithm = y.dtype.type(np.log(block_sum(y)))
    for i in range(y.size):
        y[i] = (x[i] - shift) * scale - logarithm


@njit
def _softmax_row_vjp(g: Any, y: Any, dx: Any, scale: Any) -> None:
    mean = y.dtype.type(block_dot(g, y))
    for i in range(y.size):
        dx[i] = y[i] * (g[i] - mean) * scale


@njit
def _log_softmax_row_vjp(g: Any, y: Any, dx: Any, scale: Any) -> None:
    total = y.dtype.type(block_sum(g))
    for i in range(y.size):
        dx[i] = (g[i] - vmath.exp(y[i]) * total) * scale


@kernel("in out size size size scalar")
def softmax(x: Any, y: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """y = softmax(x / temperature) for a positive temperature."""
    scale = x.dtype.type(1.0 / temperature)
    if inner == 1:
        for i in range(outer):
            _softmax_row(x[i * n : (i + 1) * n], y[i * n : (i + 1) * n], scale)
        return 0
    row = np.empty(n, x.dtype)
    out = np.empty(n, x.dtype)
    for i in range(outer * inner):
        start = (i // inner) * n * inner + i % inner
        _column(x, n, inner, start, row)
        _softmax_row(row, out, scale)
        _put_column(out, n, inner, start, y)
    return 0


@kernel("in out size size size scalar")
def log_softmax(x: Any, y: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """y = log(softmax(x / temperature)) for a positive temperature."""
    scale = x.dtype.type(1.0 / temperature)
    if inner == 1:
        for i in range(outer):
            _log_softmax_row(x[i * n : (i + 1) * n], y[i * n : (i + 1) * n], scale)
        return 0
    row = np.empty(n, x.dtype)
    out = np.empty(n, x.dtype)
    for i in range(outer * inner):
        start = (i // inner) * n * inner + i % inner
        _column(x, n, inner, start, row)
        _log_softmax_row(row, out, scale)
        _put_column(out, n, inner, start, y)
    return 0


@kernel("in in out size size size scalar")
def softmax_vjp(g: Any, y: Any, dx: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """dx = y (g - sum(g y)) / temperature, y being the result of :data:`softmax`."""
    scale = y.dtype.type(1.0 / temperature)
    if inner == 1:
        for i in range(outer):
            row = slice(i * n, (i + 1) * n)
            _softmax_row_vjp(g[row], y[row], dx[row], scale)
        return 0
    head = np.empty(n, y.dtype)
    result = np.empty(n, y.dtype)
    out = np.empty(n, y.dtype)
    for i in range(outer * inner):
        start = (i // inner) * n * inner + i % inner
        _column(g, n, inner, start, head)
        _column(y, n, inner, start, result)
        _softmax_row_vjp(head, result, out, scale)
        _put_column(out, n, inner, start, dx)
    return 0


@kernel("in in out size size size scalar")
def log_softmax_vjp(g: Any, y: Any, dx: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """dx = (g - exp(y) sum(g)) / temperature, y being the result of :data:`log_softmax`."""
    scale = y.dtype.type(1.0 / temperature)
    if inner == 1:
        for i in range(outer):
            row = slice(i * n, (i + 1) * n)
            _log_softmax_row_vjp(g[row], y[row], dx[row], scale)
        return 0
    head = np.empty(n, y.dtype)
    result = np.empty(n, y.dtype)
    out = np.empty(n, y.dtype)
    for i in range(outer * inner):
        start = (i // inner) * n * inner + i % inner
        _column(g, n, inner, start, head)
        _column(y, n, inner, start, result)
        _log_softmax_row_vjp(head, result, out, scale)
        _put_column(out, n, inner, start, dx)
    return 0
